# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

TABLES = "rtgauge_ext.microbenchmarks.microbenchmark_tables:MICROBENCHMARKS"

EXTENSION = Extension(
    name="microbenchmarks",
    line="Measures what operations cost, and whether a task starves at a lock (Garre et al. 2014).",
    probes={
        "inversion": "rtgauge_ext.microbenchmarks.inversion:PROBE",
        "preempt": "rtgauge_ext.microbenchmarks.preempt:PROBE",
        "semaphore": "rtgauge_ext.microbenchmarks.semaphore:PROBE",
        "switch": "rtgauge_ext.microbenchmarks.switch:PROBE",
    },
    presenters={"inversion": TABLES, "preempt": TABLES, "semaphore": TABLES, "switch": TABLES},
    operations={"microbenchmarks": "rtgauge_ext.microbenchmarks.microbenchmark_tables:operations"},
    marks={"microbenchmarks": "rtgauge_ext.microbenchmarks.microbenchmark_marks:MicrobenchmarkMarkKind"},
    documents={"compare-microbenchmarks.schema.json": "rtgauge_ext.microbenchmarks.operation_costs:DOCUMENT"},
    words={
        "rtgauge probe semaphore": "ptsematest svsematest mutex futex lock",
        "rtgauge probe inversion": "pi_stress pi-stress pip priority-inversion",
        "rtgauge probe switch": "lmbench lat_ctx context-switch",
    },
    plan_lines={"garre2014-micro": "noise, switch, preemption, semaphores, inversion"},
    presets="rtgauge_ext.microbenchmarks",
)
