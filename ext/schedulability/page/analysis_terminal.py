# SPDX-License-Identifier: MIT
"""Prints a schedulability analysis in the terminal, with the timeline as text."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from rtgauge.report.table import Cell, Column, Table, Tone, numbers
from rtgauge.report.terminal_table import drawing_width, print_text, rich_table
from rtgauge.report.text import printable
from rtgauge.units import format_duration, plural
from rtgauge_ext.schedulability.analysis.analyse import (
    CpuResult,
    Schedulability,
    SetResult,
    TaskResult,
)
from rtgauge_ext.schedulability.analysis.rta import Growth
from rtgauge_ext.schedulability.analysis.timeline import Timeline

LEAST_CELLS = 10
SIGNS = ("runs", "runs in part", "waits", "late", "nothing", "axis", "tick")
BLOCKS: dict[str, str] = dict(zip(SIGNS, "█▄·! ─┴", strict=True))
PLAIN: dict[str, str] = dict(zip(SIGNS, "#+.! -+", strict=True))
"""The signs for a terminal without block characters."""


def cell_ns(end_ns: int, cells: int) -> int:
    """Return the time of one character: the smallest of 1, 2, 5, 10, ... ns with which `cells` cover
    `end_ns`.
    """
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power * cells >= end_ns:
                return step * power
        power *= 10


def timeline_lines(timeline: Timeline, names: list[str], width: int, *, plain: bool = False) -> list[str]:
    """Return a line per task, the highest priority first, then an axis and a legend; each is at most `width`
    wide (at least 20).
    """
    signs = PLAIN if plain else BLOCKS
    margin = min(max(cell_len(name) for name in names), max(4, width // 4))
    size_ns = cell_ns(timeline.end_ns, max(LEAST_CELLS, width - margin - 2))
    cells = -(-timeline.end_ns // size_ns)
    runs = {name: [0] * cells for name in names}
    present = {name: [False] * cells for name in names}
    late = {name: [False] * cells for name in names}
    for activation in timeline.activations:
        finish_ns = timeline.end_ns if activation.finish_ns is None else activation.finish_ns
        for cell in range(activation.release_ns // size_ns, min(cells, -(-finish_ns // size_ns))):
            present[activation.task][cell] = True
            late[activation.task][cell] |= (cell + 1) * size_ns > activation.deadline_ns and activation.missed
    for segment in timeline.segments:
        for cell in range(segment.start_ns // size_ns, -(-segment.end_ns // size_ns)):
            start_ns, end_ns = cell * size_ns, (cell + 1) * size_ns
            runs[segment.task][cell] += min(segment.end_ns, end_ns) - max(segment.start_ns, start_ns)
    lines: list[str] = []
    for name in names:
        row = [
            _sign(signs, runs[name][i], size_ns, waits=present[name][i], late=late[name][i])
            for i in range(cells)
        ]
        short = set_cell_size(name, margin)
        if cell_len(name) > margin:
            short = set_cell_size(name, margin - 1) + ("~" if plain else "…")
        lines.append(f"{short}  {''.join(row)}".rstrip())
    return [
        *lines,
        *_axis(signs, timeline.end_ns, size_ns, cells, margin),
        *_legend(signs, size_ns, width, late=any(any(row) for row in late.values())),
    ]


def _sign(signs: dict[str, str], ran_ns: int, size_ns: int, *, waits: bool, late: bool) -> str:
    if late:
        return signs["late"]
    if ran_ns:
        return signs["runs"] if ran_ns == size_ns else signs["runs in part"]
    return signs["waits"] if waits else signs["nothing"]


def _axis(signs: dict[str, str], end_ns: int, size_ns: int, cells: int, margin: int) -> list[str]:
    """Return a line with a tick every few cells, and a line with the times below it."""
    longest = max(len(format_duration(end_ns)), len(format_duration(size_ns)) + 2)
    every = next(step * 10**power for power in range(20) for step in (1, 2, 5) if step * 10**power > longest)
    line = "".join(signs["tick"] if cell % every == 0 else signs["axis"] for cell in range(cells))
    numbers = ""
    for cell in range(0, cells, every):
        text = format_duration(cell * size_ns) if cell else "0"
        if cell + len(text) <= max(cells, 2):
            numbers = f"{numbers:<{cell}}{text}"
    return [" " * (margin + 2) + line, " " * (margin + 2) + numbers]


def _legend(signs: dict[str, str], size_ns: int, width: int, *, late: bool) -> list[str]:
    parts = [
        f"one character {format_duration(size_ns)}",
        f"{signs['runs']} runs",
        f"{signs['runs in part']} runs part of the time",
        f"{signs['waits']} waits or is preempted",
    ]
    parts += [f"{signs['late']} late"] if late else []
    lines = [""]
    for part in parts:
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        lines = [*lines[:-1], joined] if len(joined) <= width else [*lines, part]
    return [line for line in lines if line]


STYLE = {
    Schedulability.SCHEDULABLE: "bold green",
    Schedulability.NOT_SCHEDULABLE: "bold red",
    Schedulability.CANNOT_TELL: "bold yellow",
}


def exact_time(ns: int | None) -> str:
    """Return a calculated time with all its digits: 12500000 -> "12.5 ms"; "-" for None."""
    if ns is None:
        return "-"
    for size, digits, unit in ((10**10, 9, "s"), (10**6, 6, "ms"), (10**3, 3, "us")):
        if abs(ns) >= size:
            whole, rest = divmod(abs(ns), 10**digits)
            number = f"{'-' if ns < 0 else ''}{whole}.{rest:0{digits}d}".rstrip("0").removesuffix(".")
            return f"{number} {unit}"
    return f"{ns} ns"


def print_set(result: SetResult, console: Console) -> None:
    """Print the answer, then every CPU with its tasks, growth and timeline."""
    answer = (result.answer.value.upper(), STYLE[result.answer])
    console.print(Text.assemble(answer, f"  {printable(result.name)}: {printable(conclusion_words(result))}"))
    console.print()
    for cpu in result.cpus:
        _print_cpu(cpu, console)
    for note in result.notes:
        print_text(console, f"note: {note}")


def conclusion_words(result: SetResult) -> str:
    """Return how many tasks miss their deadlines, and the worst of them, or the smallest margin."""
    tasks = [task for cpu in result.cpus for task in cpu.tasks]
    bounded = [(task.late_by_ns, task) for task in tasks if task.late_by_ns is not None]
    late = [task for task in tasks if task.answer is Schedulability.NOT_SCHEDULABLE]
    if late:
        worst = max(late, key=lambda task: task.late_by_ns if task.late_by_ns is not None else float("inf"))
        why = _why(worst) or "its response grows without bound"
        many = f"{len(late)} of {plural(len(tasks), 'task')} can miss a deadline"
        return f"{many}; worst: {worst.name}, {why}"
    unknown = [task for task in tasks if task.answer is Schedulability.CANNOT_TELL]
    if unknown:
        many = f"{len(unknown)} of {plural(len(tasks), 'task')} cannot be decided"
        return f"{many}; {unknown[0].name}: {_why(unknown[0])}"
    kept = f"all {plural(len(tasks), 'task')} meet their deadlines"
    kept = "the task meets its deadline" if len(tasks) == 1 else kept
    if not bounded:
        return kept
    left_ns, nearest = max(bounded, key=lambda pair: pair[0])
    what = f"{exact_time(-left_ns)} left of {exact_time(nearest.deadline_ns)}"
    return f"{kept}; nearest: {nearest.name}, {what}"


def _print_cpu(cpu: CpuResult, console: Console) -> None:
    console.print(Text.assemble((f"CPU {cpu.cpu}", "bold"), f"  utilisation {cpu.utilisation:.2%}"))
    console.print(rich_table(_table(cpu.tasks), console.width))
    for task in cpu.tasks:
        if task.answer is not Schedulability.SCHEDULABLE:
            answer = (task.answer.value, STYLE[task.answer])
            console.print(Text.assemble(answer, f": {task.name}: {_why(task)}"))
    print_text(console, _growth(cpu.growth))
    console.print()
    if cpu.timeline is None:
        print_text(console, f"no timeline: {cpu.no_timeline}")
    else:
        plain = "utf" not in (console.encoding or "").lower()
        names = [task.name for task in cpu.tasks]
        for line in timeline_lines(cpu.timeline, names, drawing_width(console), plain=plain):
            console.print(Text(line), soft_wrap=True)
        if any(task.jitter_ns or task.blocking_ns for task in cpu.tasks):
            print_text(console, "The timeline leaves out jitter and blocking.")
    console.print()


LOOKS: dict[Schedulability, Tone] = {
    Schedulability.NOT_SCHEDULABLE: "alarm",
    Schedulability.CANNOT_TELL: "doubt",
}
GIVEN = ("blocking", "jitter", "offset")
"""Columns that are shown only if a task of the CPU has the value."""


def _row(task: TaskResult) -> list[str]:
    tone = LOOKS.get(task.answer, "")
    responses = (task.response_ns, task.equation_1_ns)
    bounded = ["no bound" if ns is None else exact_time(ns) for ns in responses]
    left = exact_time(None if task.late_by_ns is None else -task.late_by_ns)
    given = (task.period_ns, task.execution_ns, task.deadline_ns)
    given += (task.blocking_ns, task.jitter_ns, task.offset_ns)
    outcome = [Cell(bounded[0], tone), Cell(left, tone), bounded[1]]
    return [task.name, str(task.priority), *map(exact_time, given), *outcome]


def _table(tasks: list[TaskResult]) -> Table:
    columns = [
        Column("task"),
        *(Column(title, "number", drop_rank=2) for title in ("prio", "period", "execution")),
        Column("deadline", "number", drop_rank=1),
        *(Column(title, "number", drop_rank=3) for title in GIVEN),
        *numbers("response", "left"),
        Column("eq. 1", "number", drop_rank=3),
    ]
    absent = {name for name in GIVEN if not any(getattr(task, f"{name}_ns") for task in tasks)}
    return Table("", columns, [_row(task) for task in tasks]).only(lambda at: columns[at].title not in absent)


def _why(task: TaskResult) -> str:
    parts: list[str] = []
    if task.late_by_ns is not None and task.late_by_ns > 0:
        number = task.worst_activation
        which = f", in activation {number} of the busy period" if number > 1 else ""
        late = f"{exact_time(task.late_by_ns)} beyond the deadline{which}"
        parts.append(f"response {exact_time(task.response_ns)}, {late}")
    if task.reason:
        parts.append(task.reason)
    return "; ".join(parts)


def _growth(growth: Growth) -> str:
    if growth.factor is None:
        return "growth: unknown, because the busy periods are too long to search"
    factor, task = f"by a factor of {growth.factor:.6f}", growth.limited_by
    if growth.factor >= 1:
        return (
            f"growth: execution times could grow {factor}; beyond that, {task} is the first to miss a "
            "deadline"
        )
    if growth.factor == 0:
        return f"growth: {task} misses its deadline even with the shortest execution times"
    return f"growth: execution times would have to shrink {factor} for {task} to meet its deadline"
