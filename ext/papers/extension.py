# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="papers",
    line="Repeats the experiments of papers, calculates how often a task can run, and gives advice.",
    commands={
        "advise": Command(
            DECIDE,
            "Recommend how to implement a real-time task.",
            "rtgauge_ext.papers.advise.command:advise",
        ),
    },
    studies={
        "adam2021": "rtgauge_ext.papers.adam2021:STUDY",
        "delgado2020": "rtgauge_ext.papers.delgado2020:STUDY",
        "sustained": "rtgauge_ext.papers.sustained:STUDY",
    },
    loads={
        "copy": "rtgauge_ext.papers.load.copy:Copy",
        "read": "rtgauge_ext.papers.load.read_device:Read",
        "swarm": "rtgauge_ext.papers.load.swarm:Swarm",
        "brown2010": "rtgauge_ext.papers.load.brown2010:Brown2010",
    },
    frequencies={"papers": "rtgauge_ext.papers.frequency.show:FREQUENCIES"},
    files={"A flowchart of advise": "rtgauge_ext.papers.advise.flowchart_file:FILE"},
    presets="rtgauge_ext.papers",
)
