# SPDX-License-Identifier: MIT
"""Tells whether the host of a virtual machine took CPU time from both runs of a pair alike."""

from __future__ import annotations

from rtgauge.analysis.confidence import lower_bound
from rtgauge.record.model import Step
from rtgauge.system.changes import NS_PER_TICK

LEVEL = 0.01
"""The chance that runs count as unlike although the host takes CPU time from both at the same rate."""


def stolen_ns(step: Step) -> int:
    """Return the time (ns) that the host took from the CPUs that the step measured."""
    times = step.changes.cpu_time_ns
    return sum(times.get(str(cpu), {}).get("steal") or 0 for cpu in step.cpus)


def taken_alike(first_ns: int, second_ns: int) -> bool:
    """Return whether chance explains the difference between the times that the host took from two runs of
    the same length.

    The kernel counts steal in ticks. If the host takes ticks from both runs at the same rate, each tick
    belongs to either run with chance 1/2 (Przyborowski and Wilenski 1940).
    """
    ticks = [round(ns / NS_PER_TICK) for ns in (first_ns, second_ns)]
    return not any(ticks) or lower_bound(max(ticks), sum(ticks), 1 - LEVEL / 2) <= 1 / 2
