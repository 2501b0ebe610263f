# SPDX-License-Identifier: MIT
"""Presents calibrate: the cost of the clocks."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console

from rtgauge.record.model import Step
from rtgauge.report.method import clock_table
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal_table import print_tables


def _of_clocks(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that measured clocks, not the timer of a co-kernel."""
    return [step for step in steps if step.key.rt == "linux"]


class Calibrations(Presenter):
    """Presents the clocks of each step."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """Return the cost of reading the measuring clock."""
        clocks = (clock for step in _of_clocks(steps) for clock in step.calibrations if clock.error is None)
        clock = next((clock for clock in clocks if clock.clock == "CLOCK_MONOTONIC"), None)
        if clock is None or clock.p50_ns is None:
            return None
        return (
            f"a reading of {clock.clock} takes {clock.p50_ns} ns, and the clock's resolution is "
            f"{clock.resolution_ns} ns"
        )

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return the chapter on the clocks; None without clocks."""
        names = view.labels
        measured = _of_clocks(steps)
        clocks = clock_table((names[step.id], clock) for step in measured for clock in step.calibrations)
        return (
            Chapter("clocks", "Clocks", [clocks], "the cost of reading each clock") if clocks.rows else None
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the clocks of each step."""
        names = view.labels
        for step in _of_clocks(steps):
            print_tables([clock_table((names[step.id], clock) for clock in step.calibrations)], console)


CALIBRATIONS = Calibrations()
