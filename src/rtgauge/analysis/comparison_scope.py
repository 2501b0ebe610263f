# SPDX-License-Identifier: MIT
"""Finds the scope of a comparison: all steps or, if they share no scale, one task, operation or quantity."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.analysis.sides import EVERYTHING, Scope
from rtgauge.errors import InputError
from rtgauge.probe.probe_registry import PROBES, operation_of, probe_of
from rtgauge.record.model import SEGMENT, Step
from rtgauge.record.reader import Record


def scopes_of(records: Sequence[Record], metric: str | None, *, tabulated: bool) -> list[Scope]:
    """Return the scopes to compare. If all steps share one quantity, there is one scope; otherwise one for
    each task, operation, or probe and quantity.

    `metric`: the metric of the tasks to compare. `tabulated`: whether other tables show the operations.
    Raises InputError if the metric is unknown or no step has tasks.
    """
    steps = [step for record in records for step in record.steps]
    tasks = _task_scopes([step for step in steps if step.tasks], metric)
    if metric is not None and not tasks:
        raise InputError(
            "--metric applies only to task sets, which these records do not contain; leave out --metric"
        )
    operations = _operation_scopes(steps) if tabulated else []
    timing = timing_scopes(records)
    known = {scope.probe for scope in timing}
    known |= {step.key.probe for step in steps if step.tasks}
    if tabulated:
        known |= {step.key.probe for step in steps if probe_of(step).shown.tabulated}
    others = {
        step.key.probe: Scope(
            step.key.probe[:1].upper() + step.key.probe[1:], probe=step.key.probe, metric=step.total.metric
        )
        for step in steps
        if step.key.probe not in known and step.total is not None
    }
    scopes = [*operations, *timing, *others.values(), *tasks]
    apart = tasks or operations or len(scopes) > 1 or any(scope.role is not None for scope in timing)
    return scopes if apart else [EVERYTHING]


def timing_scopes(records: Sequence[Record]) -> list[Scope]:
    """Return one scope for each probe, quantity and role to compare with a period, in the papers' order."""
    steps = [step for record in records for step in record.steps if not step.tasks]
    scopes: list[Scope] = []
    # The papers' tables of response tasks come before the tables of periodic tasks.
    for probe, descriptor in reversed(list(PROBES.items())):
        if descriptor.pace is None:
            continue
        every = (each for step in steps if step.key.probe == probe for each in step.series)
        roles_of: dict[str, set[str | None]] = {}
        for each in every:
            if SEGMENT not in each.labels:
                role = each.labels.get("role")
                roles_of.setdefault(each.metric, set()).add(None if role is None else str(role))
        metrics = [metric for metric in descriptor.pace.metrics if metric in roles_of]
        for metric in metrics:
            roles = sorted(roles_of[metric], key=str, reverse=True)
            quantity = probe if metric == probe or len(metrics) == 1 else f"{probe}: {metric}"
            quantity = quantity[:1].upper() + quantity[1:]
            for role in roles:
                title = f"{quantity}, as the {role} saw it" if len(roles) > 1 else quantity
                scopes.append(Scope(title, metric=metric, probe=probe, role=role))
    return scopes


def _task_scopes(steps: Sequence[Step], metric: str | None) -> list[Scope]:
    """Return one scope for each task of these steps, which ran task sets."""
    if not steps:
        return []
    metrics = [known.name for known in probe_of(steps[0]).metrics if known.compared]
    chosen = metric or metrics[0]
    if chosen not in metrics:
        raise InputError(f"--metric {chosen} is not one of {', '.join(metrics)}")
    names = dict.fromkeys(counts.task for step in steps for counts in step.tasks)
    return [Scope(f"Task {name}", task=name, metric=chosen) for name in names]


def _operation_scopes(steps: Sequence[Step]) -> list[Scope]:
    """Return one scope for each operation."""
    operations = dict.fromkeys(name for step in steps if (name := operation_of(step)) is not None)
    return [Scope(name[:1].upper() + name[1:], operation=name) for name in operations]


def has_several_operations(records: Sequence[Record]) -> bool:
    """Return whether the records measured different operations, whose distributions cannot be compared."""
    steps = [step for record in records for step in record.steps]
    probes = {step.key.probe: probe_of(step).shown for step in steps}
    operations = {operation_of(step) for step in steps} - {None}
    apart = any(shown.tabulated and not shown.pooled for shown in probes.values())
    return apart or (bool(operations) and (len(probes) > 1 or len(operations) > 1))
