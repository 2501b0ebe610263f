# SPDX-License-Identifier: MIT
"""Finds the settings that differ between sides, among all facts about the machine and all parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rtgauge.analysis.sides import Side

CHANGING = {
    *("boot_id", "uptime", "running", "calibrations"),
    *("available_bytes", "swap_free_bytes", "steal_ns_since_boot"),
}
"""Facts that differ at each inspection of a machine and so are not settings."""


def flat(item: object, prefix: str = "") -> dict[str, str]:
    """Return the facts by dotted name, without the CHANGING facts; a list becomes one text."""
    if isinstance(item, Mapping):
        values: dict[str, str] = {}
        for key, part in cast("Mapping[str, object]", item).items():
            if key not in CHANGING:
                values |= flat(part, f"{prefix}.{key}" if prefix else str(key))
        return values
    if isinstance(item, (list, tuple)):
        return {prefix: ", ".join(str(part) for part in cast("Sequence[object]", item)) or "none"}
    return {prefix: "unknown" if item is None else str(item) or "none"}


def settings_of(side: Side) -> dict[str, str]:
    """Return all facts about the side's target and all parameters of its first step, by dotted name."""
    step = side.steps[0]
    target = next(iter(step.key.targets.values()), "local")
    own = {
        "load": step.key.load,
        "deployment": step.key.deployment,
        "tool": step.tool,
        "target": target,
        "cpus": ", ".join(map(str, step.cpus)),
    }
    return {**flat(side.record.system(target).as_json()), **flat(step.parameters, "parameter"), **own}


def differences(sides: Sequence[Side]) -> dict[str, list[str]]:
    """Map each setting that differs to its value on each side, or "not recorded"."""
    settings = [settings_of(side) for side in sides]
    names = dict.fromkeys(name for of_side in settings for name in of_side)
    values = {name: [of_side.get(name, "not recorded") for of_side in settings] for name in names}
    return {name: in_sides for name, in_sides in values.items() if len(set(in_sides)) > 1}
