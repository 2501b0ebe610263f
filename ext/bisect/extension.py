# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.core_extension import DECIDE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="bisect",
    line="The search for the commit that made something slower.",
    commands={
        "bisect": Command(
            DECIDE, "Find the commit that made something slower.", "rtgauge_ext.bisect.bisect_command:bisect"
        )
    },
    documents={"bisect.schema.json": "rtgauge_ext.bisect.bisect_search:DOCUMENT"},
    resumers={"bisect.json": "rtgauge_ext.bisect.bisect_search:BISECTION"},
    words={
        "rtgauge bisect": "bisection git-bisect culprit-commit",
    },
)
