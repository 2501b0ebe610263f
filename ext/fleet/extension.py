# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="fleet",
    line="The same jobs on many boards, several at once, with their records in a store.",
    commands={
        "fleet": Command(
            HIDDEN,
            "Run the same jobs on many boards, several at once.",
            "rtgauge_ext.fleet.fleet_command:fleet",
        )
    },
    resumers={".toml": "rtgauge_ext.fleet.fleet_command:FLEET"},
    words={
        "rtgauge fleet PLAN": "farm board boards multi",
    },
)
