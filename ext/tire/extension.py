# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="tire",
    line="A simulated tire that must meet deadlines, and the search for the largest one (Garre et al. 2014).",
    probes={"tire": "rtgauge_ext.tire.tire_probe:PROBE"},
    presenters={"tire": "rtgauge_ext.tire.page.tire_presenter:TIRE"},
    studies={
        "garre2014": "rtgauge_ext.tire.garre2014:STUDY",
        "tire-search": "rtgauge_ext.tire.tire_study:STUDY",
    },
    plan_lines={
        "garre2014": "a simulation, real-fast and real-time, 20 minutes",
        "tire-search": "the largest simulation in hard real time, 10 minutes",
    },
    marks={"tire": "rtgauge_ext.tire.tire_marks:TireMarkKind"},
    gone={
        "probe tire --search": "use rtgauge run tire-search",
        "probe tire --repeats": "use rtgauge run tire-search --repeats N",
    },
)
