# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="lab",
    line="Boots real kernels in virtual machines, and measures on them.",
    commands={
        "lab": Command(HIDDEN, "Boot real kernels in virtual machines.", "rtgauge_ext.lab.lab_command:app"),
    },
    targets={"lab": "rtgauge_ext.lab.lab_target:LAB"},
    words={
        "rtgauge lab": "vm qemu guest virtual boot",
    },
)
