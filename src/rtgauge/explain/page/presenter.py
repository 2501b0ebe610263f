# SPDX-License-Identifier: MIT
"""Shows explanations: tables of culprits, and the worst latency."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from rtgauge.explain.analysis.culprits import ExplainedStep, Remedy, explained_steps, remedy_of
from rtgauge.explain.analysis.explanation import Explanation, headline, part_words, sentence, sum_words, us
from rtgauge.explain.analysis.mechanisms import cause_words, mechanisms
from rtgauge.explain.analysis.ranking import RankedCulprit, ranked_culprits
from rtgauge.explain.page.moment_figure import figure_name, moment_figure
from rtgauge.record.model import Step
from rtgauge.record.watched_loop import loops_of
from rtgauge.report.figures.vega import Figure
from rtgauge.report.labelled_lines import print_labelled
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Column, Table, numbers
from rtgauge.report.terminal_table import print_tables, print_text
from rtgauge.report.text import printable
from rtgauge.report.text import us as short_us
from rtgauge.units import format_share, plural

MOST_ON_TERMINAL = 5
MOST_ON_PAGE = 20
LEAST_SHARE = 0.01
LEAST_ON_TERMINAL = 0.05
"""A culprit with a smaller share of the time is listed only if it took most of an outlier."""


@dataclass(frozen=True)
class CulpritRow:
    """The row of one ranked culprit. `side`: for a path through a network (explanation.SIDES)."""

    rank: int
    name: str
    outliers: str
    time: str
    worst: str
    remedy: Remedy | None
    side: str


@dataclass(frozen=True)
class ExplainedView:
    """One step in the form shown on the page.

    `figure`: the name of the step's figure, if drawn. `parts`: (us, words) for each part of the worst
    latency.
    """

    name: str
    step: Step
    summary: str
    rows: list[CulpritRow]
    worst: str | None
    parts: list[tuple[str, str]]
    sum: str | None
    metric: str
    figure: str | None
    all: list[str]
    blocked: list[str]


@dataclass(frozen=True)
class ExplainedChapter:
    """All explained steps. `together`: the culprits of the whole run, if it has several steps."""

    together: list[CulpritRow]
    steps: list[ExplainedView]


def _rows(
    culprits: Sequence[RankedCulprit], view: RecordView, step: Step | None, *, most: int, least: float
) -> list[CulpritRow]:
    """Return the mechanisms with a share of at least `least`, and every one that took most of an outlier,
    with the names of their culprits.

    Each remedy is shown only for the first mechanism that it helps against.
    """
    targets = (step or view.record.steps[0]).key.targets
    facts = view.record.system(targets.get("self", "local"))
    grouped = mechanisms(culprits, virtual=facts.machine.virtual is True)
    listed = [known for known in grouped if known.outlier_share or known.time_share >= least][:most]
    threads = set[str]() if step is None else {loop.task for loop in loops_of(step)}
    rows: list[CulpritRow] = []
    for rank, known in enumerate(listed, 1):
        sides = dict.fromkeys(ranked.culprit.side for ranked in known.culprits if ranked.culprit.side)
        remedy = remedy_of(known.culprits[0], facts, threads)
        shown = {row.remedy.rule or row.remedy.what for row in rows if row.remedy is not None}
        new = None if remedy is None or (remedy.rule or remedy.what) in shown else remedy
        led = format_share(known.outlier_share) if known.outlier_share else ""
        time, worst = format_share(known.time_share), short_us(known.worst_ns)
        rows.append(CulpritRow(rank, known.title, led, time, worst, new, " and ".join(sides)))
    return rows


def _summary(explained: ExplainedStep) -> str:
    """Return "12 latencies explained, 2 of them only partly; unattributed at most 3.1 us"."""
    count = len(explained.activations)
    if count == 0 and explained.triggered and not (explained.step.total and explained.step.total.count):
        return "only the time before triggers is explained, because no latency was measured"
    if count == 0:
        return "none of the latencies is explained, because their events were not recorded"
    partly = sum(bool(known.doubts) for known in explained.activations)
    text = f"{plural(count, 'latency') if count == 1 else f'{count} latencies'} explained"
    if partly:
        text += f", {partly} of them only partly"
    most = max(known.unattributed_ns for known in explained.activations)
    return f"{text}; unattributed at most {us(most)} us"


def _view(explained: ExplainedStep, view: RecordView, name: str, drawn: Container[str]) -> ExplainedView:
    worst, figure = explained.worst, figure_name(explained.step)
    return ExplainedView(
        name=name,
        step=explained.step,
        summary=_summary(explained),
        rows=_rows(explained.culprits, view, explained.step, most=MOST_ON_PAGE, least=LEAST_SHARE),
        worst=None if worst is None else headline(worst),
        parts=[] if worst is None else [(us(part.ns), part_words(part)) for part in worst.parts],
        sum=None if worst is None else us(worst.latency_ns),
        metric="latency" if worst is None else explained.metric(worst),
        figure=figure if figure in drawn else None,
        all=[sentence(known) for known in sorted(explained.activations, key=_size)],
        blocked=[sentence(known) for known in _longest_blocked(explained)],
    )


def _longest_blocked(explained: ExplainedStep) -> list[Explanation]:
    """Return for each thread its longest sleep for a lock and its longest other sleep that another thread
    ended, the longest first.
    """
    longest = {
        (known.moment.thread, known.moment.kind): known
        for known in sorted(explained.blocked, key=_size, reverse=True)
    }
    return sorted(longest.values(), key=_size)


def _triggered(explanation: Explanation) -> str:
    """Return "before the trigger message: torque limit 7: task hog; 100,000.000 us on CPU 1"."""
    before = f"before the trigger {explanation.moment.trigger}: {explanation.trigger_words}"
    return f"{before}; {headline(explanation)}"


def _size(explanation: Explanation) -> int:
    return -explanation.latency_ns


def _findings(explained: ExplainedStep) -> list[tuple[str, Explanation]]:
    """Return the worst latency and each thread's longest waits, in words, the longest first. Only explained
    ones are known; the step may have longer ones.
    """
    worst = (
        []
        if explained.worst is None
        else [(f"worst explained {explained.metric(explained.worst)}", explained.worst)]
    )
    waits = [
        (
            f"longest explained {'priority inversion' if known.moment.is_blocked else 'wait for a thread'}",
            known,
        )
        for known in _longest_blocked(explained)
    ]
    return sorted([*worst, *waits], key=lambda finding: _size(finding[1]))


def _most_important_first(view: RecordView, steps: Sequence[ExplainedStep]) -> list[ExplainedStep]:
    """Return the step that decides the verdict first; without a verdict, that with the largest finding."""
    overall = next((verdict for verdict in view.record.run.verdicts if verdict.step is None), None)
    if overall is not None:
        decisive = overall.evidence.get("decided_by")
        return sorted(steps, key=lambda known: known.step.id != decisive)
    return sorted(steps, key=lambda known: min((_size(explanation) for explanation in known.all), default=0))


class ExplainedPresenter(Presenter):
    """Presents the steps whose latencies were explained."""

    def cause(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Return the mechanisms that took most of the time of the explained latencies and waits."""
        explained = explained_steps(view.record, steps)
        virtual = any(
            view.record.system(known.step.key.targets.get("self", "local")).machine.virtual is True
            for known in explained
        )
        return cause_words(
            ranked_culprits(explanation for known in explained for explanation in known.all), virtual=virtual
        )

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:
        """Draw the worst latency of each step."""
        figures: list[Figure] = []
        for explained in explained_steps(view.record, steps):
            if explained.worst is not None:
                title = (
                    f"The worst explained latency, {view.labels.get(explained.step.id, explained.step.id)}"
                )
                figures.append(moment_figure(explained.worst, explained.step, explained.symbols, title))
        return figures

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """Return the culprits and the worst latency of each step."""
        names = view.labels
        explained = explained_steps(view.record, steps)
        if not explained:
            return None
        together = ranked_culprits(known for step in explained for known in step.activations)
        together = together if len(explained) > 1 else []
        views = [_view(known, view, names.get(known.step.id, known.step.id), drawn) for known in explained]
        rows = _rows(together, view, None, most=MOST_ON_PAGE, least=LEAST_SHARE)
        return Chapter(
            id="explained",
            heading="What delayed it",
            template="rtgauge.explain.page/explained.html.j2",
            content=ExplainedChapter(rows, views),
            place="after frequencies",
            measured="explained latencies",
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print a line for each mechanism, and the parts of the worst latency. The step that decides the
        verdict comes first, and in each step the largest finding.
        """
        names = view.labels
        for explained in _most_important_first(view, explained_steps(view.record, steps)):
            _print_summary(explained, names, console)
            findings = _findings(explained)
            for words, known in findings[:1]:
                _print_parts(f"{words}: {headline(known)}", known, console)
            _print_culprits(explained, view, console)
            for words, known in findings[1:]:
                _print_parts(f"{words}: {headline(known)}", known, console)
            console.print()

    def print_brief(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print nothing, because the answer has the cause."""


def _print_summary(explained: ExplainedStep, names: Mapping[str, str], console: Console) -> None:
    name = names.get(explained.step.id, explained.step.id)
    console.print(Text(printable(f"{name}: {_summary(explained)}"), style="bold"))


def _print_culprits(explained: ExplainedStep, view: RecordView, console: Console) -> None:
    """Print a table of the mechanisms, and below it what to change."""
    culprits = explained.culprits
    rows = _rows(culprits, view, explained.step, most=MOST_ON_TERMINAL, least=LEAST_ON_TERMINAL)
    titles = [
        Column("what delayed it"),
        *numbers("largest part in", "of their time"),
        Column("worst", "maximum"),
    ]
    cells = [[f"{row.rank}. {row.name}", row.outliers, row.time, f"{row.worst} us", row.side] for row in rows]
    notes = [f"For {row.rank}: {row.remedy.words}" for row in rows if row.remedy is not None]
    print_tables([Table("", [*titles, Column("side")], cells, notes).without_empty()], console)


def _print_parts(heading: str, explanation: Explanation, console: Console) -> None:
    """Print a heading, and a line for each part in order of time; the parts add up to the whole."""
    print_text(console, heading, 2)
    sizes = [f"{us(part.ns)} us" for part in explanation.parts]
    widest = max(map(len, sizes), default=0)
    for size, part in zip(sizes, explanation.parts, strict=True):
        label = f"{'':5}{size:>{widest}}  "
        print_labelled(label, part_words(part), console, width=len(label), label_style="")


def print_latencies(view: RecordView, steps: Sequence[ExplainedStep], console: Console) -> None:
    """Print the mechanisms of each step and its explained latencies, the largest first: the first ones with a
    line for each part, the others as sums.
    """
    for explained in _most_important_first(view, steps):
        _print_summary(explained, view.labels, console)
        _print_culprits(explained, view, console)
        console.print()
        for latencies in (explained.activations, explained.blocked):
            ranked = sorted(latencies, key=_size)
            for known in ranked[:MOST_ON_TERMINAL]:
                _print_parts(headline(known), known, console)
            for known in ranked[MOST_ON_TERMINAL:]:
                print_text(console, f"{headline(known)} = {sum_words(known)}", 2)
        for known in explained.triggered:
            _print_parts(_triggered(known), known, console)
        console.print()


EXPLAINED = ExplainedPresenter()
