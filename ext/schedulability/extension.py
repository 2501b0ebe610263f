# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="schedulability",
    line="Calculates whether a set of periodic tasks meets its deadlines, and measures the set.",
    commands={
        "sched": Command(
            DECIDE,
            "Check whether a periodic task set meets its deadlines.",
            "rtgauge_ext.schedulability.sched_command:sched",
        ),
    },
    probes={"taskset": "rtgauge_ext.schedulability.task_set_probe:PROBE"},
    presenters={"taskset": "rtgauge_ext.schedulability.page.task_set_presenter:TASK_SETS"},
    documents={"sched.schema.json": "rtgauge_ext.schedulability.analysis.analyse:DOCUMENT"},
    files={"A task set": "rtgauge_ext.schedulability.task_set:FILE"},
    words={
        "rtgauge sched SET.toml": "schedulability rta wcrt wcet edf utilization analysis schedule",
    },
    marks={"schedulability": "rtgauge_ext.schedulability.task_set_marks:TaskSetMarkKind"},
)
