# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="network",
    line="Measures the cycle of a control loop with a device behind a network, and where its time goes.",
    probes={"path": "rtgauge_ext.network.path_probe:PROBE"},
    presenters={"path": "rtgauge_ext.network.path_presenter:PATH"},
    marks={"network": "rtgauge_ext.network.path_marks:NetworkMarkKind"},
    presets="rtgauge_ext.network",
    plan_lines={"path": "a loop with a device behind the network (--peer HOST)"},
    words={"rtgauge run path --peer HOST": "ping fping roundtrip rtt isochron rtc-testbench"},
)
