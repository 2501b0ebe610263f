# SPDX-License-Identifier: MIT
"""Measures the outer view with a latmon. It sends totals each second, and at the end a histogram with 1 us
bins.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from rtgauge.errors import MeasureError
from rtgauge.record.histogram import add_bins, bin_of
from rtgauge.record.model import ExactFigures, InstrumentReport, LeftOut, Mark, StepKey
from rtgauge.record.windows import Windows
from rtgauge.runner.context import StepContext, StepInProgress
from rtgauge.runner.put_together import EngineMeasurement
from rtgauge.target.target_protocol import Target
from rtgauge.units import plural
from rtgauge_ext.instrument.instrument_marks import InstrumentMarkKind
from rtgauge_ext.instrument.latmon import MAX_CELLS, Bulk, Cells, LatmonSession
from rtgauge_ext.instrument.measurers.instrument import (
    DIED,
    InstrumentResult,
    InstrumentStep,
    lost_mark,
    measure_both,
    try_engine,
)
from rtgauge_ext.signal.instrument_address import latmon_address
from rtgauge_ext.signal.parameters import signal_step

CELL_NS = 1_000
LOG = "instrument.ndjson"
arms = True
goes_on_alone = False


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None: the engine comes with rtgauge, and a missing latmon ends the run anyway."""
    return None


def try_arm(context: StepContext) -> None:
    """Check the address, then arm and stop the engine. Raises InputError or MeasureError.

    It does not connect: a latmon serves one connection only, and measures at once.
    """
    latmon_address(str(signal_step(context.key).parameters.instrument))
    try_engine(context)


def measure(step: StepInProgress) -> EngineMeasurement:
    """Measure with an engine and a latmon. Raises as `measure_both` does."""
    step.context.progress.phase("the instrument is prepared")
    return measure_both(step, _outer_view)


