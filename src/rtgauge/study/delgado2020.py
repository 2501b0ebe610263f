# SPDX-License-Identifier: MIT
"""Delgado & Choi (2020), sec. III to V: scheduling latency in every deployment, the choice of the best, and that one under load."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtgauge.analysis.chi_square import Convention
from rtgauge.analysis.comparison import Comparison, Options, Pair, compare
from rtgauge.analysis.groups import EMULATED, UNIPROCESSOR, Side, pairs, sides_of
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.plan.plan import Overrides, Plan, make_plan
from rtgauge.record.model import Run
from rtgauge.record.reader import Record
from rtgauge.study.study_state import Kept, follower, kept_of, leader, with_kept
from rtgauge.system.deployment.definition import NAMED

NAME = "delgado2020"
DESCRIPTION = "study: latency in every deployment, the selection of the best, and that one under load (Delgado & Choi 2020); an hour and a quarter"
SETTINGS: dict[str, Any] = {"probe": "wakeup", "interval": "100us", "priority": 99, "phase": "fixed", "duration": "10min"}
"""Sec. III-C: a period of 100 us, priority 99, 6 million samples in 10 minutes."""
LOAD = "papers"
"""Sec. V: CPU, memory and network together."""
Measured = tuple[Path, Run]
"""A record's folder and its run.json."""


@dataclass(frozen=True)
class Choice:
    """The deployment that is taken on, and why."""

    deployment: str
    reason: str


@dataclass(frozen=True)
class Selected:
    """The deployments of the first record beside each other (`comparison` is None with only one), and the choice."""

    record: Path
    sides: list[Side]
    pairs: list[tuple[Side, Side]]
    comparison: Comparison | None
    choice: Choice


@dataclass(frozen=True)
class Hands:
    """What the study needs done: a plan measured, a record gone on with, and the selection shown, which comes before the second part."""

    measure: Callable[[Plan], Measured]
    resume: Callable[[Path], Measured]
    selected: Callable[[Selected], object]


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


def select(first: Path) -> Selected:
    """Compares the deployments of the first record and chooses. Raises MeasureError where that cannot be."""
    sides = sides_of([Record.open(first)])
    if UNIPROCESSOR not in {side.traits["deployment"] for side in sides}:
        raise MeasureError(f"the selection needs {UNIPROCESSOR} as its baseline, and this machine could not take it; what was measured is in {first}")
    if len(sides) == 1:
        return Selected(first, sides, [], None, Choice(UNIPROCESSOR, "it is the only deployment that this machine can take"))
    couples = pairs(sides, UNIPROCESSOR)
    comparison = compare(sides, couples, Options())
    choice = choose(comparison)
    if any(side.traits["processor"] == EMULATED for side in sides):
        choice = replace(choice, reason=f"{choice.reason}; the processor is emulated: for a real one nothing follows from it")
    return Selected(first, sides, couples, comparison, choice)


def run_study(hands: Hands, overrides: Overrides) -> None:
    """The whole experiment. It ends early when the user stops the first part. Raises InputError or MeasureError."""
    if overrides.targets is not None and len(overrides.targets) > 1:
        raise InputError(f"the study {NAME} chooses for one machine: give one --target, run it once for each, and compare the records")
    first = hands.measure(with_kept(idle_plan(overrides), Kept(name=NAME, part="idle", asked=overrides)))
    _after_first(hands, first, overrides, None)


def resume_study(hands: Hands, folder: Path) -> None:
    """Go on with a study from either of its records: what is missing of it is measured. Raises InputError where nothing is missing."""
    run = Record.open(folder).run
    kept = kept_of(run)
    if kept is None:
        raise InputError(f"{folder} is no record of a study")
    if kept.first is not None:
        first = leader(folder, kept.first)
        if first is not None and run.state != "complete":
            hands.selected(select(first))
        hands.resume(folder)
        return
    second = follower(folder, run)
    if run.state == "complete" and second is not None and second[1].state == "complete":
        raise InputError(f"the study is complete: there is nothing to resume in {folder} and {second[0]}")
    first = (folder, run) if run.state == "complete" else hands.resume(folder)
    _after_first(hands, first, kept.asked, second)


def _after_first(hands: Hands, first: Measured, asked: Overrides, second: Measured | None) -> None:
    """The selection, and the chosen deployment under load: measured, or gone on with where `second` was begun."""
    path, run = first
    if run.state != "complete":
        return
    with _saying_how_to_go_on(path):
        selected = select(path)
        hands.selected(selected)
        if second is not None:
            hands.resume(second[0])
        else:
            hands.measure(with_kept(loaded_plan(selected.choice, asked), Kept(name=NAME, part="load", first=run.id, asked=asked)))


@contextmanager
def _saying_how_to_go_on(first: Path) -> Generator[None]:
    """Whatever ends the study between its parts says how to go on; within a part its run says it."""
    how = f"go on with: rtgauge run --resume {shlex.quote(str(first))}"
    try:
        yield
    except KeyboardInterrupt:
        raise RtgaugeError(f"stopped before the last part; {how}", EXIT_INTERRUPTED) from None
    except MeasureError as error:
        raise error if "--resume" in str(error) else MeasureError(f"{error}; {how}") from None
