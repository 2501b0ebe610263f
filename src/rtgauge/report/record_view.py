# SPDX-License-Identifier: MIT
"""Prepares a record for display: groups its steps, orders them, and names steps and quantities."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rtgauge.probe.probe_registry import DEFAULT, PROBES, probe_of, requirement_metrics
from rtgauge.record.model import COKERNELS, SeriesSummary, Severity, Step, StepKey, worst_severity
from rtgauge.record.reader import Record
from rtgauge.report.text import quantity, words
from rtgauge.units import format_bound

UNKNOWN = "unknown"
"""The load and deployment of an imported step if its file does not name them."""
LATENCY = "latency"
SEVERAL = "time"
"""The name for several quantities together."""


def has_distribution(step: Step) -> bool:
    """Return whether all series of the step's main quantity form one distribution. A task set's or several
    locks' do not.
    """
    return not step.tasks and probe_of(step).shown.pooled


def has_releases(step: Step) -> bool:
    """Return whether activations have release times, and so can be missed."""
    return probe_of(step).missed is not None


def quantity_of(step: Step) -> str:
    """Return the main quantity of a step: latency, gap, switch, preemption, hand-over, wait, ..."""
    return step.total.metric if step.total is not None else LATENCY


def quantities(steps: Iterable[Step]) -> list[str]:
    """Return every main quantity of these steps, latency first, without task sets, which have tables of their
    own.
    """
    names = dict.fromkeys(quantity_of(step) for step in steps if not step.tasks and step.total is not None)
    return sorted(names, key=lambda name: name != LATENCY)


def example_requirement(steps: Sequence[Step]) -> str | None:
    """Return a requirement on what these steps measured, or on the default probe if there are no steps; None
    if no requirement is possible.
    """
    measured = [(probe_of(step), quantity_of(step)) for step in steps] or [(PROBES[DEFAULT], LATENCY)]
    examples = {
        metric.name: metric.bound.example
        for probe, name in measured
        if (metric := probe.metric(name)) is not None and metric.bound is not None
    }
    if len(examples) < 2:
        return next(iter(examples.values()), None)
    return next(examples[name] for name in requirement_metrics() if name in examples)


def common_quantity(steps: Iterable[Step]) -> str:
    """Return the quantity that all these steps share, "time" if they have several, "latency" if they have
    none.
    """
    names = quantities(steps)
    return names[0] if len(names) == 1 else SEVERAL if names else LATENCY


def series_name(summary: SeriesSummary) -> str:
    """Return the name of a series for people: "CPU 0", "CPU 0, cause task", "Task reader"."""
    cpu = summary.labels.get("cpu")
    known = summary.labels.get("segment") or summary.labels.get("role")
    if known is not None:  # the value alone is clear enough
        where = f" on {summary.labels['machine']}" if "machine" in summary.labels else ""
        return str(known).replace("-", " ") + where + (f", CPU {cpu}" if cpu is not None else "")
    others = [f"{words(key).lower()} {part}" for key, part in summary.labels.items() if key != "cpu"]
    name = ", ".join(([f"CPU {cpu}"] if cpu is not None else []) + others)
    return name[:1].upper() + name[1:] or summary.metric


@dataclass(frozen=True)
class RequiredBound:
    """A required bound: the time (us), and the share of activations that may exceed it."""

    us: float
    allowed: float = 0.0

    @property
    def words(self) -> str:
        """The bound in words: "200 us"."""
        return format_bound(round(self.us * 1_000))


@dataclass(frozen=True)
class Condition:
    """Steps that differ only in the repeat; `label` is unique among the record's conditions."""

    label: str
    steps: tuple[Step, ...]

    @property
    def worst(self) -> Severity | None:
        """The highest severity of a mark on any of its steps."""
        return worst_severity(step.worst for step in self.steps)


def _coarse(key: StepKey) -> str:
    """Return a text that is equal for keys whose labels differ only in parameters or repeat."""
    return key.id_without("repeat", "parameters")


