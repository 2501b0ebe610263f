# SPDX-License-Identifier: MIT
"""What can make a recorder act: a cycle beyond the requirement, a thread that does not run any more, the end
of the program; and the requests to the engine for the events around triggers. Triggers that come at the same
time share one request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rtgauge.units import NS_PER_S, format_time, plural
from rtgauge.verdict.requirement import Requirement
from rtgauge_ext.recorder.program import PROC, Program

LATE, SILENT, ENDED = "late", "silent", "ended"
LEAST_LOOK_NS = NS_PER_S // 20
TOGETHER_NS = NS_PER_S // 20
"""Triggers share the events of the first one if they come so close to it."""
MOST_TOGETHER = 1000
"""Triggers that share the events of one. Later ones are counted."""
LONGEST_NS = 60 * NS_PER_S
"""On an idle machine, the engine answers 0.1 s after the trigger. If it has not answered after this time, it
could not keep the events.
"""


class Trigger(NamedTuple):
    """One trigger: its name, a line about it, when it came (CLOCK_MONOTONIC; 0: now), and in which thread (0:
    any).
    """

    name: str
    detail: str
    time_ns: int = 0
    thread: int = 0


OnTrigger = Callable[[Trigger], None]


def bounds(requirement: Requirement | None) -> dict[str, int]:
    """Return metric -> bound (ns)."""
    return {} if requirement is None else {each.metric: each.bound_ns for each in requirement.each}


def late(task: str, metric: str, latency_ns: int, bound: Mapping[str, int]) -> Trigger | None:
    """Return the trigger of a latency or response beyond its bound."""
    if metric not in bound or latency_ns <= bound[metric]:
        return None
    return Trigger(
        LATE, f"{task}: {metric} {format_time(latency_ns)}, more than {format_time(bound[metric])}"
    )


def slices_of(program: Program, names: Iterable[str]) -> dict[str, int]:
    """Return how often each thread with one of these names has got a CPU (schedstat's third number)."""
    names_left = set(names)
    pids: dict[str, int] = {}
    for place in (PROC / str(program.pid) / "task").glob("[0-9]*"):
        slices = _slices(place, names_left)
        if slices is not None:
            pids[f"{slices[0]} ({place.name})"] = slices[1]
    return pids


def _slices(place: Path, names: set[str]) -> tuple[str, int] | None:
    try:
        name = (place / "comm").read_text(errors="replace").rstrip("\n")
        if not {name, f"{name}-{place.name}"} & names:
            return None
        return name, int((place / "schedstat").read_text().split()[2])
    except (OSError, ValueError, IndexError):
        return None


class Silence:
    """Watches whether threads still get a CPU in each so many periods."""

    def __init__(self, periods: int, period_ns: int) -> None:
        """A thread is silent after this many periods."""
        self._limit_ns, self._periods = periods * period_ns, periods
        self._seen: dict[str, tuple[int, int]] = {}
        self._told: set[str] = set()

    @property
    def every_ns(self) -> int:
        """The time between two looks."""
        return max(LEAST_LOOK_NS, self._limit_ns // 2)

    def look(self, slices: Mapping[str, int], now_ns: int) -> list[Trigger]:
        """Return the threads that have become silent since the last look. A thread that goes on may become
        silent again.
        """
        triggers: list[Trigger] = []
        for thread, number in slices.items():
            before, since_ns = self._seen.get(thread, (-1, now_ns))
            if number != before:
                self._seen[thread] = number, now_ns
                self._told.discard(thread)
            elif now_ns - since_ns >= self._limit_ns and thread not in self._told:
                self._told.add(thread)
                detail = f"{thread} did not get a CPU for {plural(self._periods, 'period')}"
                triggers.append(Trigger(SILENT, detail, now_ns, int(thread.rpartition("(")[2].rstrip(")"))))
        for gone in set(self._seen) - set(slices):
            del self._seen[gone]
        return triggers


@dataclass
class MomentRequest:
    """What the engine was asked for. `number`: of the request; its answer has it too."""

    number: int
    time_ns: int
    triggers: list[Trigger] = field(default_factory=list[Trigger])


class Requests:
    """The requests that the engine has not answered yet."""

    def __init__(self) -> None:
        """Begin without any."""
        self._number = 0
        self._waiting: dict[int, MomentRequest] = {}

    def ask(self, trigger: Trigger, send: Callable[[str], bool], now_ns: int) -> bool:
        """Ask for the events around a trigger. `send`: sends the engine a line, and returns whether it could.
        Return False if the trigger cannot have events.
        """
        time_ns = trigger.time_ns or now_ns
        near = (known for known in self._waiting.values() if abs(time_ns - known.time_ns) <= TOGETHER_NS)
        together = next(near, None)
        if together is not None:
            if len(together.triggers) >= MOST_TOGETHER:
                return False
            together.triggers.append(trigger)
            return True
        if not send(f"moment {time_ns} {trigger.thread} {self._number + 1}"):
            return False
        self._number += 1
        self._waiting[self._number] = MomentRequest(self._number, time_ns, [trigger])
        return True

    def answered(self, number: int) -> list[Trigger]:
        """Return the triggers of a request, which is forgotten now."""
        request = self._waiting.pop(number, None)
        return [] if request is None else request.triggers

    def without_answer(self, now_ns: int | None = None) -> list[Trigger]:
        """Return the triggers whose events did not come in time, and forget them. `now_ns` None: nothing will
        come any more.
        """
        old = [
            known for known in self._waiting.values() if now_ns is None or now_ns - known.time_ns > LONGEST_NS
        ]
        return [trigger for known in old for trigger in self.answered(known.number)]
