# SPDX-License-Identifier: MIT
"""Names the sides of a comparison by the traits that differ between them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from rtgauge.record.alternation import alternation_of, side_of
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.units import format_duration

EMULATED = "emulated"
CONTEXT = ("context",)
"""A parameter that exists only in kernel space."""
RT = ("rt",)
EXPLAIN, EXPLAIN_EVENTS = ("explain",), ("explain_events",)
NO_DIFFERENCE = {("space",), ("window_ns",)}
"""Parameters that do not distinguish sides. The space has its own trait, and how a record is split does not
change what was measured.
"""


def _leaves(parameters: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return every parameter by its path of names; a list counts as one parameter."""
    leaves: dict[tuple[str, ...], Any] = {}
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            nested = _leaves(cast("Mapping[str, Any]", value))
            leaves |= {(name, *rest): leaf for rest, leaf in nested.items()}
        else:
            leaves[name,] = value
    return leaves


def _own_leaves(step: Step) -> dict[tuple[str, ...], Any]:
    """Return the parameters that distinguish a step. Of the explain options, two count: the events, and
    whether explaining was on.
    """
    leaves = _leaves(step.key.parameters.values)
    explained = leaves.get(EXPLAIN) is True
    known = {
        path: value
        for path, value in leaves.items()
        if not path[0].startswith("explain") or (explained and path == EXPLAIN_EVENTS and value != "default")
    }
    return known | {EXPLAIN: explained, RT: step.key.rt}


def _parameter(name: str, value: Any) -> str:
    """Return a parameter in words: "interval 20us", "cpu 1-3", "default cpu"."""
    words = name.removesuffix("_ns").replace("_", "-")
    if value is None:
        return f"default {words}"
    if name.endswith("_ns") and isinstance(value, int):
        return f"{words} {format_duration(value)}"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[object]", value)
        nested = any(isinstance(part, (Mapping, list, tuple)) for part in parts)
        return f"{words} {len(parts) if nested else '+'.join(map(str, parts))}"
    return f"{words} {value}"


def traits_of(record: Record, step: Step, different: Collection[tuple[str, ...]]) -> dict[str, str]:
    """Return the traits of a step. `different`: the paths of the parameters that differ between sides."""
    target = next(iter(step.key.targets.values()), "local")
    facts = record.system(target)
    leaves = _own_leaves(step)
    own = [path for path in sorted(different) if path != CONTEXT or leaves.get(path) is not None]
    parameters = " ".join(_parameter(path[-1], leaves.get(path)) for path in own)
    alternation = alternation_of(record.run)
    return {
        "side": "" if alternation is None else alternation.names[side_of(step.key.repeat)],
        "host": facts.host or target,
        "processor": EMULATED if facts.machine.emulated or step.emulated else "not emulated",
        "kernel": facts.kernel.release or "kernel unknown",
        "load": step.key.load,
        "deployment": step.key.deployment,
        "tool": step.key.tool,
        "space": f"{step.key.space} space",
        "parameters": parameters if different else "default parameters",
    }


def different_parameters(steps: Sequence[Step]) -> set[tuple[str, ...]]:
    """Return the paths of the parameters that differ between steps. A missing context is not a difference."""
    leaves = [_own_leaves(step) for step in steps]
    contexts = {context for of_step in leaves if (context := of_step.get(CONTEXT)) is not None}
    if len(contexts) == 1:
        leaves = [{**of_step, CONTEXT: next(iter(contexts))} for of_step in leaves]
    values: dict[tuple[str, ...], set[str]] = {}
    for path in {path for of_step in leaves for path in of_step} - NO_DIFFERENCE:
        values[path] = {json.dumps(of_step.get(path), sort_keys=True) for of_step in leaves}
    return {path for path, texts in values.items() if len(texts) > 1}


def labels_of(traits: Sequence[Mapping[str, str]], records: Sequence[str], *, named: bool) -> list[str]:
    """Return a label for each side: the traits that differ, after the record's name if needed or `named`."""

    def differ(sides: Sequence[Mapping[str, str]]) -> set[str]:
        return {name for name in traits[0] if len({side[name] for side in sides}) > 1}

    def labels(names: set[str]) -> list[str]:
        return [", ".join(side[name] for name in side if name in names and side[name]) for side in traits]

    def with_record(names: set[str]) -> list[str]:
        each = zip(records, labels(names), strict=True)
        return [f"{record}, {label}" if label else record for record, label in each]

    if named:  # the names of the records say how they differ
        of_record: dict[str, list[Mapping[str, str]]] = {}
        for side, record in zip(traits, records, strict=True):
            of_record.setdefault(record, []).append(side)
        different = set[str]().union(*map(differ, of_record.values()))
        shorter = with_record(different - {"parameters"})
        return shorter if len(set(shorter)) == len(shorter) else with_record(different)
    different = differ(traits)
    if all(side["side"] for side in traits):  # the names of the sides say how they differ
        alike = [[of for of in traits if of["side"] == side["side"]] for side in traits]
        different = {"side"}.union(*map(differ, alike))
    short = labels(different)
    return short if len(set(short)) == len(short) and all(short) else with_record(different)
