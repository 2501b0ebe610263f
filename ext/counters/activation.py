# SPDX-License-Identifier: MIT
"""What the engine's verb `work` counted: each activation of a program's threads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from statistics import median_low
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rtgauge.errors import MeasureError

Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class CountedThread(_Line):
    """A thread that was counted."""

    tid: int
    name: str


class CountBegin(_Line):
    """The first line. `missing`: the counters that the machine lacks; `left_out`: threads not counted."""

    type: Literal["work"]
    version: Literal[1]
    left_out: Count
    missing: list[str]
    threads: list[CountedThread]


class WorkCounts(_Line):
    """What one activation needed, or a typical one of several. None: this machine has no such counter."""

    cpu_ns: Count
    page_faults: Count = 0
    cycles: Count | None = None
    instructions: Count | None = None
    llc_misses: Count | None = None
    smi: Count | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the processor counted the work, and there was some."""
        return bool(self.cycles and self.instructions and self.cpu_ns and self.llc_misses is not None)


class CountedActivation(WorkCounts):
    """An activation: from when its thread woke up until it slept again, without the time between.

    `switches`: how often it was switched out; more than once if others ran in between. `whole`: every counter
    had its register all the time.
    """

    type: Literal["activation"]
    tid: int
    end_ns: int
    whole: bool
    switches: Count


class CountEnd(_Line):
    """The last line. `lost`: samples that the ring had no room for. `full`: there were too many."""

    type: Literal["ended"]
    activations: Count
    lost: Count
    full: bool


class Work(_Line):
    """All lines of one measurement."""

    begin: CountBegin
    activations: list[CountedActivation]
    end: CountEnd


LINES: TypeAdapter[CountBegin | CountedActivation | CountEnd] = TypeAdapter(
    Annotated[CountBegin | CountedActivation | CountEnd, Field(discriminator="type")]
)


def parse_work(lines: Iterable[bytes]) -> Work:
    """Parse the output of the engine's verb `work`.

    Raises MeasureError with the engine's message if it refused, or if lines are missing or damaged.
    """
    begin: CountBegin | None = None
    activations: list[CountedActivation] = []
    end: CountEnd | None = None
    for line in lines:
        try:
            found = LINES.validate_json(line)
        except ValidationError:
            raise MeasureError(_refusal(line)) from None
        if isinstance(found, CountBegin):
            begin = found
        elif isinstance(found, CountedActivation):
            activations.append(found)
        else:
            end = found
    if begin is None or end is None:
        raise MeasureError("the engine's count of the work is incomplete; measure again")
    return Work(begin=begin, activations=activations, end=end)


def _refusal(line: bytes) -> str:
    try:
        said: Any = json.loads(line)
        return str(said["message"])
    except (ValueError, TypeError, KeyError):
        return "the engine's count of the work is damaged; measure again"


def typical(activations: Iterable[WorkCounts]) -> WorkCounts:
    """Return the median of each counter; None if an activation lacks it. At least one activation."""
    all_ = list(activations)
    found: dict[str, int | None] = {}
    for name in WorkCounts.model_fields:
        values = [getattr(each, name) for each in all_]
        # Of an even number, the lower one: a count cannot be between two.
        found[name] = None if None in values else median_low(values)
    return WorkCounts.model_validate(found)
