# SPDX-License-Identifier: MIT
"""Models a measurement of another tool, independently of its file format."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.model import Mark, Result
from rtgauge_ext.importers.import_marks import ImportMarkKind

SHORT_NS = 3600 * 10**9
"""Measurements shorter than this get a mark, because they miss events that occur once an hour."""
MAX_RUNS = 1000
"""The most runs in one file."""
IRQ_THREAD_PRIORITY = 50
"""The kernel's default for interrupt threads (kernel/irq/manage.c, sched_set_fifo)."""


@dataclass(frozen=True, kw_only=True)
class Second:
    """One line of a tool that prints a line every second: `count` samples and their extremes (ns)."""

    count: int
    minimum_ns: int
    maximum_ns: int
    average_ns: Fraction


@dataclass(frozen=True, kw_only=True)
class ImportedSeries:
    """One measured quantity. Without samples, it has no extremes, average or deviation.

    Values are in ns. A value in the histogram may be too small by up to the resolution minus 1. `histogram`:
    value -> samples, ascending; may be empty. `overflow`: the number of samples beyond its last bin, at
    `limit_ns` or more. `seconds`: the figures of each second, for a tool without a histogram. `absolute`: the
    histogram has magnitudes without sign.
    """

    labels: dict[str, str | int]
    count: int
    minimum_ns: int | None
    maximum_ns: int | None
    metric: str = "latency"
    histogram: dict[int, int] = field(default_factory=dict[int, int])
    overflow: int = 0
    limit_ns: int | None = None
    average_ns: Fraction | None = None
    std_ns: float | None = None
    finer_average: bool = False
    """Whether the tool computed its mean (and deviation, if any) from finer values than its histogram has."""
    minimum_is_bound: bool = False
    """Whether `minimum_ns` is only a lower bound of the smallest value."""
    interval_ns: int | None = None
    seconds: list[Second] = field(default_factory=list[Second])
    absolute: bool = False

    def __post_init__(self) -> None:
        """Drop figures that tools print even without samples."""
        for name in ("minimum_ns", "maximum_ns", "average_ns", "std_ns") if not self.count else ():
            object.__setattr__(self, name, None)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measurement by one tool.

    `probe`: rtgauge's probe of the same quantity, else the tool's name. `parameters`: the tool's parameters
    that the file gives (policy, priority, dma_latency_us, context, ...). `resolution_ns`: the unit or bin
    width to which the tool truncates values, such as 1000 for whole us. `average_is_cut`: the tool truncates
    averages instead of rounding them. `releases`: the tool waits for absolute release times without counting
    missed activations, which then follow from the latencies. `counts_missed`: the tool counts missed
    activations, and there were none. Times are UTC, ISO 8601.
    """

    tool: str
    source: str
    probe: str = "wakeup"
    series: list[ImportedSeries]
    resolution_ns: int
    unit_known: bool = True
    version: str | None = None
    command: str | None = None
    started: str | None = None
    ended: str | None = None
    duration_ns: int | None = None
    system: dict[str, str | int] = field(default_factory=dict[str, "str | int"])
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    marks: list[Mark] = field(default_factory=list[Mark])
    results: list[Result] = field(default_factory=list[Result])
    average_is_cut: bool = False
    releases: bool = False
    counts_missed: bool = False


def scheduling_marks(tool: str, policy: str | None, priority: int | None) -> list[Mark]:
    """Return marks if the measuring thread had no real-time priority or ran below the interrupt threads."""
    if policy in {"other", "normal", "batch", "idle"} or (policy != "deadline" and priority == 0):
        detail = (
            f"{tool} measured without a real-time priority, so other programs could delay it like any "
            "ordinary program"
        )
        return [ImportMarkKind.NO_REAL_TIME_PRIORITY.mark(detail)]
    if policy in {None, "fifo", "rr"} and priority is not None and priority < IRQ_THREAD_PRIORITY:
        below = f"priority {priority}, below the interrupt threads ({IRQ_THREAD_PRIORITY})"
        return [ImportMarkKind.LOW_PRIORITY.mark(f"{tool} measured at {below}, so they could delay it")]
    return []


def last_bin_mark(what: str, overflow: int, limit: str) -> Mark:
    """Make the mark of a histogram whose last bin also counts all larger values.

    `what`: a text such as "latmus' last bin also counts every larger latency". `limit`: the start of the last
    bin, such as "12 us".
    """
    return ImportMarkKind.LAST_BIN_CLIPPED.mark(f"{what}; its samples ({overflow}) count as {limit} or more")


def check_runs(runs: int, source: str) -> None:
    """Raise InputError if a file has more runs than a person would import."""
    if runs > MAX_RUNS:
        raise InputError(f"{source} has more than {MAX_RUNS} runs, or the lines of two runs are mixed")


def only(measurements: list[Measurement]) -> Measurement:
    """Return the one measurement of a file. Raises InputError if there are several."""
    if len(measurements) > 1:
        raise InputError(f"{measurements[0].source} has {len(measurements)} measurements instead of one")
    return measurements[0]
