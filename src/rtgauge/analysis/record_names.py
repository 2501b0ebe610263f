# SPDX-License-Identifier: MIT
"""Chooses distinct names for several records and for the systems on which they were measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rtgauge.record.model import COKERNELS, Step
from rtgauge.record.reader import Record


def _made(record: Record) -> tuple[str, str] | None:
    """Return the date and time at which the record began; None if unknown."""
    try:
        moment = datetime.fromisoformat(record.run.created)
    except ValueError:
        return None
    return f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}"


def record_names(records: Sequence[Record]) -> list[str]:
    """Return a short name for each record, all different.

    The name is the user's name, numbered if several records have it; else the folder's name, if it was
    renamed; else the time at which the record began, with the date if the days differ.
    """
    made = [_made(record) for record in records]
    same_day = len({moment[0] for moment in made if moment is not None}) == 1
    folders = [record.path.resolve().name for record in records]
    names: list[str] = []
    for record, folder, moment in zip(records, folders, made, strict=True):
        if moment is None or len(records) == 1 or folder.removesuffix(".partial") != record.run.id:
            names.append(record.label or folder)
        else:
            names.append(record.label or (moment[1] if same_day else " ".join(moment)))
    labels = [record.label for record in records]
    names = [
        f"{name} {labels[:i].count(name) + 1}" if name and labels.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
    for distinct in (names, folders):
        if len(set(distinct)) == len(distinct):
            return distinct
    return [str(record.path) for record in records]


def system_name(record: Record, step: Step) -> str:
    """Return host and kernel, as Garre et al. (2014) name systems, and the co-kernel if there was one."""
    target = next(iter(step.key.targets.values()), "local")
    facts = record.system(target)
    name = f"{facts.host or target}, {facts.kernel.release or 'kernel unknown'}"
    cokernel = COKERNELS.get(step.key.rt)
    return name if cokernel is None else f"{name}, {cokernel}"


def system_names(records: Sequence[Record]) -> list[dict[str, str]]:
    """Return for each record the name of each step's system, by step id. The name is the user's name for the
    record, else `system_name`.

    If systems of several records have the same name, the record's name is added.
    """
    short = record_names(records)
    systems: list[dict[str, str]] = []
    if any(record.label for record in records):
        for record, name in zip(records, short, strict=True):
            kernels = {step.id: COKERNELS.get(step.key.rt, "Linux") for step in record.steps}
            several = len(set(kernels.values())) > 1
            systems.append({step: f"{name}, {kernels[step]}" if several else name for step in kernels})
        return systems
    names = [{step.id: system_name(record, step) for step in record.steps} for record in records]
    owners = [name for of_record in names for name in set(of_record.values())]
    for record, of_record in zip(short, names, strict=True):
        shared = {name: f"{name} ({record})" for name in of_record.values() if owners.count(name) > 1}
        systems.append({step: shared.get(name, name) for step, name in of_record.items()})
    return systems
