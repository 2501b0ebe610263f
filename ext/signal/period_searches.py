# SPDX-License-Identifier: MIT
"""Finds the searches over the period in a record: steps that differ only in period and repeat."""

from __future__ import annotations

from dataclasses import replace

from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.model import Step
from rtgauge.record.reader import Record

LEAST_PERIODS = 3
"""The fewest different periods of a curve."""
SEARCH_PERIODS = 6
"""Steps with at least this many different periods are a search."""


def period_of(step: Step) -> int | None:
    """Return the time from one activation to the next (ns); None if it is random or there is no period."""
    pace = probe_of(step).pace
    if pace is None:
        return None
    value = step.key.parameters.get(pace.period)
    return value // pace.activations if isinstance(value, int) and value > 0 else None


def same_but_period(step: Step) -> str:
    """Return a key that is equal for all steps that differ only in period and repeat."""
    pace = probe_of(step).pace
    return step.key.id_without("repeat", *(() if pace is None else (pace.period,)))


def period_series(record: Record, least: int = LEAST_PERIODS) -> list[list[Step]]:
    """Return groups of steps that differ only in period and repeat. A group has at least `least` different
    periods.
    """
    groups: dict[str, list[Step]] = {}
    for step in record.steps:
        if period_of(step) is not None:
            groups.setdefault(same_but_period(step), []).append(step)
    return [steps for steps in groups.values() if len({period_of(step) for step in steps}) >= least]


def without_searches(record: Record) -> Record:
    """Return the record with only the longest period of each search, because other steps say little."""
    searched: set[str] = set()
    for steps in period_series(record, SEARCH_PERIODS):
        periods = {step.id: period_of(step) or 0 for step in steps}
        longest = max(periods.values())
        searched |= {step_id for step_id, period in periods.items() if period < longest}
    if not searched:
        return record
    return replace(record, steps=[step for step in record.steps if step.id not in searched])
