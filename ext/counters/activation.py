# SPDX-License-Identifier: MIT
"""What the engine's verb `work` counted: each activation of a program's threads."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
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


class _Activation(WorkCounts):
    """An activation: from when its thread woke up until it slept again, without the time between. `whole`:
    every counter had its register all the time.
    """

    type: Literal["activation"]
    tid: Count
    whole: bool


class CountEnd(_Line):
    """The last line. `lost`: samples that the ring had no room for. `full`: there were too many."""

    type: Literal["ended"]
    activations: Count
    lost: Count
    full: bool


COUNTERS = tuple(WorkCounts.model_fields)
MISSING = -1


@dataclass(frozen=True)
class Work:
    """All lines of one measurement. `activations`: a row for each, with `tid`, `whole` and the COUNTERS, null
    if this machine has no such counter.
    """

    begin: CountBegin
    activations: pl.DataFrame
    end: CountEnd


LINES: TypeAdapter[CountBegin | _Activation | CountEnd] = TypeAdapter(
    Annotated[CountBegin | _Activation | CountEnd, Field(discriminator="type")]
)


def parse_work(lines: Iterable[bytes]) -> Work:
    """Parse the output of the engine's verb `work`, which has up to a million activations.

    Raises MeasureError with the engine's message if it refused, or if lines are missing or damaged.
    """
    begin: CountBegin | None = None
    end: CountEnd | None = None
    columns = {name: array("q") for name in ("tid", "whole", *COUNTERS)}
    for line in lines:
        try:
            found = LINES.validate_json(line)
        except ValidationError:
            raise MeasureError(_refusal(line)) from None
        match found:
            case CountBegin():
                begin = found
            case CountEnd():
                end = found
            case _:
                for name, column in columns.items():
                    value = getattr(found, name)
                    column.append(MISSING if value is None else value)
    if begin is None or end is None:
        raise MeasureError("the engine's count of the work is incomplete; measure again")
    table = pl.DataFrame({name: np.asarray(column) for name, column in columns.items()})
    counted = [pl.when(pl.col(name) != MISSING).then(pl.col(name)).alias(name) for name in COUNTERS]
    return Work(begin, table.with_columns(pl.col("whole").cast(pl.Boolean), *counted), end)


def _refusal(line: bytes) -> str:
    try:
        said: Any = json.loads(line)
        return str(said["message"])
    except (ValueError, TypeError, KeyError):
        return "the engine's count of the work is damaged; measure again"


def typical(activations: pl.DataFrame) -> WorkCounts:
    """Return the median of each of the COUNTERS; None if an activation lacks it. At least one activation."""
    # Of an even number, the lower one: a count cannot be between two.
    middle = (activations.height - 1) // 2
    medians = {
        name: None if activations[name].null_count() else activations[name].sort()[middle]
        for name in COUNTERS
    }
    return WorkCounts.model_validate(medians)
