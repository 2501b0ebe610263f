# SPDX-License-Identifier: MIT
"""Measures a signal probe with an instrument at the other end of the line: the target's engine gives the
inner view, the instrument the outer one.

Each has its own clock. Times from one clock are never subtracted from times of the other.
"""

from __future__ import annotations

from rtgauge.instrument.address import is_latmon, latmon_address
from rtgauge.probe.signal_parameters import signal_step
from rtgauge.record.files import whole_file
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.record.window_table import WindowTable
from rtgauge.record.windows import Windows
from rtgauge.runner.context import StepContext, StepInProgress, step_files
from rtgauge.runner.engine import STREAM, BackgroundEngine, EngineStream, arm_and_stop
from rtgauge.runner.measurers.instrument_view import DIED, OUTER_TABLE, InstrumentResult, InstrumentStep
from rtgauge.runner.put_together import Measured
from rtgauge.target.target import Target

arms = True
goes_on_alone = False


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None: the engine comes with rtgauge, and a missing instrument ends the run anyway."""
    return None


def try_arm(context: StepContext) -> None:
    """Check that the instrument answers, then arm and stop the engine.

    Raises InputError or MeasureError if either refuses.
    """
    from rtgauge.instrument.session import Session

    key = context.key
    probe, parameters = signal_step(key)
    address = str(parameters.instrument)
    if is_latmon(address):
        latmon_address(address)  # does not connect: a latmon serves one connection only, and measures at once
    else:
        Session.open(address).close()
    arguments = probe.beside_instrument(parameters.but(trace_parts=False), None)
    arm_and_stop(context.target.engine(*arguments, group=context.group), context.target, key.probe)


def measure(step: StepInProgress) -> Measured:
    """Measure with an engine on the target and an instrument on this machine. The load begins when both are
    ready.

    Raises InputError or MeasureError if either refuses. A lost instrument ends the step, which keeps the
    results up to then.
    """
    from rtgauge.instrument.session import Session, self_test
    from rtgauge.runner.measurers.instrument_latmon import measure_with_latmon
    from rtgauge.runner.measurers.instrument_serial import LOOPBACK_COUNT, measure_with_session

    key, context = step.key, step.context
    probe, parameters = signal_step(key)
    address, role = str(parameters.instrument), parameters.role
    files = step_files(key, context.target, step.folder)
    context.progress.phase("the instrument is prepared")
    session = None if is_latmon(address) else Session.open(address)
    try:
        # Before the engine starts, because this makes edges on the line.
        loopback = None if session is None else self_test(session, inside=True, count=LOOPBACK_COUNT)
        arguments = probe.beside_instrument(parameters, files)
        program = context.target.engine(*arguments, group=context.group)
        engine = BackgroundEngine(program, context.target, role, EngineStream(step.folder / STREAM))
        try:
            engine.wait_armed(context.interrupt)

            def both_begin() -> None:
                step.begin()
                engine.program.say("go")
                context.progress.phase("measuring")

            slave = role == "slave"
            engine.stream.table.place(1 if slave else 0, 0)
            series = (
                0 if slave else 1 + max((line.series for line in engine.stream.result.series), default=-1)
            )
            instrument_step = InstrumentStep(step, engine, series, both_begin)
            # The first Ctrl-C only sets a flag, which is read ten times a second.
            outer = (
                measure_with_latmon(instrument_step, address)
                if session is None or loopback is None
                else measure_with_session(instrument_step, session, address, loopback)
            )
            died = engine.ended.is_set() and slave
            engine.end()
        except BaseException:
            engine.program.stop()
            raise
    finally:
        if session is not None:
            session.close()
    engine.stream.check(context.target)
    return _merge(instrument_step, outer, died=died)


def _merge(step: InstrumentStep, outer: InstrumentResult, *, died: bool) -> Measured:
    """Combine both results. If the engine is the slave, the outer series comes first, otherwise last."""
    first = 1 if step.makes_stimuli else 0
    result = step.engine.stream.result.moved(first, {"machine": step.key.targets["self"]})
    result.series.insert(0 if step.makes_stimuli else len(result.series), step.series_line())
    if outer.summary is not None:
        result.summaries.insert(0, outer.summary)
    result.outliers = [*outer.outliers, *result.outliers]
    result.marks += outer.marks
    if died:
        detail = f"the slave on {step.context.target.name} ended too early: {step.engine.why()}"
        result.marks.append(MarkKind.SLAVE_DIED.mark(detail))
    windows = _windows(step, outer)
    reason = outer.end_reason if step.makes_stimuli or outer.end_reason == DIED else None
    return Measured(
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
