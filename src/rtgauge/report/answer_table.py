# SPDX-License-Identifier: MIT
"""Makes the tables of a record's summary: a row per load or thread, with a sign where a requirement was
judged, and the shares within a few round bounds where none was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.model import PART as PART_OF_PROGRAM
from rtgauge.record.model import Distribution, Mark, SeriesSummary, Step, Verdict, VerdictWord
from rtgauge.record.quantiles import times_longer
from rtgauge.record.watched_loop import loops_of
from rtgauge.report.record_view import Condition, RecordView, has_distribution, quantity_of, series_name
from rtgauge.report.step_tables import missed_cell
from rtgauge.report.table import PART, Cell, Column, Table, Tone
from rtgauge.report.text import NONE, whole
from rtgauge.units import format_bound, format_time
from rtgauge.verdict.answer_words import late_share, missing_words
from rtgauge.verdict.decision import judged_series
from rtgauge.verdict.exit_status import worst

MOST_OUTCOMES = 12
"""The page folds a table of outcomes with more rows than this."""
SEE_BELOW = "see below"
PLACE = 2
"""The rank of the column with the place of the largest value."""
WIDE = 110
"""From this width on, a row says in full what is missing."""
SIGNS = {
    VerdictWord.HOLDS: "✓",
    VerdictWord.MARGINAL: "~",
    VerdictWord.FAILS: "✗",
    VerdictWord.CANNOT_TELL: "?",
}
PLAIN_SIGNS = {**SIGNS, VerdictWord.HOLDS: "+", VerdictWord.FAILS: "x"}
"""The signs in encodings without the others."""
TONES: dict[VerdictWord, Tone] = {
    VerdictWord.HOLDS: "good",
    VerdictWord.MARGINAL: "doubt",
    VerdictWord.FAILS: "alarm",
    VerdictWord.CANNOT_TELL: "doubt",
}
PART_LABELS = ("role", "segment", "machine", PART_OF_PROGRAM)
FILLED_WORDS = "p99 and p99.9: each missed activation counts with the latency that it would have had"
TOO_FEW_WORDS = f"{NONE}: too few samples for this quantile"


@dataclass(frozen=True)
class Row:
    """A row: a step or a `part` of one, and the place of the largest value.

    `series`: the numbers of its series (None: all of the step's main quantity). `judged`: the evidence of the
    verdict on it, and `word` the verdict.
    """

    name: str
    step: Step
    summary: SeriesSummary
    place: str
    missed: str
    part: bool = False
    marks: Sequence[Mark] = ()
    word: VerdictWord | None = None
    judged: Mapping[str, Any] | None = None
    reason: str = ""

    @property
    def figures(self) -> Distribution:
        """The figures with missed activations filled in."""
        return self.summary.filled if self.summary.missed else self.summary

    @property
    def largest_ns(self) -> int:
        """The largest value, or 0 if there is none."""
        return self.summary.max_ns or 0


def signs_for(encoding: str) -> Mapping[VerdictWord, str]:
    """Return the signs that the encoding has."""
    try:
        "".join(SIGNS.values()).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN_SIGNS
    return SIGNS


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


def _parts(step: Step, main: str) -> list[Row]:
    """Return a row for each other quantity of a step, from the thread or CPU with the largest value."""
    groups: dict[str, list[SeriesSummary]] = {}
    mains = {summary.series for summary in step.main_series}
    for summary in step.series:
        metric = probe_of(step).metric(summary.metric)
        if summary.series not in mains and (metric is None or metric.shown):
            labels = [summary.labels[label] for label in PART_LABELS if label in summary.labels]
            words = [str(label).replace("-", " ") for label in labels]
            words = [summary.metric, *words] if summary.metric != main else words
            groups.setdefault(", ".join(words) or series_name(summary), []).append(summary)
    largest = [(name, ranked) for name, group in groups.items() if (ranked := _by_maximum(group))]
    return [
        Row(name, step, most, _where(most) if others else "", missed_cell(step, most), part=True)
        for name, (most, *others) in largest
    ]


def _each(step: Step, name: str) -> list[Row]:
    """Return a row for each series, the largest maximum first. `step`: one whose series cannot be pooled,
    such as threads.
    """
    known = _by_maximum(step.main_series)
    same_place = len({_where(summary) for summary in known}) < len(known)
    return [
        Row(
            ", ".join([name, *_own_labels(summary)]) if same_place else name,
            step,
            summary,
            _where(summary),
            missed_cell(step, summary),
            marks=step.marks,
        )
        for summary in known
    ]


def plain_rows(view: RecordView, quantity: str) -> list[Row]:
    """Return a row per condition, idle first, from the repeat with the largest value."""
    rows: list[Row] = []
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
            largest = _by_maximum(step.main_series)
            marks = [mark for _, known in totals for mark in known.marks]
            where = _where(largest[0]) if largest else ""
            rows.append(Row(name, step, total, where, missed_cell(step, total), marks=marks))
        else:
            rows += _each(step, name)
        rows += _parts(step, total.metric)
    return rows


def _of_threads(step: Step, verdict: Verdict) -> list[Row]:
    """Return a row per judged thread of a watched program."""
    rows: list[Row] = []
    for judged in verdict.evidence.get("threads", []):
        own = [
            summary
            for summary in step.series
            if summary.metric == judged.get("metric") and summary.labels.get("task") == judged["task"]
        ]
        missed = whole(judged.get("missed")) if "missed" in judged else ""
        rows += [
            Row(
                str(judged["task"]), step, summary, "", missed,
                word=VerdictWord(judged["word"]), judged=judged, reason=judged["reason"],
            )
            for summary in own
        ]  # fmt: skip
    return rows


def _judged_row(condition: Condition, judged: Mapping[str, Verdict], view: RecordView) -> list[Row]:
    """Return the row of a condition's worst repeat, or a row per thread."""
    known = [judged[step.id] for step in condition.steps if step.id in judged]
    decisive = worst(known)
    if decisive is None:
        return []
    step = next(step for step in condition.steps if step.id == decisive.step)
    if loops_of(step) and (rows := _of_threads(step, decisive)):
        return rows
    metric = decisive.evidence.get("metric") or quantity_of(step)
    largest = _by_maximum(judged_series(step, str(metric)))
    summary = step.total if metric == quantity_of(step) and step.total is not None else None
    if summary is None and not largest:
        return []
    shown = summary or largest[0]
    name = view.labels[step.id] + (f", worst of {len(known)}" if len(known) > 1 else "")
    marks = [mark for each in condition.steps for mark in each.marks]
    return [
        Row(
            name, step, shown, _where(largest[0]) if largest else "", missed_cell(step, shown), marks=marks,
            word=decisive.word, judged=decisive.evidence, reason=decisive.reason,
        )
    ]  # fmt: skip


def judged_rows(view: RecordView) -> list[Row]:
    """Return a row per judged load or thread, the worst first; empty without a requirement."""
    by_step = {verdict.step: verdict for verdict in view.record.run.verdicts if verdict.step is not None}
    rows = [row for condition in view.conditions for row in _judged_row(condition, by_step, view)]
    order = [VerdictWord.FAILS, VerdictWord.CANNOT_TELL, VerdictWord.MARGINAL, VerdictWord.HOLDS]
    return sorted(rows, key=lambda row: (order.index(row.word or VerdictWord.HOLDS), -_late(row)))


def _late(row: Row) -> float:
    evidence = row.judged or {}
    every = evidence.get("activations") or 0
    return float(evidence.get("violations_certain") or 0) / every if every else 0.0


def quantile(figures: Distribution, field: str) -> str:
    """Return a quantile, a dash if too few samples exceed it."""
    value: float | None = getattr(figures, field)
    if value is None or times_longer(field, figures.count) is not None:
        return NONE
    return ("≥" if field in figures.lower_bounds else "") + format_time(value)


def _maximum(summary: SeriesSummary) -> str:
    return ("≥" if "max_ns" in summary.lower_bounds else "") + format_time(summary.max_ns)


def what_is_missing(row: Row, *, short: bool) -> str:
    """Return what is still missing to tell, in a few words; empty if nothing is."""
    if row.word is VerdictWord.MARGINAL:
        return "in doubt" if (row.judged or {}).get("in_doubt") else "only just"
    if row.word is not VerdictWord.CANNOT_TELL:
        return ""
    return missing_words(row.judged or {}, short=short) or SEE_BELOW


def judged_table(rows: Sequence[Row], signs: Mapping[VerdictWord, str], width: int) -> Table:
    """Return the table of judged loads or threads."""
    columns = [
        Column(""),
        Column("late", "number"),
        Column("missed", "number", drop_rank=1),
        Column("p99", "number", drop_rank=4),
        Column("p99.9", "number", drop_rank=3),
        Column("max", "maximum"),
        Column("", "nowrap", drop_rank=PLACE),
        Column("", "nowrap"),
    ]
    cells = [
        [
            Cell(f"{signs[row.word]} {row.name}", TONES[row.word]) if row.word else row.name,
            late_share(row.judged or {}) or "",
            row.missed,
            quantile(row.figures, "p99_ns"),
            quantile(row.figures, "p99_9_ns"),
            _maximum(row.summary),
            row.place,
            what_is_missing(row, short=width < WIDE),
        ]
        for row in rows
    ]
    return Table("", columns, cells).without_empty()


def outcome_table(view: RecordView) -> Table:
    """Return the page's row for each judged load or thread: how many were late, the largest value, and what
    is missing to tell; empty without a requirement. The other figures are in the table of numbers.
    """
    rows = judged_rows(view)
    table = judged_table(rows, SIGNS, WIDE)
    columns = table.columns
    shown = table.only(
        lambda at: at == 0 or columns[at].title in {"late", "max"} or columns[at].drop_rank == PLACE
    )
    missing = [(row, what_is_missing(row, short=False)) for row in rows]
    notes = [f"{row.name}: {row.reason if what == SEE_BELOW else what}." for row, what in missing if what]
    title = "The verdict on each load or thread"
    return replace(shown, title=title, notes=notes, folded=len(rows) > MOST_OUTCOMES)


def plain_table(
    rows: Sequence[Row], quantity: str, within: Callable[[Row], Sequence[str]], bounds: Sequence[int]
) -> Table:
    """Return the table of a quantity without a verdict. `within`: the shares of a row within the bounds."""
    title = f"{quantity} within" if bounds else quantity
    columns = [
        Column(title),
        Column("missed", "number", drop_rank=2),
        *(
            Column(format_bound(bound), "number", drop_rank=1 if at == 0 else 0)
            for at, bound in enumerate(bounds)
        ),
        *([] if bounds else [Column("mean", "number", drop_rank=5)]),
        Column("p99", "number", drop_rank=4),
        Column("p99.9", "number", drop_rank=3),
        Column("max", "maximum"),
        Column("", "nowrap", drop_rank=2),
    ]
    cells = [
        [
            (PART if row.part else "") + row.name + ("*" if row.marks and _in_doubt(row) else ""),
            row.missed,
            *within(row),
            *([] if bounds else [format_time(row.summary.mean_ns)]),
            quantile(row.figures, "p99_ns"),
            quantile(row.figures, "p99_9_ns"),
            _maximum(row.summary),
            row.place,
        ]
        for row in rows
    ]
    return replace(Table("", columns, cells), columns=columns).only(
        lambda at: at < 1 or any(row[at] for row in cells)
    )


def _in_doubt(row: Row) -> bool:
    return any(row.step.doubts_on(row.summary.metric))


def series_of(row: Row) -> Collection[int] | None:
    """Return the numbers of a row's series; None if its step keeps none."""
    if row.summary.series is not None:
        return [row.summary.series]
    return [each.series for each in row.step.main_series if each.series is not None] or None


def notes_of(table: Table, rows: Sequence[Row]) -> list[str]:
    """Return what the quantiles' cells mean, if they need it."""
    shown = {column.title for column in table.columns}
    if not {"p99", "p99.9"} & shown:
        return []
    at = [place for place, column in enumerate(table.columns) if column.title in {"p99", "p99.9"}]
    few = any(row[place] == NONE for row in table.rows for place in at)
    filled = any(row.summary.missed for row in rows)
    return [*([FILLED_WORDS] if filled else []), *([TOO_FEW_WORDS] if few else [])]
