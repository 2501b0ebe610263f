# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="exporters",
    line="Writes records for kernel CI, Prometheus, trace-cmd and Perfetto.",
    exporters={
        "kcidb": "rtgauge_ext.exporters.kcidb:KCIDB",
        "openmetrics": "rtgauge_ext.exporters.openmetrics:OPENMETRICS",
        "perfetto": "rtgauge_ext.exporters.moment_traces:PERFETTO",
        "trace.dat": "rtgauge_ext.exporters.moment_traces:TRACE_DAT",
    },
    options={"export": "rtgauge_ext.exporters.kcidb_options:KernelTree"},
    words={
        "rtgauge export": "perfetto metrics prometheus openmetrics grafana",
    },
)
