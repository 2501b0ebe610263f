# SPDX-License-Identifier: MIT
"""Prints a short summary of a record: one row per load, for any number of CPUs and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, RenderableType
from rich.segment import Segments
from rich.text import Text

from rtgauge.record.marks import MarkKind, is_doubt
from rtgauge.record.model import Mark, SeriesSummary, Severity, Step
from rtgauge.report.conclusion import cross_check_lines, repeat_lines
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.marks import GatheredMark, gathered_marks
from rtgauge.report.method import cokernel_lines
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.record_view import RecordView, has_distribution, quantity_of, series_name
from rtgauge.report.table import PART, Cell, Column, Table
from rtgauge.report.tables import FIGURES, figure_cells, has_longer, missed_cell
from rtgauge.report.terminal_table import fitted, rich_table
from rtgauge.report.text import LONGER_WORDS, figure_cell, printable, whole
from rtgauge.units import plural

MOST_LINES = 25
"""The most lines after the conclusion."""
SHOWN = ("mean", "p50", "p99", "p99.9", "p99.99")
FILLED = "p99.9 filled"
FILLED_WORDS = "filled: each missed activation counts with the latency it would have had"
ROUTINE = {MarkKind.STEAL, MarkKind.EXPLAIN_COST}
"""Marks that are usual on a virtual machine, or with --explain."""
MOST_SYSTEMS, MOST_MARKS, MOST_LEFT_OUT = 2, 4, 3
MOST_EACH = 4
PART_LABELS = ("role", "segment", "machine")
LEAST_BESIDE = 5
"""Tables leave at least this many lines to other results."""


@dataclass(frozen=True)
class _Row:
    """A row of a table: a step, or a `part` of one, and the place of the largest value."""

    name: str
    summary: SeriesSummary
    worst: str
    missed: str
    part: bool = False
    marks: Sequence[Mark] = ()

    @property
    def cells(self) -> list[str]:
        """The cells of the row."""
        summary, filled = self.summary, self.summary.filled
        figures = figure_cells(summary)
        shown = zip(FIGURES.values(), figures, strict=True)
        return [
            PART + self.name if self.part else Cell(self.name, marks=self.marks),
            whole(summary.count),
            self.missed,
            *(cell for column, cell in shown if column.title in SHOWN),
            figure_cell(filled, "p99_9_ns") if summary.missed else "",
            figures[-1],
            self.worst,
        ]


COLUMNS = (
    *(Column("count", "count"), Column("missed", "number")),
    *(column for column in FIGURES.values() if column.title in SHOWN),
    *(Column(FILLED, "number", spare=1), FIGURES["max_ns"], Column("on")),
)
"""All columns of a table except the first, in the order of a row's cells."""


def _where(series: SeriesSummary) -> str:
    cpu, task = series.labels.get("cpu"), series.labels.get("task")
    if task is not None:
        return str(task)
    return f"CPU {cpu}" if cpu is not None else series_name(series) if series.labels else ""


def _own_labels(series: SeriesSummary) -> list[str]:
    """Return the values of the labels that do not say where the series was measured, such as its lock."""
    return [
        str(value).replace("-", " ") for label, value in series.labels.items() if label not in {"cpu", "task"}
    ]


def _by_maximum(series: Sequence[SeriesSummary]) -> list[SeriesSummary]:
    """Return the series that have a maximum, the largest maximum first."""
    known = [summary for summary in series if summary.max_ns is not None]
    return sorted(known, key=lambda summary: -(summary.max_ns or 0))


def _parts(step: Step, main: str) -> list[_Row]:
    """Return a row for each other quantity of a step, from the thread or CPU with the largest value."""
    groups: dict[str, list[SeriesSummary]] = {}
    mains = {summary.series for summary in step.main_series}
    for summary in step.series:
        if summary.series not in mains:
            labels = [summary.labels[label] for label in PART_LABELS if label in summary.labels]
            words = [str(label).replace("-", " ") for label in labels]
            words = [summary.metric, *words] if summary.metric != main else words
            groups.setdefault(", ".join(words) or series_name(summary), []).append(summary)
    worst = [(name, ranked) for name, group in groups.items() if (ranked := _by_maximum(group))]
    return [
        _Row(name, most, _where(most) if others else "", missed_cell(step, most), part=True)
        for name, (most, *others) in worst
    ]


def _each(step: Step, name: str) -> list[_Row]:
    """Return a row for each series with one of the largest maxima, at most MOST_EACH. `step`: one whose
    series cannot be pooled, such as threads.
    """
    known = _by_maximum(step.main_series)
    shown = known[: MOST_EACH if len(known) <= MOST_EACH else MOST_EACH - 1]
    same_place = len({_where(summary) for summary in shown}) < len(shown)
    rows = [
        _Row(
            ", ".join([name, *_own_labels(summary)]) if same_place else name,
            summary,
            _where(summary),
            missed_cell(step, summary),
            marks=step.marks,
        )
        for summary in shown
    ]
    if len(shown) < len(known):
        rows[-1] = replace(rows[-1], worst=f"{rows[-1].worst}, {len(known) - len(shown)} more")
    return rows


