# SPDX-License-Identifier: MIT
"""Loads firmware onto a board by copying the UF2 file to its boot drive."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rtgauge.errors import InputError, MeasureError
from rtgauge.input_file import MIB, read_regular

UF2_MAGIC = b"UF2\n\x57\x51\x5d\x9e"
FAMILY_RP2040 = 0xE48B_FF56
BLOCK = 512
MOST_UF2 = 32 * MIB
DRIVE_LABEL = "RPI-RP2"
BY_LABEL = Path("/dev/disk/by-label") / DRIVE_LABEL


def check_uf2(path: Path) -> bytes:
    """Return the content of a UF2 file for the RP2040. Raises InputError for another file."""
    try:
        data = read_regular(path, MOST_UF2)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if (
        not data
        or len(data) % BLOCK
        or any(data[at : at + 8] != UF2_MAGIC for at in range(0, len(data), BLOCK))
    ):
        raise InputError(f"{path} is not a UF2 file; build one with: make firmware")
    if any(
        int.from_bytes(data[at + 28 : at + 32], "little") != FAMILY_RP2040
        for at in range(0, len(data), BLOCK)
    ):
        raise InputError(
            f"{path} is firmware for a processor other than the RP2040; build firmware for the RP2040 with: "
            "make firmware"
        )
    return data


def drives(mounts: Path = Path("/proc/self/mounts")) -> list[Path]:
    """Find the mounted boot drives of RP2040 boards by their INFO_UF2.TXT."""
    mounted: list[Path] = []
    for line in mounts.read_text().splitlines():
        fields = line.split(" ")
        if len(fields) < 3 or fields[2] != "vfat":
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        try:
            if DRIVE_LABEL.encode() in read_regular(point / "INFO_UF2.TXT", MIB):
                mounted.append(point)
        except OSError:
            continue
    return mounted


def wait_for_drive(seconds: float = 15.0, mounts: Path = Path("/proc/self/mounts")) -> Path:
    """Wait at most `seconds` until a board's drive is mounted, and return the drive's folder.

    Raises MeasureError, with the remedy, if no drive or more than one is mounted.
    """
    deadline = time.monotonic() + seconds
    while True:
        mounted = drives(mounts)
        if len(mounted) == 1:
            return mounted[0]
        if len(mounted) > 1:
            boards = ", ".join(map(str, mounted))
            raise MeasureError(
                f"several boards are waiting for firmware: {boards}; leave only one plugged in"
            )
        if time.monotonic() >= deadline:
            break
        time.sleep(0.2)
    if BY_LABEL.exists():
        raise MeasureError(
            f"the drive of the board is not mounted; mount it with: udisksctl mount -b {BY_LABEL}, then try "
            "again"
        )
    raise MeasureError(
        "did not find a board that waits for firmware; hold BOOTSEL while you plug the board in, then try "
        "again"
    )


def flash(uf2: Path, drive: Path) -> None:
    """Copy the file and wait until it is written. The board then starts the firmware.

    Raises InputError for a wrong file, MeasureError if copying fails.
    """
    data = check_uf2(uf2)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(drive / uf2.name, flags, 0o644), "wb") as target:  # noqa: PTH123 - a descriptor
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
    except OSError as error:
        # The drive disappears when the board starts. The board has the last block by then, but closing the
        # file may fail.
        if drive.exists() and (drive / "INFO_UF2.TXT").exists():
            raise MeasureError(f"{drive} could not be written: {error.strerror}") from error
