# SPDX-License-Identifier: MIT
"""A step as seen by the instrument that takes part in it, and the result that the instrument returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.probe.signal_parameters import SignalParameters, signal_step
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import InstrumentReport, Mark, Outlier, StepKey
from rtgauge.record.stream import SeriesLine, Summary
from rtgauge.record.window_table import WindowTable
from rtgauge.record.windows import Windows
from rtgauge.runner.context import StepContext, StepInProgress
from rtgauge.runner.engine import BackgroundEngine

OUTER_TABLE = "windows-outer"
"""The beginning of the names of files with the instrument's windows, in a long step."""
DIED = "instrument-died"
"""The end reason if the instrument was lost during the measurement."""


@dataclass(frozen=True)
class InstrumentResult:
    """The instrument's result, as one series."""

    windows: WindowTable | Windows
    summary: Summary | None
    """None if the instrument gives no totals for checking the windows."""
    outliers: list[Outlier]
    marks: list[Mark]
    report: InstrumentReport
    end_reason: str


@dataclass(frozen=True)
class InstrumentStep:
    """The step as an instrument needs it: when to stop, and who listens to progress."""

    begun: StepInProgress
    engine: BackgroundEngine
    series: int
    """The number of the instrument's series."""
    begin: Callable[[], None]
    """Starts the load's phase and the engine's."""

    @property
    def key(self) -> StepKey:
        """The step's key."""
        return self.begun.key

    @property
    def parameters(self) -> SignalParameters:
        """The step's parameters."""
        return signal_step(self.key)[1]

    @property
    def context(self) -> StepContext:
        """The step's context."""
        return self.begun.context

    @property
    def folder(self) -> Path:
        """The folder for the step's files."""
        return self.begun.folder

    @property
    def makes_stimuli(self) -> bool:
        """Whether the instrument makes the stimuli and ends the step, while the engine answers.

        Otherwise the engine toggles the line, and ends by itself.
        """
        return self.parameters.role == "slave"

    def over(self, elapsed_ns: float) -> str | None:
        """Return why the measurement is over `elapsed_ns` after it began; None if it is not over.

        Raises MeasureError if the load died.
        """
        if self.begun.load is not None:
            self.begun.load.check()
        if self.context.interrupt.requested:
            return "stopped"
        if self.engine.ended.is_set():
            end = self.engine.stream.result.end
            return "died" if end is None or self.makes_stimuli else end.reason
        parameters = self.parameters
        if self.makes_stimuli and parameters.cycles is None and elapsed_ns >= parameters.duration_ns:
            return "duration"
        return None

    def series_line(self) -> SeriesLine:
        """Return the declaration of the instrument's series."""
        metric = signal_step(self.key)[0].instrument_metric
        return SeriesLine(
            type="series", series=self.series, metric=metric, unit="ns", labels={"role": "instrument"}
        )


def lost_mark(error: MeasureError) -> Mark:
    """Return the mark for an instrument that was lost during the measurement."""
    detail = f"the instrument was lost during the measurement: {error}; what it had sent is kept"
    return MarkKind.INSTRUMENT_LOST.mark(detail)
