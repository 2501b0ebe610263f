# SPDX-License-Identifier: MIT
"""Makes the tables of Garre et al. (2014) for any records: the costs of a switch, a preemption and a
hand-over (tab. 1, 2), and starvation at locks (sec. 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from rtgauge.analysis.record_names import system_names
from rtgauge.extension import Document
from rtgauge.probe.probe_registry import PROBES, operation_of, probe_of
from rtgauge.record.model import Model, Severity, Step, worst_severity
from rtgauge.record.reader import Record, reading
from rtgauge.report.noise_table import NoiseAnswer, Place, noise_answers, place_of
from rtgauge_ext.microbenchmarks.microbenchmark import cost_of


class Cost(Model):
    """The cost (ns) of an operation on a system, over all repeats together."""

    operation: str
    """The operation, such as 'task switch' or 'semaphore (same-cpu)'."""
    steps: list[str]
    count: int
    mean_ns: float
    p99_ns: int
    """p99 of the repeat with the largest p99."""
    max_ns: int
    worst_mark: Severity | None


class System(Model):
    """A line of the table: one record under one policy and load."""

    record: str
    name: str
    policy: str
    load: str
    clock_cost_ns: float | None
    """Time that one reading of the clock takes; each figure includes it (Garre et al. 2014, sec. 3.4)."""
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


class EffectCount(Place):
    """How often the operation had its intended effect, warm-up included: a yield switched, a task slept."""

    operation: str
    tries: int
    met: int
    what: str
    """The intended effect in words; `met` of the `tries` had it."""


class Microbenchmarks(Model):
    """The results of the microbenchmarks in one or more records."""

    systems: list[System]
    happened: list[EffectCount] = Field(default_factory=list[EffectCount])
    noise: list[NoiseAnswer] = Field(default_factory=list[NoiseAnswer])
    inversion: list[LockAnswer]

    @property
    def operations(self) -> list[str]:
        """Every measured operation, in the paper's order."""
        order = [cost.name for probe in PROBES.values() if (cost := cost_of(probe)) is not None]

        def place(name: str) -> tuple[int, str]:
            return next((i for i, word in enumerate(order) if name.startswith(word)), len(order)), name

        return sorted({cost.operation for system in self.systems for cost in system.costs}, key=place)


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
        measured = operation_of(step)
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


def _effect_counts(record: Record, step: Step, names: Mapping[str, str]) -> list[EffectCount]:
    effects: list[EffectCount] = []
    cost = cost_of(probe_of(step))
    for result in step.results:
        if cost is None or result.name != cost.result or result.values[cost.met] is None:
            continue  # a co-kernel may not count preemptions
        tries = sum(int(result.values[key] or 0) for key in cost.tries)
        counts = {"met": result.values[cost.met], "tries": tries, "what": cost.met_name}
        place = place_of(record, step, names)
        effects.append(EffectCount.model_validate({**place, **counts, "operation": operation_of(step)}))
    return effects


def microbenchmarks(records: Sequence[Record]) -> Microbenchmarks:
    """Return the results of the records' microbenchmarks; the lists are empty if there are none. Raises
    RecordError for a damaged step.
    """
    results = Microbenchmarks(systems=[], inversion=[])
    for record, names in zip(records, system_names(records), strict=True):
        results.systems.extend(_systems(record, names))
        for step in record.steps:
            with reading(step):
                results.happened.extend(_effect_counts(record, step, names))
                results.noise.extend(noise_answers(record, step, names))
                results.inversion.extend(_inversion(record, step, names))
    return results


DOCUMENT = Document("what rtgauge compare --json prints for microbenchmarks", (Microbenchmarks,))
