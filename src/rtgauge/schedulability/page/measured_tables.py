# SPDX-License-Identifier: MIT
"""The tables of a measured task set, in the form of Delgado et al.

2020, tables 6, 7 and 8: the page and the terminal print the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.report.text import NONE, printable, whole
from rtgauge.schedulability.analysis.measured_set import calculated_timeline, measured_set, measured_timeline
from rtgauge.schedulability.page.analysis_terminal import exact_time
from rtgauge.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from rtgauge.record.model import SeriesSummary, Step
    from rtgauge.schedulability.analysis.measured_set import MeasuredSet, MeasuredTask

FIGURES = {"mean": "mean_ns", "max": "max_ns", "min": "min_ns", "std": "std_ns"}
"""Row of the paper's tables 7 and 8 -> field."""
METRICS = {
    "period": "period",
    "response": "response",
    "absolute-jitter": "absolute jitter",
    "latency": "release latency",
    "response-from-start": "response from start",
    "execution": "execution",
}
"""Metric -> heading; the first three are the paper's columns."""

EARLIER = {"absolute-jitter": "jitter"}
"""Metric -> its name in records of rtgauge before jitter was signed everywhere."""


def ms(ns: float | None) -> str:
    """A time in ms with three decimals, as the paper prints them; a dash for None."""
    return NONE if ns is None else f"{ns / 1e6:.3f}"


WRITTEN = ("task", "P", "D", "C", "pr", "CPU", "R calculated", "R eq. 1")
"""Headings of table 6 with what was calculated."""
OUTCOME = (
    "task",
    "R calculated",
    "R measured, max (ms)",
    "measured - calculated (ms)",
    "activations",
    "deadline misses",
    "preemptions",
)
"""Headings of what came of it."""


@dataclass(frozen=True)
class TaskRow:
    """Cells of one line by heading; `late`: a deadline was missed or the calculation does not hold."""

    cells: dict[str, str]
    late: bool = False


def parameter_rows(measured: MeasuredSet) -> list[TaskRow]:
    """Table 6: the parameters of every task, the calculated response (exact, and by the paper's eq.

    1), and the counts beside it.
    """
    rows: list[TaskRow] = []
    for task in measured.tasks:
        known, counts = task.calculated, task.counts
        response = task.series.get("response")
        cells = {
            "task": known.name,
            "P": exact_time(known.period_ns),
            "D": exact_time(known.deadline_ns),
            "C": exact_time(known.execution_ns),
            "pr": str(known.priority),
            "CPU": str(counts.cpu),
            "R calculated": exact_time(known.response_ns) if known.response_ns is not None else "no bound",
            "R eq. 1": exact_time(known.equation_1_ns) if known.equation_1_ns is not None else "no bound",
            "R measured, max (ms)": ms(response.max_ns if response is not None else None),
            "measured - calculated (ms)": _above(response, known.response_ns),
            "activations": whole(counts.activations),
            "deadline misses": whole(counts.deadline_misses),
            "preemptions": whole(counts.preemptions),
        }
        rows.append(TaskRow(cells, late=counts.deadline_misses > 0))
    return rows


def _above(response: SeriesSummary | None, calculated_ns: int | None) -> str:
    """How far the largest measured response lies above the calculated one, negative where it lies below."""
    return ms(
        None
        if response is None or response.max_ns is None or calculated_ns is None
        else response.max_ns - calculated_ns
    )


FAR_ABOVE = 1.5
"""A measured response of so many times the calculated one is remarked on."""


def above_the_bound(measured: MeasuredSet) -> list[str]:
    """Tasks whose largest measured response is far above the calculated bound, a sentence each: the set
    leaves something out, or something disturbs.
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
                f"{task.counts.task} took up to {format_time(response.max_ns)}, {times}: something "
                "ran that is not in the set"
            )
    return remarks


def figure_rows(task: MeasuredTask) -> list[dict[str, str]]:
    """Tables 7 and 8 for one task: a line a figure, a column a metric, in ms."""
    series = {
        heading: task.series.get(metric) or task.series.get(EARLIER.get(metric, ""))
        for metric, heading in METRICS.items()
    }
    return [
        {"": name} | {heading: _figure(summary, field) for heading, summary in series.items()}
        for name, field in FIGURES.items()
    ]


def _figure(series: SeriesSummary | None, field: str) -> str:
    return ms(None if series is None else getattr(series, field))


def words(measured: MeasuredSet) -> str:
    """How the busy loops counted time, and what the runtime did not count."""
    text = (
        "Busy loops burnt CPU time."
        if measured.step.key.parameters.get("execution") == "cpu"
        else "Busy loops burnt wall time, as in the paper: time in which a task is preempted within one "
        "of its loops of 1 ms counts as execution, so it runs a little less than it should."
    )
    if measured.step.key.rt == "rtai":
        text += (
            " RTAI counts no preemptions and does not report a running task's CPU time: execution is the "
            "time of the loop without gaps of more than 10 us."
        )
    return text


def _table(rows: Sequence[dict[str, str]], headings: Sequence[str], late: Sequence[bool] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"", "task"} else "right", overflow="fold")
    for i, row in enumerate(rows):
        alarm = late[i : i + 1] == [True]
        table.add_row(
            *(
                Text(printable(row[heading]), style="red" if alarm and heading == "late" else "")
                for heading in headings
            )
        )
    return table


def _schedules(measured: MeasuredSet, cpu: int, names: list[str], console: Console) -> list[str]:
    """The measured schedule of one CPU over the calculated one, on one axis; nothing if none was
    measured.
    """
    from rtgauge.schedulability.page.timeline_text import timeline_lines

    seen = measured_timeline(measured, cpu)
    if seen is None:
        return []
    plain = "utf" not in (console.encoding or "").lower()
    drawn = timeline_lines(seen, names, console.width, plain=plain)
    calculated = calculated_timeline(measured, cpu)
    if calculated is None:
        return [f"CPU {cpu}, measured", *drawn]
    below = timeline_lines(calculated, names, console.width, plain=plain)
    tail = max(
        drawn[len(names) :], below[len(names) :], key=lambda lines: len("".join(lines))
    )  # the legend of both names what either has
    return [
        f"CPU {cpu}, measured",
        *drawn[: len(names)],
        "calculated, without jitter and blocking",
        *below[: len(names)],
        *tail,
    ]


def print_taskset(step: Step, console: Console) -> None:
    """Table 6 with the calculated and the measured response, then table 7 for every task, and the measured
    timeline.
    """
    measured = measured_set(step)
    rows = parameter_rows(measured)
    short = {
        "task": "task",
        "P": "P",
        "D": "D",
        "C": "C",
        "pr": "pr",
        "R calculated": "R calc.",
        "R measured, max (ms)": "R max (ms)",
    }
    short |= {"deadline misses": "late", "preemptions": "preempted"}
    console.print(
        _table(
            [{heading: row.cells[key] for key, heading in short.items()} for row in rows],
            list(short.values()),
            [row.late for row in rows],
        )
    )
    for task in measured.tasks:
        console.print()
        console.print(Text(f"{printable(task.counts.task)} (ms)", style="bold"))
        figures = figure_rows(task)
        console.print(_table(figures, list(figures[0])))
    console.print()
    for cpu in measured.result.cpus:
        for line in _schedules(measured, cpu.cpu, [task.name for task in cpu.tasks], console):
            console.print(Text(line), soft_wrap=True)
    for remark in above_the_bound(measured):
        console.print(Text(printable(remark), style="yellow"))
    console.print(Text(words(measured), style="dim"))
