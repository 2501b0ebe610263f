# SPDX-License-Identifier: MIT
"""The doubts that follow from what changed on a target over a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.record.model import Mark, Severity
from rtgauge.system.cpus import cpu_list
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEAL_SHARE = 0.001
"""More than this share of a CPU's time taken by the hypervisor makes a measurement doubtful; any steal at all is noted."""
STEAL_LEAST_NS = 20_000_000
"""Two ticks: the count is in ticks, one of them may be of time before the step."""
SWAP_COUNTERS = ("pswpin", "pswpout")


def marks(changes: Mapping[str, Any], measured_cpus: Sequence[int]) -> list[Mark]:
    """Marks `steal`, `clock-changed`, `cpu-offline`, `thermal-throttle` and `swapping`, from the result of `changes.changes`."""
    return [*_steal(changes, measured_cpus), *_clock(changes), *_offline(changes, measured_cpus), *_thermal(changes, measured_cpus), *_swapping(changes)]


def _steal(changes: Mapping[str, Any], measured_cpus: Sequence[int]) -> list[Mark]:
    taken: dict[int, tuple[int, float]] = {}
    for cpu in measured_cpus:
        times = changes["cpu_time_ns"].get(str(cpu), {})
        steal, total = times.get("steal") or 0, sum(value or 0 for value in times.values())
        if steal > 0 and total > 0:
            taken[cpu] = (steal, steal / total)
    if not taken:
        return []
    doubtful = any(steal > STEAL_LEAST_NS and share > STEAL_SHARE for steal, share in taken.values())
    worst = max(taken, key=lambda cpu: taken[cpu][1])
    steal, share = taken[worst]
    detail = (
        f"the hypervisor took CPU time away from this virtual machine: {steal / 1e6:.0f} ms ({share:.2%}) on CPU {worst}"
        f"{f', also on CPU {format_cpu_list([cpu for cpu in taken if cpu != worst])}' if len(taken) > 1 else ''}; "
        "latencies may be the host's and not this kernel's; give the virtual machine CPUs of its own"
    )
    return [Mark(name="steal", severity=Severity.DOUBTFUL if doubtful else Severity.NOTE, detail=detail)]


def _clock(changes: Mapping[str, Any]) -> list[Mark]:
    before, after = changes["clock_source"]["before"], changes["clock_source"]["after"]
    if "unknown" in (before, after) or before == after:
        return []
    detail = f"the clock source changed from {before} to {after} during the step: its times are not of one clock; look into dmesg for why, and measure again"
    return [Mark(name="clock-changed", severity=Severity.INVALID, detail=detail)]


def _offline(changes: Mapping[str, Any], measured_cpus: Sequence[int]) -> list[Mark]:
    online = cpu_list(changes["online_cpus"]["after"])
    gone = sorted(set(measured_cpus) - set(online)) if online else []
    if not gone:
        return []
    detail = (
        f"CPU {format_cpu_list(gone)} was measured and is offline at the end of the step; set it online (/sys/devices/system/cpu/cpuN/online) and measure again"
    )
    return [Mark(name="cpu-offline", severity=Severity.INVALID, detail=detail)]


def _thermal(changes: Mapping[str, Any], measured_cpus: Sequence[int]) -> list[Mark]:
    # a package count is of all CPUs that share the package, so that it concerns every one of them
    counts = {key: count for key, count in changes["throttle_counts"].items() if count}
    hot = sorted(key for key in counts if "package" in key or int(key.removeprefix("cpu").partition("/")[0]) in measured_cpus)
    if not hot:
        return []
    detail = f"the processor was slowed down because it was too hot ({', '.join(f'{key}: {counts[key]} times' for key in hot[:4])}); cool it and measure again"
    return [Mark(name="thermal-throttle", severity=Severity.DOUBTFUL, detail=detail)]


def _swapping(changes: Mapping[str, Any]) -> list[Mark]:
    pages = {key: changes["vmstat"].get(key) or 0 for key in SWAP_COUNTERS}
    if not any(pages.values()):
        return []
    detail = f"the machine swapped during the step ({pages['pswpin']} pages in, {pages['pswpout']} out); free memory or turn swap off (swapoff -a)"
    return [Mark(name="swapping", severity=Severity.DOUBTFUL, detail=detail)]
