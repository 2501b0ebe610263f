# SPDX-License-Identifier: MIT
"""Presenter of explained steps, whatever their probe: the culprits by what they cost, the worst latency's
sentence and sum, and its figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from rtgauge.explain.analysis.culprits import Mend, RankedCulprit, mend_of, ranked_culprits
from rtgauge.explain.analysis.explained_step import ExplainedStep, explained_steps
from rtgauge.explain.analysis.selftest import self_test
from rtgauge.explain.analysis.sentence import culprit_name, part_words, sentence, sum_words, us
from rtgauge.explain.page.selftest_table import selftest_grid, verdict_words
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import printable
from rtgauge.report.text import us as short_us
from rtgauge.units import format_share, plural

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rich.console import Console

    from rtgauge.explain.analysis.parts import Explanation
    from rtgauge.explain.analysis.selftest import SelfTest
    from rtgauge.record.model import Step
    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.table import Table

MOST_ON_TERMINAL = 5
MOST_ON_PAGE = 20
LEAST_SHARE = 0.01
LEAST_ON_TERMINAL = 0.05
"""A culprit with less than this of the time, which led no outlier, is not listed."""


@dataclass(frozen=True)
class CulpritRow:
    """One ranked culprit as it is shown."""

    rank: int
    name: str
    outliers: str
    time: str
    worst: str
    mend: Mend | None


@dataclass(frozen=True)
class ExplainedView:
    """One step.

    `figure`: the name of its figure, if drawn; `parts`: of the worst latency, (us, what it was).
    """

    name: str
    step: Step
    summary: str
    rows: list[CulpritRow]
    worst: str | None
    parts: list[tuple[str, str]]
    sum: str | None
    figure: str | None
    all: list[tuple[str, str]]
    blocked: list[str]


@dataclass(frozen=True)
class ExplainedChapter:
    """All explained steps; `together`: the culprits of the run, where it has several such steps; `tested`:
    the answer and the matrix of a self test.
    """

    together: list[CulpritRow]
    steps: list[ExplainedView]
    tested: tuple[str, Table] | None


def _rows(
    culprits: Sequence[RankedCulprit], view: RecordView, step: Step | None, *, most: int, least: float
) -> list[CulpritRow]:
    """The culprits with at least `least` of the time, and those that led an outlier.

    What to change is said at the first culprit that it concerns.
    """
    target = (
        next(iter(view.record.steps)).key.targets.get("self", "local")
        if step is None
        else step.key.targets.get("self", "local")
    )
    facts = view.record.system(target)
    listed = [ranked for ranked in culprits if ranked.outliers or ranked.time_share >= least][:most]
    rows: list[CulpritRow] = []
    for rank, ranked in enumerate(listed, 1):
        mend = mend_of(ranked, facts)
        said = {row.mend.rule or row.mend.what for row in rows if row.mend is not None}
        new = None if mend is None or (mend.rule or mend.what) in said else mend
        led = format_share(ranked.outlier_share) if ranked.outliers else ""
        rows.append(
            CulpritRow(
                rank,
                culprit_name(ranked.culprit),
                led,
                format_share(ranked.time_share),
                short_us(ranked.worst_ns),
                new,
            )
        )
    return rows


def _summary(explained: ExplainedStep) -> str:
    """ "12 latencies explained, 2 of them only partly; unattributed at most 3.1 us"."""
    count = len(explained.explanations)
    if count == 0:
        return "explained: no latency was frozen"
    partly = sum(bool(known.doubts) for known in explained.explanations)
    text = f"{plural(count, 'latency') if count == 1 else f'{count} latencies'} explained"
    if partly:
        text += f", {partly} of them only partly"
    return (
        f"{text}; unattributed at most "
        f"{us(max(known.unattributed_ns for known in explained.explanations))} us"
    )


def _view(explained: ExplainedStep, view: RecordView, name: str, drawn: Container[str]) -> ExplainedView:
    from rtgauge.explain.page.moment_figure import figure_name

    worst = explained.worst
    return ExplainedView(
        name=name,
        step=explained.step,
        summary=_summary(explained),
        rows=_rows(explained.culprits, view, explained.step, most=MOST_ON_PAGE, least=LEAST_SHARE),
        worst=None if worst is None else sentence(worst),
        parts=[] if worst is None else [(us(part.ns), part_words(part)) for part in worst.parts],
        sum=None if worst is None else us(worst.latency_ns),
        figure=name_ if (name_ := figure_name(explained.step)) in drawn else None,
        all=[
            (str(known.moment.number), sentence(known)) for known in sorted(explained.explanations, key=_size)
        ],
        blocked=[sentence(known) for known in _longest_blocked(explained)],
    )


def _longest_blocked(explained: ExplainedStep) -> list[Explanation]:
    """Of each thread that slept until another one woke it the longest sleep, for a lock and otherwise, the
    longest first.
    """
    longest = {
        (known.moment.thread, known.moment.kind): known
        for known in sorted(explained.blocked, key=_size, reverse=True)
    }
    return sorted(longest.values(), key=_size)


def _size(explanation: Explanation) -> int:
    return -explanation.latency_ns


class ExplainedPresenter(Presenter):
    """A part a step that was explained."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Who took most of the time of the largest latencies."""
        ranked = ranked_culprits(
            known for explained in explained_steps(view.record, steps) for known in explained.explanations
        )
        if not ranked:
            return None
        return (
            f"{format_share(ranked[0].time_share)} of the time of the explained latencies is "
            f"{culprit_name(ranked[0].culprit)}"
        )

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:
        """The worst latency of each step."""
        from rtgauge.explain.page.moment_figure import moment_figure

        names = view.labels
        return [
            moment_figure(
                worst,
                explained.step,
                explained.symbols,
                f"The worst explained latency, {names.get(explained.step.id, explained.step.id)}",
            )
            for explained in explained_steps(view.record, steps)
            if (worst := explained.worst) is not None
        ]

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """The culprits and the worst latency of each step."""
        names = view.labels
        explained = explained_steps(view.record, steps)
        if not explained:
            return None
        together = (
            ranked_culprits(known for step in explained for known in step.explanations)
            if len(explained) > 1
            else []
        )
        views = [_view(known, view, names.get(known.step.id, known.step.id), drawn) for known in explained]
        tested = self_test(view.record)
        matrix = None if tested is None else (verdict_words(tested), selftest_grid(tested))
        return Chapter(
            id="explained",
            heading="What delayed it",
            template="rtgauge.explain.page/explained.html.j2",
            content=ExplainedChapter(
                _rows(together, view, None, most=MOST_ON_PAGE, least=LEAST_SHARE), views, matrix
            ),
            place="after frequencies",
            measured="explained latencies",
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """A line a culprit, and the worst latency's sentence and sum."""
        names = view.labels
        tested = self_test(view.record)
        if tested is not None:
            print_self_test(tested, console)
        for explained in explained_steps(view.record, steps):
            name = names.get(explained.step.id, explained.step.id)
            console.print(Text(printable(f"{name}: {_summary(explained)}"), style="bold"))
            for row in _rows(
                explained.culprits, view, explained.step, most=MOST_ON_TERMINAL, least=LEAST_ON_TERMINAL
            ):
                _print(
                    console,
                    f"{row.rank}. {row.name}: "
                    f"{f'{row.outliers} of outliers, ' if row.outliers else ''}{row.time} of their "
                    f"time, worst {row.worst} us",
                    2,
                )
                if row.mend is not None:
                    _print(console, row.mend.words, 5, style="dim")
            if explained.worst is not None:
                _print(console, f"worst: {sentence(explained.worst)}", 2)
                _print(console, sum_words(explained.worst), 9, style="dim")
            for known in _longest_blocked(explained):
                _print(
                    console,
                    "longest "
                    f"{'priority inversion' if known.moment.is_blocked else 'wait for another thread'}: "
                    f"{sentence(known)}",
                    2,
                )
                _print(console, sum_words(known), 9, style="dim")
            console.print()


def print_self_test(result: SelfTest, console: Console) -> None:
    """The answer, and the confusion matrix."""
    console.print(Text(verdict_words(result), style="bold"))
    print_tables([selftest_grid(result)], console)
    console.print()


def print_latencies(view: RecordView, steps: Sequence[ExplainedStep], console: Console) -> None:
    """Every explained latency with its sum, the largest of each step first."""
    names = view.labels
    for explained in steps:
        console.print(
            Text(
                printable(f"{names.get(explained.step.id, explained.step.id)}: {_summary(explained)}"),
                style="bold",
            )
        )
        for known in [*sorted(explained.explanations, key=_size), *sorted(explained.blocked, key=_size)]:
            _print(console, sentence(known), 2)
            _print(console, sum_words(known), 5, style="dim")
        console.print()


def _print(console: Console, text: str, indent: int, style: str = "") -> None:
    console.print(Padding(Text(printable(text), style=style), (0, 0, 0, indent), expand=False))


EXPLAINED = ExplainedPresenter()
