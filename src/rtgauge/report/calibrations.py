# SPDX-License-Identifier: MIT
"""Presenter of calibrate: the clocks on the terminal. The page has them of every step, in how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from rtgauge.report.presenter import Presenter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from rtgauge.record.model import Calibration, Step
    from rtgauge.record.reader import Record


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)


def print_calibrations(calibrations: Iterable[Calibration], console: Console) -> None:
    """One row a clock: its resolution and the cost of reading it, in ns."""
    table = Table(title="Clocks: resolution and cost of one reading (ns)", title_justify="left", box=None, pad_edge=False)
    table.add_column("clock", no_wrap=True)
    for heading in ("resolution", "step", "min", "p50", "mean", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for clock in calibrations:
        name = clock.clock if clock.error is None else f"{clock.clock} ({clock.error})"
        figures = (clock.resolution_ns, clock.smallest_step_ns, clock.min_ns, clock.p50_ns, clock.mean_ns, clock.p99_ns, clock.max_ns)
        table.add_row(name, *map(_text, figures))
    console.print(table)


class Calibrations(Presenter):
    """A table a step."""

    def conclusion(self, record: Record, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """What a reading of the clock that measures costs."""
        clock = next((clock for step in steps for clock in step.calibrations if clock.clock == "CLOCK_MONOTONIC" and clock.error is None), None)
        return (
            None if clock is None or clock.p50_ns is None else f"a reading of {clock.clock} takes {clock.p50_ns} ns, its resolution is {clock.resolution_ns} ns"
        )

    def print_tables(self, record: Record, steps: Sequence[Step], console: Console) -> None:  # noqa: ARG002 - of every presenter
        """The clocks of each step."""
        for step in steps:
            print_calibrations(step.calibrations, console)


CALIBRATIONS = Calibrations()
