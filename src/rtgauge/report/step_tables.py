# SPDX-License-Identifier: MIT
"""Makes the tables of measured quantities. Page and terminal show the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rtgauge.probe.probe_registry import plural_of, probe_of
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Distribution, Mark, SeriesSummary, Step, ThreadCounts
from rtgauge.record.quantiles import TITLES, times_longer
from rtgauge.report.record_view import (
    LATENCY,
    RecordView,
    has_distribution,
    has_releases,
    quantities,
    quantity_of,
    series_name,
)
from rtgauge.report.table import PART, Cell, Column, Table, numbers, texts
from rtgauge.report.text import LONGER_WORDS, NONE, capital, figure_cell, us, whole

_DROP_RANKS = {"min": 3, "mean": 2, "std": 5, "p50": 4, "p95": 5, "p99": 3, "p99.9": 1, "max": 0}
FIGURES = {
    field: Column(title, "maximum" if title == "max" else "number", drop_rank=_DROP_RANKS.get(title, 4))
    for field, title in TITLES.items()
}
"""The column for each field of a Distribution."""
LONG_RUNS = ("p99.999",)
"""The columns that are left out if no row has a figure for them."""
FILLED = "missed filled in"
"""The name of the row that includes missed activations."""
FILLED_WORDS = (
    f"{FILLED}: the line above, plus each missed activation with the latency that it would have had"
)
MOST_LARGEST = 5


def figure_cells(figures: Distribution) -> list[str]:
    """Return the figures in us with one decimal, as `figure_cell` does. A quantile of LONG_RUNS that too few
    samples exceed is a dash.
    """
    return [
        NONE
        if column.title in LONG_RUNS and times_longer(field, figures.count) is not None
        else figure_cell(figures, field)
        for field, column in FIGURES.items()
    ]


def has_longer(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a cell says how much longer the measurement must be for a quantile."""
    return any(cell.endswith("x longer") for row in rows for cell in row)


def _has_figure(rows: Sequence[Sequence[str]], at: int) -> bool:
    return any(row[at] not in ("", NONE) for row in rows)


def missed_known(step: Step) -> bool:
    """Return whether the step's tool counted missed activations. cyclictest skips them."""
    return not MarkKind.MISSED_UNKNOWN.is_in(step.marks)


def missed_cell(step: Step, summary: SeriesSummary) -> str:
    """Return the number of missed activations: "?" if unknown, empty if activations have no release time."""
    if not has_releases(step):
        return ""
    if summary.missed:
        return Cell(whole(summary.missed), "alarm")
    return "0" if missed_known(step) else "?"


def _lines(step: Step, name: str, summary: SeriesSummary, marks: Sequence[Mark] = ()) -> list[list[str]]:
    """Return the row of one distribution, and a second row if activations were missed."""
    cells = [whole(summary.count), missed_cell(step, summary), *figure_cells(summary)]
    filled = [f"{PART}{FILLED}", whole(summary.filled.count), "", *figure_cells(summary.filled)]
    return [[Cell(name, marks=marks), *cells], *([filled] if summary.missed else [])]


def _table(title: str, first: str, rows: list[list[str]], notes: list[str]) -> Table:
    counts_missed = any(row[2] for row in rows)
    columns = [
        Column(first),
        Column("count", "count" if counts_missed else "number"),
        *([Column("missed", "number")] if counts_missed else []),
        *FIGURES.values(),
    ]
    rows = rows if counts_missed else [[*row[:2], *row[3:]] for row in rows]
    kept = [at for at, column in enumerate(columns) if column.title not in LONG_RUNS or _has_figure(rows, at)]
    return Table(title, [columns[at] for at in kept], [[row[at] for at in kept] for row in rows], notes)


def is_filled(table: Table) -> bool:
    """Return whether a row of the table includes missed activations."""
    return any(row[0].endswith(f"{PART}{FILLED}") for row in table.rows)


def _counted(quantity: str, steps: Sequence[Step], rows: list[list[str]]) -> str:
    """Return a note that explains the counts in a table by load."""
    text = f"{capital(quantity)} in us, of all CPUs together. count: "
    text += f"{'activations' if quantity == LATENCY else 'samples'} measured"
    missed = dict.fromkeys(
        probe.missed for step in steps if (probe := probe_of(step)).shown.pooled and probe.missed is not None
    )
    if missed and any(row[2] for row in rows):
        text += f"; missed: {'; '.join(missed)}" + (
            "; ?: not known" if any(r[2] == "?" for r in rows) else ""
        )
    if any(step.total is not None and step.total.missed for step in steps):
        text += "; the other columns count each missed activation with the latency that it would have had"
    if has_longer(rows):
        text += f"; {LONGER_WORDS}"
    return f"{text}."


def load_tables(view: RecordView) -> dict[str, list[Table]]:
    """Return the tables of each quantity: all CPUs together, with a row per step, idle first. The first table
    has missed activations filled in. If there are any, a second one, folded, is without them. Task sets and
    `inversion` are left out.
    """
    steps = [step for step in view.steps if step.total is not None and has_distribution(step)]
    return {
        quantity: _load_tables(view, quantity, [step for step in steps if quantity_of(step) == quantity])
        for quantity in quantities(steps)
    }


def _load_tables(view: RecordView, quantity: str, steps: Sequence[Step]) -> list[Table]:
    plain: list[list[str]] = []
    filled: list[list[str]] = []
    for step in steps:
        if (total := step.total) is None:
            continue
        name, counts = view.labels[step.id], [whole(total.count), missed_cell(step, total)]
        plain.append([name, *counts, *figure_cells(total)])
        filled.append(
            [Cell(name, marks=step.marks), *counts, *figure_cells(total.filled if total.missed else total)]
        )
    title = f"{capital(quantity)} by load, all CPUs together"
    tables = [_table(title, "load", filled, [_counted(quantity, steps, filled)])]
    if any(step.total is not None and step.total.missed for step in steps):
        without = _table(f"{capital(quantity)} without the missed activations", "load", plain, [])
        tables.append(replace(without, folded=True))
    return tables


