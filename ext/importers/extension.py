# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import KEEP
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="importers",
    line="Makes records from other tools' results, and runs another tool as a cross-check.",
    commands={
        "import": Command(
            KEEP, "Import measurements of other tools as records.", "rtgauge_ext.importers.import_record:app"
        ),
    },
    importers={
        "jitterdebugger-raw": "rtgauge_ext.importers.jitterdebugger:JITTERDEBUGGER_RAW",
        "rt-tests": "rtgauge_ext.importers.rt_tests:RT_TESTS",
        "jitterdebugger": "rtgauge_ext.importers.jitterdebugger:JITTERDEBUGGER",
        "rteval": "rtgauge_ext.importers.rteval:RTEVAL",
        "rtla": "rtgauge_ext.importers.rtla:RTLA",
        "oslat": "rtgauge_ext.importers.oslat_table:OSLAT",
        "latmus-gnuplot": "rtgauge_ext.importers.gnuplot_file:LATMUS_GNUPLOT",
        "latmus": "rtgauge_ext.importers.latency_table:LATMUS",
        "xenomai-gnuplot": "rtgauge_ext.importers.gnuplot_file:XENOMAI_GNUPLOT",
        "rtai": "rtgauge_ext.importers.rtai_testsuite:RTAI",
        "xenomai": "rtgauge_ext.importers.latency_table:XENOMAI",
        "hwlatdetect": "rtgauge_ext.importers.hwlatdetect:HWLATDETECT",
        "jitterdebugger-csv": "rtgauge_ext.importers.jitterdebugger:JITTERDEBUGGER_CSV",
        "cyclictest": "rtgauge_ext.importers.cyclictest:CYCLICTEST",
    },
    measurers=dict.fromkeys(
        (
            "cyclictest",
            "rtla",
            "xenomai-latency",
            "xenomai-switchtest",
            "rtai-latency",
            "rtai-switches",
        ),
        "rtgauge_ext.importers.other_tool:OTHER_TOOL",
    ),
    options={"run": "rtgauge_ext.importers.cross_check_option:CrossCheckOption"},
    words={"rtgauge import": "read convert parse load-file"},
    marks={"importers": "rtgauge_ext.importers.import_marks:ImportMarkKind"},
)