def _different_parameters(keys: Sequence[StepKey]) -> list[str]:
    values = [key.parameters.values for key in keys]
    names = sorted({name for own in values for name in own} - {"space", "rt"})
    shown = {name: [repr(own.get(name)) for own in values] for name in names}
    if "context" in shown:  # only steps in kernel space have a context
        shown["context"] = [text for text in shown["context"] if text != "None"]
    return [name for name, texts in shown.items() if len(set(texts)) > 1]


def _has(key: StepKey, name: str) -> bool:
    """Return whether the key has the parameter. Only keys in kernel space have a context."""
    return name != "context" or key.parameters.get(name) is not None


def _machines(record: Record, keys: Sequence[StepKey]) -> dict[str, str]:
    """Return each target's machine by name, or the target itself if machines share a name."""
    targets = sorted({target for key in keys for target in key.targets.values()})
    hosts = {target: record.system(target).host or target for target in targets}
    counts = Counter(hosts.values())
    return {target: host if counts[host] == 1 else target for target, host in hosts.items()}


@dataclass(frozen=True)
class _Differences:
    """What differs between a record's conditions, computed once, because it takes a second for hundreds of
    conditions.
    """

    deployments: bool
    probes: bool
    targets: bool
    spaces: bool
    runtimes: bool
    parameters: dict[str, list[str]]
    """`_coarse` of a condition -> the parameters that differ among all conditions with this `_coarse`."""


def _differences(keys: Sequence[StepKey]) -> _Differences:
    alike: dict[str, list[StepKey]] = {}
    for key in keys:
        alike.setdefault(_coarse(key), []).append(key)
    return _Differences(
        deployments=len({key.deployment for key in keys}) > 1,
        probes=len({key.probe for key in keys}) > 1,
        targets=len({json.dumps(key.targets, sort_keys=True) for key in keys}) > 1,
        spaces=len({key.space for key in keys}) > 1,
        runtimes=len({key.rt for key in keys}) > 1,
        parameters={coarse: _different_parameters(group) for coarse, group in alike.items()},
    )


def _label(key: StepKey, differences: _Differences, machines: dict[str, str]) -> str:
    parts = [key.load] if key.load != UNKNOWN else []
    if key.deployment not in ("as-is", UNKNOWN) or differences.deployments:
        parts.append(key.deployment)
    if differences.probes:
        parts.append(key.probe)
    if differences.spaces:
        parts.append(f"{key.space} space")
    if differences.runtimes:
        parts.append(COKERNELS.get(key.rt, "Linux"))
    if differences.targets:
        parts.append(" ".join(machines[target] for target in key.targets.values()))
    values = key.parameters.values
    names = [name for name in differences.parameters[_coarse(key)] if _has(key, name)]
    different = [quantity(name, values[name]) if name in values else (name, "not set") for name in names]
    parts += [f"{name[:1].lower()}{name[1:]} {shown}" for name, shown in different]
    if key.tool != "rtgauge":
        parts.append(key.tool)
    if not parts:
        parts.append("unknown load")
    return ", ".join(parts)


def _order(condition: Condition) -> tuple[bool, str, bool]:
    key = condition.steps[0].key
    return key.load != "idle", condition.label.replace(f"{key.space} space", "space"), key.space != "user"


def _conditions(record: Record) -> list[Condition]:
    groups: dict[str, list[Step]] = {}
    for step in record.steps:
        groups.setdefault(step.key.id_without("repeat"), []).append(step)
    keys = [steps[0].key for steps in groups.values()]
    machines, differences = _machines(record, keys), _differences(keys)
    labelled: list[Condition] = []
    for group in groups.values():
        label = _label(group[0].key, differences, machines)
        labelled.append(Condition(label, tuple(sorted(group, key=lambda step: step.key.repeat))))
    return sorted(labelled, key=_order)


