# SPDX-License-Identifier: MIT
"""The result of a gate as tables, as Markdown for a pull request, and as a page with each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.analysis.gate_result import percent
from rtgauge.report.compare.page import Chapter, html
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE
from rtgauge.units import format_time, plural

if TYPE_CHECKING:
    from rtgauge.analysis.gate_result import GateResult, SeriesChange
    from rtgauge.record.reader import Record

SUITE = "rtgauge gate"


def notes(result: GateResult) -> list[str]:
    """What the answer rests on, and what it cannot say, a line each."""
    lines: list[str] = []
    if result.accepted is not None:
        lines.append(f"The change is {result.accepted}.")
    change = result.primary
    if change is not None and change.spread is not None:
        line = f"Runs of one side vary by {change.spread * 100:.1f} %."
        if result.found is not None:
            line += f" {plural(change.pairs, 'pair')} find {percent(result.found)} in nine of ten cases"
            line += (
                f"; {percent(result.larger_than)} needs {plural(result.pairs_needed, 'pair')}."
                if result.pairs_needed is not None
                else f"; {percent(result.larger_than)} needs too many: measure longer runs."
            )
        lines.append(line)
    aside = [pair for pair in result.pairs if pair.why_not is not None]
    if aside and result.primary is not None and result.primary.pairs:
        lines.append(f"{plural(len(aside), 'pair')} did not count, the first because of {aside[0].why_not}.")
    lines += [f"Left out: {text}." for text in result.left_out]
    if result.next is not None:
        lines.append(f"Next: {result.next}")
    return lines


def series_table(result: GateResult) -> Table:
    """The change of every series; the first decides."""
    shown = [result.primary, *result.others] if result.primary is not None else result.others
    return Table(
        f"Change of {result.quantile}, candidate against baseline",
        [*texts(""), *numbers("change", "95 % interval", "spread", "pairs"), *texts("")],
        [[*_cells(change), "decides" if change is result.primary else "not judged"] for change in shown],
        ["The intervals of series that are not judged are not corrected for the number of series."]
        if result.others
        else [],
    )


def pairs_table(result: GateResult) -> Table:
    """Each pair of the primary series."""
    return Table(
        f"Pairs: {result.quantile} of {result.series}",
        [*texts(""), *numbers("baseline", "candidate", "change"), *texts("first", "does not count because")],
        [
            [
                str(pair.pair),
                format_time(pair.baseline_ns),
                format_time(pair.candidate_ns),
                NONE if pair.change is None else percent(pair.change),
                pair.first,
                pair.why_not or "",
            ]
            for pair in result.pairs
        ],
    ).without_empty()


def markdown(result: GateResult) -> str:
    """For a pull request: the answer, the tables."""
    parts = [f"**{result.outcome.upper()}**: {_escaped(result.conclusion)}"]
    parts += [f"- {_escaped(note)}" for note in notes(result)]
    tables = [series_table(result), *([pairs_table(result)] if result.pairs else [])]
    for table in tables if result.primary is not None else []:
        parts += ["", f"### {_escaped(table.title)}", ""]
        parts.append("| " + " | ".join(column.title for column in table.columns) + " |")
        parts.append("|" + "|".join("--:" if column.is_number else "---" for column in table.columns) + "|")
        parts += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table.rows]
    return "\n".join(parts) + "\n"


def page(result: GateResult, record: Record) -> str:
    """The page as text: the answer, each pair drawn and in a table, all series."""
    judged = result.primary is not None
    chapter = Chapter(
        "",
        [result.baseline],
        [series_table(result), pairs_table(result)] if judged else [],
        [_figure(result)] if any(pair.change is not None for pair in result.pairs) else [],
        conclusion=f"{result.outcome.upper()}: {result.conclusion}",
        doubt=" ".join(notes(result)) or None,
    )
    return html([chapter], [record], title="Gate")


def _figure(result: GateResult) -> Figure:
    """The change of each pair, and the one that matters."""
    rows = [
        [pair.pair, pair.change * 100, f"{pair.first} first"]
        for pair in result.pairs
        if pair.change is not None
    ]
    data = vega.csv({"pair": "number", "change": "number", "order": "string"}, rows)
    limits = vega.csv({"limit": "number"}, [[0.0], [result.larger_than * 100]])
    description = f"Change of {result.quantile} of {result.series} in each pair, in percent"
    points = vega.layer(
        data,
        vega.mark("point", filled=True, size=70),
        x=vega.shown("pair:Q", title="pair", axis={"tickMinStep": 1, "format": "d"}),
        y=vega.shown("change:Q", title="change, %"),
        color=vega.shown("order:N", legend={"title": None}),
        tooltip=vega.tips("pair:Q", "change:Q", "order:N"),
    )
    rules = vega.layer(limits, vega.mark("rule", strokeDash=[5, 3]), y=vega.shown("limit:Q"))
    spec = vega.layered([rules, points], height=240, description=description)
    return Figure(
        "pairs",
        "Each pair",
        description,
        [spec],
        notes=[f"The upper line is the change that matters, {percent(result.larger_than)}."],
    )


def _cells(change: SeriesChange) -> list[str]:
    interval = (
        NONE
        if change.low is None or change.high is None
        else f"{percent(change.low)} … {percent(change.high)}"
    )
    return [
        change.series,
        NONE if change.change is None else percent(change.change),
        interval,
        NONE if change.spread is None else f"{change.spread * 100:.1f} %",
        str(change.pairs),
    ]


def _escaped(text: str) -> str:
    from rtgauge.report.text import printable

    return printable(text).replace("|", "\\|").replace("<", "&lt;")
