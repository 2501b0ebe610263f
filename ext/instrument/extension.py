# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="instrument",
    line="Measures a signal path from outside, with a Raspberry Pi Pico or EVL's latmon.",
    commands={
        "instrument": Command(
            HIDDEN,
            "Manage the instrument, a Raspberry Pi Pico.",
            "rtgauge_ext.instrument.instrument_command:app",
        ),
    },
    measurers={
        "instrument": "rtgauge_ext.instrument.measurers.instrument_serial",
        "latmon": "rtgauge_ext.instrument.measurers.instrument_latmon",
    },
    marks={"instrument": "rtgauge_ext.instrument.instrument_marks:InstrumentMarkKind"},
    gone={"instrument flash": "run rtgauge instrument bootloader, then copy the UF2 file to the drive"},
)
