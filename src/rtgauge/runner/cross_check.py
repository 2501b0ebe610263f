# SPDX-License-Identifier: MIT
"""Another tool measures the same step, into the same record (paper row A4): cyclictest, rtla timerlat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.model import LeftOut, Step, StepKey
from rtgauge.runner.step import Context
from rtgauge.target.base import Target

TOOLS = {"cyclictest": "rt-tests", "rtla": "rtla"}


def left_out(tool: str, target: Target) -> LeftOut | None:
    """Why this tool cannot measure here; None: it can."""
    if tool not in TOOLS:
        raise InputError(f"unknown tool '{tool}' for --cross-check; there are: {', '.join(TOOLS)}")
    if target.which(tool) is None:
        return LeftOut(what=f"cross-check {tool}", reason=f"the program {tool} is not installed", remedy=f"apt-get install {TOOLS[tool]}")
    return None


def measure(step_id: str, key: StepKey, context: Context, folder: Path) -> tuple[Step, Any]:
    raise NotImplementedError
