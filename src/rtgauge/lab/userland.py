# SPDX-License-Identifier: MIT
"""The programs of a guest: BusyBox, an SSH server and the loads, with just the libraries that they name."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab.cpio import CpioWriter
from rtgauge.lab.elf import needed_libraries, resolve

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

PACKAGES = ("base-files", "busybox-static", "dropbear-bin", "iperf3", "iproute2", "rt-tests", "stress-ng", "tzdata-legacy-")
PROGRAMS = (
    "usr/bin/busybox",
    "usr/sbin/dropbear",
    "usr/bin/dropbearkey",
    "usr/bin/ip",
    "usr/bin/iperf3",
    "usr/bin/stress-ng",
    "usr/bin/cyclictest",
    "usr/bin/hackbench",
)
FILES = ("usr/lib/os-release",)
LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib", "usr/lib64")


def _find_library(tree: Path, name: str) -> list[str]:
    if "/" in name:
        return resolve(tree, name)
    for folder in LIBRARY_FOLDERS:
        found = resolve(tree, f"{folder}/{name}")
        if found:
            return found
    return []


def write_userland(tree: Path, file: BinaryIO) -> None:
    """From unpacked packages to an archive for the kernel. Raises MeasureError where a program or a library is missing."""
    waiting = [(name, resolve(tree, name)) for name in (*PROGRAMS, *FILES)]
    taken: set[str] = set()
    while waiting:
        asked, names = waiting.pop()
        if not names:
            raise MeasureError(f"Debian's packages hold no {asked}: they may be of another release than this rtgauge knows; try rtgauge lab build --fresh")
        new = [name for name in names if name not in taken]
        taken.update(new)
        if new and names[-1] in new:
            waiting += [(library, _find_library(tree, library)) for library in needed_libraries((tree / names[-1]).read_bytes())]
    cpio = CpioWriter(file)
    for link, place in (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        cpio.folder(place)
        cpio.link(link, place)
    for name in sorted(taken):
        path = tree / name
        if path.is_symlink():
            cpio.link(name, str(path.readlink()))
        else:
            cpio.file(name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode) & 0o755)
    cpio.close()
