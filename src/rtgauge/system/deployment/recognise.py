# SPDX-License-Identifier: MIT
"""Which deployment a machine is in, from its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rtgauge.system.deployment.definition import NAMED
from rtgauge.system.file_batch import UNKNOWN, known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.system.deployment.held import Held

LETTERS = {"c_states": "C", "smt": "H", "multicore": "M", "isolated": "I"}
"""The paper's naming: the first letters of what is on, in this order (Delgado & Choi 2020, sec. III-B)."""


def _c_states(idle: Mapping[str, Any]) -> bool | None:
    """Whether an online CPU may enter a state that it does not leave at once; without an idle driver there is none."""
    deepest = idle.get("deepest_latency_us")
    return deepest > 0 if isinstance(deepest, int) else False if deepest == "none" else None


def _name(features: Mapping[str, bool | None]) -> str:
    if None in features.values():
        return UNKNOWN
    return "".join(letter for key, letter in LETTERS.items() if features[key]) or "Single"


def recognise(cpu: Mapping[str, Any], held: Held | None) -> dict[str, Any]:
    """`name` (one of the six, or letters in their way: `CM`), the four features, and which deployment `deploy apply` holds.

    `cpu`: the part of the facts about the processors.
    """
    idle, topology = (cast("Mapping[str, Any]", cpu.get(key) or {}) for key in ("idle", "topology"))
    threads, cores, isolated, active = topology.get("threads_per_core"), topology.get("cores"), cpu.get("isolated"), cpu.get("smt_active")
    features: dict[str, bool | None] = {
        "c_states": _c_states(idle),
        "smt": active if isinstance(active, bool) else threads > 1 if isinstance(threads, int) else None,
        "multicore": cores > 1 if isinstance(cores, int) else None,
        "isolated": True if held is not None and held.group is not None else isolated != "" if isinstance(isolated, str) and isolated != UNKNOWN else None,
    }
    name = _name(features)
    return {
        "name": name,
        "of_the_six": name in NAMED if name != UNKNOWN else UNKNOWN,
        **{key: known(value) for key, value in features.items()},
        "held": held.name if held is not None else "none",
    }