def key_labels(keys: Sequence[StepKey]) -> dict[str, str]:
    """Return the name of each planned step by id: probe, load, other differences, and the repeat."""
    conditions_of = {key.id_without("repeat"): key for key in keys}
    differences = _differences(list(conditions_of.values()))
    machines = {target: target for key in keys for target in key.targets.values()}
    repeated = any(key.repeat > 1 for key in keys)
    differences = replace(differences, probes=False)
    labels = {key.id: f"{key.probe} {_label(key, differences, machines)}" for key in keys}
    return {key.id: labels[key.id] + (f" #{key.repeat}" if repeated else "") for key in keys}


def folds(step: Step) -> bool:
    """Return whether the page shows this step's probe only in the probe's own chapter."""
    return probe_of(step).shown.folded_above is not None


@dataclass(frozen=True, eq=False)
class RecordView:
    """A record with everything derived from it, computed once. Code that shows a record takes a view."""

    record: Record

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions: idle first, then by name, user space next to kernel space."""
        return _conditions(self.record)

    @cached_property
    def steps(self) -> list[Step]:
        """Every step in the conditions' order."""
        return [step for condition in self.conditions for step in condition.steps]

    @cached_property
    def labels(self) -> dict[str, str]:
        """Each step's name, by id: the condition's label, and the repeat if there are several."""
        return {
            step.id: condition.label + (f" #{step.key.repeat}" if len(condition.steps) > 1 else "")
            for condition in self.conditions
            for step in condition.steps
        }

    @cached_property
    def quantities(self) -> list[str]:
        """Every main quantity, latency first."""
        return quantities(self.record.steps)

    @cached_property
    def bounds(self) -> dict[str, RequiredBound]:
        """The required bound on each quantity, from the verdicts' evidence; empty without a requirement."""
        bounds: dict[str, RequiredBound] = {}
        for verdict in self.record.run.verdicts:
            for evidence in (verdict.evidence, *verdict.evidence.get("threads", [])):
                bound_ns, hardness = evidence.get("bound_ns"), evidence.get("hardness", 1.0)
                if isinstance(bound_ns, int) and not isinstance(bound_ns, bool) and bound_ns > 0:
                    metric = str(evidence.get("metric", LATENCY))
                    bounds.setdefault(metric, RequiredBound(bound_ns / 1_000, 1 - float(hardness)))
        return bounds

    def is_folded(self, step: Step) -> bool:
        """Return whether the terminal shows one table for the steps of this probe, because there
        are so many.
        """
        most = probe_of(step).shown.folded_above
        alike = sum(other.key.probe == step.key.probe for other in self.record.steps)
        return most is not None and alike > most

    @cached_property
    def singly(self) -> RecordView:
        """A view of the steps that the terminal shows one by one."""
        return self._only([step for step in self.record.steps if not self.is_folded(step)])

    @cached_property
    def unfolded(self) -> RecordView:
        """A view of the steps that the page shows one by one."""
        return self._only([step for step in self.record.steps if not folds(step)])

    @cached_property
    def representatives(self) -> RecordView:
        """A view that keeps one step of each folded probe per system, load and deployment, and all other
        steps.
        """
        kept: list[Step] = []
        known_keys: set[tuple[object, ...]] = set()
        for step in self.record.steps:
            place = (step.key.probe, *sorted(step.key.targets.items()), step.key.load, step.key.deployment)
            if not folds(step) or place not in known_keys:
                kept.append(step)
            if folds(step):
                known_keys.add(place)
        return self._only(kept)

    def _only(self, steps: list[Step]) -> RecordView:
        """Return a view of these steps; the same view if they are all steps."""
        if len(steps) == len(self.record.steps):
            return self
        return RecordView(replace(self.record, steps=steps))

    @cached_property
    def probes_not_here(self) -> list[str]:
        """The probes of the record that no extension here has. Other tools' steps have no probe of ours."""
        own = (step.key.probe for step in self.record.steps if step.end_reason != "imported")
        return list(dict.fromkeys(name for name in own if name not in PROBES))

    @cached_property
    def folded_probes(self) -> list[tuple[str, int]]:
        """(probe, number of its steps) for each folded probe with several steps."""
        counts = Counter(step.key.probe for step in self.record.steps if folds(step))
        return [(probe, count) for probe, count in counts.items() if count > 1]
