# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="live",
    line="Shows a measurement on a page in a browser while it runs.",
    live_pages={"live": "rtgauge_ext.live.page:LIVE"},
)
