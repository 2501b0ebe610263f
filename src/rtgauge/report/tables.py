# SPDX-License-Identifier: MIT
"""The rows of the tables, as text: the page and the terminal print the same numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from rtgauge.record.marks import MarkKind
from rtgauge.record.model import ThreadCounts
from rtgauge.report.conditions import ordered_steps, step_labels
from rtgauge.report.quantity import has_distribution, has_releases, quantities, quantity_of
from rtgauge.report.text import us, whole, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import Distribution, Mark, SeriesSummary, Step
    from rtgauge.record.reader import Record

FIGURES = {
    "min_ns": "min",
    "mean_ns": "mean",
    "std_ns": "std",
    "p50_ns": "p50",
    "p95_ns": "p95",
    "p99_ns": "p99",
    "p99_9_ns": "p99.9",
    "p99_99_ns": "p99.99",
    "max_ns": "max",
}
"""Field of a Distribution -> heading."""


def figure_cells(figures: Distribution) -> dict[str, str]:
    """Heading -> the figure in us with one decimal, `≥` before a lower bound."""
    return {
        heading: us(cast("float | None", getattr(figures, key)), lower_bound=key in figures.lower_bounds)
        for key, heading in FIGURES.items()
    }


@dataclass(frozen=True)
class Row:
    """One line of a table of latencies. `filled`: with the missed activations filled in."""

    name: str
    count: str
    missed: str
    cells: dict[str, str]
    filled: bool = False
    marks: list[Mark] = field(default_factory=list["Mark"])


def missed_known(step: Step) -> bool:
    """Whether the step's tool counted missed activations, and said how late they were: cyclictest skips them
    without a word.
    """
    return not MarkKind.MISSED_UNKNOWN.is_in(step.marks)


def _rows(step: Step, name: str, summary: SeriesSummary, marks: list[Mark]) -> list[Row]:
    missed = (
        ""
        if not has_releases(step)
        else whole(summary.missed)
        if summary.missed or missed_known(step)
        else "?"
    )
    plain = Row(name, whole(summary.count), missed, figure_cells(summary), marks=marks)
    if not summary.missed:
        return [plain]
    return [
        plain,
        Row("missed filled in", whole(summary.filled.count), "", figure_cells(summary.filled), filled=True),
    ]


def load_rows(record: Record) -> dict[str, list[Row]]:
    """Quantity -> all CPUs together, a line a step, idle first; one more line where activations were missed.

    Without task sets and priority inversion, which have tables of their own.
    """
    names = step_labels(record)
    totals = [
        (step, step.total)
        for step in ordered_steps(record)
        if step.total is not None and has_distribution(step)
    ]
    rows: dict[str, list[Row]] = {quantity: [] for quantity in quantities(step for step, _ in totals)}
    for step, total in totals:
        rows[quantity_of(step)] += _rows(step, names[step.id], total, step.marks)
    return rows


def series_name(summary: SeriesSummary) -> str:
    """A series as people call it: "CPU 0", or its labels."""
    cpu = summary.labels.get("cpu")
    known = summary.labels.get("segment") or summary.labels.get("role")
    if known is not None:  # the value alone is clear
        where = f" on {summary.labels['machine']}" if "machine" in summary.labels else ""
        return str(known).replace("-", " ") + where + (f", CPU {cpu}" if cpu is not None else "")
    others = [f"{words(key)} {part}" for key, part in summary.labels.items() if key != "cpu"]
    return " ".join(([f"CPU {cpu}"] if cpu is not None else []) + others) or summary.metric


def _silent_tasks(step: Step) -> set[str]:
    """Threads without any activation, if there are several: those of a program with many, most of which only
    wait.
    """
    tasks = {str(summary.labels["task"]) for summary in step.series if "task" in summary.labels}
    heard = {
        str(summary.labels.get("task"))
        for summary in step.series
        if summary.count or summary.missed or summary.warm_up.count
    }
    return tasks - heard if len(tasks - heard) > 1 else set()


def heard_series(step: Step) -> list[SeriesSummary]:
    """The series of a step without those of threads that are one line together in `series_rows`."""
    silent = _silent_tasks(step)
    return [summary for summary in step.series if str(summary.labels.get("task")) not in silent]


def series_rows(step: Step) -> list[Row]:
    """A line a series of one step, with its metric where there are several; and one for all threads that had
    no activation.
    """
    rows: list[Row] = []
    several = len({summary.metric for summary in step.series}) > 1
    for summary in heard_series(step):
        marks = [mark for mark in step.marks if mark.series is not None and mark.series == summary.series]
        name = series_name(summary)
        rows += _rows(
            step, f"{summary.metric}, {name}" if several and name != summary.metric else name, summary, marks
        )
    if silent := _silent_tasks(step):
        rows.append(
            Row(
                f"{len(silent)} threads without an activation",
                "0",
                "",
                dict.fromkeys(FIGURES.values(), us(None)),
            )
        )
    return rows


@dataclass(frozen=True)
class Late:
    """One of the largest latencies: where, how late, and how long after its step began it was due."""

    cpu: str
    late: str
    into: str


def outlier_rows(step: Step, most: int = 5) -> list[Late]:
    """The largest latencies of a step, at most `most`, largest first."""
    late: list[Late] = []
    main = {series.series for series in step.main_series}
    for outlier in sorted(
        (outlier for outlier in step.outliers if outlier.series in main), key=lambda o: -o.value_ns
    )[:most]:
        into = "unknown" if step.start_ns is None else f"{(outlier.time_ns - step.start_ns) / 1e9:.3f} s"
        late.append(Late("–" if outlier.cpu is None else str(outlier.cpu), us(outlier.value_ns), into))
    return late


@dataclass(frozen=True)
class ThreadRow:
    """What was counted of one measuring thread, by heading; times in us."""

    name: str
    cells: dict[str, str]


def thread_rows(series: Sequence[SeriesSummary]) -> list[ThreadRow]:
    """Warm-up, losses and the kernel's counts of each series' thread."""
    rows: list[ThreadRow] = []
    for summary in series:
        thread = summary.thread or ThreadCounts()
        cells = {
            "warm-up": whole(summary.warm_up.count),
            "warm-up missed": whole(summary.warm_up.missed),
            "warm-up max": us(summary.warm_up.max_ns),
            "lost": whole(summary.lost),
            "impossible": whole(summary.impossible),
            "switches, voluntary": whole(thread.voluntary_switches),
            "switches, involuntary": whole(thread.involuntary_switches),
            "page faults, minor": whole(thread.minor_faults),
            "page faults, major": whole(thread.major_faults),
            "run delay": us(thread.run_delay_ns),
            "CPU time": us(thread.cpu_ns),
        }
        if any(other.thread is not None and other.thread.mode_switches is not None for other in series):
            cells |= {
                "switches": whole(thread.context_switches),
                "switches to Linux": whole(thread.mode_switches),
            }
        rows.append(ThreadRow(series_name(summary), cells))
    return rows
