# SPDX-License-Identifier: MIT
"""A kernel's file in a form that QEMU boots."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.lab.guest import Architecture


def bootable(kernel: Path, architecture: Architecture, place: Path) -> None:
    """Copy the kernel to `place`."""
    shutil.copyfile(kernel, place)
