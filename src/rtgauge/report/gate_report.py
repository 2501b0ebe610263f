# SPDX-License-Identifier: MIT
"""Presents the result of a gate as tables, as Markdown for a pull request, and as a page with each pair."""

from __future__ import annotations

from rtgauge.record.reader import Record
from rtgauge.report.compare.comparison_page import AnswerBox, ComparisonChapter, Tone, html
from rtgauge.report.figures import vega
from rtgauge.report.figures.factors import factor_axis
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_conclusion import exposure_text
from rtgauge.report.table import Column, Table, numbers, ranked, texts
from rtgauge.report.text import NONE, printable
from rtgauge.units import format_change, format_changes, format_count, format_time, plural
from rtgauge.verdict.gate_result import GateOutcome, GateResult, SeriesChange

SUITE = "rtgauge gate"
SIDES = ("baseline", "candidate")
TONES: dict[GateOutcome, Tone] = {
    GateOutcome.NOT_WORSE: "holds",
    GateOutcome.WORSE: "fails",
    GateOutcome.FAILS: "fails",
}
"""The colours of the answers that tell."""


def notes(result: GateResult) -> list[str]:
    """Return both sides' values, notes on the basis and the limits of the answer, and what to do next."""
    values = [f"{result.values}."] if result.values is not None else []
    return [*values, *basis(result), *([f"Next: {result.next}"] if result.next is not None else [])]


def basis(result: GateResult) -> list[str]:
    """Return notes on the basis and the limits of the answer, one per line."""
    lines: list[str] = []
    if result.accepted is not None:
        lines.append(f"The change is {result.accepted}.")
    change = result.primary
    if change is not None and change.spread is not None:
        spread = f"{change.spread * 100:.1f} % (standard deviation)"
        line = (
            f"Runs of the same side differ from one another by {spread}."
            if result.require is None
            else f"On the same side, the rate of violations differs from run to run by {spread}."
        )
        if result.found is not None:
            line += (
                f" In nine of ten cases, {plural(change.pairs, 'pair')} would find a change of "
                f"{format_change(result.found)}"
            )
            line += (
                f"; to find a change of {format_change(result.larger_than)}, measure "
                f"{plural(result.pairs_needed, 'pair')}."
                if result.pairs_needed is not None
                else f"; to find a change of {format_change(result.larger_than)}, a gate would need too many "
                "pairs, so measure longer runs."
            )
        lines.append(line)
    if (
        result.violations_needed is not None
        and change is not None
        and result.outcome is not GateOutcome.WORSE
    ):
        lines.append(
            f"{plural(result.violations_needed, 'violation')} on the candidate's side would show that it is "
            "worse, if violations come in bursts like the measured ones."
        )
    if (rare := _rare_states(result)) is not None:
        lines.append(rare)
    lines += [
        f"New culprit: {new.culprit} caused "
        f"{format_count(new.latencies)} large {'latency' if new.latencies == 1 else 'latencies'} of the "
        f"candidate (in {new.runs} of {plural(new.explained_runs, 'run')}, up to "
        f"{format_time(new.worst_ns)}), but none of the baseline."
        for new in result.culprits
    ]
    for side in result.exposure:
        exposure, what = side.exposure, "break the bound"
        if result.require is None:
            # The user did not ask for this bound, so the cost of the next power of ten is not shown.
            exposure = exposure.model_copy(update={"per_hour_excluded": None, "next_s": None})
            what = f"exceed {format_time(side.bound_ns)}, its largest"
        lines.append(f"{side.side}: {exposure_text(exposure, what)}.")
    aside = [pair for pair in result.pairs if pair.why_not is not None]
    if aside and result.primary is not None and result.primary.pairs:
        lines.append(
            f"{plural(len(aside), 'pair')} did not count; the reason for the first: {aside[0].why_not}."
        )
    if (stolen := _stolen(result)) is not None:
        lines.append(stolen)
    return lines + [f"Left out: {text}." for text in result.left_out]


