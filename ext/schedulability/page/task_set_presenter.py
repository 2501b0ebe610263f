# SPDX-License-Identifier: MIT
"""Presents measured task sets: tables 6, 7 and 8 of Delgado et al. 2020, and the measured timeline."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from rtgauge.record.model import SeriesSummary, Step
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Cell, Table, numbers, texts
from rtgauge.report.terminal_table import drawing_width, print_tables, print_text
from rtgauge.report.text import NONE, printable, whole
from rtgauge.units import format_count, format_time, plural
from rtgauge_ext.schedulability.analysis.measured_set import (
    MeasuredSet,
    MeasuredTask,
    calculated_timeline,
    measured_set,
    measured_timeline,
)
from rtgauge_ext.schedulability.page.analysis_terminal import exact_time, timeline_lines
from rtgauge_ext.schedulability.page.schedule_figure import figure_name, measured_figure

FIGURES = {"mean": "mean_ns", "max": "max_ns", "min": "min_ns", "std": "std_ns"}
"""The field that each row of the paper's tables 7 and 8 shows."""
METRICS = {
    "period": "period",
    "response": "response",
    "absolute-jitter": "absolute jitter",
    "latency": "release latency",
    "response-from-start": "response from start",
    "execution": "execution",
}
"""Each metric's heading. The first three are the paper's columns."""

EARLIER = {"absolute-jitter": "jitter"}
"""The metric's name in older records, before jitter had a sign."""


def ms(ns: float | None) -> str:
    """Return a time in ms with three decimals, as the paper prints them; a dash for None."""
    return NONE if ns is None else f"{ns / 1e6:.3f}"


WRITTEN = ("P", "D", "C", "pr", "CPU", "R calculated", "R eq. 1")
"""Columns of table 6, with the calculated responses."""
LATE = "deadline misses"
OUTCOME = ("R measured, max (ms)", "measured - calculated (ms)", "activations", LATE, "preemptions")
"""Columns that show the measured outcome."""
SHORT = {
    **{title: title for title in ("task", "P", "D", "C", "pr")},
    "R calculated": "R calc.",
    "R measured, max (ms)": "R max (ms)",
    LATE: "late",
    "preemptions": "preempted",
}
"""Shorter titles for the terminal, for the columns that fit there."""


def task_table(measured: MeasuredSet) -> Table:
    """Return Table 6: every task's parameters, the calculated response (exact, and by the paper's eq. 1), the
    measured response, and the counts.
    """
    rows: list[list[str]] = []
    for task in measured.tasks:
        known, counts = task.calculated, task.counts
        response = task.series.get("response")
        bounds = (known.response_ns, known.equation_1_ns)
        rows.append(
            [
                known.name,
                *map(exact_time, (known.period_ns, known.deadline_ns, known.execution_ns)),
                *(str(known.priority), str(counts.cpu)),
                *(exact_time(ns) if ns is not None else "no bound" for ns in bounds),
                ms(response.max_ns if response is not None else None),
                _above(response, known.response_ns),
                whole(counts.activations),
                Cell(whole(counts.deadline_misses), "alarm" if counts.deadline_misses else ""),
                whole(counts.preemptions),
            ]
        )
    return Table("Tasks", [*texts("task"), *numbers(*WRITTEN, *OUTCOME)], rows)


def page_tables(measured: MeasuredSet) -> list[Table]:
    """Return the table of all tasks in two parts: the parameters as in the paper's table 6, and the
    outcome.
    """
    table = task_table(measured)
    written = table.only(lambda at: table.columns[at].title not in OUTCOME)
    outcome = table.only(lambda at: table.columns[at].title in {"task", "R calculated", *OUTCOME})
    answer = measured.result.answer.value
    note = (
        "P: period, D: deadline, C: execution time, pr: priority, R: worst-case response, from the release. "
        f"Calculated: {answer}. The table has the form of table 6 of Delgado and Choi (2020)."
    )
    return [replace(written, title="Tasks, table 6", notes=[note]), replace(outcome, title="Tasks, outcome")]


def _above(response: SeriesSummary | None, calculated_ns: int | None) -> str:
    """Return, as text, the largest measured response minus the calculated one."""
    return ms(
        None
        if response is None or response.max_ns is None or calculated_ns is None
        else response.max_ns - calculated_ns
    )


FAR_ABOVE = 1.5
"""A measured response gets a remark if it exceeds the calculated one by this factor."""


def above_the_bound(measured: MeasuredSet) -> list[str]:
    """Return a sentence for each task whose largest measured response is far above the calculated bound. Then
    the set is incomplete, or something disturbed the task.
    """
    remarks: list[str] = []
    for task in measured.tasks:
        response, bound_ns = task.series.get("response"), task.calculated.response_ns
        if (
            response is not None
            and response.max_ns is not None
            and bound_ns
            and response.max_ns > FAR_ABOVE * bound_ns
        ):
            times = f"{response.max_ns / bound_ns:.1f} times the calculated {exact_time(bound_ns)}"
            remarks.append(
                f"{task.counts.task} took up to {format_time(response.max_ns)}, {times}, so something that "
                "is not in the task set ran"
            )
    return remarks


