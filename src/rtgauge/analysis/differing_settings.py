# SPDX-License-Identifier: MIT
"""What was different about two sides besides their latencies: every fact and every parameter that is not the same in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.analysis.groups import Side

CHANGING = ("boot_id", "available_bytes", "swap_free_bytes", "steal_ns_since_boot", "calibrations", "uptime", "running")
"""Facts that differ between any two looks at one machine; they are no settings."""


def _flat(prefix: str, item: object) -> dict[str, str]:
    if isinstance(item, Mapping):
        found: dict[str, str] = {}
        for key, part in cast("Mapping[str, object]", item).items():
            if key not in CHANGING:
                found |= _flat(f"{prefix}.{key}" if prefix else str(key), part)
        return found
    if isinstance(item, (list, tuple)):
        return {prefix: ", ".join(str(part) for part in cast("Sequence[object]", item)) or "none"}
    return {prefix: "unknown" if item is None else str(item) or "none"}


def settings_of(side: Side) -> dict[str, str]:
    """Every fact of its target and every parameter of its first step, by a dotted name."""
    step = side.steps[0]
    target = next(iter(step.key.targets.values()), "local")
    facts: Mapping[str, Any] = side.record.system(target)
    own = {"load": step.key.load, "deployment": step.key.deployment, "tool": step.tool, "target": target, "cpus": ", ".join(map(str, step.cpus))}
    return {**_flat("", facts), **_flat("parameter", step.parameters), **own}


def differences(sides: Sequence[Side]) -> dict[str, list[str]]:
    """Name -> its value in each side, in their order, for all that is not the same in all; "not recorded" where a side does not have it."""
    settings = [settings_of(side) for side in sides]
    names = dict.fromkeys(name for one in settings for name in one)
    values = {name: [one.get(name, "not recorded") for one in settings] for name in names}
    return {name: found for name, found in values.items() if len(set(found)) > 1}