def _silent_tasks(step: Step) -> set[str]:
    """Return the threads without an activation, if there are several. Most threads of a large program only
    wait.
    """
    tasks = {str(summary.labels["task"]) for summary in step.series if "task" in summary.labels}
    heard = {
        str(summary.labels.get("task"))
        for summary in step.series
        if summary.count or summary.missed or summary.warm_up.count
    }
    return tasks - heard if len(tasks - heard) > 1 else set()


def _is_shown(step: Step, summary: SeriesSummary) -> bool:
    metric = probe_of(step).metric(summary.metric)
    return metric is None or metric.shown


def heard_series(step: Step) -> list[SeriesSummary]:
    """Return a step's series, except for threads that share one row in `series_table`, and for metrics that
    no table shows.
    """
    silent = _silent_tasks(step)
    return [
        summary
        for summary in step.series
        if str(summary.labels.get("task")) not in silent and _is_shown(step, summary)
    ]


def _series_lines(step: Step) -> list[list[str]]:
    rows: list[list[str]] = []
    several = len({summary.metric for summary in step.series}) > 1
    for summary in heard_series(step):
        marks = [mark for mark in step.marks if mark.series is not None and mark.series == summary.series]
        name = series_name(summary)
        full = f"{summary.metric}, {name}" if several and name != summary.metric else name
        rows += _lines(step, full, summary, marks)
    if silent := _silent_tasks(step):
        name = f"{len(silent)} threads without an activation"
        rows.append([name, "0", "", *[us(None)] * len(FIGURES)])
    return rows


def series_table(step: Step, name: str = "") -> Table:
    """Return a row per series of the step, with its metric if there are several. Silent threads share one
    row.
    """
    quantity = capital(quantity_of(step))
    first = "CPU" if any("cpu" in summary.labels for summary in step.series) else "series"
    return _table(f"{quantity} per CPU, step {name}", first, _series_lines(step), [f"{quantity} in us."])


def _only(series: SeriesSummary) -> str:
    """Return the CPU of a step's only series. Its other labels repeat the step's parameters."""
    cpu = series.labels.get("cpu")
    return series_name(series) if cpu is None else f"CPU {cpu}"


def detail_table(view: RecordView, quantity: str) -> Table:
    """Return every step that measured the quantity, each followed by its series."""
    rows: list[list[str]] = []
    for step in view.steps:
        if step.tasks or quantity_of(step) != quantity:
            continue
        name = view.labels[step.id]
        if not has_distribution(step):
            rows.append([Cell(name, marks=step.marks), *[""] * (len(FIGURES) + 2)])
        elif step.total is not None:
            only = f", {_only(step.series[0])}" if len(step.series) == 1 else ""
            rows += _lines(step, name + only, step.total, step.marks)
        if len(step.series) > 1 or step.total is None:
            rows += [[PART + row[0], *row[1:]] for row in _series_lines(step)]
    return _table("", f"{quantity}, us", rows, [])


def largest_table(step: Step, name: str) -> Table:
    """Return a step's largest values: CPU, size, and time since the step began."""
    rows: list[list[str]] = []
    main = {series.series for series in step.main_series}
    outliers = (outlier for outlier in step.outliers if outlier.series in main)
    largest = sorted(outliers, key=lambda outlier: -outlier.value_ns)
    for outlier in largest[:MOST_LARGEST]:
        into = "unknown" if step.start_ns is None else f"{(outlier.time_ns - step.start_ns) / 1e9:.3f} s"
        rows.append(["–" if outlier.cpu is None else str(outlier.cpu), us(outlier.value_ns), into])
    quantity = quantity_of(step)
    columns = [*texts("CPU"), *numbers(f"{quantity} (us)", "after the step began")]
    return Table(f"The largest {plural_of(quantity)}, step {name}", columns, rows)


THREADS_NOTE = (
    "Times are in us. lost: samples that were taken but not kept; impossible: negative values, which no "
    "other figure includes; run delay: how long the thread was ready but did not run in the measured phase."
)


def thread_table(view: RecordView) -> Table:
    """Return the warm-up and losses of each series of each step, and the kernel's counts of its thread."""
    series = [
        (f"{view.labels[step.id]}, {series_name(each)}", each)
        for step in view.steps
        for each in heard_series(step)
    ]
    rows: list[list[str]] = []
    columns = [
        *("warm-up", "warm-up missed", "warm-up max", "lost", "impossible", "switches, voluntary"),
        *("switches, involuntary", "page faults, minor", "page faults, major", "run delay", "CPU time"),
    ]
    cokernel = any(each.thread is not None and each.thread.mode_switches is not None for _, each in series)
    for name, summary in series:
        thread, warm_up = summary.thread or ThreadCounts(), summary.warm_up
        cells = [whole(warm_up.count), whole(warm_up.missed), us(warm_up.max_ns)]
        counts = (summary.lost, summary.impossible, thread.voluntary_switches, thread.involuntary_switches)
        cells += map(whole, (*counts, thread.minor_faults, thread.major_faults))
        cells += [us(thread.run_delay_ns), us(thread.cpu_ns)]
        if cokernel:
            cells += [whole(thread.context_switches), whole(thread.mode_switches)]
        rows.append([name, *cells])
    columns += ["switches", "switches to Linux"] if cokernel else []
    return Table("Warm-up, losses and threads", [*texts(""), *numbers(*columns)], rows, [THREADS_NOTE])
