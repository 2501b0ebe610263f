# SPDX-License-Identifier: MIT
"""Which steps belong together: the repeats of one probe under one load in one deployment, on the same
targets, by the same tool.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.probe.registry import probe_of
from rtgauge.record.model import COKERNELS, Severity, Step, StepKey, worst_severity
from rtgauge.report.text import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.reader import Record


UNKNOWN = "unknown"
"""The load and the deployment of an imported step whose file does not say them."""


@dataclass(frozen=True)
class Condition:
    """Steps that differ in nothing but the repeat.

    `label` names what tells them from the record's other conditions.
    """

    label: str
    steps: tuple[Step, ...]

    @property
    def worst(self) -> Severity | None:
        """The severest mark on any of its steps."""
        return worst_severity(step.worst for step in self.steps)


def _identity(key: StepKey) -> tuple[str, ...]:
    return (*_coarse(key), json.dumps(key.parameters, sort_keys=True))


def _coarse(key: StepKey) -> tuple[str, ...]:
    """All that a label names before the parameters."""
    return (key.load, key.deployment, key.tool, key.probe, json.dumps(key.targets, sort_keys=True))


def _different_parameters(keys: Sequence[StepKey]) -> list[str]:
    names = sorted({name for key in keys for name in key.parameters} - {"space", "rt"})
    return [
        name
        for name in names
        if len({json.dumps(key.parameters.get(name), sort_keys=True) for key in keys if _has(key, name)}) > 1
    ]


def _has(key: StepKey, name: str) -> bool:
    """Only kernel space has a context."""
    return name != "context" or key.parameters.get(name) is not None


def _machines(record: Record, keys: Sequence[StepKey]) -> dict[str, str]:
    """Target -> the name of its machine, or the target itself where two machines have one name."""
    targets = sorted({target for key in keys for target in key.targets.values()})
    hosts = {target: str(record.system(target).get("host") or target) for target in targets}
    return {
        target: host if list(hosts.values()).count(host) == 1 and host != "unknown" else target
        for target, host in hosts.items()
    }


@dataclass(frozen=True)
class _Differences:
    """What differs between a record's conditions.

    Found once: of a study of hundreds of conditions it would take a second for each list of labels.
    """

    deployments: bool
    probes: bool
    targets: bool
    spaces: bool
    runtimes: bool
    parameters: dict[tuple[str, ...], list[str]]
    """Of the conditions that are alike in all that a label names before the parameters."""


def _differences(keys: Sequence[StepKey]) -> _Differences:
    alike: dict[tuple[str, ...], list[StepKey]] = {}
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
    names = [name for name in differences.parameters[_coarse(key)] if _has(key, name)]
    different = [
        quantity(name, key.parameters[name]) if name in key.parameters else (name, "not set")
        for name in names
    ]
    parts += [f"{name[:1].lower()}{name[1:]} {shown}" for name, shown in different]
    if key.tool != "rtgauge":
        parts.append(key.tool)
    if not parts:
        parts.append("unknown load")
    return ", ".join(parts)


def conditions(record: Record) -> list[Condition]:
    """The record's conditions, idle first and then by name, user beside kernel space."""
    groups: dict[tuple[str, ...], list[Step]] = {}
    for step in record.steps:
        groups.setdefault(_identity(step.key), []).append(step)
    keys = [steps[0].key for steps in groups.values()]
    machines = _machines(record, keys)
    differences = _differences(keys)
    labelled = [
        Condition(
            _label(steps[0].key, differences, machines), tuple(sorted(steps, key=lambda s: s.key.repeat))
        )
        for steps in groups.values()
    ]
    return sorted(labelled, key=_order)


def _order(condition: Condition) -> tuple[bool, str, bool]:
    key = condition.steps[0].key
    return key.load != "idle", condition.label.replace(f"{key.space} space", "space"), key.space != "user"


def key_labels(keys: Sequence[StepKey]) -> dict[str, str]:
    """Step key as JSON -> what tells the planned step from the others: the probe, the load, and what else
    differs, with the repeat where there is one.
    """
    conditions_of = {_identity(key): key for key in keys}
    differences = _differences(list(conditions_of.values()))
    machines = {target: target for key in keys for target in key.targets.values()}
    repeated = any(key.repeat > 1 for key in keys)
    return {
        key.model_dump_json(): f"{key.probe} "
        f"{_label(key, replace(differences, probes=False), machines)}{f' #{key.repeat}' if repeated else ''}"
        for key in keys
    }


def step_labels(record: Record) -> dict[str, str]:
    """Step id -> what to call it: the condition's label, and the repeat where there is more than one."""
    labels: dict[str, str] = {}
    for condition in conditions(record):
        for step in condition.steps:
            labels[step.id] = (
                condition.label if len(condition.steps) == 1 else f"{condition.label} #{step.key.repeat}"
            )
    return labels


def ordered_steps(record: Record) -> list[Step]:
    """Every step in the conditions' order, idle first."""
    return [step for condition in conditions(record) for step in condition.steps]


def bound_ns(record: Record) -> int | None:
    """The required bound on latency, from the verdicts' evidence; None where there is none."""
    for verdict in record.run.verdicts:
        bound_ns = verdict.evidence.get("bound_ns")
        if isinstance(bound_ns, int) and not isinstance(bound_ns, bool) and bound_ns > 0:
            return bound_ns
    return None


def folds(step: Step) -> bool:
    """Whether a step is of a probe whose steps are shown in its own chapter only."""
    return probe_of(step).folded_above is not None


def is_folded(step: Step, record: Record) -> bool:
    """Whether the terminal shows tables of all steps of this step's probe in place of each: the record has so
    many of them.
    """
    most = probe_of(step).folded_above
    return most is not None and sum(other.key.probe == step.key.probe for other in record.steps) > most


def without_folded(record: Record) -> Record:
    """The record for all that shows each step by itself."""
    return replace(record, steps=[step for step in record.steps if not folds(step)])


def folded_probes(record: Record) -> list[tuple[str, int]]:
    """(probe, number of its steps) of those that are folded and have more than one."""
    counts = Counter(step.key.probe for step in record.steps if folds(step))
    return [(probe, count) for probe, count in counts.items() if count > 1]


def representatives(record: Record) -> Record:
    """The record with one step of a folded probe for each system, load and deployment, for what does not
    change from one such step to the next.
    """
    kept: set[str] = set()
    seen: set[tuple[object, ...]] = set()
    for step in record.steps:
        place = (step.key.probe, *sorted(step.key.targets.items()), step.key.load, step.key.deployment)
        if not folds(step) or place not in seen:
            kept.add(step.id)
        if folds(step):
            seen.add(place)
    return replace(record, steps=[step for step in record.steps if step.id in kept])
