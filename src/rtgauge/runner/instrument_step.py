# SPDX-License-Identifier: MIT
"""A signal probe with an instrument at the other end of the line: the target's engine gives the inner view,
the instrument the outer one.

Each measures by its own clock, and no time of one is subtracted from a time of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rtgauge.errors import MeasureError
from rtgauge.instrument.address import is_latmon, latmon_address
from rtgauge.load.lifecycle import RunningLoad
from rtgauge.probe import registry as probes
from rtgauge.probe.signal_parameters import SignalProbe
from rtgauge.record.files import for_polars, whole_file
from rtgauge.record.model import Mark, Severity, StepKey
from rtgauge.record.window_table import WindowTable
from rtgauge.runner.background_engine import BackgroundEngine
from rtgauge.runner.context import RunContext
from rtgauge.runner.engine_stream import EngineStream, Measured, arm_and_stop, as_exception
from rtgauge.runner.instrument_view import DIED, OUTER_TABLE, Beside, OuterView

if TYPE_CHECKING:
    import polars as pl

STREAM = "stream.ndjson"


def instrument_of(key: StepKey) -> str | None:
    """The address of the instrument of a step; None where it has none."""
    address: str | None = key.parameters.get("instrument")
    return address


def _engine(key: StepKey, context: RunContext, samples_dir: str | None, log: Path) -> BackgroundEngine:
    arguments = cast("SignalProbe", probes.get(key.probe)).beside_instrument(key.parameters, samples_dir)
    return BackgroundEngine(
        context.target.engine(*arguments, group=context.group),
        context.target,
        key.parameters["role"],
        EngineStream(log),
    )


def measure(
    key: StepKey,
    context: RunContext,
    load: RunningLoad | None,
    folder: Path,
    begin: Callable[[], None],
    samples_dir: str | None,
) -> Measured:
    """Measure with an engine on the target and an instrument at this machine.

    `begin` is called when both are ready.

    Raises InputError or MeasureError for what either refuses. An instrument that is lost in the middle ends
    the step, which keeps what was measured.
    """
    from rtgauge.instrument.self_test import self_test
    from rtgauge.instrument.session import Session
    from rtgauge.runner.instrument_latmon import measure_with_latmon
    from rtgauge.runner.instrument_serial import LOOPBACK_COUNT, measure_with_session

    address = str(instrument_of(key))
    context.progress.phase("the instrument is prepared")
    session = None if is_latmon(address) else Session.open(address)
    try:
        # Before there is an engine: the edges of this are on the line, too.
        loopback = None if session is None else self_test(session, inside=True, count=LOOPBACK_COUNT)
        engine = _engine(key, context, samples_dir, folder / STREAM)
        try:
            engine.wait_armed(context)

            def both_begin() -> None:
                begin()
                engine.program.say("go")
                context.progress.phase("measuring")

            slave = key.parameters["role"] == "slave"
            engine.stream.table.place(1 if slave else 0, 0)
            series = (
                0 if slave else 1 + max((line.series for line in engine.stream.result.series), default=-1)
            )
            beside = Beside(key, context, engine, load, folder, series, both_begin)
            # The first Ctrl-C only sets a flag, which is looked at ten times a second.
            outer = (
                measure_with_latmon(beside, address)
                if session is None or loopback is None
                else measure_with_session(beside, session, address, loopback)
            )
            died = engine.ended.is_set() and slave
            engine.end()
        except BaseException:
            engine.program.stop()
            raise
    finally:
        if session is not None:
            session.close()
    if engine.stream.result.error is not None:
        raise as_exception(engine.stream.result.error, context.target)
    return _merge(key, beside, outer, died=died)


def _merge(key: StepKey, beside: Beside, outer: OuterView, *, died: bool) -> Measured:
    """One result of the two: of a slave the outer series comes first, of a master its own."""
    first = 1 if beside.makes_stimuli else 0
    result = beside.engine.stream.result.moved(first, {"machine": key.targets["self"]})
    result.series.insert(0 if beside.makes_stimuli else len(result.series), beside.series_line())
    if outer.summary is not None:
        result.summaries.insert(0, outer.summary)
    result.outliers = [*outer.outliers, *result.outliers]
    result.marks += outer.marks
    if died:
        detail = f"the slave on {beside.context.target.name} ended while it was needed: {beside.engine.why()}"
        result.marks.append(Mark(name="slave-died", severity=Severity.INVALID, detail=detail))
    import polars as pl

    windows = _windows(beside, outer)
    reason = outer.end_reason if beside.makes_stimuli or outer.end_reason == DIED else None
    return Measured(
        result,
        pl.concat(windows if beside.makes_stimuli else windows[::-1]),
        (beside.engine.program,),
        instrument=outer.report,
        outer_samples=beside.makes_stimuli,
        from_histogram=outer.summary is None,
        end_reason="slave-died" if died else reason,
    )


def _windows(beside: Beside, outer: OuterView) -> list[pl.DataFrame]:
    """Those of the instrument, and those of the engine; of a long step merged in time."""
    own, table = beside.engine.stream.table, outer.windows
    if isinstance(table, WindowTable):
        return [table.frame(own), own.frame(table)]
    if own.is_long():
        with whole_file(beside.folder / f"{OUTER_TABLE}-00000.parquet") as file, for_polars(file) as writer:
            table.write_parquet(writer)
    return [table, own.frame()]


def check_instrument_and_arm(key: StepKey, context: RunContext) -> None:
    """Look whether the instrument answers, and arm the engine and stop it again.

    Raises InputError or MeasureError for what either refuses.
    """
    from rtgauge.instrument.session import Session

    address = str(instrument_of(key))
    if is_latmon(address):
        latmon_address(address)  # a latmon serves one connection, and begins to measure with it
    else:
        Session.open(address).close()
    arguments = cast("SignalProbe", probes.get(key.probe)).beside_instrument(
        {**key.parameters, "trace_parts": False} if "trace_parts" in key.parameters else key.parameters, None
    )
    refused, status = arm_and_stop(context.target.engine(*arguments, group=context.group), context.target)
    if refused is not None:
        raise refused
    if status:
        raise MeasureError(
            f"the engine ended at once with status {status}; run `rtgauge probe {key.probe}` to see why"
        )