def _rows(view: RecordView, quantity: str) -> list[_Row]:
    """Return a row per condition, idle first, from the repeat with the largest value."""
    rows: list[_Row] = []
    for condition in view.conditions:
        totals = [
            (step.total, step)
            for step in condition.steps
            if step.total is not None and quantity_of(step) == quantity and not step.tasks
        ]
        if not totals:
            continue
        total, step = max(totals, key=lambda pair: pair[0].max_ns or 0)
        name = view.labels[step.id] + (f", worst of {len(totals)}" if len(totals) > 1 else "")
        if has_distribution(step):
            worst = _by_maximum(step.main_series)
            marks = [mark for _, known in totals for mark in known.marks]
            where = _where(worst[0]) if worst else ""
            rows.append(_Row(name, total, where, missed_cell(step, total), marks=marks))
        else:
            rows += _each(step, name)
        rows += _parts(step, total.metric)
    return rows


def _table(rows: Sequence[_Row], quantity: str) -> Table:
    table = Table("", [Column(f"{quantity}, us"), *COLUMNS], [row.cells for row in rows])
    absent = {"missed": not any(row.missed for row in rows), FILLED: not _any_missed(rows)}
    return table.only(lambda at: not absent.get(table.columns[at].title, False))


def _any_missed(rows: Sequence[_Row]) -> bool:
    return any(row.summary.missed for row in rows)


def mark_text(mark: GatheredMark, style: str) -> Text:
    """Return a mark in words: its severity in `style`, its name, place and detail."""
    where = f" {mark.where}" if mark.where else ""
    return Text.assemble((mark.severity.value, style), f": {printable(f'{mark.name}{where}: {mark.detail}')}")


def left_out_texts(view: RecordView) -> list[str]:
    """Return a line for each item left out of the run."""
    return [
        printable(f"left out: {item.what}: {item.reason}" + (f"; {item.remedy}" if item.remedy else ""))
        for item in view.record.run.left_out
    ]


def unfinished(view: RecordView) -> list[Text]:
    """Return a line that says how far an incomplete run got."""
    run = view.record.run
    if run.state == "complete":
        return []
    planned = plural(len(run.planned), "planned step")
    return [Text(f"This run is {run.state}: {len(run.steps)} of {planned} finished.", style="yellow")]


def _marks(view: RecordView, console: Console) -> list[Text]:
    """Return a line for each doubt, and one with the names of the other marks. If the run has no step, return
    all marks in full.
    """
    gathered = gathered_marks(view)
    if not view.steps:
        return [Text(f"* {printable(f'{mark.name}: {mark.detail}')}", style="yellow") for mark in gathered]
    doubts = [mark for mark in gathered if is_doubt(mark.severity) and mark.kind not in ROUTINE]
    styles = {Severity.INVALID: "bold red", Severity.DOUBTFUL: "yellow"}
    lines = [_cut(f"* {mark_text(mark, '').plain}", console, styles[mark.severity]) for mark in doubts]
    lines = _few(lines, MOST_MARKS, lambda more: Text(f"* {plural(more, 'doubt')} more", style="yellow"))
    routine = [
        f"{mark.name} ({mark.severity.value})" if is_doubt(mark.severity) else mark.name
        for mark in gathered
        if mark not in doubts
    ]
    return [*lines, _cut(f"* {printable(', '.join(routine))}", console, "dim")] if routine else lines


def _few(lines: list[Text], most: int, more: Callable[[int], Text]) -> list[Text]:
    """Return at most `most` lines: the first ones, and a line that counts the rest."""
    return lines if len(lines) <= most else [*lines[: most - 1], more(len(lines) - most + 1)]


def _cut(text: str, console: Console, style: str = "") -> Text:
    """Return a line, truncated to the terminal's width."""
    cut = Text(text, style=style)
    cut.truncate(console.width, overflow="ellipsis")
    return cut


def _left_out(view: RecordView, console: Console) -> list[Text]:
    lines = [_cut(text, console) for text in left_out_texts(view)]
    return _few(lines, MOST_LEFT_OUT, lambda more: Text(f"left out: {more} more"))


def _presented(view: RecordView, console: Console) -> list[Text]:
    """Return the lines that presenters print."""
    with console.capture() as captured:
        for presenter, steps in presenters(view.steps):
            presenter.print_tables(view, steps, console)
    text = captured.get().rstrip("\n")
    return [Text.from_ansi(line.rstrip()) for line in text.splitlines() if line.strip()]


