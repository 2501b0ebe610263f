# SPDX-License-Identifier: MIT
"""What real-time threads of a watched program did in their cycles that a real-time thread should not do, from
the results `broken-rule` of `watch` (docs/formats/stream.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from rtgauge.record.model import Result, Step

RESULT = "broken-rule"


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a thread broke, in which call, and who woke it ("" if nobody had to).

    `rule`: page-fault, memory, disk, thread, lock, lower-waker or no-limit. `longest_ns`: of the calls or
    sleeps; None for page faults. `after_ns`: when the longest one ended (of page faults: until when the last
    one came), since the measured phase began; None if the record is of several measurements.
    """

    task: str
    rule: str
    call: str
    by: str
    count: int
    longest_ns: int | None
    after_ns: int | None

    @classmethod
    def of(cls, result: Result) -> Self:
        """Read one result."""
        labels, values = result.labels, result.values
        numbers = {name: value for name, value in values.items() if isinstance(value, int)}
        return cls(
            task=str(labels.get("task", "")),
            rule=str(labels.get("rule", "")),
            call=str(labels.get("call", "")),
            by=str(labels.get("by", "")),
            count=numbers.get("count", 0),
            longest_ns=numbers.get("max_ns"),
            after_ns=numbers.get("max_after_ns"),
        )


def broken_rules(results: Iterable[Result]) -> list[BrokenRule]:
    """Return the rules that threads broke, grouped by thread, the longest first."""
    broken = [BrokenRule.of(result) for result in results if result.name == RESULT]
    tasks = list(dict.fromkeys(each.task for each in broken))
    return sorted(broken, key=lambda each: (tasks.index(each.task), -(each.longest_ns or 0), -each.count))


def judged_cycles(step: Step) -> dict[str, int]:
    """Return thread -> number of cycles in which its calls were judged; without threads that were not."""
    cycles_of_task: dict[str, int] = {}
    for result in step.results:
        cycles = result.values.get("judged_cycles")
        if result.name == "thread" and isinstance(cycles, int) and cycles > 0:
            cycles_of_task[str(result.labels.get("task"))] = cycles
    return cycles_of_task
