# SPDX-License-Identifier: MIT
"""Prints a short summary of a record below its answer: one row per load or thread, for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.segment import Segments
from rich.text import Text

from rtgauge.errors import RecordError
from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.marks import is_doubt
from rtgauge.record.model import Severity
from rtgauge.record.reader import BLOCKS, WINDOWS
from rtgauge.report.gathered_marks import GatheredMark, gathered_marks
from rtgauge.report.labelled_lines import labelled, prose_width
from rtgauge.report.method import cokernel_lines
from rtgauge.report.presenter import own_lines, presenters
from rtgauge.report.record_conclusion import cross_check_lines, repeat_lines
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table
from rtgauge.report.terminal_table import fitted, rich_table
from rtgauge.report.text import printable
from rtgauge.units import plural
from rtgauge.verdict.coverage import cpus_left_out

if TYPE_CHECKING:
    from rtgauge.report.answer_table import Row

MOST_LINES = 25
"""The most lines after the conclusion."""
MOST_LEFT_OUT, MOST_DOUBTS, MOST_REASONS = 3, 6, 3
LEAST_BESIDE = 5
"""Tables leave at least this many lines to other results."""


def mark_text(mark: GatheredMark, style: str) -> Text:
    """Return a mark in words: its severity in `style`, its name, place and detail."""
    where = f" {mark.where}" if mark.where else ""
    return Text.assemble((mark.severity.value, style), f": {printable(f'{mark.name}{where}: {mark.detail}')}")


def left_out_texts(view: RecordView) -> list[str]:
    """Return a line for each item left out of the run, and for each probe that no extension here has."""
    return [
        printable(f"{item.what}: {item.reason}" + (f"; {item.remedy}" if item.remedy else ""))
        for item in view.record.run.left_out
    ] + [
        printable(f"probe {name}: its own results cannot be shown; install the extension that has this probe")
        for name in view.probes_not_here
    ]


def unfinished(view: RecordView) -> list[Text]:
    """Return a line that says how far an incomplete run got."""
    run = view.record.run
    if run.state == "complete":
        return []
    planned = plural(len(run.planned), "planned step")
    return [Text(f"This run is {run.state}: {len(run.steps)} of {planned} finished.", style="yellow")]


def doubts_text(view: RecordView) -> str | None:
    """Return all marks in one sentence, the most severe first: one with its detail, several by name."""
    gathered = gathered_marks(view)
    doubts = [mark for mark in gathered if is_doubt(mark.severity)]
    noted = [mark.name for mark in gathered if not is_doubt(mark.severity)]
    left = cpus_left_out(view.record.steps)
    parts: list[str] = []
    if not view.record.steps:  # the marks of the run say why
        return "; ".join(f"{mark.name}: {mark.detail}" for mark in gathered) or None
    if len(doubts) == 1:
        parts.append(f"{_named(doubts[0])}: {doubts[0].detail}")
    elif doubts:
        more = f" and {len(doubts) - MOST_DOUBTS} more" if len(doubts) > MOST_DOUBTS else ""
        parts.append("; ".join(map(_named, doubts[:MOST_DOUBTS])) + more)
    if noted:
        parts.append(f"{'noted: ' if doubts else ''}{', '.join(noted)}")
    if parts:
        name = doubts[0].name if len(doubts) == 1 else noted[0] if not doubts and len(noted) == 1 else "NAME"
        parts[-1] += f" (rtgauge marks {name})"
    if left:
        parts.append(f"not measured: {'; '.join(left)}")
    return "; ".join(parts) or None


def _named(mark: GatheredMark) -> str:
    invalid = "invalid: " if mark.severity is Severity.INVALID else ""
    return f"{invalid}{mark.name}{f' {mark.where}' if mark.where else ''}"


def _doubts(view: RecordView, console: Console) -> list[Text]:
    text = doubts_text(view)
    if text is None:
        return []
    worst = max((mark.severity for mark in gathered_marks(view)), key=SEVERITY_ORDER.index, default=None)
    style = {Severity.INVALID: "bold red", Severity.DOUBTFUL: "yellow"}.get(worst or Severity.NOTE, "")
    return labelled("doubt" if worst is not Severity.NOTE else "note", text, console, style=style)


SEVERITY_ORDER = [Severity.NOTE, Severity.DOUBTFUL, Severity.INVALID]


def _left_out(view: RecordView, console: Console) -> list[Text]:
    texts = left_out_texts(view)
    shown = texts if len(texts) <= MOST_LEFT_OUT else texts[: MOST_LEFT_OUT - 1]
    if len(shown) < len(texts):
        shown = [*shown, f"{len(texts) - len(shown)} more"]
    return [line for text in shown for line in labelled("missing", text, console)]


def _presented(view: RecordView, console: Console) -> list[Text]:
    """Return the lines that presenters print."""
    with console.capture() as captured:
        for presenter, steps in presenters(view.steps):
            presenter.print_brief(view, steps, console)
    text = captured.get().rstrip("\n")
    return [Text.from_ansi(line.rstrip()) for line in text.splitlines() if line.strip()]


def _rendered(table: Table, console: Console) -> list[RenderableType]:
    """Return a table as lines."""
    rendered = rich_table(table, console.width)
    return [
        Segments([segment for segment in line if not segment.control])
        for line in console.render_lines(rendered, console.options, pad=False)
    ]


def _judged(view: RecordView, console: Console, most: int) -> list[RenderableType]:
    """Return the table of what the requirement is about, and why a row cannot tell, if no number says it."""
    from rtgauge.report.answer_table import (
        SEE_BELOW,
        judged_rows,
        judged_table,
        notes_of,
        signs_for,
        what_is_missing,
    )

    rows = judged_rows(view)
    if not rows:
        return []
    signs = signs_for(console.encoding)
    shown, rest = rows, 0
    if len(rows) + 3 > most:
        shown = rows[: max(1, most - 4)]
        rest = len(rows) - len(shown)
    table = judged_table(shown, signs, console.width)
    lines = _rendered(table, console)
    if rest:
        words = {str(row.word) for row in rows[len(shown) :]}
        lines.append(Text(f"and {rest} more ({', '.join(sorted(words))})", style="dim"))
    reasons = [row for row in shown if what_is_missing(row, short=True) == SEE_BELOW]
    for row in reasons[:MOST_REASONS] if len(rows) > 1 else []:
        lines += _wrapped(f"{signs[row.word]} {row.name}: {row.reason}" if row.word else "", console)
    notes = notes_of(fitted(table, console.width), shown)
    return lines + [line for note in notes for line in _wrapped(note, console, "dim")]


def _wrapped(text: str, console: Console, style: str = "") -> list[Text]:
    return list(Text(printable(text), style=style).wrap(console, prose_width(console)))


def _plain(view: RecordView, console: Console, most: int, leave_out: frozenset[str]) -> list[RenderableType]:
    """Return the tables of all quantities that no requirement judged, in at most `most` lines. To fit, leave
    out parts of a quantity first, then rows with smaller maxima.
    """
    from rtgauge.report.answer_table import plain_rows

    each = {
        name: rows for name in view.quantities if name not in leave_out and (rows := plain_rows(view, name))
    }
    all_rows = sum(map(len, each.values()))
    if all_rows + 3 * len(each) > most:
        each = {name: [row for row in rows if not row.part] for name, rows in each.items()}
    lines: list[RenderableType] = []
    share = max(1, most // max(1, len(each)) - 3)
    for name, rows in each.items():
        shown = rows
        if sum(map(len, each.values())) + 3 * len(each) > most and len(rows) > share:
            largest = sorted(rows, key=lambda row: -row.largest_ns)[:share]
            shown = [row for row in rows if any(row is kept for kept in largest)]
        lines += _quantity(view, name, shown, console)
        if len(shown) < len(rows):
            lines.append(Text(f"and {len(rows) - len(shown)} more with smaller maxima", style="dim"))
    return lines


def _quantity(view: RecordView, name: str, rows: Sequence[Row], console: Console) -> list[RenderableType]:
    """Return the table of one quantity, with shares within round bounds if a requirement can bound it."""
    from rtgauge.record.merged_windows import Merged, merge
    from rtgauge.report.answer_table import notes_of, plain_table, series_of
    from rtgauge.report.within import round_bounds, share_within

    values: dict[int, Merged] = {}
    damaged: list[str] = []
    for at, row in enumerate(rows):
        metric = probe_of(row.step).metric(row.summary.metric)
        # Imported records may have no windows.
        kept = any(view.record.has(row.step, file) for file in (WINDOWS, BLOCKS))
        if metric is not None and metric.bound is not None and row.word is None and kept:
            try:
                values[at] = merge(view.record.windows(row.step), series_of(row))
            except RecordError as error:
                damaged.append(f"no shares of {row.name}: {error}")
    bounds = round_bounds(list(values.values()))
    place = {id(row): at for at, row in enumerate(rows)}

    def within(row: Row) -> list[str]:
        known = values.get(place[id(row)])
        return [share_within(known, bound) if known is not None else "" for bound in bounds]

    table = plain_table(rows, name, within, bounds)
    notes = [*notes_of(fitted(table, console.width), rows), *damaged]
    return [
        *_rendered(table, console),
        *(line for note in notes for line in _wrapped(note, console, "dim")),
    ]


def _fitted(texts: Sequence[Text], most: int, what: str, console: Console) -> list[Text]:
    """Wrap texts, and leave out the last of them if they need more than `most` lines."""
    lines: list[Text] = []
    for at, text in enumerate(texts):
        wrapped = list(text.wrap(console, prose_width(console)))
        last = at == len(texts) - 1
        if len(lines) + len(wrapped) + (not last) > most:
            rest = f"and {len(texts) - at} more {what}: --details shows all"
            return [*lines, Text(rest, style="dim")] if len(lines) < most else lines
        lines += wrapped
    return lines


def _brief_lines(view: RecordView, console: Console, ends: Sequence[Text]) -> list[RenderableType]:
    """Return at most MOST_LINES lines."""
    doubts, left_out, state = _doubts(view, console), _left_out(view, console), unfinished(view)
    judged = {str(verdict.evidence.get("metric")) for verdict in view.record.run.verdicts}
    free = MOST_LINES - len(ends) - len(doubts) - len(left_out) - len(state) - 1
    presented = _presented(view, console)
    notes = [Text(printable(line)) for line in [*repeat_lines(view.singly), *cross_check_lines(view.singly)]]
    notes += [Text(printable(line)) for line in cokernel_lines(view)]
    if not view.record.run.verdicts:
        notes += [Text(printable(line), style="dim") for line in own_lines(view.steps, view.labels)]
    room = max(free - min(len(presented), free // 3) - min(len(notes), free // 4) - 1, LEAST_BESIDE)
    tables = _judged(view.singly, console, room)
    rest = _plain(view.singly, console, room - len(tables), frozenset(judged if tables else ()))
    tables += rest if len(tables) + len(rest) <= room else []
    free -= len(tables) + bool(tables)
    note_lines = _fitted(notes, free - min(len(presented), free * 2 // 3), "lines", console)
    free -= len(note_lines)
    blank = Text("")
    return [
        *tables, *note_lines, *_fitted(presented, free, "lines", console),
        *([blank] if tables or notes or presented else []), *doubts, *left_out, *state, *ends,
    ]  # fmt: skip


def print_brief(view: RecordView, console: Console, ends: Sequence[Text]) -> None:
    """Print the lines after the conclusion. `ends`: the last lines, which are not wrapped."""
    for line in _brief_lines(view, console, ends):
        console.print(line, soft_wrap=True, end="" if isinstance(line, Segments) else "\n")
        if isinstance(line, Segments):
            console.print()
