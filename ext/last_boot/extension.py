# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="last_boot",
    line="Tells what ran before the machine crashed, hung or was reset.",
    commands={
        "last-boot": Command(
            HIDDEN,
            "Tell what ran before the machine crashed, hung or was reset.",
            "rtgauge_ext.last_boot.last_boot_command:last_boot",
        )
    },
)
