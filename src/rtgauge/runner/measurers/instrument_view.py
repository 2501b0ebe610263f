# SPDX-License-Identifier: MIT
"""What an instrument is told of the step that it measures in, and the view that it gives back."""

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
"""Of a long step the begin of the names of the files with the instrument's windows."""
DIED = "instrument-died"
"""End reason where the instrument was lost in the middle."""


@dataclass(frozen=True)
class InstrumentResult:
    """What an instrument measured, as a series with the number that it was given."""

    windows: WindowTable | Windows
    summary: Summary | None
    """None: the instrument gives no figures that the windows could be compared with."""
    outliers: list[Outlier]
    marks: list[Mark]
    report: InstrumentReport
    end_reason: str


@dataclass(frozen=True)
class InstrumentStep:
    """What an instrument is told of the step: when to stop, whom to tell of progress."""

    begun: StepInProgress
    engine: BackgroundEngine
    series: int
    """The number of the instrument's series."""
    begin: Callable[[], None]
    """Starts the load's phase and the engine's."""

    @property
    def key(self) -> StepKey:
        """Which step it is."""
        return self.begun.key

    @property
    def parameters(self) -> SignalParameters:
        """The step's parameters."""
        return signal_step(self.key)[1]

    @property
    def context(self) -> StepContext:
        """What is set for the step."""
        return self.begun.context

    @property
    def folder(self) -> Path:
        """Where its files go."""
        return self.begun.folder

    @property
    def makes_stimuli(self) -> bool:
        """Whether the engine answers, and the instrument says how long it takes; else the engine toggles, and
        ends by itself.
        """
        return self.parameters.role == "slave"

    def over(self, elapsed_ns: float) -> str | None:
        """Why the measuring is over, so long after it began; None: it is not.

        Raises MeasureError where the load died.
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
        """Of the instrument's series."""
        metric = signal_step(self.key)[0].instrument_metric
        return SeriesLine(
            type="series", series=self.series, metric=metric, unit="ns", labels={"role": "instrument"}
        )


def lost_mark(error: MeasureError) -> Mark:
    """Of an instrument that was lost in the middle."""
    detail = f"the instrument was lost in the middle: {error}; what it had sent until then is kept"
    return MarkKind.INSTRUMENT_LOST.mark(detail)
