# SPDX-License-Identifier: MIT
"""Writes the formats that scripts around cyclictest read: its histogram (`cyclictest -q -h`), and LAVA's
result lines (`t0-max-latency pass 54 us`).

Latencies in the histogram are truncated to whole us, as in cyclictest. The format has no place for missed
activations, so a comment gives their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rtgauge.errors import InputError
from rtgauge.exporters.step_figures import failure_of, missed_of, missed_text, run_checks, step_name
from rtgauge.record.files import clean_name
from rtgauge.record.histogram import lower_ns
from rtgauge.record.model import SeriesSummary, Step
from rtgauge.record.reader import Record
from rtgauge.record.windows import Windows

LIMIT_US = 10_000
"""The end of the histogram. Below it, the bins of a record are at most 1 us wide."""


def _wakeups(record: Record) -> list[tuple[Step, list[SeriesSummary]]]:
    """Return the steps with latencies and the series of their threads. Raises InputError if there are
    none.
    """
    steps = [
        (step, step.main_series)
        for step in record.steps
        if step.total is not None and step.total.metric == "latency"
    ]
    if not steps:
        raise InputError(
            f"{record.path} has no step with latencies, and cyclictest's format can hold nothing else"
        )
    return steps


def _counts(windows: Windows, series: int | None) -> npt.NDArray[np.int64]:
    """Return the number of samples at each us below LIMIT_US. Raises InputError for an early activation."""
    result = np.zeros(LIMIT_US, dtype=np.int64)
    bins, counts = windows.bins.total(windows.are_of([] if series is None else series))
    if bins.min(initial=0) < 0:
        raise InputError("this step has early activations, which cyclictest's histogram cannot contain")
    us = lower_ns(bins) // 1000
    inside = us < LIMIT_US
    np.add.at(result, us[inside], counts[inside])
    return result


def cyclictest(record: Record) -> bytes:
    """Return the histogram of the only step with latencies. Raises InputError unless there is exactly one."""
    steps = _wakeups(record)
    if len(steps) > 1:
        raise InputError(
            f"cyclictest's text covers one step, but this record has {len(steps)} "
            f"({', '.join(step.id for step, _ in steps)}); choose one with --step"
        )
    step, threads = steps[0]
    windows = record.windows(step)
    columns = [_counts(windows, series.series) for series in threads]
    rows = max((int(np.flatnonzero(column)[-1]) + 1 for column in columns if column.any()), default=1)
    lines = [
        (
            f"# rtgauge: {step_name(step)}; missed activations, which are not in the histogram: "
            f"{' '.join(missed_text(step, series) for series in threads)}"
        )
    ]
    lines += [
        "# Histogram",
        *(f"{us:06d} " + "\t".join(f"{column[us]:06d}" for column in columns) for us in range(rows)),
    ]
    totals = [int(column.sum()) for column in columns]

    def row(name: str, values: list[Any], width: int = 5) -> str:
        return f"# {name}: " + " ".join(f"{value:0{width}d}" for value in values)

    lines.append(row("Total", totals, 9))
    lines.append(row("Min Latencies", [(series.min_ns or 0) // 1000 for series in threads]))
    lines.append(row("Avg Latencies", [int(series.mean_ns or 0) // 1000 for series in threads]))
    lines.append(row("Max Latencies", [(series.max_ns or 0) // 1000 for series in threads]))
    lines.append(
        row(
            "Histogram Overflows",
            [series.count - total for series, total in zip(threads, totals, strict=True)],
        )
    )
    lines += [
        "# Histogram Overflow at cycle number:",
        *(f"# Thread {number}:" for number in range(len(threads))),
    ]
    return ("\n".join(lines) + "\n").encode()


def lava(record: Record) -> bytes:
    """Return the lines for LAVA. If there are several steps, names begin with the step's id.

    If a step fails its requirement, the lines of its maxima and of any missed activations fail. Checks of the
    run have their own lines.
    """
    steps = _wakeups(record)
    lines: list[str] = []
    for step, threads in steps:
        prefix = f"{clean_name(step.id)}-" if len(steps) > 1 else ""
        result = "fail" if failure_of(record, step) is not None else "pass"
        for number, series in enumerate(threads):
            for name, value in (("min", series.min_ns), ("avg", series.mean_ns), ("max", series.max_ns)):
                if value is not None:
                    lines.append(
                        f"{prefix}t{number}-{name}-latency {result if name == 'max' else 'pass'} "
                        f"{value / 1000:.3f} us"
                    )
            if (missed := missed_of(step, series)) is not None:
                lines.append(f"{prefix}t{number}-missed {result if missed else 'pass'} {missed} activations")
    for number, check in enumerate(run_checks(record)):
        lines.append(f"run-{number}-{clean_name(check.name)} {check.result} 1 checks")
    return ("\n".join(lines) + "\n").encode()
