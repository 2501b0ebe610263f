# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="papers",
    line="Repeats the experiments of papers, calculates how often a task can run, and gives advice.",
    commands={
        "advise": Command(
            DECIDE, "Recommend how to implement a real-time task.", "rtgauge_ext.papers.advise.advisor:advise"
        ),
    },
    studies={
        "adam2021": "rtgauge_ext.papers.adam2021:STUDY",
        "delgado2020": "rtgauge_ext.papers.delgado2020:STUDY",
        "sustained": "rtgauge_ext.papers.sustained_study:STUDY",
    },
    loads={
        "copy": "rtgauge_ext.papers.load.copy:Copy",
        "read": "rtgauge_ext.papers.load.read_device:Read",
        "swarm": "rtgauge_ext.papers.load.brown2010:Swarm",
        "brown2010": "rtgauge_ext.papers.load.brown2010:Brown2010",
    },
    frequencies={"papers": "rtgauge_ext.papers.frequency.show:FREQUENCIES"},
    options={
        "show": "rtgauge_ext.papers.frequency.added_frequency_options:FrequencyPart",
        "compare": "rtgauge_ext.papers.frequency.added_frequency_options:ComparedByPapers",
    },
    words={"rtgauge show latest --frequency": "frequency rate max-rate"},
    plan_lines={
        "jo2022": "at 100 us on isolated CPUs, idle and loaded, 4 minutes",
        "systems": "one system with the probes of all five papers, 3 minutes",
        "delgado2020-tasks": "a task set, 10 minutes idle and 10 minutes loaded",
        "brown2010": "response and periodic tasks, idle and loaded, 5 minutes",
        "delgado2020": "every deployment, then the best one under load",
        "adam2021": "responses, periodic tasks, the highest rate, 7 minutes",
        "sustained": "search for the shortest period without losses",
    },
    documents={"compare-papers.schema.json": "rtgauge_ext.papers.comparison_part:DOCUMENT"},
    files={"A flowchart of advise": "rtgauge_ext.papers.advise.flowchart_file:FILE"},
    presets="rtgauge_ext.papers",
    gone={
        "compare --scale": "leave it out: compare tests percentages, because counts reject equal samples",
        **{f"advise --{limit}": "give --chart FILE.toml" for limit in ("black", "marginal", "trouble")},
    },
)