def figure_table(task: MeasuredTask) -> Table:
    """Return tables 7 and 8 for one task: a row per figure, a column per metric, in ms."""
    series = [task.series.get(metric) or task.series.get(EARLIER.get(metric, "")) for metric in METRICS]
    rows = [
        [name, *(ms(None if summary is None else getattr(summary, field)) for summary in series)]
        for name, field in FIGURES.items()
    ]
    return Table(f"{task.counts.task} (ms)", [*texts(""), *numbers(*METRICS.values())], rows)


def words(measured: MeasuredSet) -> str:
    """Return, in words, how the busy loops counted time, and what the runtime did not count."""
    text = (
        "The busy loops counted CPU time."
        if measured.step.key.parameters.get("execution") == "cpu"
        else "The busy loops counted wall time, as Delgado and Choi did. If a task is preempted within one "
        "of its loops of 1 ms, that time counts as execution, so the task runs a little less than it "
        "should."
    )
    if measured.step.key.rt == "rtai":
        text += (
            " RTAI neither counts preemptions nor reports a running task's CPU time, so execution is the "
            "time of the loop without gaps of more than 10 us."
        )
    return text


def _schedules(measured: MeasuredSet, cpu: int, names: list[str], console: Console) -> list[str]:
    """Return the measured schedule of one CPU above the calculated one, on one axis; empty if not
    measured.
    """
    measured_line = measured_timeline(measured, cpu)
    if measured_line is None:
        return []
    plain = "utf" not in (console.encoding or "").lower()
    drawn = timeline_lines(measured_line, names, drawing_width(console), plain=plain)
    calculated = calculated_timeline(measured, cpu)
    if calculated is None:
        return [f"CPU {cpu}, measured", *drawn]
    below = timeline_lines(calculated, names, drawing_width(console), plain=plain)
    # one legend for both
    tail = max(drawn[len(names) :], below[len(names) :], key=lambda lines: len("".join(lines)))
    return [
        f"CPU {cpu}, measured",
        *drawn[: len(names)],
        "calculated without jitter and blocking",
        *below[: len(names)],
        *tail,
    ]


def print_taskset(step: Step, console: Console) -> None:
    """Print table 6 with calculated and measured responses, then table 7 of each task, and the timeline."""
    measured = measured_set(step)
    table = task_table(measured)
    table = table.only(lambda at, full=table: full.columns[at].title in SHORT)
    columns = [replace(column, title=SHORT[column.title]) for column in table.columns]
    print_tables([replace(table, title="", columns=columns), *map(figure_table, measured.tasks)], console)
    console.print()
    for cpu in measured.result.cpus:
        for line in _schedules(measured, cpu.cpu, [task.name for task in cpu.tasks], console):
            console.print(Text(line), soft_wrap=True)
    for remark in above_the_bound(measured):
        print_text(console, remark, style="yellow")
    print_text(console, words(measured), style="dim")


@dataclass(frozen=True)
class MeasuredTaskSet:
    """One step. `tables`: about all tasks; `tasks`: a table each; `figure`: the timeline's name, if drawn."""

    name: str
    step: Step
    tables: list[Table]
    tasks: list[Table]
    words: str
    figure: str | None


def _measured(step: Step, name: str, drawn: Container[str]) -> MeasuredTaskSet:
    measured = measured_set(step)
    return MeasuredTaskSet(
        name=name,
        step=step,
        tables=page_tables(measured),
        tasks=[figure_table(task) for task in measured.tasks],
        words=words(measured),
        figure=figure_name(step) if figure_name(step) in drawn else None,
    )


class TaskSetPresenter(Presenter):
    """Presents each step that ran a task set."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Return how many deadlines were missed, and which tasks responded far above their
        calculated bounds.
        """
        names = view.labels
        counts = [(counts, names[step.id]) for step in steps for counts in step.tasks]
        if not counts:
            return None
        activations = sum(task.activations for task, _ in counts)
        missed = sum(task.deadline_misses for task, _ in counts)
        tasks = plural(len({task.task for task, _ in counts}), "task")
        text = f"{tasks} met all {format_count(activations)} deadlines"
        if missed:
            worst, where = max(counts, key=lambda pair: pair[0].deadline_misses)
            its = f"{format_count(worst.deadline_misses)} of {format_count(worst.activations)}"
            most = f"most by {worst.task} under {where}, {its}"
            text = (
                f"{format_count(missed)} of {format_count(activations)} deadlines of {tasks} missed, {most}"
            )
        remarks = [
            f"{remark} under {names[step.id]}"
            for step in steps
            if step.tasks
            for remark in above_the_bound(measured_set(step))
        ]
        more = [f"the same in {plural(len(remarks) - 1, 'more case')}"] if len(remarks) > 1 else []
        return "; ".join([text, *remarks[:1], *more])

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """Return the measured timelines."""
        return [figure for step in steps if step.segments and (figure := measured_figure(step)) is not None]

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """Return the tables and the timeline of each step that ran a set."""
        names = view.labels
        return Chapter(
            id="tasksets",
            heading="Task sets",
            template="rtgauge_ext.schedulability.page/tasksets.html.j2",
            content=[_measured(step, names[step.id], drawn) for step in steps if step.tasks],
            place="after frequencies",
            measured="task sets",
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the tables and timelines in a form that fits the terminal."""
        names = view.labels
        for step in steps:
            if step.tasks:
                console.print(Text(printable(names[step.id]) + ("*" if step.marks else ""), style="bold"))
                print_taskset(step, console)
                console.print()


TASK_SETS = TaskSetPresenter()
