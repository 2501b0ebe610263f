# SPDX-License-Identifier: MIT
"""Joins spikes of several CPUs on their time: one stall of the machine shows as an outlier on each CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.units import format_cpu_list, plural

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Spike:
    """One outlier: from its release to its end, on one CPU; `uncertain_ns`: how far its times may be off those of other CPUs."""

    cpu: int
    start_ns: int
    end_ns: int
    uncertain_ns: int = 0


@dataclass(frozen=True)
class JointEvent:
    """Spikes that overlap in time."""

    spikes: tuple[Spike, ...]

    @property
    def cpus(self) -> list[int]:
        """The CPUs that had one, sorted."""
        return sorted({spike.cpu for spike in self.spikes})

    @property
    def longest_ns(self) -> int:
        """The longest of them."""
        return max(spike.end_ns - spike.start_ns for spike in self.spikes)


def joint_events(spikes: Iterable[Spike]) -> list[JointEvent]:
    """The spikes joined where their intervals overlap, within their uncertainty; in the order of time."""
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


def joint_words(events: list[JointEvent]) -> str | None:
    """ "19 outliers on 16 CPUs are 2 events: the machine's, on all CPUs at once"; None where there is nothing to join: one CPU, or no two at one time."""
    spikes = [spike for event in events for spike in event.spikes]
    cpus = sorted({spike.cpu for spike in spikes})
    shared = [event for event in events if len(event.cpus) > 1]
    if len(cpus) < 2 or not shared:
        return None
    text = f"{plural(len(spikes), 'outlier')} on {len(cpus)} CPUs are {plural(len(events), 'event')}"
    widest = max(shared, key=lambda event: len(event.cpus))
    return f"{text}; {len(shared)} of them on several CPUs at once, at most on {len(widest.cpus)} (CPUs {format_cpu_list(widest.cpus)})"
