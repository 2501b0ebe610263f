# SPDX-License-Identifier: MIT
"""Plans the steps of `rtgauge selftest`, which stall a CPU in known ways and record the events that explain
the latencies.
"""

from __future__ import annotations

import os

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.plan.make_plan import Overrides, Plan, make_plan
from rtgauge.target.address import parse_address
from rtgauge.target.kind import GuestKind, guest_kind
from rtgauge.units import parse_duration_ns
from rtgauge_ext.selftest.judge import OUTSIDE
from rtgauge_ext.selftest.stall import KINDS, LENGTH_US, LONGEST_US

SECONDS_A_STALL = 0.1
"""Seconds that a step needs per stall: about 60 ms until the next stall, and the losses at both ends."""
ABOVE_SHARE = 0.3
"""A latency is explained if it is longer than this share of a stall."""
LEAST_LENGTH_NS = 100_000
STOPPED_S, STOPPED_EVERY_S = 0.2, 1.5
"""The length (s) of a guest's stop, and about the time to the next stop. Each stop delays every CPU of the
guest once; a step keeps 200 latencies.
"""
THROTTLED_S = 8
"""The kernel throttles once a second (sched_rt_period_us)."""
WATCHED = ("fault", "catch-up")
"""Kinds for which the stalled program itself is measured (stall_program.py)."""
MOST_A_STEP = 80
"""The most stalls in a step. A step keeps the events of 200 latencies, including the machine's own."""


def stopped_guests(kinds: str | None, target: str) -> GuestKind | None:
    """Return the kind of the guest to stop from outside; None if none is stopped. Raises InputError for an
    invalid target.
    """
    parse_address(target)
    return guest_kind(target) if (kinds or "").strip() == OUTSIDE else None


def self_test_plan(kinds: str | None, count: int, length: str, cpu: int | None, target: str) -> Plan:
    """Plan about `count` stalls of these kinds (`hog,timers`; None: every kind that a load makes) on `cpu`
    (None: the last one). Each lasts about `length` (`1ms`). Raises InputError if these do not fit each other
    or the target.
    """
    chosen = list(KINDS) if kinds is None else [kind.strip() for kind in kinds.split(",")]
    possible = [*KINDS, OUTSIDE]
    for kind in chosen:
        if kind not in possible:
            raise InputError(f"--kinds {kind} is not one of {', '.join(possible)}{nearest(kind, possible)}")
    if OUTSIDE in chosen and stopped_guests(kinds, target) is None:
        raise InputError(
            f"--kinds {OUTSIDE} works only alone, and only on a guest of the lab; give --target lab:NAME"
        )
    if cpu is None and target != "local" and OUTSIDE not in chosen:
        raise InputError("say with --cpu which CPU of the other machine to stall")
    length_ns = parse_duration_ns(length)
    if not LEAST_LENGTH_NS <= length_ns <= LONGEST_US * 1_000:
        raise InputError(f"--length {length}: give 100us to {LONGEST_US // 1000}ms")
    steps = _steps(chosen, count, max(os.sched_getaffinity(0)) if cpu is None else cpu, length_ns)
    document = {"name": "selftest", "order": "as-written", "step": steps}
    return make_plan(document, "selftest", Overrides(targets=[target]))


def _steps(kinds: list[str], count: int, cpu: int, length_ns: int) -> list[dict[str, object]]:
    """Return one step for each kind, or several if there are too many stalls for one."""
    if kinds == [OUTSIDE]:
        seconds = count * STOPPED_EVERY_S
        return [
            {
                "probe": "wakeup",
                "interval": "2ms",
                "duration": f"{seconds:.1f}s",
                "explain": True,
                "explain-above": f"{STOPPED_S / 2 * 1000:.0f}ms",
            }
        ]
    length = "" if length_ns == LENGTH_US * 1000 else f":{length_ns // 1000}"
    quick = [kind for kind in kinds if kind != "throttle"]
    each = -(-count // max(len(quick), 1))
    steps: list[dict[str, object]] = []
    for kind in kinds:
        parts = 1 if kind == "throttle" else -(-each // MOST_A_STEP)
        seconds = (
            THROTTLED_S if kind == "throttle" else each / parts * (SECONDS_A_STALL + 2 * length_ns / 1e9)
        )
        step: dict[str, object] = {
            "load": f"stall:{kind}:{cpu}{length}",
            "duration": f"{seconds:.1f}s",
            "explain": True,
        }
        step["explain-above"] = f"{length_ns * ABOVE_SHARE:.0f}ns"
        wakeup: dict[str, object] = {"probe": "wakeup", "cpu": str(cpu), "interval": f"{length_ns // 5}ns"}
        match kind:
            case _ if kind in WATCHED:
                step |= {"probe": "watch", "program": KINDS[kind]}
            case "idle":
                step |= wakeup | {"interval": "4ms", "dma-latency": "off", "explain-above": "10us"}
            case "irqs-off" | "preempt-off":
                # a release must come early in each stall, and recording each wake-up's stack takes time
                step |= wakeup | {"explain-events": "default,stack", "interval": f"{length_ns * 2 // 5}ns"}
            case _:
                step |= wakeup
        steps += [step] * parts
    return steps