def _stolen(result: GateResult) -> str | None:
    """Return how much CPU time the host took from each side in the pairs that count although it did."""
    marked = [pair.stolen_ns for pair in result.pairs if pair.why_not is None and pair.stolen_ns is not None]
    if not marked:
        return None
    baseline, candidate = (format_time(sum(side)) for side in zip(*marked, strict=True))
    return (
        f"In {plural(len(marked), 'pair')}, the host took CPU time from both sides alike (steal): {baseline} "
        f"from the baseline, {candidate} from the candidate. Such pairs count."
    )


def series_table(result: GateResult) -> Table:
    """Return a table with each series' change. The first series decides."""
    shown = [result.primary, *result.others] if result.primary is not None else result.others
    columns = [
        *texts(""),
        *numbers(*SIDES, "change"),
        Column("95 % interval", "number", drop_rank=1),
        Column("spread", "number", drop_rank=3),
        Column("pairs", "number", drop_rank=2),
        *texts(""),
    ]
    rows = [[*_cells(change), "decides" if change is result.primary else "not judged"] for change in shown]
    baseline, candidate = result.largest_ns
    if baseline and candidate and result.primary is not None:
        what = "latency of the runs" if result.require is not None else f"{result.quantile} of the runs"
        times = [format_time(baseline), format_time(candidate), format_change(candidate / baseline - 1)]
        rows.insert(1, [f"largest {what}", *times, "", "", str(result.primary.pairs), "not judged"])
    uncorrected = "The intervals of the series that are not judged ignore that there are several series."
    notes = [uncorrected] if result.others else []
    title = f"Change of {_measure(result)}, candidate against baseline"
    return Table(title, columns, rows, notes).without_empty()


def pairs_table(result: GateResult) -> Table:
    """Return a table with each pair of the primary series."""
    values = [side if result.require is None else f"{side}, largest" for side in SIDES]
    figures = numbers(*values, "change", *(f"{side}, violations" for side in SIDES))
    rows: list[list[str]] = []
    first_with: dict[str, int] = {}
    for pair in result.pairs:
        why = pair.why_not or ""
        if why and first_with.setdefault(why, pair.pair) != pair.pair:
            why = f"as pair {first_with[why]}"
        times = [format_time(ns) for ns in (pair.baseline_ns, pair.candidate_ns)]
        change = "" if pair.change is None else format_change(pair.change)
        broken = [
            "" if n is None else format_count(n)
            for n in (pair.baseline_violations, pair.candidate_violations)
        ]
        steal = "" if pair.stolen_ns is None else " / ".join(map(format_time, pair.stolen_ns))
        rows.append([str(pair.pair), *times, change, *broken, pair.first, steal, why])
    columns = [*texts(""), *figures, *texts("first", "steal", "does not count because")]
    columns = ranked(columns, *(f"{side}, violations" for side in SIDES), "first")
    return Table(f"Pairs: {result.endpoint} of {result.series}", columns, rows).without_empty()


def markdown(result: GateResult) -> str:
    """Return the answer and the tables, for a pull request."""
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
    """Return the page as text: the answer, each pair as a point and as a row, and all series."""
    judged = result.primary is not None
    chapter = ComparisonChapter(
        "",
        [result.baseline],
        [series_table(result), pairs_table(result)] if judged else [],
        [_figure(result)] if any(pair.why_not is None for pair in result.pairs) else [],
        answer=AnswerBox(
            result.conclusion,
            result.outcome,
            TONES.get(result.outcome, "cannot-tell"),
            [] if result.values is None else [result.values],
            result.next,
        ),
        notes=basis(result),
    )
    return html([chapter], [record], title="Gate")


def _measure(result: GateResult) -> str:
    return result.quantile if result.require is None else f"how often {result.require} is violated"


