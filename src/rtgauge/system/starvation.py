# SPDX-License-Identifier: MIT
"""Whether the kernel throttled a real-time thread, and by which of its three mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, ThreadCounts
from rtgauge.system.kernel import version_tuple
from rtgauge.units import format_time

if TYPE_CHECKING:
    from rtgauge.record.facts import Facts, Scheduling

REALTIME_POLICIES = ("fifo", "rr")
FAIR_SERVER_SINCE = (6, 12)
FAIR_SERVER_GAP_NS = 50_000_000
"""The fair server's default: 50 ms of each 1 s."""
NEAR = 0.8
"""A latency of at least this share of the gap counts: the first release may come late in the gap."""
SLACK_NS = 20_000_000
"""The kernel starts and ends a gap at ticks, which are up to 10 ms apart."""
SHORTEST_GAP_NS = 1_000_000
PREEMPTED_NS = 1_000_000
"""A run delay per switch that kernel threads of higher priority (migration, watchdog) do not cause."""


@dataclass(frozen=True)
class Limit:
    """A throttling mechanism: its name, its gap (ns) and how to disable it."""

    name: str
    gap_ns: int
    remedy: str


def limits(facts: Facts) -> list[Limit]:
    """Every mechanism that applies to this target's real-time threads; an unknown one may apply."""
    version = version_tuple(facts.kernel.release)
    mechanisms: list[Limit] = []

    scheduling, group = facts.scheduling, facts.scheduling.cgroup
    runtime, period = scheduling.rt_runtime_us, scheduling.rt_period_us
    group_runtime = None if group.rt_runtime_us == "none" else group.rt_runtime_us
    group_period = None if group.rt_period_us == "none" else group.rt_period_us
    of_groups = facts.kernel.rt_group_sched
    grouped = group_runtime is not None if of_groups is None else of_groups
    # since 6.12 the kernel throttles only if it is built with RT_GROUP_SCHED (commit 5f6bd380c7bd)
    throttles = version is None or version < FAIR_SERVER_SINCE or grouped
    if runtime is not None and period is not None and 0 <= runtime < period and throttles:
        mechanisms.append(
            Limit(
                "real-time throttling (sched_rt_runtime_us)",
                (period - runtime) * 1000,
                "sysctl kernel.sched_rt_runtime_us=-1",
            )
        )
    if (
        group.version == "v1"
        and group_runtime is not None
        and group_period is not None
        and 0 <= group_runtime < group_period
    ):
        # the root group has the sysctl's limit: report the group only if it is tighter
        tighter = (
            runtime is None
            or period is None
            or runtime < 0
            or group_runtime * period < runtime * group_period
        )
        if tighter:
            name = f"the limit of the cgroup {group.path} (cpu.rt_runtime_us)"
            remedy = "a larger cpu.rt_runtime_us in this group and those above it"
            mechanisms.append(Limit(name, (group_period - group_runtime) * 1000, remedy))

    if version is None or version >= FAIR_SERVER_SINCE:
        gaps = [gap for gap in _fair_server_gaps(scheduling) if gap > 0]
        if gaps:
            mechanisms.append(
                Limit(
                    "the fair server",
                    max(gaps),
                    "0 written to /sys/kernel/debug/sched/fair_server/cpuN/runtime",
                )
            )
    return mechanisms


def _fair_server_gaps(scheduling: Scheduling) -> list[int]:
    """The runtime of each CPU's fair server (ns), the kernel's default if it cannot be read."""
    servers = scheduling.fair_server
    if servers == "none":
        return []
    if servers is None:
        return [FAIR_SERVER_GAP_NS]
    runtimes = [server.runtime_ns for server in servers.values()]
    return [FAIR_SERVER_GAP_NS if runtime is None else runtime for runtime in runtimes]


def _near(latency_ns: int | None, limit: Limit) -> bool:
    """Whether a latency is about as long as the gap.

    Gaps below 1 ms cannot be distinguished from other causes.
    """
    return (
        latency_ns is not None
        and limit.gap_ns >= SHORTEST_GAP_NS
        and NEAR * limit.gap_ns <= latency_ns <= limit.gap_ns + SLACK_NS
    )


def throttled(
    thread: ThreadCounts | None,
    facts: Facts,
    *,
    max_latency_ns: int | None,
    policy: str,
    series: int | None = None,
) -> Mark | None:
    """The mark `throttled` for one measuring thread, or None without evidence.

    `thread`: what the kernel counted for it; `facts`: of its target; `max_latency_ns`: its largest latency;
    `policy`: fifo, rr or other. Evidence is a latency as long as a gap, or involuntary switches with long
    waits. Involuntary switches alone are no evidence: kernel threads of the highest priority cause them too,
    and a thread that sleeps when throttling begins has none.
    """
    if policy not in REALTIME_POLICIES:
        return None
    active = limits(facts)
    delayed = [limit for limit in active if _near(max_latency_ns, limit)]
    counts = thread or ThreadCounts()
    switches = (counts.voluntary_switches or 0) + (counts.involuntary_switches or 0)
    preempted = (
        bool(counts.involuntary_switches)
        and counts.run_delay_ns is not None
        and counts.run_delay_ns >= PREEMPTED_NS * switches
    )
    suspects = delayed or (active if preempted else [])
    if not suspects:
        return None
    evidence: list[str] = []
    if delayed:
        gap = format_time(max(limit.gap_ns for limit in delayed))
        evidence.append(f"the largest latency is {format_time(max_latency_ns)}, and a gap lasts up to {gap}")
    if counts.involuntary_switches is not None and counts.run_delay_ns is not None:
        evidence.append(
            f"{counts.involuntary_switches} involuntary switches, "
            f"{format_time(counts.run_delay_ns)} waiting for the CPU"
        )
    which = " or ".join(limit.name for limit in suspects)
    remedy = " and ".join(limit.remedy for limit in suspects)
    detail = (
        f"{which} seems to have throttled the measuring thread ({'; '.join(evidence)}); to disable it: "
        f"{remedy}"
    )
    return MarkKind.THROTTLED.mark(detail, series=series)
