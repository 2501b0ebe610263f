# SPDX-License-Identifier: MIT
"""Presents a tuning: what can be tried as tables, and its result as tables and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtgauge.report.compare.comparison_page import AnswerBox, ComparisonChapter, Tone, html
from rtgauge.report.figure_data import CpuHistograms, measured
from rtgauge.report.figures.exceedance import corner_note, named_chart
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_conclusion import reason_text
from rtgauge.report.record_view import RequiredBound
from rtgauge.report.table import Cell, Column, Table, numbers, texts
from rtgauge.report.text import NONE
from rtgauge.verdict.decision import judged_series
from rtgauge_ext.tune.candidates import NEVER, Offer
from rtgauge_ext.tune.gain import format_gain, format_gains
from rtgauge_ext.tune.result import TuneOutcome, steps_with
from rtgauge_ext.tune.search import PairOutcome
from rtgauge_ext.tune.tuning_study import play

if TYPE_CHECKING:
    from rtgauge.record.reader import Record
    from rtgauge_ext.tune.result import TestFigures, TuneResult

TONES: dict[TuneOutcome, Tone] = {
    TuneOutcome.HOLDS: "holds",
    TuneOutcome.FIXED: "holds",
    TuneOutcome.BETTER: "holds",
}
"""The colours of the answers that are good. The others are not verdicts on the machine."""


def offer_tables(offer: Offer, *, details: bool) -> list[Table]:
    """Return two tables: the settings that would be tried, with their costs, and the settings that would not,
    with the reasons. `details` adds the reason, the source, the advice against, and the settings that need
    another kernel.
    """
    rows = [
        [
            each.id,
            each.found,
            f"{each.rule.title}. {each.rule.why}" if details else each.rule.title,
            each.trial.cost,
            *([f"{each.rule.source}{_against(each.trial.against)}"] if details else []),
        ]
        for each in offer.candidates
    ]
    columns = [
        Column("setting"),
        Column("found"),
        Column("wanted", "prose"),
        Column("costs", "prose", drop_rank=1),
        *([Column("source", "prose")] if details else []),
    ]
    count = len(rows)
    tried = Table(f"{count} settings to try" if count != 1 else "1 setting to try", columns, rows)
    others = Table(
        "Not tried",
        [Column("setting"), Column("why", "prose")],
        [
            [each.rule.id, each.why]
            for each in offer.not_tried
            if details or each.rule.trial is not None or each.rule.boot is not None
        ],
        [
            *([stopped(offer.daemons)] if offer.daemons else []),
            "With --boot each-deployment, rtgauge tries settings that need a boot on a guest of the lab.",
            f"Never touched: {', '.join(NEVER)}.",
        ],
    )
    return [tried, others]


def stopped(daemons: Sequence[str]) -> str:
    """Return what happens to the daemons that would set a value back."""
    return f"These daemons undo settings, so trials of such settings stop them: {', '.join(daemons)}."


def _against(advice: str | None) -> str:
    return "" if advice is None else f". Against it: {advice}"


def tables(result: TuneResult) -> list[Table]:
    """Return the tables that have rows: kept settings, tried numbers of isolated CPUs, and tests."""
    kept = Table(
        "Kept",
        [*texts("setting", "wanted", "instead of", "costs"), *numbers("gain")],
        [
            [
                each.rule,
                each.title,
                each.found,
                each.cost,
                NONE if each.test is None else format_gain(each.test.gain),
            ]
            for each in result.kept
        ],
        [f"Published advice against {each.rule}: {each.against}." for each in result.kept if each.against],
    )
    tests = Table(
        "Tests",
        [
            *texts("settings"),
            Column("test", drop_rank=2),
            *numbers("gain"),
            *texts("interval"),
            Column("pairs", "number", drop_rank=1),
            *texts("shows"),
        ],
        [_row(test) for test in result.tests],
        [
            "A gain of +50 % means: without the setting, the latency that decides was 1.5 times as large.",
            "A test shows a difference if its interval excludes a gain of 0.",
            f"At most one tuning in {1 / result.false_keep:.0f} keeps a setting that does not help.",
        ],
    )
    fewest = Table(
        "Isolated CPUs",
        [*texts("isolated", "requirement", "the rest"), *texts("kept")],
        [
            [each.cpus or "none", each.verdict.word, "; ".join(each.rest) or NONE, "yes" if each.kept else ""]
            for each in result.isolated
        ],
        [
            (
                "The requirement is measured on the CPU that is isolated first. The other figures are "
                "compared with the machine as it is."
            ),
            *(
                ["The budget was used up before the search found how few CPUs are enough."]
                if result.out_of_budget
                else []
            ),
        ],
    )
    all_tables = ((kept, result.kept), (fewest, result.isolated), (tests, result.tests))
    return [table for table, rows in all_tables if rows]


def interval(test: TestFigures) -> str:
    """Return the interval of a test's gain; a dash unless it is bounded on both sides."""
    if test.low is None or test.high is None:
        return NONE
    return format_gains(test.low, test.high)


