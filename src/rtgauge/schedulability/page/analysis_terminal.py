# SPDX-License-Identifier: MIT
"""What the terminal shows of a schedulability analysis. Nothing heavy is imported here."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.report.text import printable
from rtgauge.schedulability.analysis.analysis_document import Answer
from rtgauge.schedulability.page.timeline_text import timeline_lines
from rtgauge.units import format_duration, plural

if TYPE_CHECKING:
    from rich.console import Console

    from rtgauge.schedulability.analysis.acceptance_ratio import RatioResult
    from rtgauge.schedulability.analysis.analysis_document import (
        BoundResult,
        CpuResult,
        GrowthResult,
        SetResult,
        TaskResult,
    )

WIDE = 76
ENOUGH_NAME = 16
"""A longer name may take several lines for the sake of more columns."""
STYLE = {
    Answer.SCHEDULABLE: "bold green",
    Answer.NOT_SCHEDULABLE: "bold red",
    Answer.CANNOT_TELL: "bold yellow",
}


def exact_time(ns: int | None) -> str:
    """A calculated time with all its digits: 12500000 -> "12.5 ms". None -> "-"."""
    if ns is None:
        return "-"
    for size, digits, unit in ((10**10, 9, "s"), (10**6, 6, "ms"), (10**3, 3, "us")):
        if abs(ns) >= size:
            whole, rest = divmod(abs(ns), 10**digits)
            return (
                f"{'-' if ns < 0 else ''}{whole}.{rest:0{digits}d}".rstrip("0").removesuffix(".") + f" {unit}"
            )
    return f"{ns} ns"


def print_set(result: SetResult, console: Console) -> None:
    """The answer, then every CPU with its tasks, bounds, growth and timeline."""
    console.print(
        Text.assemble(
            (result.answer.value.upper(), STYLE[result.answer]),
            f"  {printable(result.name)}: {printable(_conclusion(result))}",
        )
    )
    console.print()
    for cpu in result.cpus:
        _print_cpu(cpu, console)
    for note in result.notes:
        console.print(Text(f"note: {note}"))


def _conclusion(result: SetResult) -> str:
    """How many tasks miss their deadlines and the worst of them, or how much is left to the one that is
    nearest.
    """
    tasks = [task for cpu in result.cpus for task in cpu.tasks]
    bounded = [(task.late_by_ns, task) for task in tasks if task.late_by_ns is not None]
    late = [task for task in tasks if task.answer is Answer.NOT_SCHEDULABLE]
    if late:
        worst = max(late, key=lambda task: task.late_by_ns if task.late_by_ns is not None else float("inf"))
        return (
            f"{len(late)} of {plural(len(tasks), 'task')} can miss a deadline; worst: {worst.name}, "
            f"{_why(worst) or 'its response has no bound'}"
        )
    unknown = [task for task in tasks if task.answer is Answer.CANNOT_TELL]
    if unknown:
        return (
            f"{len(unknown)} of {plural(len(tasks), 'task')} cannot be decided; {unknown[0].name}: "
            f"{_why(unknown[0])}"
        )
    kept = (
        "the task meets its deadline"
        if len(tasks) == 1
        else f"all {plural(len(tasks), 'task')} meet their deadlines"
    )
    if not bounded:
        return kept
    left_ns, nearest = max(bounded, key=lambda pair: pair[0])
    what = f"{exact_time(-left_ns)} left of {exact_time(nearest.deadline_ns)}"
    return f"{kept}; nearest: {nearest.name}, {what}"


def _print_cpu(cpu: CpuResult, console: Console) -> None:
    kinds = ", harmonic" if cpu.harmonic and len(cpu.tasks) > 1 else ""
    kinds += ", rate-monotonic" if cpu.rate_monotonic else ""
    console.print(Text.assemble((f"CPU {cpu.cpu}", "bold"), f"  utilisation {cpu.utilisation:.2%}{kinds}"))
    console.print(_table(cpu.tasks, console.width))
    for task in cpu.tasks:
        if task.answer is not Answer.SCHEDULABLE:
            console.print(
                Text.assemble((task.answer.value, STYLE[task.answer]), f": {task.name}: {_why(task)}")
            )
    for bound in cpu.bounds:
        console.print(Text(_bound(bound)))
    console.print(Text(_growth(cpu.growth)))
    console.print()
    if cpu.timeline is None:
        console.print(Text(f"no timeline: {cpu.no_timeline}"))
    else:
        plain = "utf" not in (console.encoding or "").lower()
        for line in timeline_lines(
            cpu.timeline, [task.name for task in cpu.tasks], console.width, plain=plain
        ):
            console.print(Text(line), soft_wrap=True)
        if any(task.jitter_ns or task.blocking_ns for task in cpu.tasks):
            console.print(Text("The timeline is without jitter and blocking."))
    console.print()


def _cells(task: TaskResult) -> dict[str, str]:
    late = task.late_by_ns
    return {
        "prio": str(task.priority),
        "period": exact_time(task.period_ns),
        "execution": exact_time(task.execution_ns),
        "deadline": exact_time(task.deadline_ns),
        "blocking": exact_time(task.blocking_ns),
        "jitter": exact_time(task.jitter_ns),
        "offset": exact_time(task.offset_ns),
        "response": exact_time(task.response_ns) if task.response_ns is not None else "no bound",
        "left": exact_time(None if late is None else -late),
        "eq. 1": exact_time(task.equation_1_ns) if task.equation_1_ns is not None else "no bound",
    }


def _table(tasks: list[TaskResult], width: int) -> Table | Text:
    """As many columns as fit with every number whole; a task in lines of its own where not even the narrowest
    table does.
    """
    gap = 2 if width >= WIDE else 1
    cells = [_cells(task) for task in tasks]
    extra = [
        name
        for name in ("blocking", "jitter", "offset")
        if any(getattr(task, f"{name}_ns") for task in tasks)
    ]
    given = ["prio", "period", "execution", "deadline"]
    sets = [
        [*given, *extra, "response", "left", "eq. 1"],
        [*given, "response", "left"],
        ["deadline", "response", "left"],
        ["response", "left"],
    ]
    needed = [
        sum(max(len(heading), *(len(line[heading]) for line in cells)) + gap for heading in headings)
        for headings in sets
    ]
    longest = min(max(len(printable(task.name)) for task in tasks), ENOUGH_NAME)
    fitting = next(
        (
            headings
            for headings, room in zip(sets, needed, strict=True)
            if width - room >= max(longest, len("task"))
        ),
        None,
    )
    if fitting is None:
        lines = [
            f"{printable(task.name)}: response {line['response']}, left {line['left']}"
            for task, line in zip(tasks, cells, strict=True)
        ]
        return Text("\n".join(lines))
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column("task", overflow="fold", min_width=4)
    for heading in fitting:
        table.add_column(heading, justify="right", no_wrap=True)
    for task, line in zip(tasks, cells, strict=True):
        style = (
            "red"
            if task.answer is Answer.NOT_SCHEDULABLE
            else "yellow"
            if task.answer is Answer.CANNOT_TELL
            else ""
        )
        table.add_row(
            Text(printable(task.name)),
            *(
                Text(line[heading], style=style if heading in {"response", "left"} else "")
                for heading in fitting
            ),
        )
    return table


def _why(task: TaskResult) -> str:
    parts: list[str] = []
    if task.late_by_ns is not None and task.late_by_ns > 0:
        which = (
            f", in activation {task.worst_activation} of the busy period" if task.worst_activation > 1 else ""
        )
        parts.append(
            f"response {exact_time(task.response_ns)}, {exact_time(task.late_by_ns)} beyond the "
            f"deadline{which}"
        )
    if task.reason:
        parts.append(task.reason)
    return "; ".join(parts)


def _bound(bound: BoundResult) -> str:
    if bound.within is None:
        return f"{bound.name} bound: does not apply, {bound.reason}"
    sign = "<=" if bound.within else ">"
    return f"{bound.name} bound: {bound.value:.4f} {sign} {bound.bound:.4f}, " + (
        "so schedulable" if bound.within else "which says nothing"
    )


def _growth(growth: GrowthResult) -> str:
    if growth.factor is None:
        return f"growth: not known, {growth.reason}"
    if growth.factor >= 1:
        return (
            f"growth: execution times could grow by a factor of {growth.factor:.6f}; then "
            f"{growth.limited_by} fails first"
        )
    if growth.factor == 0:
        return f"growth: shorter execution times do not help {growth.limited_by}"
    return (
        f"growth: execution times would have to shrink by a factor of {growth.factor:.6f}; the limit is "
        f"{growth.limited_by}"
    )


def _ratio_conclusion(result: RatioResult) -> str:
    """Up to which utilisation every set is schedulable, and from which on fewer than half are."""
    points = sorted(result.points, key=lambda point: point.utilisation)
    whole = [
        point.utilisation for point in itertools.takewhile(lambda point: point.exact == point.sets, points)
    ]
    fewer = next((point.utilisation for point in points if point.exact * 2 < point.sets), None)
    parts = [
        f"every set is schedulable up to a utilisation of {whole[-1]:.3g}"
        if whole
        else "not every set is schedulable at any of these utilisations"
    ]
    parts.append(
        f"fewer than half are from {fewer:.3g} on"
        if fewer is not None
        else "at least half are at each of these"
    )
    return "; ".join(parts)[:1].upper() + "; ".join(parts)[1:]


def print_ratio(result: RatioResult, console: Console) -> None:
    """The conclusion, then a row a utilisation."""
    console.print(Text(_ratio_conclusion(result), style="bold"))
    low, high = (format_duration(period) for period in result.periods_ns)
    console.print(
        Text(
            f"{result.sets} random sets of {result.tasks} tasks at each utilisation, periods {low} "
            f"... {high}, seed {result.seed}"
        )
    )
    growth = any(point.growth_median is not None for point in result.points)
    rows = [
        {
            "utilisation": f"{point.utilisation:.3f}",
            "exact": f"{point.exact / point.sets:.2%}",
            "95 % interval": f"{point.exact_low:.2%} .. {point.exact_high:.2%}",
            "hyperbolic": f"{point.hyperbolic / point.sets:.2%}",
            "Liu-Layland": f"{point.liu_layland / point.sets:.2%}",
            **(
                {"growth": "-" if point.growth_median is None else f"{point.growth_median:.4f}"}
                if growth
                else {}
            ),
        }
        for point in result.points
    ]
    # A number is never cut: what has no room is left to a wider terminal, and to --json.
    gap = 2
    headings = list(rows[0]) if rows else []
    for spare in ("", "Liu-Layland", "hyperbolic", "95 % interval", "growth"):
        headings = [heading for heading in headings if heading != spare]
        if (
            sum(max(len(heading), *(len(row[heading]) for row in rows)) + gap for heading in headings) - gap
            <= console.width
        ):
            break
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    console.print(table)
    if growth:
        console.print(Text("growth: median of the largest factor for the execution times", style="dim"))