def _systems(view: RecordView, console: Console) -> list[Text]:
    lines = [printable(line) for line in system_lines(view.record)]
    cokernels = [Text(printable(line), style="dim") for line in cokernel_lines(view)]
    if len(lines) == 1:
        shown = [*Text(lines[0], style="dim").wrap(console, console.width)[:MOST_SYSTEMS]]
    else:
        cut = [_cut(line, console, "dim") for line in lines]
        shown = _few(cut, MOST_SYSTEMS, lambda more: Text(f"and {plural(more, 'more machine')}", style="dim"))
    return [*shown, *_fitted(cokernels, MOST_SYSTEMS, "co-kernels", console)]


def _tables(view: RecordView, console: Console, most: int, most_for_loads: int) -> list[RenderableType]:
    """Return the tables of all quantities, in at most `most` lines. To fit, drop parts of a quantity first,
    then rows with smaller maxima. If one row per load needs more lines, use up to `most_for_loads`.
    """
    each = {name: rows for name in view.quantities if (rows := _rows(view, name))}
    whole_ones = {name: [row for row in rows if not row.part] for name, rows in each.items()}
    if _height(each) > most:
        each = whole_ones
        most = max(most, _height(each)) if _height(each) <= most_for_loads else most
    legend = any(map(_any_missed, each.values()))
    legend += any(has_longer([row.cells]) for rows in each.values() for row in rows)
    share = max(2, (most - legend - 2 * len(each)) // max(1, len(each)))
    if _height(each) > most:
        each = {name: _worst(rows, share) for name, rows in each.items()}
    lines: list[RenderableType] = []
    filled = longer = False
    for name, rows in each.items():
        table = _table(rows, name)
        shown = fitted(table, console.width, one_line=True)
        filled = filled or any(column.title == FILLED for column in shown.columns)
        longer = longer or has_longer(shown.rows)
        rendered = rich_table(table, console.width, one_line=True)
        lines += [
            Segments([segment for segment in line if not segment.control])
            for line in console.render_lines(rendered, console.options, pad=False)
        ]
        if len(rows) < len(whole_ones[name]):
            more = f"and {len(whole_ones[name]) - len(rows)} more with smaller maxima"
            lines.append(Text(more, style="dim"))
    if filled:
        lines.append(_cut(FILLED_WORDS, console, "dim"))
    if longer:
        lines.append(_cut(LONGER_WORDS, console, "dim"))
    return lines[:most]


def _height(each: dict[str, list[_Row]]) -> int:
    """Return the height of the tables in lines, with their headings."""
    return sum(len(rows) + 1 for rows in each.values()) + any(map(_any_missed, each.values()))


def _worst(rows: list[_Row], most: int) -> list[_Row]:
    """Return the rows with the largest maxima, in their original order."""
    kept = sorted(rows, key=lambda row: -(row.summary.max_ns or 0))[:most]
    return [row for row in rows if row in kept]


def _fitted(texts: Sequence[Text], most: int, what: str, console: Console) -> list[Text]:
    """Fit texts into `most` lines: wrap them, or else truncate each to a line and count the rest."""
    wrapped = [line for text in texts for line in text.wrap(console, console.width)]
    if len(wrapped) <= most:
        return wrapped
    if most <= 0:
        return []
    cut = [text.copy() for text in texts]
    for line in cut:
        line.truncate(console.width, overflow="ellipsis")
    return _few(cut, most, lambda more: Text(f"and {more} more {what}", style="dim"))


def _brief_lines(view: RecordView, console: Console, ends: Sequence[Text]) -> list[RenderableType]:
    """Return at most MOST_LINES lines."""
    systems, marks, left_out = _systems(view, console), _marks(view, console), _left_out(view, console)
    state = unfinished(view)
    free = MOST_LINES - len(ends) - len(systems) - len(marks) - len(left_out) - len(state) - 1
    presented = _presented(view, console)
    notes = [Text(printable(line)) for line in [*repeat_lines(view.singly), *cross_check_lines(view.singly)]]
    notes += [Text(printable(line), style="dim") for line in step_lines(view.steps, view.labels)]
    # Each part gets its share of the lines, and the lines that other parts do not need.
    room = free - min(len(presented), free // 3) - min(len(notes), free // 4) - 1
    tables = _tables(view.singly, console, room, free - LEAST_BESIDE)
    free -= len(tables) + bool(tables)
    note_lines = _fitted(notes, free - min(len(presented), free * 2 // 3), "lines", console)
    free -= len(note_lines)
    blank = Text("")
    return [
        *systems, *([blank] if tables else []), *tables, *note_lines,
        *_fitted(presented, free, "lines", console),
        *([blank] if marks or left_out or state else []), *marks, *left_out, *state, *ends,
    ]  # fmt: skip


def print_brief(view: RecordView, console: Console, ends: Sequence[Text]) -> None:
    """Print the lines after the conclusion. `ends`: the last lines, which are not wrapped."""
    for line in _brief_lines(view, console, ends):
        console.print(line, soft_wrap=True, end="" if isinstance(line, Segments) else "\n")
        if isinstance(line, Segments):
            console.print()
