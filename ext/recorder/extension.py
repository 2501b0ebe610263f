# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="recorder",
    line="Records a program for weeks, and keeps its worst moments.",
    commands={
        "recorder": Command(
            HIDDEN,
            "Record a program for weeks, and keep its worst moments.",
            "rtgauge_ext.recorder.recorder_command:app",
        )
    },
    options={"watch": "rtgauge_ext.recorder.watch_option:WatchFor"},
    presenters={"watch": "rtgauge_ext.recorder.user_stack:PLACES"},
    keepers={"recorder": "rtgauge_ext.recorder.service_installation:KEPT"},
    resumers={"recorder.json": "rtgauge_ext.recorder.resumer:RECORDER"},
    gone={"recorder last-boot": "use rtgauge last-boot"},
)
