# SPDX-License-Identifier: MIT
"""Makes the tables of Garre et al. (2014) for any records: the costs of a switch, a preemption and a
hand-over (tab. 1, 2), and starvation at locks (sec. 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from rtgauge.analysis.record_names import system_names
from rtgauge.probe.registry import PROBES, probe_of
from rtgauge.probe.simple_probe import Microbenchmark, cost_of
from rtgauge.record.model import Model, Severity, Step, worst_severity
from rtgauge.record.reader import Record, reading


class Cost(Model):
    """The cost (ns) of an operation on a system, over all repeats together."""

    operation: str = Field(description="the operation, such as 'task switch' or 'semaphore (same-cpu)'")
    steps: list[str]
    count: int
    mean_ns: float
    p99_ns: int = Field(description="p99 of the repeat with the largest p99")
    max_ns: int
    worst_mark: Severity | None


class System(Model):
    """A line of the table: one record under one policy and load."""

    record: str
    name: str
    policy: str
    load: str
    clock_cost_ns: float | None = Field(
        description="time that one reading of the clock takes; each figure includes it (Garre et al. 2014, "
        "sec. 3.4)"
    )
    costs: list[Cost]


class LockAnswer(Model):
    """Whether the high task starved at one kind of lock, and how long it waited (ns)."""

    record: str
    name: str
    load: str
    lock: str
    answer: str
    trials: int
    starved: int
    gave_up: int
    wait_max_ns: int
    section_ns: int
    limit_ns: int


class Taken(Model):
    """The time (ns) that one cause took from a task that was always ready to run."""

    cause: str = Field(
        description="task; interrupt; below (hardware, firmware or a hypervisor); or undetermined (an "
        "interrupt, or below)"
    )
    gaps: int
    taken_ns: int
    max_ns: int | None


class Place(Model):
    """One repeat on one system, under one policy and load."""

    record: str
    name: str
    policy: str
    load: str
    repeat: int


class NoiseAnswer(Place):
    """The time (ns) taken from a task on one CPU."""

    cpu: int
    observed_ns: int
    taken_ns: int
    causes: list[Taken]
    worst_mark: Severity | None

    def share(self, taken_ns: int) -> float | None:
        """The share of the observed time that was taken; None if nothing was observed."""
        return taken_ns / self.observed_ns if self.observed_ns else None


class Happened(Place):
    """How often the operation had its intended effect, warm-up included: a yield switched, a task slept."""

    operation: str
    tries: int
    met: int
    what: str = Field(description="the intended effect in words; `met` of the `tries` had it")


class Microbenchmarks(Model):
    """The results of the microbenchmarks in one or more records."""

    systems: list[System]
    happened: list[Happened] = Field(default_factory=list[Happened])
    noise: list[NoiseAnswer] = Field(default_factory=list[NoiseAnswer])
    inversion: list[LockAnswer]

    @property
    def operations(self) -> list[str]:
        """Every measured operation, in the paper's order."""
        order = [cost.name for probe in PROBES.values() if (cost := cost_of(probe)) is not None]

        def place(name: str) -> tuple[int, str]:
            return next((i for i, word in enumerate(order) if name.startswith(word)), len(order)), name

        return sorted({cost.operation for system in self.systems for cost in system.costs}, key=place)


def operation(step: Step) -> str | None:
    """Return the paper's name of the measured operation ("task switch", "semaphore (same-cpu)"), or None."""
    probe = probe_of(step)
    cost = cost_of(probe)
    return None if cost is None else cost.operation(probe.own(step.key))


def _cost(operation: str, steps: Sequence[Step]) -> Cost | None:
    totals = [step.total for step in steps if step.total is not None]
    count = sum(total.count for total in totals)
    if not count:
        return None
    return Cost(
        operation=operation,
        steps=[step.id for step in steps],
        count=count,
        mean_ns=sum(total.count * (total.mean_ns or 0.0) for total in totals) / count,
        p99_ns=max(total.p99_ns or 0 for total in totals),
        max_ns=max(total.max_ns or 0 for total in totals),
        worst_mark=worst_severity(step.worst for step in steps),
    )