def _outer_view(step: InstrumentStep) -> InstrumentResult:
    """Measure until the step is over. Raises MeasureError if no latmon answers, or if one sends no data."""
    address = str(step.parameters.instrument)
    parameters, interval_ns = step.parameters, int(step.key.parameters.get("interval_ns"))
    step.begin()
    start_ns = step.context.target.monotonic_ns()
    bulks: list[Bulk] = []
    cells: Cells | None = None
    reason = "count"
    lost: MeasureError | None = None
    began_s = time.monotonic()
    with (
        LatmonSession.open(address, interval_ns // 1_000, MAX_CELLS) as session,
        (step.folder / LOG).open("w") as log,
    ):
        try:
            for bulk in session.bulks():
                bulks.append(bulk)
                log.write(json.dumps(asdict(bulk)) + "\n")
                over = step.over((time.monotonic() - began_s) * 1e9)
                if (
                    over is None
                    and parameters.cycles is not None
                    and sum(each.samples for each in bulks) >= parameters.cycles
                ):
                    over = "count"
                if over is not None:
                    reason = over
                    break
            more, cells = session.stop()
            bulks += more
            log.writelines(json.dumps(asdict(bulk)) + "\n" for bulk in more)
        except MeasureError as error:
            if not bulks:
                raise
            reason, lost = DIED, error
    if not bulks:
        raise MeasureError(
            "the latmon ended before it had measured for a second; measure for longer, because it drops its "
            "first second"
        )
    end_ns = step.context.target.monotonic_ns()
    host, port = latmon_address(address)
    window = _window(step.series, bulks, cells, interval_ns) | {"start_ns": start_ns, "end_ns": end_ns}
    marks = _marks(bulks, cells)
    report = InstrumentReport(
        address=address,
        id=f"{host}:{port}",
        firmware="latmon",
        resolution_ns=CELL_NS,
        configuration={"period_ns": interval_ns, "cells": MAX_CELLS},
        series=[step.series],
        wire_offset_ns=parameters.wire_offset_ns,
        counters={
            "answers": sum(bulk.samples for bulk in bulks),
            "missed": sum(bulk.overruns for bulk in bulks),
        },
        exact=ExactFigures(
            count=sum(bulk.samples for bulk in bulks),
            min_ns=min(bulk.min_ns for bulk in bulks),
            mean_ns=_mean(bulks),
            std_ns=None,
            max_ns=max(bulk.max_ns for bulk in bulks),
        ),
        clock_offset_ns=start_ns,
        clock_uncertainty_ns=0,
    )
    if lost is not None:
        marks.append(lost_mark(lost))
    return InstrumentResult(Windows.of_rows([window]), None, [], marks, report, reason)


def _mean(bulks: list[Bulk]) -> float:
    return sum(bulk.sum_ns for bulk in bulks) / sum(bulk.samples for bulk in bulks)


def _marks(bulks: list[Bulk], cells: Cells | None) -> list[Mark]:
    """Return a mark for each limit of the latmon's figures."""
    samples, missed = sum(bulk.samples for bulk in bulks), sum(bulk.overruns for bulk in bulks)
    counts = [] if cells is None else cells.counts
    placed = sum(counts)
    marks = [
        InstrumentMarkKind.RESOLUTION_1US.mark(
            "a latmon counts in bins of 1 us, so a quantile is the end of its bin, up to 1 us too large; "
            "minimum, mean and maximum are exact"
        )
    ]
    if placed > samples:
        marks.append(
            InstrumentMarkKind.FIRST_SECOND.mark(
                f"the latmon's totals per second leave out the first second: "
                f"{plural(placed - samples, 'sample')} are only in its histogram. Therefore the mean is "
                "unknown, and the minimum and maximum are exact only to 1 us"
            )
        )
    elif placed < samples:
        detail = (
            f"the latmon binned only {placed} of {samples} samples; of the others, only the minimum, mean "
            f"and maximum are known"
        )
        marks.append(InstrumentMarkKind.CELLS_MISSING.mark(detail))
    if cells is not None and cells.clipped:
        marks.append(
            InstrumentMarkKind.HISTOGRAM_OVERFLOW.mark(
                f"the latmon's last bin has {plural(counts[-1], 'sample')} of {len(counts) - 1} us or more; "
                f"only the largest is known exactly"
            )
        )
    if missed:
        marks.append(
            InstrumentMarkKind.MISSED_BY_OVERRUNS.mark(
                f"{plural(missed, 'period')} passed while an answer was missing; rtgauge assumes a "
                f"latency of one period for each, because the latmon reports only their number"
            )
        )
    return marks


def _window(series: int, bulks: list[Bulk], cells: Cells | None, interval_ns: int) -> dict[str, Any]:
    """Return a row of windows.parquet without its times. There is only one, because the histogram covers the
    whole measurement.

    If the histogram includes the first second, which the totals per second omit, the row has no sum, minimum
    or maximum.
    """
    samples, missed = sum(bulk.samples for bulk in bulks), sum(bulk.overruns for bulk in bulks)
    counts = [] if cells is None else cells.counts
    placed = sum(counts)
    known_extremes = placed <= samples
    largest = max(bulk.max_ns for bulk in bulks)
    inside = counts[:-1]
    ends = np.asarray([(at + 1) * CELL_NS - 1 for at, count in enumerate(inside) if count], dtype=np.int64)
    if known_extremes:
        ends = np.minimum(ends, largest)
    bins, sums = add_bins(bin_of(ends), [count for count in inside if count])
    return {
        "series": series, "phase": "measure", "index": 0, "count": max(placed, samples), "missed": missed,
        "min_ns": min(bulk.min_ns for bulk in bulks) if known_extremes else None,
        "max_ns": largest if known_extremes else None,
        "sum_ns": sum(bulk.sum_ns for bulk in bulks) if known_extremes else None, "m2_ns2": None,
        "bins": bins.tolist(), "counts": sums.tolist(),
        "missed_bins": [int(bin_of(interval_ns))] if missed else [],
        "missed_counts": [missed] if missed else [],
    }  # fmt: skip
