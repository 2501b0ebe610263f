# SPDX-License-Identifier: MIT
"""Presenter of measured task sets: tables 6 to 8 and figure 5 of Delgado et al.

2020 for this machine, on the page and on the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from rtgauge.report.conditions import step_labels
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.tables import ThreadRow, thread_rows
from rtgauge.report.text import printable
from rtgauge.units import format_count, plural

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from rich.console import Console

    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record
    from rtgauge.report.figures.figure import Figure
    from rtgauge.schedulability.page.measured_tables import TaskRow


@dataclass(frozen=True)
class MeasuredTaskSet:
    """One step.

    `tables`: the name and the headings of each table of all tasks; `tasks`: a table a task; `figure`: the
    name of the timeline, if drawn.
    """

    name: str
    step: Step
    answer: str
    rows: list[TaskRow]
    tables: list[tuple[str, tuple[str, ...]]]
    tasks: list[tuple[str, list[dict[str, str]]]]
    words: str
    figure: str | None
    threads: list[ThreadRow]


def _measured(step: Step, name: str, drawn: Container[str]) -> MeasuredTaskSet:
    from rtgauge.schedulability.analysis.measured_set import measured_set
    from rtgauge.schedulability.page import measured_tables
    from rtgauge.schedulability.page.measured_figure import figure_name

    measured = measured_set(step)
    return MeasuredTaskSet(
        name=name,
        step=step,
        answer=measured.result.answer.value,
        rows=measured_tables.parameter_rows(measured),
        tables=[("table 6", measured_tables.WRITTEN), ("outcome", measured_tables.OUTCOME)],
        tasks=[(task.counts.task, measured_tables.figure_rows(task)) for task in measured.tasks],
        words=measured_tables.words(measured),
        figure=figure_name(step) if figure_name(step) in drawn else None,
        threads=thread_rows([series for series in step.series if series.metric == "latency"]),
    )


class TaskSetPresenter(Presenter):
    """A part a step."""

    def conclusion(self, record: Record, steps: Sequence[Step]) -> str | None:
        """How many deadlines were missed, and which task's response is far above its calculated bound."""
        from rtgauge.schedulability.analysis.measured_set import measured_set
        from rtgauge.schedulability.page.measured_tables import above_the_bound

        names = step_labels(record)
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

    def figures(self, record: Record, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """The measured timelines."""
        from rtgauge.schedulability.page.measured_figure import measured_figure

        return [figure for step in steps if step.segments and (figure := measured_figure(step)) is not None]

    def chapter(self, record: Record, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """The tables and the timeline of each step that ran a set."""
        names = step_labels(record)
        return Chapter(
            id="tasksets",
            heading="Task sets",
            template="rtgauge.schedulability.page/tasksets.html.j2",
            content=[_measured(step, names[step.id], drawn) for step in steps if step.tasks],
            place="after frequencies",
            measured="task sets",
        )

    def print_tables(self, record: Record, steps: Sequence[Step], console: Console) -> None:
        """The same, as fits into the terminal."""
        from rtgauge.schedulability.page.measured_tables import print_taskset

        names = step_labels(record)
        for step in steps:
            if step.tasks:
                console.print(Text(printable(names[step.id]) + ("*" if step.marks else ""), style="bold"))
                print_taskset(step, console)
                console.print()


TASK_SETS = TaskSetPresenter()
