# SPDX-License-Identifier: MIT
"""Searches for the largest tire in hard real time, starting from the measured time of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.plan.make_plan import Overrides, Plan, make_plan
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.units import format_duration
from rtgauge_ext.tire.analysis.aims import TIRE_SEARCH, Aims, aims_of_study, searched_policies
from rtgauge_ext.tire.analysis.runs import SERIAL
from rtgauge_ext.tire.analysis.searches import states, steps_on


def tire_entry(
    aims: Aims, solver: str, nodes: int, threads: str | int, policy: str, **more: Any
) -> dict[str, Any]:
    """Return a plan's entry for a real-fast step of the tire; `more` replaces or adds keys."""
    base = {"probe": "tire", "solver": solver, "nodes": nodes, "threads": threads, "policy": policy}
    duration = {} if "steps" in more else {"duration": aims.fast_duration}
    return {**base, "warm-up": "50ms", **duration, **more}


def paced_entry(aims: Aims, solver: str, nodes: int, threads: str | int, policy: str) -> dict[str, Any]:
    """Return a plan's entry for a step of the tire that is released every period."""
    period, duration = format_duration(aims.period_ns), aims.paced_duration
    return tire_entry(aims, solver, nodes, threads, policy, period=period, duration=duration)


def plan_of(
    name: str, entries: Sequence[dict[str, Any]], overrides: Overrides, aims: Aims, **changes: Any
) -> Plan:
    """Return the plan of these steps with the command line's other options; `changes` override both. Raises
    InputError if the plan is invalid.
    """
    chosen = replace(overrides, **{"parameters": aims.rest, **changes})
    return make_plan({"name": name, "step": list(entries)}, f"study {name}", chosen)


def keys_of(
    name: str,
    entries: Sequence[dict[str, Any]],
    overrides: Overrides,
    aims: Aims,
    record: Record,
    target: str,
    repeats: int = 1,
) -> list[StepKey]:
    """Return the step keys for one target of a begun record, in the record's random order."""
    if not entries:
        return []
    changes = {"targets": [target], "repeats": repeats, "seed": record.run.seed}
    return plan_of(name, entries, overrides, aims, **changes).steps


def fast_entries(aims: Aims, threads: Sequence[str | int]) -> list[dict[str, Any]]:
    """Return entries for real-fast runs of each solver and size. `serial` runs on one thread only."""
    return [
        tire_entry(aims, solver, nodes, count, policy)
        for policy in aims.policies
        for solver in aims.solvers
        for count in threads
        for nodes in aims.sizes
        if solver != SERIAL or str(count) in ("1", "one")
    ]


def search_keys(
    name: str, record: Record, target: str, overrides: Overrides, aims: Aims, policies: Sequence[str]
) -> list[StepKey]:
    """Return the next runs of one target's searches, in random order."""
    keys: list[StepKey] = []
    for planned, state in states(record, steps_on(record, target), aims, policies):
        for nodes, repeat in state.wanted:
            entry = paced_entry(aims, planned.solver, nodes, planned.search.threads, planned.policy)
            entry_keys = keys_of(name, [entry], overrides, aims, record, target)
            keys += [key.model_copy(update={"repeat": repeat}) for key in entry_keys]
    return keys


class TireSearch:
    """The study that finds only the frontier."""

    name = TIRE_SEARCH
    description = "study: find the largest tire that meets every deadline, for each number of threads"
    measured_by = None

    def begin(self, overrides: Overrides) -> Plan:
        """Plan runs that measure the time of a step: three sizes of each configuration. The model predicts
        several threads from runs on one. Raises InputError if the command line does not fit.
        """
        aims = aims_of_study(self.name, overrides)
        threads = list(dict.fromkeys(["1" if word == "one" else word for word in ("1", *aims.threads)]))
        first, *others = fast_entries(aims, threads)
        entries = [{**first, "duration": aims.paced_duration}, *others]  # as long as any later run
        return plan_of(self.name, entries, overrides, aims, repeats=1)

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        """Return the next round of every search."""
        aims = aims_of_study(self.name, overrides)
        policies = searched_policies(self.name, aims)
        keys: list[StepKey] = []
        for target in record.run.targets:
            keys += search_keys(self.name, record, target, overrides, aims, policies)
        return keys

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> None:
        """Return None, because the number of rounds depends on the results."""


STUDY = TireSearch()
