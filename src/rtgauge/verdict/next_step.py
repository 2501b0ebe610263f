# SPDX-License-Identifier: MIT
"""The next thing to try, as concrete as the record allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.probe.registry import DEFAULT
from rtgauge.system.fact_summary import brief
from rtgauge.target.address import LOCAL
from rtgauge.units import NS_PER_UNIT, format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.record.model import Mark, Step
    from rtgauge.verdict.requirement import Requirement

INVALID = {
    "load-died": "see load.log of the step for why the load died, then: rtgauge run --resume or run again",
    "clock-changed": "keep the clock still while measuring (stop NTP steps and suspends), then measure again",
    "cpu-offline": "keep the CPUs online while measuring, then measure again",
    "engine-died": "see stream.ndjson of the step for its last words, then measure again",
    "samples-lost": "measure again with a longer --interval or without raw samples",
    "watchdog": "the measuring thread was starved: measure again with a lower load or without other real-time programs",
}
DOUBTFUL = {
    "throttled": "take the limit away with: sysctl -w kernel.sched_rt_runtime_us=-1 (and see the mark for the fair server), then measure again",
    "thermal-throttle": "cool the machine or lower its frequency, then measure again",
    "swapping": "free memory or: swapoff -a, then measure again",
    "steal": "give the virtual machine CPUs of its own (pin its virtual CPUs), or measure on the bare machine",
    "dma-latency-failed": "run as root, so that /dev/cpu_dma_latency can be held, and measure again",
    "not-locked": "raise the memory lock limit (ulimit -l unlimited) and measure again",
}


def round_up_duration(ns: int) -> str:
    """A duration to measure for: rounded up to 10 s, minutes or hours."""
    for unit, limit in ((10 * 10**9, NS_PER_UNIT["min"]), (NS_PER_UNIT["min"], NS_PER_UNIT["h"]), (NS_PER_UNIT["h"], None)):
        rounded = max(1, -(-ns // unit)) * unit
        if limit is None or rounded <= limit:
            return format_duration(rounded)
    raise AssertionError


def _again(step: Step, requirement: Requirement, more: str) -> str:
    """The command that measures the same with `more`: of a plan's probe the one that is known, of others the user's own."""
    if step.key.probe != DEFAULT:
        return f"the same command with {more}"
    target = step.key.targets.get("self", LOCAL)
    where = "" if target == LOCAL else f"--target {target} "
    return f'rtgauge run {where}{more} --require "{requirement}"'


def next_with_more(step: Step, requirement: Requirement, duration_ns: int | None) -> str:
    """Measure longer; `duration_ns` is what it takes, None where that is not known."""
    if duration_ns is None:
        return f"measure longer, like: {_again(step, requirement, '--duration 30min')}"
    return f"measure longer: {_again(step, requirement, f'--duration {round_up_duration(duration_ns)}')}"


def next_when_close(step: Step, requirement: Requirement) -> str:
    """It holds by little."""
    return f"see how the maximum grows with time: {_again(step, requirement, '--duration 1h')}"


def next_when_held(step: Step, requirement: Requirement) -> str:
    """It holds: under what was measured."""
    if step.key.load == "idle":
        return f"see whether it holds under load: {_again(step, requirement, '--load cpu')}"
    return f"let it run as long as the machine is to run: {_again(step, requirement, '--duration 12h')}"


def next_for_invalid(mark: Mark) -> str:
    """What to do about what made the step invalid."""
    return INVALID.get(mark.name, "remove the cause and measure again")


def next_for_doubt(mark: Mark) -> str:
    """What to do about what makes the step doubtful."""
    return DOUBTFUL.get(mark.name, "remove the cause and measure again")


def next_for_failure(step: Step, requirement: Requirement, facts: Mapping[str, Any]) -> str:
    """The first thing that is not yet as real-time programs have it: priority, C-states, known disturbances, the kernel."""
    again = f'rtgauge run --require "{requirement}"' if step.key.probe == DEFAULT else "the same command"
    policy = step.parameters.get("policy")
    if policy == "other":
        return f"measure at a real-time priority: rtgauge probe {step.key.probe} --policy fifo --priority 98"
    for mark in step.marks:
        if mark.name in DOUBTFUL:
            return next_for_doubt(mark)
    dma_latency = step.parameters.get("dma_latency_us")
    if isinstance(dma_latency, int) and dma_latency < 0:  # the engine's word for `off`
        return f"keep the CPUs out of deep C-states: rtgauge probe {step.key.probe} --dma-latency 0"
    model = brief(facts)["preemption"]
    if model not in {None, "unknown", "PREEMPT_RT"}:
        return f"boot a PREEMPT_RT kernel (this one's preemption is {model}; Debian: apt-get install linux-image-rt-amd64 or -arm64), then: {again}"
    if brief(facts)["virtual_machine"]:
        return f"measure on the bare machine (this one is virtual), then: {again}"
    return f"isolate a CPU for the real-time task (isolcpus=, nohz_full=, IRQ affinity) and measure on it: {again}"