def _systems(record: Record, names: Mapping[str, str]) -> list[System]:
    groups: dict[tuple[str, str, str], dict[str, list[Step]]] = {}
    for step in record.steps:
        measured = operation(step)
        if measured is not None:
            line = (names[step.id], str(step.key.parameters.get("policy")), step.key.load)
            groups.setdefault(line, {}).setdefault(measured, []).append(step)
    systems: list[System] = []
    for (name, policy, load), operations in groups.items():
        costs = [_cost(operation, steps) for operation, steps in operations.items()]
        clocks = [step.clock.get("cost_mean_ns") for steps in operations.values() for step in steps]
        known = [float(cost) for cost in clocks if isinstance(cost, int | float)]
        system = System(
            record=str(record.path),
            name=name,
            policy=policy,
            load=load,
            clock_cost_ns=sum(known) / len(known) if known else None,
            costs=[cost for cost in costs if cost is not None],
        )
        systems.append(system)
    return systems


def _inversion(record: Record, step: Step, names: Mapping[str, str]) -> list[LockAnswer]:
    place = {"record": str(record.path), "name": names[step.id], "load": step.key.load}
    answers: list[LockAnswer] = []
    for result in step.results:
        if result.name == "inversion":
            known = {key: value for key, value in result.values.items() if key in LockAnswer.model_fields}
            answers.append(LockAnswer.model_validate({**place, "lock": result.labels["lock"], **known}))
    return answers


def _place(record: Record, step: Step, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "record": str(record.path),
        "name": names[step.id],
        "policy": str(step.key.parameters.get("policy")),
        "load": step.key.load,
        "repeat": step.key.repeat,
    }


def _noise(record: Record, step: Step, names: Mapping[str, str]) -> list[NoiseAnswer]:
    answers: list[NoiseAnswer] = []
    for result in step.results:
        if result.name != "noise":
            continue
        cpu = result.labels["cpu"]
        causes = [
            Taken(
                cause=str(series.labels["cause"]),
                gaps=series.count,
                taken_ns=round(series.count * (series.mean_ns or 0)),
                max_ns=series.max_ns,
            )
            for series in step.series
            if series.labels.get("cpu") == cpu
        ]
        answer = {key: result.values[key] for key in ("observed_ns", "taken_ns")}
        answer |= {"cpu": cpu, "causes": causes, "worst_mark": step.worst}
        answers.append(NoiseAnswer.model_validate({**_place(record, step, names), **answer}))
    return answers


def _happened(record: Record, step: Step, names: Mapping[str, str]) -> list[Happened]:
    happened: list[Happened] = []
    cost = cost_of(probe_of(step))
    for result in step.results:
        if cost is None or result.name != cost.result or result.values[cost.met] is None:
            continue  # a co-kernel may not count preemptions
        tries = sum(int(result.values[key] or 0) for key in cost.tries)
        counts = {"met": result.values[cost.met], "tries": tries, "what": cost.met_name}
        place = _place(record, step, names)
        happened.append(Happened.model_validate({**place, **counts, "operation": operation(step)}))
    return happened


def microbenchmarks(records: Sequence[Record]) -> Microbenchmarks:
    """Return the results of the records' microbenchmarks; the lists are empty if there are none. Raises
    RecordError for a damaged step.
    """
    results = Microbenchmarks(systems=[], inversion=[])
    for record, names in zip(records, system_names(records), strict=True):
        results.systems.extend(_systems(record, names))
        for step in record.steps:
            with reading(step):
                results.happened.extend(_happened(record, step, names))
                results.noise.extend(_noise(record, step, names))
                results.inversion.extend(_inversion(record, step, names))
    return results


def has_several_operations(records: Sequence[Record]) -> bool:
    """Return whether the records measured different operations, whose distributions cannot be compared."""
    steps = [step for record in records for step in record.steps]
    probes = {step.key.probe: probe_of(step) for step in steps}
    operations = {operation(step) for step in steps} - {None}
    apart = any(isinstance(probe, Microbenchmark) and not probe.shown.pooled for probe in probes.values())
    return apart or (bool(operations) and (len(probes) > 1 or len(operations) > 1))
