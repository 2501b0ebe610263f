# SPDX-License-Identifier: MIT
"""What the terminal shows of a record by default: a row a load, and whatever else fits into a few lines at
any number of CPUs, loads and threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Severity
from rtgauge.report.conclusion import cross_check_lines, repeat_lines
from rtgauge.report.conditions import conditions, is_folded, ordered_steps, step_labels
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.marks import gathered_marks
from rtgauge.report.method import cokernel_lines
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.quantity import has_distribution, has_releases, quantities, quantity_of
from rtgauge.report.tables import figure_cells, missed_known, series_name
from rtgauge.report.text import printable, us, whole
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from rtgauge.record.model import SeriesSummary, Step
    from rtgauge.record.reader import Record
    from rtgauge.report.marks import GatheredMark

MOST_LINES = 25
"""What follows the answer takes at most this many lines."""
SETS = (("mean", "p50", "p99", "p99.9", "p99.99"), ("mean", "p99", "p99.9"), ("p99.9",), ())
"""Columns beside the maximum: the widest set that fits is shown."""
FILLED = "p99.9 filled"
FILLED_WORDS = "filled: a missed activation counts with the latency it would have had"
ROUTINE = {MarkKind.STEAL, MarkKind.EXPLAIN_COST}
"""Marks that nearly every run on a virtual machine, or with --explain, comes with."""
MOST_SYSTEMS, MOST_MARKS, MOST_LEFT_OUT = 2, 4, 3
MOST_EACH = 4
LEAST_BESIDE = 5
"""Lines beside the tables, for what else is to be said."""
LEAST_NAME, ENOUGH_NAME = 8, 24


@dataclass(frozen=True)
class _Row:
    """A line of a table: the step, or a part of it (`part`), and where its largest value was measured."""

    name: str
    marked: bool
    part: bool
    summary: SeriesSummary
    worst: str
    missed: str


def _where(series: SeriesSummary) -> str:
    cpu, task = series.labels.get("cpu"), series.labels.get("task")
    if task is not None:
        return str(task)
    return f"CPU {cpu}" if cpu is not None else series_name(series) if series.labels else ""


def _largest(series: Sequence[SeriesSummary]) -> SeriesSummary | None:
    return max(
        (summary for summary in series if summary.max_ns is not None),
        key=lambda summary: summary.max_ns or 0,
        default=None,
    )


def _missed(step: Step, summary: SeriesSummary) -> str:
    return (
        ""
        if not has_releases(step)
        else whole(summary.missed)
        if summary.missed or missed_known(step)
        else "?"
    )


def _parts(step: Step, main: str) -> list[_Row]:
    """What a step measured beside its main quantity, and parts of that: a row each, the worst of the threads
    or CPUs that have it.
    """
    groups: dict[str, list[SeriesSummary]] = {}
    mains = {summary.series for summary in step.main_series}
    for summary in step.series:
        if summary.series not in mains:
            labels = [
                str(summary.labels[label]).replace("-", " ")
                for label in ("role", "segment", "machine")
                if label in summary.labels
            ]
            groups.setdefault(
                ", ".join([*([summary.metric] if summary.metric != main else []), *labels])
                or series_name(summary),
                [],
            ).append(summary)
    worst = [(name, of_group, _largest(of_group)) for name, of_group in groups.items()]
    return [
        _Row(
            f"  {name}",
            marked=False,
            part=True,
            summary=largest,
            worst=_where(largest) if len(of_group) > 1 else "",
            missed=_missed(step, largest),
        )
        for name, of_group, largest in worst
        if largest is not None
    ]


def _each(step: Step, name: str) -> list[_Row]:
    """A row for each of the series of a step that are no distribution together, such as threads of a program:
    those with the largest maxima.
    """
    known = sorted(
        (summary for summary in step.main_series if summary.max_ns is not None),
        key=lambda summary: -(summary.max_ns or 0),
    )
    shown = known[: MOST_EACH if len(known) <= MOST_EACH else MOST_EACH - 1]
    rows = [
        _Row(
            name,
            bool(step.marks),
            part=False,
            summary=summary,
            worst=_where(summary),
            missed=_missed(step, summary),
        )
        for summary in shown
    ]
    if len(shown) < len(known):
        rows[-1] = replace(rows[-1], worst=f"{rows[-1].worst}, {len(known) - len(shown)} more")
    return rows


def _rows(record: Record, quantity: str) -> list[_Row]:
    """A row a condition, idle first; of repeats the worst."""
    rows: list[_Row] = []
    names = step_labels(record)
    for condition in conditions(record):
        steps = [
            step
            for step in condition.steps
            if step.total is not None and quantity_of(step) == quantity and not step.tasks
        ]
        step = max(
            steps, key=lambda known: known.total.max_ns or 0 if known.total is not None else 0, default=None
        )
        if step is None or step.total is None:
            continue
        name = names[step.id] + (f", worst of {len(steps)}" if len(steps) > 1 else "")
        if has_distribution(step):
            largest = _largest(step.main_series)
            worst = "" if largest is None else _where(largest)
            rows.append(
                _Row(
                    name,
                    any(known.marks for known in steps),
                    part=False,
                    summary=step.total,
                    worst=worst,
                    missed=_missed(step, step.total),
                )
            )
        else:
            rows += _each(step, name)
        rows += _parts(step, step.total.metric)
    return rows


def _table(rows: Sequence[_Row], quantity: str, width: int) -> Table:
    gap = 2 if width >= 76 else 1
    counts = ["count", *(["missed"] if any(row.missed for row in rows) else [])]
    filled = any(row.summary.missed for row in rows)
    cells = [
        {
            **figure_cells(row.summary),
            "count": whole(row.summary.count),
            "missed": row.missed,
            FILLED: us(row.summary.filled.p99_9_ns, lower_bound="p99_9_ns" in row.summary.filled.lower_bounds)
            if row.summary.missed
            else "",
            "on": row.worst,
        }
        for row in rows
    ]
    names = [printable(row.name) + ("*" if row.marked else "") for row in rows]
    headings: list[str] = []
    room = 0
    for figures in SETS:
        headings = [*counts, *figures, *([FILLED] if filled and "p99.9" in figures else []), "max", "on"]
        room = width - sum(
            max(len(heading), *(len(printable(line[heading])) for line in cells)) + gap
            for heading in headings
        )
        if room >= min(max(map(len, names)), ENOUGH_NAME):
            break
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    title = f"{quantity}, us"
    table.add_column(
        title,
        overflow="ellipsis",
        no_wrap=True,
        width=max(LEAST_NAME, min(max(map(len, [*names, title])), room)),
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "on" else "right", no_wrap=True)
    for name, row, line in zip(names, rows, cells, strict=True):
        styles = {"missed": "red" if row.summary.missed else "", "max": "bold"}
        table.add_row(
            Text(name, style="" if row.part else "bold"),
            *(Text(printable(line[heading]), style=styles.get(heading, "")) for heading in headings),
        )
    return table


def _mark_text(mark: GatheredMark) -> str:
    """One mark: its name, where, and what was seen."""
    where = f" {mark.where}" if mark.where else ""
    return printable(f"{mark.severity.value}: {mark.name}{where}: {mark.detail}")


def _marks(record: Record, console: Console) -> list[RenderableType]:
    """The marks that are doubts, a line each; notes, and the routine ones, by their names.

    Of a record without a step in full: they say why.
    """
    gathered = gathered_marks(record)
    if not record.steps:
        return [Text(f"* {printable(f'{mark.name}: {mark.detail}')}", style="yellow") for mark in gathered]
    doubts = [mark for mark in gathered if mark.severity is not Severity.NOTE and mark.kind not in ROUTINE]
    lines: list[RenderableType] = [
        _cut(f"* {_mark_text(mark)}", console, "bold red" if mark.severity is Severity.INVALID else "yellow")
        for mark in doubts
    ]
    if len(lines) > MOST_MARKS:
        lines[MOST_MARKS - 1 :] = [
            Text(f"* {plural(len(doubts) - MOST_MARKS + 1, 'doubt')} more", style="yellow")
        ]
    routine = [mark for mark in gathered if mark not in doubts]
    if routine:
        words = ", ".join(
            f"{mark.name} ({mark.severity.value})" if mark.severity is not Severity.NOTE else mark.name
            for mark in routine
        )
        lines.append(_cut(f"* {printable(words)}", console, "dim"))
    return lines


def _cut(text: str, console: Console, style: str = "") -> Text:
    """A line that ends with the terminal."""
    cut = Text(text, style=style)
    cut.truncate(console.width, overflow="ellipsis")
    return cut


def _left_out(record: Record, console: Console) -> list[RenderableType]:
    left_out = record.run.left_out
    lines: list[RenderableType] = [
        _cut(
            printable(f"left out: {item.what}: {item.reason}" + (f"; {item.remedy}" if item.remedy else "")),
            console,
        )
        for item in left_out
    ]
    if len(lines) > MOST_LEFT_OUT:
        lines[MOST_LEFT_OUT - 1 :] = [Text(f"left out: {len(left_out) - MOST_LEFT_OUT + 1} more")]
    return lines


def _presented(record: Record, console: Console) -> list[Text]:
    """What presenters have, as lines."""
    with console.capture() as captured:
        for presenter, steps in presenters(ordered_steps(record)):
            presenter.print_tables(record, steps, console)
    text = captured.get().rstrip("\n")
    return [Text.from_ansi(line.rstrip()) for line in text.splitlines() if line.strip()]


def _systems(record: Record, console: Console) -> list[RenderableType]:
    lines, cokernels = (
        system_lines(record),
        [Text(printable(line), style="dim") for line in cokernel_lines(record)],
    )
    if len(lines) == 1:
        wrapped: list[RenderableType] = []
        wrapped.extend(Text(printable(lines[0]), style="dim").wrap(console, console.width))
        return [*wrapped[:MOST_SYSTEMS], *_fitted(cokernels, MOST_SYSTEMS, "co-kernels", console)]
    shown: list[RenderableType] = [_cut(printable(line), console, "dim") for line in lines[:MOST_SYSTEMS]]
    if len(lines) > MOST_SYSTEMS:
        shown[-1] = Text(f"and {len(lines) - MOST_SYSTEMS + 1} more machines", style="dim")
    return [*shown, *_fitted(cokernels, MOST_SYSTEMS, "co-kernels", console)]


def _rendered(table: Table, console: Console) -> list[RenderableType]:
    lines = console.render_lines(table, console.options, pad=False)
    return [Segments([segment for segment in line if not segment.control]) for line in lines]


def _tables(record: Record, console: Console, most: int, most_for_loads: int) -> list[RenderableType]:
    """A table a quantity, within `most` lines: parts of a quantity go first, then the rows with the smaller
    maxima.

    Where a row a load needs more lines, and `most_for_loads` are enough, it has them.
    """
    names = quantities(record.steps)
    each = {name: rows for name in names if (rows := _rows(record, name))}
    whole_ones = {name: [row for row in rows if not row.part] for name, rows in each.items()}
    if _height(each) > most:
        each = whole_ones
        most = max(most, _height(each)) if _height(each) <= most_for_loads else most
    legend = any(row.summary.missed for rows in each.values() for row in rows)
    share = max(2, (most - legend - 2 * len(each)) // max(1, len(each)))
    if _height(each) > most:
        each = {name: rows if len(rows) <= share else _worst(rows, share) for name, rows in each.items()}
    lines: list[RenderableType] = []
    filled = False
    for name, rows in each.items():
        table = _table(rows, name, console.width)
        filled = filled or any(column.header == FILLED for column in table.columns)
        lines += _rendered(table, console)
        if len(rows) < len(whole_ones[name]):
            lines.append(
                Text(f"and {len(whole_ones[name]) - len(rows)} more with smaller maxima", style="dim")
            )
    if filled:
        lines.append(_cut(FILLED_WORDS, console, "dim"))
    return lines[:most]


def _height(each: dict[str, list[_Row]]) -> int:
    """Lines of the tables with their headings."""
    return sum(len(rows) + 1 for rows in each.values()) + any(
        row.summary.missed for rows in each.values() for row in rows
    )


def _worst(rows: list[_Row], most: int) -> list[_Row]:
    """Those with the largest maxima, in the order in which they were."""
    kept = sorted(rows, key=lambda row: -(row.summary.max_ns or 0))[:most]
    return [row for row in rows if row in kept]


def _fitted(texts: Sequence[Text], most: int, what: str, console: Console) -> list[RenderableType]:
    """Texts in at most `most` lines: wrapped where there is room, else a line each, and at last how many
    there are more.
    """
    wrapped: list[RenderableType] = [line for text in texts for line in text.wrap(console, console.width)]
    if len(wrapped) <= most:
        return wrapped
    if most <= 0:
        return []
    kept = texts if len(texts) <= most else texts[: most - 1]
    lines: list[RenderableType] = []
    for text in kept:
        cut = text.copy()
        cut.truncate(console.width, overflow="ellipsis")
        lines.append(cut)
    return (
        lines
        if len(kept) == len(texts)
        else [*lines, Text(f"and {len(texts) - len(kept)} more {what}", style="dim")]
    )


def brief_lines(record: Record, console: Console, ends: Sequence[Text]) -> list[RenderableType]:
    """All that follows the answer: at most MOST_LINES lines with `ends`, which come last and are all
    shown.
    """
    single = _without_folded(record)
    systems, marks, left_out = _systems(record, console), _marks(record, console), _left_out(record, console)
    unfinished: list[RenderableType] = []
    if record.run.state != "complete":
        planned = plural(len(record.run.planned), "planned step")
        unfinished = [
            Text(
                f"This run is {record.run.state}: {len(record.run.steps)} of {planned} finished.",
                style="yellow",
            )
        ]
    free = MOST_LINES - len(ends) - len(systems) - len(marks) - len(left_out) - len(unfinished) - 1
    presented = _presented(record, console)
    said = [Text(printable(line)) for line in [*repeat_lines(single), *cross_check_lines(single)]]
    said += [
        Text(printable(line), style="dim") for line in step_lines(ordered_steps(record), step_labels(record))
    ]
    # Each part has at least its share of the lines, and what another one leaves.
    tables = _tables(
        single,
        console,
        free - min(len(presented), free // 3) - min(len(said), free // 4) - 1,
        free - LEAST_BESIDE,
    )
    free -= len(tables) + bool(tables)
    said_lines = _fitted(said, free - min(len(presented), free * 2 // 3), "lines", console)
    free -= len(said_lines)
    blank = Text("")
    return [
        *systems, *([blank] if tables else []), *tables, *said_lines,
        *_fitted(presented, free, "lines", console),
        *([blank] if marks or left_out or unfinished else []), *marks, *left_out, *unfinished, *ends,
    ]  # fmt: skip


def _without_folded(record: Record) -> Record:
    """The record with the steps that are shown one by one."""
    return (
        replace(record, steps=kept)
        if len(kept := [step for step in record.steps if not is_folded(step, record)]) < len(record.steps)
        else record
    )


def print_brief(record: Record, console: Console, ends: Sequence[Text]) -> None:
    """Print what follows the answer; `ends`: the last lines, which are not wrapped."""
    lines = brief_lines(record, console, ends)
    for line in lines:
        console.print(line, soft_wrap=True, end="" if isinstance(line, Segments) else "\n")
        if isinstance(line, Segments):
            console.print()
