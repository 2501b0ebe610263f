# SPDX-License-Identifier: MIT
"""Measures a signal probe with an instrument at the other end of the line: the target's engine gives the
inner view, the instrument the outer one.

Each has its own clock. Times from one clock are never subtracted from times of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.record.files import whole_file
from rtgauge.record.model import InstrumentReport, Mark, Outlier, StepKey
from rtgauge.record.stream import SeriesLine, Summary
from rtgauge.record.window_table import WindowTable
from rtgauge.record.windows import Windows
from rtgauge.runner.context import StepContext, StepInProgress, step_files
from rtgauge.runner.engine import STREAM, EngineStream, arm_and_stop
from rtgauge.runner.put_together import EngineMeasurement
from rtgauge_ext.instrument.instrument_marks import InstrumentMarkKind
from rtgauge_ext.signal.background_engine import BackgroundEngine
from rtgauge_ext.signal.parameters import SignalParameters, signal_step
from rtgauge_ext.signal.signal_marks import SignalMarkKind

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
    """Begins the load's phase and the engine's measurement."""

    @property
    def key(self) -> StepKey:
        """The step's key."""
        return self.begun.key

    @property
    def parameters(self) -> SignalParameters:
        """The step's parameters."""
        return signal_step(self.key).parameters

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
        metric = signal_step(self.key).probe.instrument_metric
        return SeriesLine(
            type="series", series=self.series, metric=metric, unit="ns", labels={"role": "instrument"}
        )


def lost_mark(error: MeasureError) -> Mark:
    """Return the mark for an instrument that was lost during the measurement."""
    detail = f"the instrument was lost during the measurement ({error}); everything that it had sent is kept"
    return InstrumentMarkKind.INSTRUMENT_LOST.mark(detail)


def try_engine(context: StepContext) -> None:
    """Arm and stop the engine. Raises InputError or MeasureError if it refuses."""
    probe, parameters = signal_step(context.key)
    arguments = probe.arguments_with_instrument(parameters.but(trace_parts=False), None)
    program = context.target.engine(*arguments, group=context.group)
    arm_and_stop(program, context.target, context.key.probe)


def measure_both(
    step: StepInProgress, measure_outer: Callable[[InstrumentStep], InstrumentResult]
) -> EngineMeasurement:
    """Measure with an engine on the target and an instrument on this machine. The load begins when both are
    ready.

    Raises InputError or MeasureError if either refuses. A lost instrument ends the step, which keeps the
    results up to then.
    """
    key, context = step.key, step.context
    probe, parameters = signal_step(key)
    role, slave = parameters.role, parameters.role == "slave"
    arguments = probe.arguments_with_instrument(parameters, step_files(key, context.target, step.folder))
    program = context.target.engine(*arguments, group=context.group)
    engine = BackgroundEngine(program, context.target, role, EngineStream(step.folder / STREAM))
    try:
        engine.wait_armed(context.interrupt)

        def both_begin() -> None:
            step.begin()
            engine.program.send("go")
            context.progress.phase("measuring")

        engine.stream.table.place(1 if slave else 0, 0)
        series = 0 if slave else 1 + max((line.series for line in engine.stream.result.series), default=-1)
        instrument_step = InstrumentStep(step, engine, series, both_begin)
        # The first Ctrl-C only sets a flag, which is read ten times a second.
        outer = measure_outer(instrument_step)
        died = engine.ended.is_set() and slave
        engine.end()
    except BaseException:
        engine.program.stop()
        raise
    engine.stream.check(context.target)
    return _merge(instrument_step, outer, died=died)


def _merge(step: InstrumentStep, outer: InstrumentResult, *, died: bool) -> EngineMeasurement:
    """Combine both results. If the engine is the slave, the outer series comes first, otherwise last."""
    first = 1 if step.makes_stimuli else 0
    result = step.engine.stream.result.moved(first, {"machine": step.key.targets["self"]})
    result.series.insert(0 if step.makes_stimuli else len(result.series), step.series_line())
    if outer.summary is not None:
        result.summaries.insert(0, outer.summary)
    result.outliers = [*outer.outliers, *result.outliers]
    result.marks += outer.marks
    if died:
        detail = f"the slave on {step.context.target.name} ended too early ({step.engine.why()})"
        result.marks.append(SignalMarkKind.SLAVE_DIED.mark(detail))
    windows = _windows(step, outer)
    reason = outer.end_reason if step.makes_stimuli or outer.end_reason == DIED else None
    return EngineMeasurement(
        result,
        Windows.together(windows if step.makes_stimuli else windows[::-1]),
        (step.engine.program,),
        step.context.target,
        instrument=outer.report,
        outer_samples=step.makes_stimuli,
        from_histogram=outer.summary is None,
        end_reason="slave-died" if died else reason,
    )


def _windows(step: InstrumentStep, outer: InstrumentResult) -> list[Windows]:
    """Return the windows of the instrument and of the engine. A long step's windows are merged in time."""
    own, table = step.engine.stream.table, outer.windows
    if isinstance(table, WindowTable):
        return [table.windows(own), own.windows(table)]
    if own.is_long():
        from rtgauge.record.windows_file import write_windows

        with whole_file(step.folder / f"{OUTER_TABLE}-00000.parquet") as file:
            write_windows(table, file)
    return [table, own.windows()]
