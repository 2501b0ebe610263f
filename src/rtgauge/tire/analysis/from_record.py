# SPDX-License-Identifier: MIT
"""From the steps of a record to plain runs of the tire (docs/probes/tire.md, `result`)."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from rtgauge.errors import RecordError
from rtgauge.tire.analysis.runs import WHOLE, Configuration, FastRun, PacedRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import Result, Step

PROBE = "tire"
STOPPED_EARLY = ("stopped", "died")
"""Such a step did not run for as long as it should; it is measured again when its record is gone on with."""


def is_tire(step: Step) -> bool:
    """Whether a step is one of this probe."""
    return step.key.probe == PROBE


def _result(step: Step) -> Result | None:
    return next((result for result in step.results if result.name == PROBE), None)


def _number(step: Step, result: Result, name: str) -> int:
    value = result.values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise RecordError(f"step {step.id} of the record is damaged: the result of its tire has no {name}")
    return round(value)


def _optional(result: Result, name: str) -> int | None:
    value = result.values.get(name)
    return None if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) else round(value)


def _configuration(step: Step, result: Result) -> Configuration:
    parameters: dict[str, Any] = step.key.parameters
    return Configuration(
        solver=str(result.labels.get("solver", parameters.get("solver"))),
        nodes=_number(step, result, "nodes"),
        threads=_number(step, result, "threads"),
        policy=str(parameters.get("policy")),
        without=str(parameters.get("without", WHOLE)),
        free_running=bool(parameters.get("free_running", False)),
    )


def _longest(result: Result, mean_ns: float) -> int | None:
    """The longest step; of a block's mean, what it would be had one step of it been late alone."""
    longest, block = _optional(result, "step_max_ns"), _optional(result, "block") or 1
    return None if longest is None else round(mean_ns + max(0.0, longest - mean_ns) * block)


SHORTEST_RUN_NS = 1_000_000
"""What was computed for less long (as for a picture of the fall) says nothing about how long a step takes."""


def fast_runs(steps: Sequence[Step]) -> list[FastRun]:
    """Every real-fast run of a millisecond or more. Raises RecordError for a damaged result."""
    found: list[FastRun] = []
    for step in steps:
        result = _result(step) if is_tire(step) else None
        if result is None or result.values.get("mode") != "real-fast":
            continue
        count, wall_ns = _number(step, result, "steps"), _number(step, result, "wall_ns")
        if not count or wall_ns < SHORTEST_RUN_NS:
            continue
        barrier = result.values.get("barrier_ns")
        found.append(
            FastRun(
                configuration=_configuration(step, result),
                repeat=step.key.repeat,
                steps=count,
                wall_ns=wall_ns,
                step_max_ns=_longest(result, wall_ns / count),
                voluntary_switches=_optional(result, "voluntary_switches"),
                involuntary_switches=_optional(result, "involuntary_switches"),
                barrier_ns=float(barrier) if isinstance(barrier, int | float) and not isinstance(barrier, bool) else None,
                worst_mark=step.worst,
                cpu_ns=_optional(result, "cpu_ns"),
            )
        )
    return found


def too_short(steps: Sequence[Step]) -> int:
    """How many real-fast runs computed for less than a millisecond, and are in no figure; pictures of the fall, which are meant to be short, not counted."""
    results = [(step, _result(step)) for step in steps if is_tire(step) and not step.key.parameters.get("state")]
    fast = [(step, result) for step, result in results if result is not None and result.values.get("mode") == "real-fast"]
    return sum(_number(step, result, "wall_ns") < SHORTEST_RUN_NS for step, result in fast)


def paced_runs(steps: Sequence[Step], *, whole_only: bool = False) -> list[PacedRun]:
    """Every real-time run that had a deadline. `whole_only`: without those that were stopped before their end. Raises RecordError."""
    found: list[PacedRun] = []
    for step in steps:
        result = _result(step) if is_tire(step) else None
        if result is None or result.values.get("mode") != "real-time" or (whole_only and step.end_reason in STOPPED_EARLY):
            continue
        deadlines = _number(step, result, "activations")
        if not deadlines:
            continue
        latest = [series.max_ns for series in step.series if series.metric == "latency" and series.max_ns is not None]
        found.append(
            PacedRun(
                configuration=_configuration(step, result),
                period_ns=int(step.key.parameters["period_ns"]),
                repeat=step.key.repeat,
                deadlines=deadlines,
                missed=_number(step, result, "deadline_missed"),
                latency_max_ns=max(latest, default=None),
                worst_mark=step.worst,
            )
        )
    return found
