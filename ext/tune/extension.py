# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="tune",
    line="Finds the settings that make a machine good enough, and keeps them.",
    commands={
        "tune": Command(
            DECIDE,
            "Find the settings that make this machine good enough.",
            "rtgauge_ext.tune.tune_command:app",
        ),
    },
    options={
        "audit": "rtgauge_ext.tune.added_tune_options:AuditedProfile",
        "resume": "rtgauge_ext.tune.added_tune_options:MoreOfTuning",
    },
    words={"rtgauge tune": "optimize optimise fix improve autotune optimizer setup harden configure"},
    first_steps=(('tune --require "period=1ms latency<=100us"', "which settings help here?"),),
    askers={"tune": "rtgauge_ext.tune.answer:TUNING"},
    keepers={"tune": "rtgauge_ext.tune.tuning_installation:KEPT"},
    gone={"tune --about": "use rtgauge tune --dry-run --details"},
)
