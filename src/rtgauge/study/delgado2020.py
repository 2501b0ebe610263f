# SPDX-License-Identifier: MIT
"""Delgado & Choi (2020), sec. III to V: scheduling latency in every deployment, the choice of the best, and that one under load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtgauge.analysis.comparison import Comparison, Options, Pair, compare
from rtgauge.analysis.selection import Convention
from rtgauge.analysis.sides import UNIPROCESSOR, Side, pairs, sides_of
from rtgauge.errors import MeasureError
from rtgauge.plan.plan import Overrides, Plan, make_plan
from rtgauge.record.model import Run
from rtgauge.record.reader import Record
from rtgauge.system.deployment.words import NAMED

NAME = "delgado2020"
DESCRIPTION = "study: latency in every deployment, the selection of the best, and that one under load (Delgado & Choi 2020); an hour and a quarter"
SETTINGS: dict[str, Any] = {"probe": "wakeup", "interval": "100us", "priority": 99, "phase": "fixed", "duration": "10min"}
"""Sec. III-C: a period of 100 us, priority 99, 6 million samples in 10 minutes."""
LOAD = "papers"
"""Sec. V: CPU, memory and network together."""
Measure = Callable[[Plan], tuple[Path, Run]]
"""Measures a plan; gives the record's folder and its run.json."""


@dataclass(frozen=True)
class Choice:
    """The deployment that is taken on, and why."""

    deployment: str
    reason: str


@dataclass(frozen=True)
class Found:
    """What came of the study: the records, the comparison of the deployments (None with only one), and the choice (None: it was stopped before)."""

    records: list[tuple[Path, Run]]
    sides: list[Side]
    pairs: list[tuple[Side, Side]]
    comparison: Comparison | None
    choice: Choice | None


def _written(name: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "matrix": {**SETTINGS, **more}}


def idle_plan(overrides: Overrides) -> Plan:
    """Every deployment, idle, in a random order. `overrides`: duration, repeats, deployments and so on. Raises InputError."""
    names = overrides.deployments if overrides.deployments is not None else list(NAMED)
    return make_plan(_written(NAME, {"load": "idle", "deployment": names}), f"study {NAME}", replace(overrides, deployments=None, loads=None))


def loaded_plan(choice: Choice, overrides: Overrides) -> Plan:
    """The chosen deployment under load. Raises InputError."""
    loads = overrides.loads if overrides.loads is not None else [LOAD]
    more = {"load": loads, "deployment": choice.deployment}
    return make_plan(_written(f"{NAME}-load", more), f"study {NAME}", replace(overrides, deployments=None, loads=None))


def _nearest(tested: list[Pair]) -> Pair | None:
    """The one whose statistic is least, rejected or not."""
    found = [pair for pair in tested if pair.paper.statistic is not None]
    return min(found, key=lambda pair: pair.paper.statistic or 0.0, default=None)


def choose(comparison: Comparison) -> Choice:
    """The paper's selection (sec. IV): of those that are not rejected against Single the one with the least statistic.

    Where all are rejected, the one with the least statistic goes on and the reason says so. Raises MeasureError where none could be tested.
    """
    deployments = {side.label: side.traits["deployment"] for side in comparison.sides}
    paper = next(one for one in comparison.selections if one.convention is Convention.PAPER)
    if paper.best is not None:
        return Choice(deployments[paper.best], "of those that are not rejected against Single it has the least chi-square statistic")
    nearest = _nearest(comparison.pairs)
    if nearest is None:
        why = "; ".join(f"{pair.side}: {pair.paper.cannot}" for pair in comparison.pairs)
        raise MeasureError(f"no deployment can be chosen: {why}")
    reason = f"every deployment is rejected against Single; its statistic, {nearest.paper.statistic:.1f}, is the least (critical: {nearest.paper.critical:.1f})"
    return Choice(deployments[nearest.side], reason)


def run_study(measure: Measure, overrides: Overrides, chosen: Callable[[Choice], object]) -> Found:
    """The whole experiment. `chosen` is told the choice before it is measured under load.

    Ends early, without a choice, when the user stops the first part. Raises InputError or MeasureError.
    """
    first = measure(idle_plan(overrides))
    if first[1].state != "complete":
        return Found([first], [], [], None, None)
    sides = sides_of([Record.open(first[0])])
    names = {side.traits["deployment"] for side in sides}
    if UNIPROCESSOR not in names:
        raise MeasureError(f"the selection needs {UNIPROCESSOR} as its baseline, and this machine could not take it; what was measured is in {first[0]}")
    if len(sides) == 1:
        comparison, couples = None, []
        choice = Choice(UNIPROCESSOR, "it is the only deployment that this machine can take")
    else:
        couples = pairs(sides, UNIPROCESSOR)
        comparison = compare(sides, couples, Options())
        choice = choose(comparison)
    chosen(choice)
    return Found([first, measure(loaded_plan(choice, overrides))], sides, couples, comparison, choice)
