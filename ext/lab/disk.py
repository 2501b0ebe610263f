# SPDX-License-Identifier: MIT
"""Creates the guests' disks, which are image files with ext4. This does not need root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.program_run import run_program


def _program(name: str) -> str:
    """Find a program of e2fsprogs, which may not be on the user's PATH. Raises MeasureError if it is
    missing.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    program = shutil.which(name, path=path)
    if program is None:
        raise MeasureError(
            f"{name}, which makes the disks of guests, is not installed: apt-get install e2fsprogs"
        )
    return program


def _mke2fs(options: Sequence[str], disk: Path, mebibytes: int) -> None:
    command = [_program("mke2fs"), "-q", "-F", "-t", "ext4", *options, str(disk), f"{mebibytes}M"]
    completed = run_program(command)
    if completed.returncode:
        disk.unlink(missing_ok=True)
        raise MeasureError(
            f"cannot create the disk of the guest: {completed.stderr.strip()[-200:]}; check the free space "
            f"in {disk.parent}"
        )


def make_disk_of(folder: Path, disk: Path) -> None:
    """Create a read-only disk with the content of `folder`. Raises MeasureError if this fails."""
    size = sum(path.lstat().st_size for path in folder.rglob("*"))
    _mke2fs(["-O", "^has_journal", "-m", "0", "-d", str(folder)], disk, size * 5 // 4 // (1 << 20) + 8)


def make_empty_disk(disk: Path, mebibytes: int) -> None:
    """Create an empty disk as a sparse file. Raises MeasureError if this fails."""
    _mke2fs(["-E", "lazy_itable_init=1,lazy_journal_init=1"], disk, mebibytes)


def unpack_disk(disk: Path, folder: Path) -> None:
    """Copy a disk's content to the existing `folder` without a mount. Raises MeasureError if this fails."""
    # debugfs cannot quote a path, so it writes to its working directory
    completed = run_program([_program("debugfs"), "-R", "rdump / .", str(disk.absolute())], folder=folder)
    # debugfs always exits with status 0
    if not any(folder.iterdir()):
        raise MeasureError(f"cannot unpack the programs for the guest: {completed.stderr.strip()[-200:]}")
