# SPDX-License-Identifier: MIT
"""Joins overlapping spikes of several CPUs, because a stall of the machine causes an outlier on each CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rtgauge.record.model import OVERFLOW_CYCLES, Outlier, Result, Step
from rtgauge.units import plural

FAR = 3
"""Only latencies above this many times the p99 are spikes. Smaller ones coincide anyway, because the CPUs'
threads are released together.
"""


@dataclass(frozen=True)
class Spike:
    """An outlier on a CPU, from its release to its end. `uncertain_ns`: the uncertainty of both times."""

    cpu: int
    start_ns: int
    end_ns: int
    uncertain_ns: int = 0

    @classmethod
    def of(cls, outlier: Outlier) -> Spike:
        """Return the spike of an outlier whose CPU is known."""
        return cls(outlier.cpu or 0, outlier.time_ns, outlier.time_ns + outlier.value_ns)


@dataclass(frozen=True)
class JointEvent:
    """A group of spikes that overlap in time."""

    spikes: tuple[Spike, ...]

    @property
    def cpus(self) -> list[int]:
        """The CPUs that had a spike, sorted."""
        return sorted({spike.cpu for spike in self.spikes})

    @property
    def longest_ns(self) -> int:
        """The duration of the longest spike (ns)."""
        return max(spike.end_ns - spike.start_ns for spike in self.spikes)


def joint_events(spikes: Iterable[Spike]) -> list[JointEvent]:
    """Join the spikes whose intervals overlap within their uncertainty. The events are in order of time."""
    events: list[list[Spike]] = []
    until = 0
    for spike in sorted(spikes, key=lambda known: known.start_ns - known.uncertain_ns):
        end = spike.end_ns + spike.uncertain_ns
        if events and spike.start_ns - spike.uncertain_ns <= until:
            events[-1].append(spike)
            until = max(until, end)
        else:
            events.append([spike])
            until = end
    return [JointEvent(tuple(event)) for event in events]


def joint_words(events: list[JointEvent], who: str = "CPU") -> str | None:
    """Describe the events ("19 outliers on 16 CPUs are 2 events"); None if no event is on several CPUs.
    `who`: the word for what the `cpu` of an event numbers.
    """
    spikes = [spike for event in events for spike in event.spikes]
    places = {spike.cpu for spike in spikes}
    shared = sum(len(event.cpus) > 1 for event in events)
    if len(places) < 2 or not shared:
        return None
    words = f"{plural(len(spikes), 'outlier')} on {len(places)} {who}s are {plural(len(events), 'event')}"
    return words if shared == len(events) else f"{words}, {shared} of them on several {who}s"


def step_words(step: Step) -> str | None:
    """Describe the joint spikes of a step; None if there are none.

    The spikes are the overflow cycles that cyclictest listed, or else the outliers far above the rest.
    Because some outliers coincide by chance, at least half of the outliers must belong to events on several
    CPUs.
    """
    listed = [result for result in step.results if result.name == OVERFLOW_CYCLES]
    if listed:
        return joint_words(joint_events(spike for result in listed for spike in _listed(result)), "thread")
    p99 = None if step.total is None else step.total.p99_ns
    if p99 is None:
        return None
    far = [
        outlier
        for outlier in step.outliers
        if outlier.cpu is not None and outlier.value_ns > FAR * max(p99, 1)
    ]
    events = joint_events(map(Spike.of, far))
    shared = sum(len(event.spikes) for event in events if len(event.cpus) > 1)
    return joint_words(events) if 2 * shared >= len(far) else None


def _listed(result: Result) -> list[Spike]:
    """Return the overflow cycles of a thread. Their start is uncertain, because only the cycle's number is
    known.
    """
    thread, interval, text = (
        result.labels.get("thread"),
        result.values.get("interval_ns"),
        result.values.get("cycles"),
    )
    if not isinstance(thread, int) or not isinstance(text, str):
        return []
    length = interval if isinstance(interval, int) and interval > 0 else 1_000_000
    cycles = [int(word) for word in text.split() if word.isdecimal() and len(word) < 12]
    return [Spike(thread, cycle * length, cycle * length, length // 2) for cycle in cycles]
