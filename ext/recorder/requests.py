# SPDX-License-Identifier: MIT
"""Asks the engine for the events around triggers. Triggers that come at the same time share one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.triggers import Trigger

TOGETHER_NS = NS_PER_S // 20
"""Triggers share the events of the first one if they come so close to it."""
MOST_TOGETHER = 1000
"""Triggers that share the events of one. Later ones are counted."""
LONGEST_NS = 60 * NS_PER_S
"""On an idle machine, the engine answers 0.1 s after the trigger. If it has not answered after this time, it
could not keep the events.
"""


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
