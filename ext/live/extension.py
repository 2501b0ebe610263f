# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="live",
    line="Shows a measurement on a page in a browser while it runs.",
    options=dict.fromkeys(("run", "resume", "probe"), "rtgauge_ext.live.live_option:LiveOption"),
    optional_values={"--live": r"[0-9]+|[^/]*:[^/]*"},
    words={"rtgauge run --live": "server serve"},
)
