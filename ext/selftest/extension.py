# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import HIDDEN
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="selftest",
    line="Stalls a CPU in known ways, and checks the explanations of its latencies.",
    commands={
        "selftest": Command(
            HIDDEN,
            "Stall a CPU in known ways, and check the explanations.",
            "rtgauge_ext.selftest.selftest_command:selftest",
        ),
    },
    presenters={"moments.ndjson.gz": "rtgauge_ext.selftest.selftest_presenter:INJECTED"},
    loads={"stall": "rtgauge_ext.selftest.stall:StallLoad"},
    documents={"selftest.schema.json": "rtgauge_ext.selftest.selftest_presenter:DOCUMENT"},
)
