# SPDX-License-Identifier: MIT
"""Prints advice in the terminal: the answer, its basis, its costs, open questions, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rtgauge.report.labelled_lines import print_labelled
from rtgauge.report.terminal_table import print_text
from rtgauge.report.text import printable
from rtgauge.units import format_multiple, plural
from rtgauge_ext.papers.advise.flowchart import Advice, Stage
from rtgauge_ext.papers.advise.margin import Evidence, Margin

STYLE = {
    Margin.BLACK: "bold green",
    Margin.MARGINAL: "bold yellow",
    Margin.TROUBLE: "bold red",
    Margin.OFF: "bold red",
    Margin.CANNOT_TELL: "bold yellow",
    None: "dim",
}
MOST_EVIDENCE = 12
"""The most steps of a stage that are listed. The rest is only counted; the JSON lists all."""


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold underline"))


def _listed(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        _heading(console, title)
        for line in lines:
            print_text(console, f"- {line}")


def _evidence(evidence: Evidence) -> Text:
    text = Text(f"{evidence.step} ", style="")
    text.append(str(evidence.margin), style=STYLE[evidence.margin])
    if evidence.times_the_bound is not None:
        text.append(f", {format_multiple(evidence.times_the_bound)} times the bound")
    text.append(printable(f"  {evidence.record}"), style="dim")
    return text


def _stage(console: Console, stage: Stage, names: dict[str, str], number: str) -> None:
    text = Text(f"{number} {printable(stage.name)}: ", style="bold")
    text.append(str(stage.margin) if stage.margin is not None else stage.why, style=STYLE[stage.margin])
    if stage.leads_to is not None:
        text.append(f" -> {printable(names.get(stage.leads_to, stage.leads_to))}")
    print_text(console, text)
    if stage.margin is not None:
        print_text(console, stage.why, 3)
    for evidence in stage.evidence[:MOST_EVIDENCE]:
        print_text(console, _evidence(evidence), 3)
    if len(stage.evidence) > MOST_EVIDENCE:
        print_text(
            console,
            f"and {plural(len(stage.evidence) - MOST_EVIDENCE, 'more step')}; --json lists all of them",
            3,
        )


def print_advice(advice: Advice, console: Console) -> None:
    """Print the whole advice."""
    print_text(console, Text(printable(advice.answer), style="bold"))
    print_text(console, f"asked    {advice.requirement}")
    print_text(console, f"chart    {advice.about_chart}")
    if advice.differs is not None:
        print_text(console, f"differs  {advice.differs}")
    limits = advice.thresholds
    scale = (
        f"up to {limits['black']:g} times the bound is clearly in the black, up to {limits['marginal']:g} "
        f"marginal, up to {limits['trouble']:g} in trouble"
    )
    print_text(console, f"scale    {scale}, and above that off the map")
    _heading(console, "The walk")
    names = {stage.way: stage.name for stage in advice.walk}
    for number, stage in enumerate(advice.walk, 1):
        _stage(console, stage, names, f"{number}.")
    if advice.also_measured:
        _heading(console, "Also measured, but not part of the chart")
        for stage in advice.also_measured:
            _stage(console, stage, names, "-")
    whom = advice.use_name or ""
    published = [
        f"{task}: median {m} us, 95 % {p95} us, 100 % {p100} us"
        for task, (m, p95, p100) in advice.published.items()
    ]
    _listed(console, f"What the paper measured for {whom} (BeagleBoard, 2010)", published)
    _listed(console, f"What {whom} costs", advice.costs)
    _listed(console, "What today's kernels changed", advice.today)
    if advice.not_measured:
        _heading(console, "Missing measurements that could change the answer")
        for question in advice.not_measured:
            print_text(console, f"- {question.what}: {question.changes}")
            print_text(console, Text(printable(question.command), style="cyan"), 4)
    aside = [f"{Path(step.record).name} {step.step}: {step.why}" for step in advice.aside[:MOST_EVIDENCE]]
    _listed(console, "No evidence", aside)
    if len(advice.aside) > MOST_EVIDENCE:
        print_text(console, f"and {len(advice.aside) - MOST_EVIDENCE} more; --json lists all of them")
    console.print()
    print_labelled("next", advice.next, console, width=9, style="bold cyan")
