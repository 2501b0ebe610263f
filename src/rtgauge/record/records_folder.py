# SPDX-License-Identifier: MIT
"""Names the default folder for records."""

from __future__ import annotations

from pathlib import Path

RECORDS = Path("rtgauge-runs")
