# SPDX-License-Identifier: MIT
"""Defines the study that searches for the highest sustained frequency (Adam et al. 2021, sec. 7.1 to 7.3).

It measures a coarse grid of periods. Then it halves the interval in which losses begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.plan.make_plan import Overrides, Plan, make_plan
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import Pace
from rtgauge.record.model import Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.units import format_duration, parse_duration_ns
from rtgauge_ext.papers.frequency.sustained import RESOLUTION, next_period, point_of, repeat_result
from rtgauge_ext.signal.period_searches import period_series

GRID = ("10ms", "5ms", "2ms", "1ms", "500us", "200us", "100us", "50us", "20us")
"""The periods of the grid, from the paper's 10 ms downwards."""
WIDEST = 2.5
"""The largest ratio between neighbouring periods of the grid."""
REPEATS = 3
DEFAULT_CYCLES = 2_000
PROBE = "response"


def probe_of(overrides: Overrides) -> str:
    """Return the name of the probe whose period is searched. Raises InputError if the probe has no period, or
    if an option sets the period.
    """
    name = str(overrides.parameters.get("probe", PROBE))
    paced = [probe.name for probe in probes.PROBES.values() if probe.pace is not None]
    if name not in paced:
        raise InputError(
            f"--set probe={name}: the study can search only for the period of "
            f"{', '.join(paced)}{nearest(name, paced)}"
        )
    given = {"interval", "interval-min", "interval-max", "period"} & overrides.parameters.keys()
    if given:
        raise InputError(f"--set {min(given)}: the study chooses the period itself; leave the option out")
    return name


def _pace(probe: str) -> Pace:
    pace = probes.get(probe).pace
    if pace is None:
        raise InputError(f"the probe {probe} has no period that a study could search for")
    return pace


def _entry(probe: str, period_ns: int, load: str, cycles: int) -> dict[str, Any]:
    pace = _pace(probe)
    return {
        "probe": probe,
        pace.period.removesuffix("_ns"): format_duration(period_ns * pace.activations),
        "load": load,
        pace.count: cycles,
    }


def entries(probe: str, loads: Sequence[str], cycles: int = DEFAULT_CYCLES) -> list[dict[str, Any]]:
    """Return the plan's entries for the first steps of the search: one for each load and each period of the
    grid.
    """
    return [_entry(probe, parse_duration_ns(period), load, cycles) for load in loads for period in GRID]


def plan_of(name: str, steps: list[dict[str, Any]], overrides: Overrides, **more: Any) -> Plan:
    """Make a plan from these steps and the `overrides`. The steps already have the loads."""
    repeats = {} if overrides.repeats is not None else {"repeats": REPEATS}
    return make_plan(
        {"name": name, "step": steps, **repeats, **more}, f"study {name}", replace(overrides, loads=None)
    )


def _of_repeat(record: Record, steps: Sequence[Step], repeat: int) -> int | None:
    """Return the next period to measure in one repeat; None if its search is over."""
    points = [point for point in (point_of(record, step) for step in steps) if point is not None]
    return next_period(repeat_result(points, repeat))


def next_keys(record: Record) -> list[StepKey]:
    """Return the next steps of a record's searches, one per search and repeat."""
    keys: list[StepKey] = []
    for steps in period_series(record):
        key = steps[0].key
        pace = _pace(key.probe)
        for repeat in sorted({step.key.repeat for step in steps}):
            period = _of_repeat(record, steps, repeat)
            if period is not None:
                changed = key.with_parameters(**{pace.period: period * pace.activations})
                keys.append(changed.model_copy(update={"repeat": repeat}))
    return keys


def later_keys(planned: Sequence[StepKey]) -> list[StepKey]:
    """Return as many steps as the searches will probably need: each halves the grid's widest gap until it is
    within the resolution.
    """
    probe = PROBE if any(key.probe == PROBE for key in planned) else planned[0].probe
    pace = _pace(probe)
    grid = {parse_duration_ns(period) * pace.activations for period in GRID}
    searched = [key for key in planned if key.probe == probe]
    first = [key for key in searched if key.parameters.get(pace.period) == min(grid)]
    halved = sum(key.parameters.get(pace.period) not in grid for key in searched)
    rounds = math.ceil(math.log2(math.log(WIDEST) / math.log(RESOLUTION)))
    return first[:1] * max(0, rounds * len(first) - halved)


class Sustained:
    """The search without anything else; by default for response over `loop:eventfd`, idle."""

    name = "sustained"
    description = (
        "study: search three times for the shortest period at which no cycle is lost (Adam et al. 2021, "
        "sec. 7); takes about three minutes"
    )
    measured_by = None

    def begin(self, overrides: Overrides) -> Plan:
        """Return the plan of the grid, from long to short periods in each repeat. Raises InputError as
        `probe_of` does.
        """
        probe = probe_of(overrides)
        parameters = {key: value for key, value in overrides.parameters.items() if key != "probe"}
        return plan_of(
            self.name, entries(probe, overrides.loads or ["idle"]), replace(overrides, parameters=parameters)
        )

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:  # noqa: ARG002 - of every study
        """Return a step for each repeat whose search is not over. Its period is halfway, on a logarithmic
        scale, between the longest period with losses and the next longer one.
        """
        return next_keys(record)

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> Sequence[StepKey]:  # noqa: ARG002 - of every study
        """Return the steps that the searches probably still need."""
        return later_keys(planned)


STUDY = Sustained()
