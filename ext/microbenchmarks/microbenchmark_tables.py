# SPDX-License-Identifier: MIT
"""Makes the tables of the microbenchmarks. Page, terminal and comparison show the same numbers."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Console

from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.marks import Severity, is_doubt
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.report.compare.extension_parts import Operations
from rtgauge.report.noise_table import noise_grid, where
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table, numbers, ranked, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import NONE, whole
from rtgauge.units import format_duration, format_time, plural
from rtgauge_ext.microbenchmarks.microbenchmark import cost_of
from rtgauge_ext.microbenchmarks.operation_costs import (
    LockAnswer,
    Microbenchmarks,
    System,
    microbenchmarks,
)

ANSWERS = {
    "starved": "starved",
    "not-starved": "not starved",
    "not-available": "lock not available",
    "not-tried": "not tried",
}


COSTS = {"max_ns": "Worst case (ns)", "mean_ns": "Average (ns)", "p99_ns": "99 % (ns)"}
"""The title of the table for each field of a cost."""


def _names(results: Microbenchmarks) -> list[str]:
    """Return a name for each row: the system, the policy, and the load if loads differ."""
    loads = len({system.load for system in results.systems}) > 1
    return [
        f"{system.name}, {system.policy}" + (f", {system.load}" if loads else "")
        for system in results.systems
    ]


def _cell(system: System, operation: str, figure: str) -> str:
    cost = next((cost for cost in system.costs if cost.operation == operation), None)
    if cost is None:
        return NONE
    return whole(round(getattr(cost, figure))) + ("*" if is_doubt(cost.worst_mark) else "")


def cost_grids(results: Microbenchmarks) -> list[Table]:
    """Return a table of the worst cases (the paper's tables 1 and 2), one of the averages and one of the 99 %
    quantiles, in ns, with a row per system and a column per operation; empty without costs.
    """
    if not results.systems:
        return []
    names = _names(results)
    costs = [system.clock_cost_ns for system in results.systems if system.clock_cost_ns is not None]
    clock = "The cost of reading the clock is not known."
    if costs:
        clock = f"Each figure includes one reading of the clock, which takes about {min(costs):.0f} ns."
    marked: dict[tuple[str, Severity], list[str]] = {}
    for name, system in zip(names, results.systems, strict=True):
        for cost in system.costs:
            if cost.worst_mark is not None and is_doubt(cost.worst_mark):
                marked.setdefault((name, cost.worst_mark), []).append(cost.operation)
    marks = [f"* {name}: {', '.join(operations)}: {mark}" for (name, mark), operations in marked.items()]
    columns = [*texts(""), *numbers(*results.operations)]
    tables: list[Table] = []
    for figure, title in COSTS.items():
        rows = [
            [name, *(_cell(system, operation, figure) for operation in results.operations)]
            for name, system in zip(names, results.systems, strict=True)
        ]
        tables.append(Table(title, columns, rows, [clock, *marks] if title.startswith("Worst") else []))
    return tables


def long_cost_grid(results: Microbenchmarks) -> Table:
    """Return the same figures with a row per operation and system, for when the paper's form is too wide."""
    rows: list[list[str]] = []
    for name, system in zip(_names(results), results.systems, strict=True):
        operations = sorted((cost.operation for cost in system.costs), key=results.operations.index)
        for operation in operations:
            cells = [_cell(system, operation, figure) for figure in COSTS]
            rows.append([name if operation == operations[0] else "", operation, *cells])
    columns = [*texts("", "operation"), *numbers("worst", "average", "99 %")]
    return Table("Cost (ns)", columns, rows, cost_grids(results)[0].notes)


def conclusion(results: Microbenchmarks) -> str | None:
    """Return a sentence that says which system has the lowest worst case of each operation, or, if only one
    system was measured, which operation has the largest; None without costs.
    """
    worst: dict[str, dict[str, int]] = {}
    for name, system in zip(_names(results), results.systems, strict=True):
        for cost in system.costs:
            worst.setdefault(cost.operation, {})[name] = cost.max_ns
    if not worst:
        return None
    compared = {operation: systems for operation, systems in worst.items() if len(systems) > 1}
    if not compared:
        operation, systems = max(worst.items(), key=lambda item: max(item[1].values()))
        name = max(systems, key=lambda system: systems[system])
        most = f"{format_time(systems[name])} on {name}"
        return f"Of {plural(len(worst), 'operation')}, {operation} has the largest worst case: {most}."
    lowest: dict[str, list[str]] = {}
    for operation, systems in compared.items():
        lowest.setdefault(min(systems, key=lambda system: systems[system]), []).append(operation)
    clauses = [
        f"{name} has the lowest worst case in {len(operations)} of {plural(len(compared), 'operation')} "
        f"({', '.join(operations)})"
        for name, operations in sorted(lowest.items(), key=lambda item: -len(item[1]))
    ]
    return (
        f"{'; '.join(clauses)}. A maximum has no confidence interval, so repeat the runs before you choose "
        "a system by it."
    )


def effect_grid(results: Microbenchmarks) -> Table | None:
    """Return how often a yield switched, an event preempted, or a task slept; None if nothing was counted."""
    if not results.happened:
        return None
    rows: list[list[str]] = []
    for counts in results.happened:
        share = f"{counts.met / counts.tries * 100:.1f} %" if counts.tries else NONE
        name = f"{counts.operation}, {where(counts, results.happened)}"
        rows.append([name, counts.what, f"{whole(counts.met)} of {whole(counts.tries)}", share])
    costs = [cost for probe in PROBES.values() if (cost := cost_of(probe)) is not None]
    notes = [cost.note for cost in costs if any(counts.what == cost.met_name for counts in results.happened)]
    return Table("What happened", [*texts("", "what"), *numbers("count", "share")], rows, notes)


def terminal_grids(results: Microbenchmarks, width: int) -> list[Table]:
    """Return every table in a form whose numbers fit `width` columns."""
    costs = cost_grids(results)
    if any(grid.natural_width > width for grid in costs):
        costs = [long_cost_grid(results)]
    return [*costs, *_others(results)]


def _others(results: Microbenchmarks) -> list[Table]:
    made = (effect_grid(results), noise_grid(results.noise), inversion_grid(results))
    return [table for table in made if table is not None]


def _answer(answer: LockAnswer) -> list[str]:
    how = ANSWERS.get(answer.answer, answer.answer) + (", by its spin" if answer.gave_up else "")
    waits = format_time(answer.wait_max_ns)
    sections = f"{answer.wait_max_ns / answer.section_ns:.1f}" if answer.section_ns > 0 else NONE
    waited = [waits, format_duration(answer.section_ns), sections]
    if not answer.trials:
        waited[0] = waited[2] = NONE
    return [answer.lock, how, f"{answer.starved} of {answer.trials}", *waited]


def inversion_grid(results: Microbenchmarks) -> Table | None:
    """Return whether the high task starved, by kind of lock; None if `inversion` was not measured."""
    if not results.inversion:
        return None
    several = len({(answer.name, answer.load) for answer in results.inversion}) > 1
    rows = [
        [*([f"{answer.name}, {answer.load}"] if several else []), *_answer(answer)]
        for answer in results.inversion
    ]
    limits = ", ".join(dict.fromkeys(format_duration(answer.limit_ns) for answer in results.inversion))
    columns = [*texts("lock", "high task"), *numbers("starved", "longest wait", "section", "sections")]
    columns = ranked(columns, "section")
    notes = [
        (
            f"starved: the high-priority task did not get the lock within the probe's limit of {limits}; "
            "without a limit, it would wait for as long as the middle-priority task computes."
        ),
        "sections: the longest wait, counted in critical sections of the low-priority task.",
    ]
    return Table("Priority inversion", [*(texts("system") if several else []), *columns], rows, notes)


def starving(answers: Sequence[LockAnswer]) -> str:
    """Return in words with which locks the high-priority task starved."""
    starved = [answer.lock for answer in answers if answer.answer == "starved"]
    if starved:
        return f"the high-priority task starved with these locks: {', '.join(dict.fromkeys(starved))}"
    if any(answer.answer == "not-starved" for answer in answers):
        return "the high-priority task did not starve with any lock that was tried"
    return "priority inversion was not measured, because none of the locks could be tried"


def grids(results: Microbenchmarks) -> list[Table]:
    """Return every table that has data."""
    return [*cost_grids(results), *_others(results)]


def _shown(results: Microbenchmarks) -> Microbenchmarks:
    """Leave out what the probe `noise` found, because the core shows it."""
    return results.model_copy(update={"noise": []})


class MicrobenchmarkPresenter(Presenter):
    """Presents switch, preempt, semaphore and inversion in one chapter."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """Return whether the high task starved. Other lines give the costs."""
        results = microbenchmarks([view.record])
        return starving(results.inversion) if results.inversion else None

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return the tables; None if there are none."""
        tables = grids(_shown(microbenchmarks([view.record])))
        if not tables:
            return None
        return Chapter("microbenchmarks", "Microbenchmarks", tables, "who waits for which lock")

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:  # noqa: ARG002
        """Print the tables in a form that fits the terminal."""
        print_tables(terminal_grids(_shown(microbenchmarks([view.record])), console.width), console)
        console.print()


MICROBENCHMARKS = MicrobenchmarkPresenter()


def operations(records: Sequence[Record]) -> Operations:
    """Return the results of several records for a comparison. Raises RecordError for a damaged step."""
    results = microbenchmarks(records)
    return Operations(
        results, conclusion(results), grids(results), lambda width: terminal_grids(results, width)
    )
