# SPDX-License-Identifier: MIT
"""A small disk, and whether a command writes whole files or none on it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import error_line, rtgauge


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def check_every_size(small_disk: Path, words: list[object]) -> None:
    """Run the command on disks from too small to large enough: it fails in one line without a cut file, and
    then succeeds.
    """
    statuses = []
    for kib in (4, 8, 12, 24, 48, 400, 8_000):
        subprocess.run(["mount", "-o", f"remount,size={kib}k", str(small_disk)], check=True)
        completed = rtgauge(*words)
        statuses.append(completed.returncode)
        if completed.returncode:
            assert "disk is full" in error_line(completed, 3)
            assert not [
                path.name for path in small_disk.rglob("*") if path.name.endswith((".tmp", ".partial"))
            ]
        for entry in small_disk.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    assert statuses[0] == 3
    assert statuses[-1] == 0
