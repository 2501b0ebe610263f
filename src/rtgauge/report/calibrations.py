# SPDX-License-Identifier: MIT
"""The table of `rtgauge probe calibrate`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from rtgauge.record.model import Calibration


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def print_calibrations(calibrations: Iterable[Calibration], console: Console) -> None:
    """One row a clock: its resolution and the cost of reading it, in ns."""
    table = Table(title="Clocks: resolution and cost of one reading (ns)", title_justify="left", box=None, pad_edge=False)
    table.add_column("clock", no_wrap=True)
    for heading in ("resolution", "step", "min", "p50", "mean", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in calibrations:
        name = one.clock if one.error is None else f"{one.clock} ({one.error})"
        table.add_row(name, *(_text(value) for value in (one.resolution_ns, one.smallest_step_ns, one.min_ns, one.p50_ns, one.mean_ns, one.p99_ns, one.max_ns)))
    console.print(table)
