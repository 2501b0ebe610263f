# SPDX-License-Identifier: MIT
"""Kernel space on a target over SSH, and what a real kernel says to modules that it does not take."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.lab.kmod_guests import KERNELS, OwnKernel
from tests.support.cli import error_line, good, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab
    from tests.lab.kmod_guests import Kernel
    from tests.support.cli import CommandResult

STOCK, RT = (
    next(kernel for kernel in KERNELS if str(kernel) == name)
    for name in ("trixie-x86_64", "trixie-rt-x86_64")
)
SIGNING_KEY = "certs/signing_key.pem"
"""Of a kernel built with CONFIG_MODULE_SIG."""
RESPONSE = (
    "response",
    "--space",
    "kernel",
    "--cycles",
    20,
    "--interval",
    "20ms",
    "--timeout",
    "2s",
    "--warm-up",
    "0s",
)


class Board:
    """The guest that is up, as a machine that is only known to ssh: rtgauge cannot tell that it is one of the
    lab.
    """

    def __init__(self, lab: Lab, folder: Path) -> None:
        assert lab.up is not None
        self._lab, place = lab, folder / "client"
        place.mkdir()
        home = lab.home / "rtgauge/lab"
        config = (
            f"IdentityFile {home}/key\nIdentitiesOnly yes\nIdentityAgent none\nStrictHostKeyChecking "
            f"no\nUserKnownHostsFile {place}/known_hosts\n"
        )
        (place / "config").write_text(config)
        (place / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {place}/config "$@"\n')
        (place / "ssh").chmod(0o755)
        self._client = place
        self.name = f"ssh://root@127.0.0.1:{lab.listed(lab.up)['running']['port']}"

    def probe(self, *words: object, modules: Path | None = None) -> CommandResult:
        """A probe over SSH; `modules`: the folder that RTGAUGE_KMOD names."""
        # modules that were built for this kernel before are not taken
        own = {
            "PATH": f"{self._client}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(self._client / "cache"),
            "RTGAUGE_KMOD": None if modules is None else str(modules),
        }
        env = {**self._lab.env, **own}
        return rtgauge("probe", *words, "--target", self.name, env=env, timeout=300)


def build(kernel: Kernel, folder: Path) -> Path:
    """A folder with the modules for a kernel."""
    folder.mkdir()
    kernel.make(folder, ["-s"])
    return folder


def test_a_target_over_ssh(lab: Lab, tmp_path: Path) -> None:
    """Without headers it is told what to install; with modules that were built elsewhere it measures, and is
    left as it was.
    """
    lab.boot("debian-rt")
    board = Board(lab, tmp_path)
    release = lab.run_in("uname -r").strip()
    line = error_line(board.probe(*RESPONSE), 3)
    assert (
        f"the headers of the kernel {release} are not installed on {board.name}; apt-get install "
        f"linux-headers-{release} make gcc" in line
    )
    line = error_line(board.probe(*RESPONSE, modules=build(STOCK, tmp_path / "stock")), 3)
    assert "(vermagic)" in line
    assert f"this is {release}" in line
    (step,) = json.loads(good(board.probe(*RESPONSE, "--json", modules=build(RT, tmp_path / "rt"))).stdout)[
        "steps"
    ]
    assert (step["key"]["targets"], step["key"]["parameters"]["space"]) == ({"self": board.name}, "kernel")
    assert step["total"]["count"] + step["total"]["missed"] >= 20
    (step,) = json.loads(
        good(
            board.probe(
                "wakeup", "--space", "kernel", "--cpu", 1, "--count", 50, "--interval", "10ms", "--json"
            )
        ).stdout
    )["steps"]
    assert [series["metric"] for series in step["series"]] == ["latency", "irq-latency", "user-latency"]
    assert (
        lab.run_in(
            "grep rtgauge /proc/modules; find /tmp /sys/kernel/tracing/instances -mindepth 1; true"
        ).split()
        == []
    )


LOCKDOWN = (
    "mount -t securityfs none /sys/kernel/security 2>/dev/null; echo integrity >/sys/kernel/security/lockdown"
)


@pytest.mark.parametrize(
    ("forbid", "expected_text"),
    [
        ("echo Y >/sys/module/module/parameters/sig_enforce", "loads only modules that are signed"),
        (LOCKDOWN, "loads only modules that are signed"),
        ("echo 1 >/proc/sys/kernel/modules_disabled", "kernel.modules_disabled is 1"),
    ],
    ids=["signed", "lockdown", "disabled"],
)
def test_a_kernel_that_takes_no_module_says_why(lab: Lab, forbid: str, expected_text: str) -> None:
    """Each of these holds until the next boot."""
    lab.boot("debian-rt")
    lab.run_in(forbid)
    try:
        line = error_line(
            rtgauge("probe", *RESPONSE, "--target", "lab:debian-rt", env=lab.env, timeout=300), 3
        )
        assert expected_text in line
        assert lab.run_in("grep rtgauge /proc/modules; true") == ""
    finally:
        lab.stop()


@pytest.mark.parametrize(
    "kernel",
    [
        kernel
        for kernel in KERNELS
        if isinstance(kernel, OwnKernel) and (kernel.sources / SIGNING_KEY).is_file()
    ],
    ids=str,
)
def test_modules_that_are_signed_are_taken(lab: Lab, tmp_path: Path, kernel: OwnKernel) -> None:
    """By a kernel that takes no others. Debian's have keys that nobody else has."""
    key = kernel.sources / SIGNING_KEY
    kernel.add(lab)
    lab.boot(kernel.guest, "module.sig_enforce=1")
    modules = build(kernel, tmp_path / "modules")
    words = ("probe", *RESPONSE, "--json", "--target", f"lab:{kernel.guest}")
    env = {**lab.env, "RTGAUGE_KMOD": str(modules)}
    assert "loads only modules that are signed" in error_line(rtgauge(*words, env=env, timeout=300), 3)
    for path in modules.iterdir():
        subprocess.run(
            [kernel.sources / "scripts/sign-file", "sha256", key, key.with_suffix(".x509"), path], check=True
        )
    (step,) = json.loads(good(rtgauge(*words, env=env, timeout=300)).stdout)["steps"]
    assert step["total"]["count"] + step["total"]["missed"] >= 20
