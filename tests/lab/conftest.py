# SPDX-License-Identifier: MIT
"""Guests for the tests: built once into the user's cache, booted with a home of their own, one at a time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from rtgauge_ext.lab.packages import MIRROR, NO_DATES
from tests.support.cli import CommandResult, good, invoke, rtgauge
from tests.support.made_once import made_once

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

NEEDED = (
    "qemu-system-x86_64",
    "qemu-system-aarch64",
    "qemu-system-riscv64",
    "mmdebstrap",
    "mke2fs",
    "ssh",
)
BUILD_S, BOOT_S = 900, 240
NEWEST = "-newest"
"""The end of the name of a guest with the newest kernel that Debian has."""


FILES_GUEST = {
    "test_by_boot": "debian-rt",
    "test_timerlat": "debian-rt",
    "test_kmod": "kernels of the test",
    "test_serial_guest": "serial",
}
"""What the tests of a file boot, where it is not `debian` and their names do not say it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.lab)
            item.add_marker(pytest.mark.timeout(1200))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A guest in which a test failed may be broken: the next test boots it anew."""
    report = yield
    if report.failed and call.when == "call" and "lab" in item.funcargs:
        lab = item.funcargs["lab"]
        assert isinstance(lab, Lab)
        if lab.tried is not None:
            report.sections.append(("kernel", f"lab:{lab.tried} is {lab.listed(lab.tried)['kernel']}"))
        lab.stop()
    return report


class ByGuest(LoadScopeScheduling):
    """What boots the same guest stays on one worker, and follows one another there: the guest is booted once.

    The most tests come first.
    """

    def _split_scope(self, nodeid: str) -> str:
        """The guest. (pytest-xdist 3.8 does not see its own mark for that, xdist_group, in pytest 9.2.)"""
        named = re.search(r"(debian[a-z0-9-]*)\]$", nodeid)
        return (
            named[1] if named is not None else FILES_GUEST.get(Path(nodeid.partition("::")[0]).stem, "debian")
        )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGuest:
    return ByGuest(config, log)


class Lab:
    """The command `rtgauge lab`; what its guests keep is in `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        mirror = os.environ.get("RTGAUGE_LAB_MIRROR", f"{NO_DATES} {MIRROR}")
        self.env: dict[str, str | None] = {"XDG_DATA_HOME": str(home), "RTGAUGE_LAB_MIRROR": mirror}
        self.up: str | None = None
        self.tried: str | None = None
        """The last guest that was booted, whether it came up or not."""
        self.append = ""
        self.smp: str | None = None
        self.icount = False
        self.others: list[str] = []
        self.fetched: set[str] = set()

    def boot_beside(self, name: str, *, icount: bool = False) -> None:
        """Boot one more guest, until `stop`."""
        self.others.append(name)
        self._boot(name, "", icount=icount)

    def _boot(self, name: str, append: str, smp: str | None = None, *, icount: bool = False) -> None:
        of, self.tried = [name], name
        if name.endswith(NEWEST):
            of = [
                name.removesuffix(NEWEST),
                "--kernel",
                "newest",
                *(() if name in self.fetched else ("--fresh",)),
            ]
        good(rtgauge("lab", "build", *of, env=self.env, timeout=BUILD_S))
        self.fetched.add(name)
        more = (*(("--smp", smp) if smp is not None else ()), *(("--icount",) if icount else ()))
        words = ("lab", "boot", name, "--accel", "tcg", "--append", append, *more)
        completed = rtgauge(*words, env=self.env, timeout=BOOT_S)
        if completed.returncode and "did not come up within" in completed.stderr:
            # Where something else takes nearly all of this machine, an emulated kernel's timers fall behind
            # for good.
            completed = rtgauge(*words, env=self.env, timeout=BOOT_S)
        good(completed)

    def boot(self, name: str, append: str = "", smp: str | None = None, *, icount: bool = False) -> None:
        """Make sure that just this guest runs: these words on its kernel's command line, so many CPUs
        (`rtgauge lab boot --smp`), this clock (`--icount`).
        """
        if (self.up, self.append, self.smp, self.icount) == (name, append, smp, icount) and not self.others:
            return
        self.stop()
        self._boot(name, append, smp, icount=icount)
        self.up, self.append, self.smp, self.icount = name, append, smp, icount

    def stop(self) -> None:
        for name in [*([self.up] if self.up is not None else []), *self.others]:
            good(rtgauge("lab", "stop", name, env=self.env, timeout=60))
        self.up = None
        self.others.clear()

    def command(self, *words: object, status: int = 0) -> CommandResult:
        """A command of rtgauge's on the guest that is up."""
        return good(invoke(*words, "--target", f"lab:{self.up}", env=self.env), status)

    def run_in(self, *words: str) -> str:
        """What a command in the guest prints."""
        assert self.up is not None
        # longer than a command waits for a guest: it then says why it did not come up
        return good(rtgauge("lab", "shell", self.up, *words, env=self.env, timeout=150)).stdout

    def copy_engine(self, engine: Path) -> None:
        """Copy an engine to /tmp/engine in the guest."""
        assert self.up is not None
        words = ("lab", "shell", self.up, "cat >/tmp/engine && chmod 700 /tmp/engine")
        with engine.open("rb") as program:
            good(rtgauge(*words, env=self.env, stdin=program))

    def listed(self, name: str) -> dict[str, Any]:
        guests: list[dict[str, Any]] = json.loads(good(invoke("lab", "list", "--json", env=self.env)).stdout)
        return next(guest for guest in guests if guest["name"] == name)


def _make_key(folder: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def _share_key(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """All workers' guests let in the same key: it is part of their images, which are built once for all."""
    shared = made_once(tmp_path_factory, "lab-key", _make_key)
    place = home / "rtgauge/lab"
    place.mkdir(parents=True, mode=0o700)
    for name in ("key", "key.pub"):
        shutil.copy(shared / name, place)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    missing = [
        program
        for program in NEEDED
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None
    ]
    assert not missing, f"the lab's tests need {', '.join(missing)}: sh tools/packages.sh lab"
    item = Lab(tmp_path_factory.mktemp("lab"))
    _share_key(item.home, tmp_path_factory)
    try:
        yield item
    finally:
        item.stop()


@pytest.fixture
def measured(lab: Lab, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Path]]:
    """Runs a plan on the guest that is up; gives the JSON document and the record's folder."""

    def run(*words: object, status: int = 0) -> tuple[dict[str, Any], Path]:
        out = tmp_path / "records"
        completed = invoke("run", "--target", f"lab:{lab.up}", "--json", "--out", out, *words, env=lab.env)
        good(completed, status)
        document: dict[str, Any] = json.loads(completed.stdout)
        return document, max(out.iterdir(), key=lambda path: path.stat().st_mtime_ns)

    return run
