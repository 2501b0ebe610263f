# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="signal",
    line="Measures tasks that toggle a line, or answer on one, within a machine or between two.",
    probes={
        "periodic": "rtgauge_ext.signal.periodic:PROBE",
        "response": "rtgauge_ext.signal.response:PROBE",
    },
    presenters={
        "periodic": "rtgauge_ext.signal.page.signal_path:SIGNAL_PATH",
        "response": "rtgauge_ext.signal.page.signal_path:SIGNAL_PATH",
    },
    measurers={"two-ends": "rtgauge_ext.signal.two_ends"},
    words={
        "rtgauge probe periodic or rtgauge run": "jitter period cycle",
        "rtgauge probe response": "gpio latmus latmon",
        "rtgauge probe response --path loop:mqueue": "pmqtest",
    },
    marks={"signal": "rtgauge_ext.signal.signal_marks:SignalMarkKind"},
)
