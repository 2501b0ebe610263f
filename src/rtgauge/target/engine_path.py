# SPDX-License-Identifier: MIT
"""Where the engine for this machine is."""

from __future__ import annotations

import os
from pathlib import Path

from rtgauge.errors import MeasureError


def engine_path() -> Path:
    """Path of the engine: $RTGAUGE_ENGINE, else the one that was installed with the package. Raises MeasureError."""
    named = os.environ.get("RTGAUGE_ENGINE")
    path = Path(named) if named else Path(__file__).resolve().parent.parent / "bin" / "rtgauge-engine"
    if not os.access(path, os.X_OK):
        where = "RTGAUGE_ENGINE names" if named else "the package should hold"
        raise MeasureError(f"the engine is missing: {where} {path}; install rtgauge again (pip install .) or set RTGAUGE_ENGINE")
    return path
