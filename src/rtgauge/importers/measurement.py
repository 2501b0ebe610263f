# SPDX-License-Identifier: MIT
"""The measurement of another tool, independent of its file format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result

SHORT_NS = 3600 * 10**9
"""Shorter measurements get a mark: what happens once an hour is not in them."""
IRQ_THREAD_PRIORITY = 50
"""The kernel's default for interrupt threads (kernel/irq/manage.c, sched_set_fifo)."""


@dataclass(frozen=True, kw_only=True)
class Second:
    """One line of a tool that prints a line a second: `count` samples and their extremes (ns)."""

    count: int
    minimum_ns: int
    maximum_ns: int
    average_ns: Fraction


@dataclass(frozen=True, kw_only=True)
class ImportedSeries:
    """One measured quantity.

    Values are ns; one of the histogram is itself up to the measurement's resolution less 1.

    `histogram`: value -> samples, ascending, empty if there is none; `overflow` samples are above it, at
    `limit_ns` or more. `seconds`: the course over time, for a tool without a histogram. `absolute`: the
    histogram has values without their sign.
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
    """The tool's own mean (and deviation, if it has one) is of finer values than its histogram has."""
    minimum_is_bound: bool = False
    """No value is below `minimum_ns`; the least one is not known."""
    interval_ns: int | None = None
    seconds: list[Second] = field(default_factory=list[Second])
    absolute: bool = False


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measurement by one tool.

    `probe`: that of rtgauge which measures the same, else the tool's name. `parameters`: how it was measured,
    as far as the file tells (policy, priority, dma_latency_us, context, ...). `resolution_ns`: 1000 where the
    tool cuts to whole us. `average_is_cut`: its averages are truncated, not rounded. `releases`: it waits for
    absolute release times and counts no missed activations, so that they follow from its latencies.
    `counts_missed`: it counts them itself, and there were none. Times are UTC, ISO 8601.
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
    """Marks for a measuring thread without real-time priority, or below the kernel's interrupt threads."""
    if policy in {"other", "normal", "batch", "idle"} or (policy != "deadline" and priority == 0):
        return [
            MarkKind.NO_REAL_TIME_PRIORITY.mark(
                f"{tool} measured without real-time priority: it was delayed like any ordinary program"
            )
        ]
    if policy in {None, "fifo", "rr"} and priority is not None and priority < IRQ_THREAD_PRIORITY:
        return [
            MarkKind.LOW_PRIORITY.mark(
                f"{tool} measured at priority {priority}, below interrupt threads "
                f"({IRQ_THREAD_PRIORITY}): their work delays it"
            )
        ]
    return []


@dataclass(frozen=True)
class Hints:
    """What the user knows and a file may not say: `unit_ns` (1: cyclictest -N), `interval_ns`."""

    unit_ns: int | None = None
    interval_ns: int | None = None


@dataclass(frozen=True)
class Importer:
    """One format.

    `recognises` gets the first 64 KiB as text; `read` raises InputError for a foreign or damaged file.
    """

    name: str
    help: str
    recognises: Callable[[str], bool]
    read: Callable[[Path, Hints], list[Measurement]]
