# SPDX-License-Identifier: MIT
"""Which steps belong together: the repeats of one probe under one load in one deployment, on the same targets, by the same tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.record.model import Severity, Step, StepKey, worst_severity
from rtgauge.report.text import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.reader import Record


@dataclass(frozen=True)
class Condition:
    """Steps that differ in nothing but the repeat. `label` names what tells them from the record's other conditions."""

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
    names = sorted({name for key in keys for name in key.parameters})
    return [name for name in names if len({json.dumps(key.parameters.get(name), sort_keys=True) for key in keys}) > 1]


def _machines(record: Record, keys: Sequence[StepKey]) -> dict[str, str]:
    """Target -> the name of its machine, or the target itself where two machines have one name."""
    targets = sorted({target for key in keys for target in key.targets.values()})
    hosts = {target: str(record.system(target).get("host") or target) for target in targets}
    return {target: host if list(hosts.values()).count(host) == 1 and host != "unknown" else target for target, host in hosts.items()}


@dataclass(frozen=True)
class _Differences:
    """What differs between a record's conditions. Found once: of a study of hundreds of conditions it would take a second for each list of labels."""

    deployments: bool
    probes: bool
    targets: bool
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
        parameters={coarse: _different_parameters(group) for coarse, group in alike.items()},
    )


def _label(key: StepKey, differences: _Differences, machines: dict[str, str]) -> str:
    parts = [key.load]
    if key.deployment != "as-is" or differences.deployments:
        parts.append(key.deployment)
    if differences.probes:
        parts.append(key.probe)
    if differences.targets:
        parts.append(" ".join(machines[target] for target in key.targets.values()))
    names = differences.parameters[_coarse(key)]
    different = [quantity(name, key.parameters[name]) if name in key.parameters else (name, "not set") for name in names]
    parts += [f"{name[:1].lower()}{name[1:]} {shown}" for name, shown in different]
    if key.tool != "rtgauge":
        parts.append(key.tool)
    return ", ".join(parts)


def conditions(record: Record) -> list[Condition]:
    """The record's conditions, idle first and then by name."""
    groups: dict[tuple[str, ...], list[Step]] = {}
    for step in record.steps:
        groups.setdefault(_identity(step.key), []).append(step)
    keys = [steps[0].key for steps in groups.values()]
    machines = _machines(record, keys)
    differences = _differences(keys)
    labelled = [Condition(_label(steps[0].key, differences, machines), tuple(sorted(steps, key=lambda s: s.key.repeat))) for steps in groups.values()]
    return sorted(labelled, key=lambda c: (c.steps[0].key.load != "idle", c.label))


def step_labels(record: Record) -> dict[str, str]:
    """Step id -> what to call it: the condition's label, and the repeat where there is more than one."""
    labels: dict[str, str] = {}
    for condition in conditions(record):
        for step in condition.steps:
            labels[step.id] = condition.label if len(condition.steps) == 1 else f"{condition.label} #{step.key.repeat}"
    return labels


def ordered_steps(record: Record) -> list[Step]:
    """Every step in the conditions' order, idle first."""
    return [step for condition in conditions(record) for step in condition.steps]


def bound_ns(record: Record) -> int | None:
    """The bound on latency that was asked for, from the verdicts' evidence; None where there is none."""
    for verdict in record.run.verdicts:
        found = verdict.evidence.get("bound_ns")
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
    return None
