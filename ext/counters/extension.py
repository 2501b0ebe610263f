# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="counters",
    line="Tells why some activations of a program work longer than usual, by the processor's counters.",
    commands={
        "work": Command(
            HIDDEN,
            "Tell why some activations of a program work longer than usual.",
            "rtgauge_ext.counters.work_command:work",
        )
    },
    documents={"work.schema.json": "rtgauge_ext.counters.work_report:DOCUMENT"},
    words={"rtgauge work": "perf-stat pmu counters"},
)
