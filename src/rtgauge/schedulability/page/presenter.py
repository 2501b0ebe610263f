# SPDX-License-Identifier: MIT
"""Presenter of measured task sets: tables 6 to 8 and figure 5 of Delgado et al.

2020 for this machine, on the page and on the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.tables import thread_table
from rtgauge.report.text import printable
from rtgauge.units import format_count, plural

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rich.console import Console

    from rtgauge.record.model import Step
    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.table import Table


@dataclass(frozen=True)
class MeasuredTaskSet:
    """One step.

    `tables`: of all tasks; `tasks`: a table a task; `figure`: the name of the timeline, if drawn.
    """

    name: str
    step: Step
    tables: list[Table]
    tasks: list[Table]
    words: str
    figure: str | None
    threads: Table


def _measured(step: Step, name: str, drawn: Container[str]) -> MeasuredTaskSet:
    from rtgauge.schedulability.analysis.measured_set import measured_set
    from rtgauge.schedulability.page import measured_tables
    from rtgauge.schedulability.page.schedule_figure import figure_name

    measured = measured_set(step)
    threads = [series for series in step.series if series.metric == "latency"]
    return MeasuredTaskSet(
        name=name,
        step=step,
        tables=measured_tables.page_tables(measured),
        tasks=[measured_tables.figure_table(task) for task in measured.tasks],
        words=measured_tables.words(measured),
        figure=figure_name(step) if figure_name(step) in drawn else None,
        threads=thread_table(threads, "task", name),
    )


class TaskSetPresenter(Presenter):
    """A part a step."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """How many deadlines were missed, and which task's response is far above its calculated bound."""
        from rtgauge.schedulability.analysis.measured_set import measured_set
        from rtgauge.schedulability.page.measured_tables import above_the_bound

        names = view.labels
        counts = [(counts, names[step.id]) for step in steps for counts in step.tasks]
        if not counts:
            return None
        activations, missed = (
            sum(task.activations for task, _ in counts),
            sum(task.deadline_misses for task, _ in counts),
        )
        tasks = plural(len({task.task for task, _ in counts}), "task")
        text = f"{tasks} met all {format_count(activations)} deadlines"
        if missed:
            worst, where = max(counts, key=lambda pair: pair[0].deadline_misses)
            most = (
                f"most by {worst.task} under {where}, {format_count(worst.deadline_misses)} of "
                f"{format_count(worst.activations)}"
            )
            text = (
                f"{format_count(missed)} of {format_count(activations)} deadlines of {tasks} missed, {most}"
            )
        remarks = [
            f"{remark} under {names[step.id]}"
            for step in steps
            if step.tasks
            for remark in above_the_bound(measured_set(step))
        ]
        return "; ".join(
            [
                text,
                *remarks[:1],
                *([f"{len(remarks) - 1} more above their bounds"] if len(remarks) > 1 else []),
            ]
        )

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """The measured timelines."""
        from rtgauge.schedulability.page.schedule_figure import measured_figure

        return [figure for step in steps if step.segments and (figure := measured_figure(step)) is not None]

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """The tables and the timeline of each step that ran a set."""
        names = view.labels
        return Chapter(
            id="tasksets",
            heading="Task sets",
            template="rtgauge.schedulability.page/tasksets.html.j2",
            content=[_measured(step, names[step.id], drawn) for step in steps if step.tasks],
            place="after frequencies",
            measured="task sets",
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """The same, as fits into the terminal."""
        from rtgauge.schedulability.page.measured_tables import print_taskset

        names = view.labels
        for step in steps:
            if step.tasks:
                console.print(Text(printable(names[step.id]) + ("*" if step.marks else ""), style="bold"))
                print_taskset(step, console)
                console.print()


TASK_SETS = TaskSetPresenter()
