# SPDX-License-Identifier: MIT
"""What the core itself adds: the same object as every extension has."""

from __future__ import annotations

from rtgauge.extension import Command, Extension

HEADINGS = MEASURE, UNDERSTAND, DECIDE, KEEP, HIDDEN = (
    "Measure",
    "Understand",
    "Decide and change",
    "Keep and share",
    "More",
)
"""The headings of the help, in its order. Only `rtgauge help all` lists the commands of HIDDEN."""

EXTENSION = Extension(
    name="core",
    line="Measures, watches, explains and judges.",
    commands={
        "run": Command(MEASURE, "Measure this machine or others, by a plan.", "rtgauge.cli.run_command:run"),
        "watch": Command(
            MEASURE, "Watch your own program: does it keep its period?", "rtgauge.cli.watch_command:watch"
        ),
        "probe": Command(
            MEASURE, "Measure with one probe and all its parameters.", "rtgauge.cli.probe_group:app"
        ),
        "show": Command(
            UNDERSTAND, "Show a record: answer, tables, page and causes.", "rtgauge.cli.show_command:show"
        ),
        "list": Command(
            UNDERSTAND, "List the records, oldest first.", "rtgauge.cli.show_command:list_records"
        ),
        "compare": Command(
            UNDERSTAND,
            "Compare records, or the loads or deployments of one.",
            "rtgauge.cli.compare_command:compare",
        ),
        "gate": Command(
            DECIDE, "Tell whether a candidate is worse than its baseline.", "rtgauge.cli.gate_command:gate"
        ),
        "restore": Command(
            DECIDE, "Put back everything that rtgauge changed.", "rtgauge.cli.restore_command:restore"
        ),
        "export": Command(
            KEEP, "Export the statistics of a record for other tools.", "rtgauge.cli.export_command:export"
        ),
        "resume": Command(
            HIDDEN,
            "Continue an interrupted run, or give a search more time.",
            "rtgauge.cli.resume_command:resume",
        ),
        "marks": Command(
            HIDDEN, "Explain marks: what each means, and what to do.", "rtgauge.cli.marks_command:marks"
        ),
    },
    probes={
        "calibrate": "rtgauge.probe.calibrate:PROBE",
        "noise": "rtgauge.probe.noise:PROBE",
        "wakeup": "rtgauge.probe.wakeup:PROBE",
        "watch": "rtgauge.probe.watch:PROBE",
    },
    presenters={
        "calibrate": "rtgauge.report.calibrations:CALIBRATIONS",
        "moments.ndjson.gz": "rtgauge.explain.page.presenter:EXPLAINED",
        "noise": "rtgauge.report.noise_table:NOISE",
        "wakeup": "rtgauge.report.timerlat:TIMERLAT",
        "watch": "rtgauge.report.watched_threads:WATCHED_THREADS",
    },
    exporters={
        "csv": "rtgauge.exporters.record_export:CSV",
        "parquet": "rtgauge.exporters.record_export:PARQUET",
        "json": "rtgauge.exporters.record_export:JSON",
        "junit": "rtgauge.exporters.junit:JUNIT",
        "markdown": "rtgauge.exporters.document_tables:MARKDOWN",
    },
    loads={
        "idle": "rtgauge.load.idle:IdleLoad",
        "cpu": "rtgauge.load.cpu:Cpu",
        "memory": "rtgauge.load.memory:MemoryLoad",
        "network": "rtgauge.load.network:Network",
        "scheduler": "rtgauge.load.scheduler:Scheduler",
        "cache": "rtgauge.load.cache:CacheLoad",
        "papers": "rtgauge.load.papers:Papers",
    },
    presets="rtgauge.plan",
    first_steps=(
        ('run --require "period=1ms latency<=200us"', "is this machine good enough?"),
        ("watch -- ./control", "does my program keep its period?"),
        ("show latest", "show the last record again; --page for the page"),
    ),
    plan_lines={
        "quick": "latency, idle and under each kind of load, a minute",
        "standard": "the same at 250 us, three times 3 minutes each, an hour",
        "spaces": "user and kernel space, idle and loaded, 4 minutes",
        "papers": "at 100 us, 10 minutes idle and 10 minutes loaded",
    },
)