def _row(test: TestFigures) -> list[str]:
    tone = {PairOutcome.BETTER: "good", PairOutcome.WORSE: "alarm"}
    shows = (
        Cell(test.found, "good" if test.found is PairOutcome.BETTER else "alarm")
        if test.found in tone
        else test.found
    )
    return [
        ", ".join(test.changed),
        test.purpose,
        format_gain(test.gain),
        interval(test),
        str(test.pairs),
        shows,
    ]


def before_and_after(result: TuneResult) -> list[str]:
    """Return the verdicts before and after the tuning, with their numbers, one per line."""
    both = (("Before", result.before), ("After", result.after))
    return [
        f"{name}, the verdict is {verdict.word}: {reason_text(verdict)}"
        for name, verdict in both
        if verdict is not None
    ]


def basis(result: TuneResult) -> list[str]:
    """Return notes on the basis of the answer, one per line."""
    lines = [f"These made it late: {', '.join(result.culprits[:5])}."] if result.culprits else []
    lines += before_and_after(result)
    lines += [f"Costs: {words}." for words in result.costs]
    lines += (
        [f"{stopped(result.daemons)} Disable these daemons if you keep such a setting."]
        if result.daemons
        else []
    )
    lines += [f"Left to try: {', '.join(result.left)}."] if result.left else []
    return lines + [f"Left out: {text}." for text in result.left_out]


def figures(record: Record) -> list[Figure]:
    """Return the exceedance curves before and after the tuning, with the bound: a chart for each load. Empty
    if nothing was measured. Raises RecordError for a damaged record.
    """
    played = play(record)
    bound = played.options.bound
    required = RequiredBound(bound.bound_ns / 1_000, float(bound.allowed))
    settings = {"before": (), **({"after": final} if (final := played.search.result.final) else {})}
    loads: dict[str, dict[str, CpuHistograms]] = {}
    for name, setting in settings.items():
        for step in steps_with(record, played, setting):
            numbers = {
                each.series: name for each in judged_series(step, bound.metric) if each.series is not None
            }
            for part in measured(record.windows(step), numbers).values():
                of_load = loads.setdefault(step.key.load, {})
                of_load[name] = of_load.get(name, CpuHistograms()).plus(part)
    drawn = {load: named_chart(parts, bound.metric, required) for load, parts in loads.items()}
    charts = {load: chart for load, chart in drawn.items() if chart is not None}
    title = "Before and after" if len(settings) > 1 else "Before"
    figure = Figure.described("before-after", title, charts, [corner_note(required, bound.metric)])
    return [] if figure is None else [figure]


def page(result: TuneResult, record: Record) -> str:
    """Return the page as text."""
    both = before_and_after(result)
    tone = TONES.get(result.outcome, "cannot-tell")
    answer = AnswerBox(result.conclusion, result.outcome, tone, both, result.next)
    rest = [line for line in basis(result) if line not in both]
    chapter = ComparisonChapter("", [], tables(result), figures(record), answer=answer, notes=rest)
    return html([chapter], [record], title="Tuning")
