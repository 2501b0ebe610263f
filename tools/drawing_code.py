# SPDX-License-Identifier: MIT
"""Writes the JavaScript that draws a page's figures: python tools/drawing_code.py FILE.

It is Vega, Vega-Lite and Vega-Embed, from the vl-convert package of the build. The installed package contains
the file, and therefore makes pages without vl-convert.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from rtgauge.report.vega_bundle import bundled

Path(sys.argv[1]).write_text(bundled(), encoding="utf-8")