def _figure(result: GateResult) -> Figure:
    """Return the figure of each pair's change and the change that matters, or of both sides'
    violations.
    """
    if result.require is not None:
        return _violations_figure(result)
    rows = [
        (pair.pair, 1 + pair.change, f"{pair.first} first", format_change(pair.change))
        for pair in result.pairs
        if pair.change is not None
    ]
    data = vega.csv("pair:Q factor:Q order change", rows)
    matters = 1 + result.larger_than
    limits = vega.csv("limit:Q", [[1.0], [matters]])
    changes = ", ".join(change for *_, change in rows)
    description = f"Change of {result.quantile} of {result.series} in each pair: {changes}"
    y = factor_axis("factor:Q", [matters, *(factor for _, factor, *_ in rows)], "candidate / baseline")
    points = _points(result, data, y, "order:N", "pair:Q", "change:N")
    rules = vega.layer(limits, vega.mark("rule", strokeDash=[5, 3]), y=vega.shown("limit:Q"))
    notes = [f"The upper line is the change that matters, {format_change(result.larger_than)}."]
    return Figure.single("pairs", "Each pair", description, [points, rules], 240, notes)


def _points(result: GateResult, data: vega.Data, y: vega.Part, kind: str, *tips: str) -> vega.Part:
    """Return the layer with the points of each pair, coloured by `kind`."""
    x = vega.counted_axis("pair:Q", len(result.pairs), "pair")
    colour = vega.shown(kind, legend={"title": None})
    drawn = vega.mark("point", filled=True, size=70)
    return vega.layer(data, drawn, x=x, y=y, color=colour, tooltip=vega.tips(*tips, kind))


def _violations_figure(result: GateResult) -> Figure:
    rows = [
        (pair.pair + (-0.1, 0.1)[at], violations or 0, SIDES[at])
        for pair in result.pairs
        if pair.why_not is None
        for at, violations in enumerate((pair.baseline_violations, pair.candidate_violations))
    ]
    most = max(violations for _, violations, _ in rows)
    step = max(1, most // 8)
    ticks = [*range(0, most + step, step)]
    data = vega.csv("pair:Q violations:Q side", rows)
    sums = ", ".join(
        f"{side} {format_count(sum(row[1] for row in rows if row[2] == side))}" for side in SIDES
    )
    description = f"How often each run violated {result.require} under {result.series}: in all, {sums}"
    y = vega.shown("violations:Q", axis={"title": "violations", "values": ticks, "format": "d"})
    points = _points(result, data, y, "side:N", "violations:Q")
    return Figure.single("pairs", "Each pair", description, [points], 240)


def _cells(change: SeriesChange) -> list[str]:
    interval = NONE
    if change.low is not None:
        # Without violations on the baseline, a rate has no upper bound.
        interval = (
            f"≥ {format_change(change.low)}"
            if change.high is None
            else format_changes(change.low, change.high)
        )
    changed = NONE if change.change is None else format_change(change.change)
    spread = "" if change.spread is None else f"{change.spread * 100:.1f} %"
    values = ["" if ns is None else format_time(ns) for ns in (change.baseline_ns, change.candidate_ns)]
    return [change.series, *values, changed, interval, spread, str(change.pairs)]


def _rare_states(result: GateResult) -> str | None:
    """Return which rarer states so many runs cannot show; None unless the candidate passes."""
    if result.outcome not in {GateOutcome.NOT_WORSE, GateOutcome.FAILS} or result.rarest_shown is None:
        return None
    pairs = 0 if result.primary is None else result.primary.pairs
    more = (
        ""
        if result.rare is not None
        else ("; --rare 10% measures enough runs to catch a state that occurs in 1 in 10")
    )
    return (
        f"With {plural(pairs, 'pair')}, the gate may have missed a state of the machine that occurs in fewer "
        f"than 1 in {1 / result.rarest_shown:.0f} runs (or boots){more}."
    )


def _escaped(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")
