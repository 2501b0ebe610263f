# SPDX-License-Identifier: MIT
"""Where a target's kernel modules come from, and what is said where there are none.

No module is loaded: that is for the lab.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.kernel_board import PLAIN, RELEASE, Board

from rtgauge.errors import MeasureError
from rtgauge.system.loadable_modules import NoModules
from rtgauge_ext.signal import kernel_modules
from rtgauge_ext.signal.kernel_modules import ABI, modules_for

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADERS = f"/lib/modules/{RELEASE}/build"
MODULES = ("rtgauge_core", "rtgauge_wire", "rtgauge_periodic", "rtgauge_response")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RTGAUGE_KMOD", raising=False)


def find(board: Board, names: Sequence[str] = MODULES) -> list[str]:
    return modules_for(board, names, lambda _: None)  # pyright: ignore[reportArgumentType]


def test_the_abi_is_that_of_the_modules() -> None:
    header = (Path(__file__).parents[4] / "kmod/rtgauge_kmod.h").read_text()
    assert re.findall(r"#define RTGAUGE_KMOD_ABI ([0-9]+)", header) == [ABI]


@pytest.mark.parametrize(
    ("files", "expected_text"),
    [
        ({"/proc/modules": None}, "cannot load modules; measure in user space over a path other"),
        ({"/proc/sys/kernel/modules_disabled": "1\n"}, "modules_disabled is 1"),
        (
            {},
            (
                f"the headers of the kernel {RELEASE} are not installed on ssh://board; apt-get install "
                f"linux-headers-{RELEASE} make gcc"
            ),
        ),
    ],
)
def test_why_there_are_none_and_the_way_out(files: dict[str, str | None], expected_text: str) -> None:
    with pytest.raises(NoModules, match=re.escape(expected_text)):
        find(Board({**PLAIN, **files}))


def test_what_dkms_has_installed_is_taken() -> None:
    folder = f"/lib/modules/{RELEASE}/updates/dkms"
    board = Board(dict(PLAIN), {folder: [f"{name}.ko.xz" for name in MODULES]})
    assert find(board, MODULES[:2]) == [f"{folder}/{name}.ko.xz" for name in MODULES[:2]]


def headers(folder: Path, recipe: str) -> dict[str, str | None]:
    """A target whose kernel has headers in `folder`: their makefile does this in place of a build."""
    folder.mkdir()
    (folder / "Makefile").write_text(f"modules:\n\t{recipe}\n")
    return {**PLAIN, f"{HEADERS}/Makefile": "modules:"}


def build_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_modules, "BUILD", kernel_modules.BUILD.replace('"$2"', str(folder)))


def test_they_are_built_on_the_target_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the sources of the tree, with the target's own headers; the second time nothing is built."""
    folder = tmp_path / "headers"
    board = Board(
        headers(folder, "cd $(M) && for name in " + " ".join(MODULES) + "; do cat core.c >$$name.ko; done")
    )
    build_in(folder, monkeypatch)
    files = find(board, MODULES[:1])
    assert [Path(file).name for file in files] == ["rtgauge_core.ko"]
    assert "rtgauge_keep" in Path(files[0]).read_text()
    assert find(board, MODULES[:1]) == files
    assert len(board.ran) == 1
    Path(files[0]).parent.chmod(0o777)
    with pytest.raises(MeasureError, match="others can write to"):
        find(board, MODULES[:1])


def test_they_are_built_again_if_how_they_are_built_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "headers"
    board = Board(headers(folder, "cd $(M) && touch rtgauge_core.ko"))
    build_in(folder, monkeypatch)
    before = find(board, MODULES[:1])
    monkeypatch.setattr(kernel_modules, "STRIP", ("strip", "--strip-all"))
    assert find(board, MODULES[:1]) != before
    assert len(board.ran) == 2


def test_debug_information_is_removed_on_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "strip"
    program.write_text('#!/bin/sh\nshift\nfor file; do echo stripped >"$file"; done\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    folder = tmp_path / "headers"
    board = Board(headers(folder, "cd $(M) && touch rtgauge_core.ko"))
    build_in(folder, monkeypatch)
    (file,) = find(board, MODULES[:1])
    assert Path(file).read_text() == "stripped\n"


def test_a_module_that_this_kernel_has_not_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task on a co-kernel is built only where the kernel has that co-kernel."""
    folder = tmp_path / "headers"
    board = Board(headers(folder, "cd $(M) && touch rtgauge_core.ko"))
    build_in(folder, monkeypatch)
    with pytest.raises(
        NoModules, match=rf"rtgauge_periodic_cobalt cannot be built for the kernel {re.escape(RELEASE)}"
    ):
        find(board, ["rtgauge_core", "rtgauge_periodic_cobalt"])


def test_a_build_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "headers"
    board = Board(headers(folder, "echo 'core.c:7: error: no such thing'; exit 1"))
    build_in(folder, monkeypatch)
    with pytest.raises(
        NoModules, match=r"could not be built on ssh://board \(.*core.c:7: error: no such thing"
    ):
        find(board)
    assert not list(tmp_path.glob("cache/rtgauge/kmod/*/*.ko"))


def module(folder: Path, name: str, words: dict[str, str]) -> None:
    """An object file with what modinfo reads."""
    text = "".join(f'.asciz \\"{key}={value}\\"\\n' for key, value in words.items())
    source = f'__asm__(".section .modinfo,\\"a\\"\\n" "{text}");\n'
    subprocess.run(
        ["gcc", "-x", "c", "-c", "-o", folder / f"{name}.ko", "-"], input=source, text=True, check=True
    )


@pytest.mark.parametrize(
    ("words", "expected_text"),
    [
        (
            {"vermagic": "6.1.0-other SMP", "rtgauge_abi": ABI},
            f"was built for the kernel 6.1.0-other (vermagic), but this is {RELEASE}",
        ),
        ({"vermagic": f"{RELEASE} SMP", "rtgauge_abi": "9"}, f"has ABI 9, but this rtgauge uses ABI {ABI}"),
        ({"vermagic": f"{RELEASE} SMP"}, "has ABI (none)"),
    ],
)
def test_modules_of_ones_own_are_compared_with_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: dict[str, str], expected_text: str
) -> None:
    monkeypatch.setenv("RTGAUGE_KMOD", str(tmp_path))
    with pytest.raises(NoModules, match=r"has no rtgauge_core\.ko"):
        find(Board(dict(PLAIN)))
    for name in MODULES:
        module(tmp_path, name, words)
    with pytest.raises(NoModules, match=re.escape(expected_text)):
        find(Board(dict(PLAIN)))


def test_modules_of_ones_own_that_fit_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTGAUGE_KMOD", str(tmp_path))
    for name in MODULES:
        module(tmp_path, name, {"vermagic": f"{RELEASE} SMP preempt", "rtgauge_abi": ABI})
    assert find(Board(dict(PLAIN)), ["rtgauge_wire"]) == [str(tmp_path / "rtgauge_wire.ko")]


def test_of_several_own_modules_the_kernels_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTGAUGE_KMOD", str(tmp_path))
    for release in (RELEASE, "5.4.301"):
        (tmp_path / release).mkdir()
        module(tmp_path / release, "rtgauge_wire", {"vermagic": f"{release} SMP preempt", "rtgauge_abi": ABI})
    assert find(Board(dict(PLAIN)), ["rtgauge_wire"]) == [str(tmp_path / RELEASE / "rtgauge_wire.ko")]
