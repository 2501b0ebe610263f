# SPDX-License-Identifier: MIT
"""Defines the study of Garre et al. (2014), sec. 4: the tire in both modes, its frontier and cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.record.model import Step, StepKey
from rtgauge.record.reader import Record
from rtgauge_ext.tire.analysis.aims import GARRE2014, Aims, aims_of_study, searched_policies
from rtgauge_ext.tire.analysis.frontier_search import least_nodes, whole_nodes
from rtgauge_ext.tire.analysis.prediction import predicted_frontiers
from rtgauge_ext.tire.analysis.runs import INTEGRATION, SEMAPHORE, SERIAL, SPRINGS, fast_runs, is_tire
from rtgauge_ext.tire.analysis.searches import most_nodes, steps_on, thread_numbers
from rtgauge_ext.tire.tire_study import fast_entries, keys_of, paced_entry, plan_of, search_keys, tire_entry

REPEATS = 3
MAP_SHARES = (0.25, 0.5, 0.7, 0.85, 1.0, 1.15, 1.4, 2.0)
"""Sizes in the maps, as shares of the size whose mean step takes a whole period."""
PRETEST_PERIOD_NS = 500_000
PRETEST_THREADS = (1, 2, 4, 8, 16, 24, 32, 40)
PRETEST_NODES = (40, 80, 160, 320)
"""The number of masses in fig. 8, which has many threads with few masses and a short time step."""


class Garre2014:
    """Measures figures 5 to 13, eq. 2 and the frontier on this machine."""

    name = GARRE2014
    description = (
        "study: run a physical simulation as fast as possible and in real time, find the largest one that "
        "meets every deadline, and model its cost (Garre et al. 2014, sec. 4); takes about 20 minutes"
    )
    measured_by = None

    def begin(self, overrides: Overrides) -> Plan:
        """Plan the steps on one thread (for curves and for the parts of a step), the cost of a switch, and
        the numbers of threads that words such as `cores` mean here.
        """
        aims = aims_of_study(self.name, overrides)
        repeated = plan_of(
            self.name,
            [*fast_entries(aims, [1]), *_part_entries(aims), *_switch_entries(aims)],
            overrides,
            aims,
            repeats=aims.repeats or REPEATS,
        )
        once = [
            tire_entry(aims, aims.solvers[-1], _word_nodes(aims), word, aims.policies[0])
            for word in aims.several
            if aims.solvers[-1] != SERIAL
        ]
        if not once:
            return repeated
        alone = plan_of(self.name, once, overrides, aims, repeats=1, seed=repeated.seed)
        return replace(repeated, steps=[*repeated.steps, *alone.steps])

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        """Return the steps on several threads; after these, the maps around the predicted sizes and the next
        round of each search.
        """
        aims = aims_of_study(self.name, overrides)
        planned = set(record.run.planned)
        keys: list[StepKey] = []
        for target in record.run.targets:
            threads = self._several_threads(record, target, overrides, aims)
            if threads and not any(key in planned for key in threads):
                keys += threads
                continue
            maps = self._maps(record, target, overrides, aims)
            if not any(key in planned for key in maps):
                keys += maps
            keys += search_keys(
                self.name, record, target, overrides, aims, searched_policies(self.name, aims)
            )
        return list(dict.fromkeys(keys))

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> None:
        """Return None: the number of rounds depends on what the searches find."""

    def _several_threads(
        self, record: Record, target: str, overrides: Overrides, aims: Aims
    ) -> list[StepKey]:
        numbers = [number for number in thread_numbers(steps_on(record, target), aims) if number > 1]
        keys = keys_of(
            self.name, fast_entries(aims, numbers), overrides, aims, record, target, aims.repeats or REPEATS
        )
        return [*keys, *keys_of(self.name, _pretest_entries(aims), overrides, aims, record, target)]

    def _maps(self, record: Record, target: str, overrides: Overrides, aims: Aims) -> list[StepKey]:
        steps = steps_on(record, target)
        return keys_of(self.name, _map_entries(record, steps, aims), overrides, aims, record, target)


def _word_nodes(aims: Aims) -> int:
    """Return a size large enough for any number of threads that a word such as `cores` may mean."""
    return max(1024, aims.sizes[0])


def _part_entries(aims: Aims) -> list[dict[str, Any]]:
    """Return steps without springs and steps without integration, for the solvers whose cost the model splits
    into parts. They run under the first policy; serial steps without springs run under all.
    """
    entries: list[dict[str, Any]] = []
    for policy in aims.policies:
        first = policy == aims.policies[0]
        for solver in (SERIAL, SEMAPHORE):
            if solver not in aims.solvers:
                continue
            parts = (SPRINGS, INTEGRATION) if first else (SPRINGS,) if solver == SERIAL else ()
            entries += [
                tire_entry(aims, solver, nodes, 1, policy, without=part)
                for part in parts
                for nodes in aims.sizes
            ]
    return entries


def _switch_entries(aims: Aims) -> list[dict[str, Any]]:
    """Return the microbenchmarks that measure T_switch, the cost of a switch."""
    return [
        {"probe": "switch", "policy": policy, "duration": aims.paced_duration, "warm-up": "50ms"}
        for policy in aims.policies
    ]


def _pretest_entries(aims: Aims) -> list[dict[str, Any]]:
    """Return the steps of fig. 8, which shows how many threads are too many.

    They run under the last policy (OTHER in the paper), each for a quarter of the usual time.
    """
    if SEMAPHORE not in aims.solvers or len(aims.threads) == 1:
        return []
    short = replace(
        aims, period_ns=PRETEST_PERIOD_NS, duration_ns=max(aims.duration_ns // 4, 10 * PRETEST_PERIOD_NS)
    )
    return [
        paced_entry(short, SEMAPHORE, nodes, threads, aims.policies[-1])
        for threads in PRETEST_THREADS
        for nodes in PRETEST_NODES
        if nodes >= least_nodes(threads)
    ]


def _map_entries(record: Record, steps: Sequence[Step], aims: Aims) -> list[dict[str, Any]]:
    """Return sizes around each policy's and thread number's predicted frontier, for the paper's solver (or
    the chosen one).
    """
    solver = SEMAPHORE if SEMAPHORE in aims.solvers else aims.solvers[-1]
    cpus = max((len(step.cpus) for step in steps if is_tire(step)), default=1) or 1
    expected = {
        (frontier.solver, frontier.policy, frontier.threads): frontier.mean
        for frontier in predicted_frontiers(fast_runs(steps), aims.period_ns, cpus)
    }
    entries: list[dict[str, Any]] = []
    for policy in aims.policies:
        for threads in thread_numbers(steps, aims):
            mean = expected.get((solver, policy, threads))
            if mean is None or (solver == SERIAL and threads > 1):
                continue
            most = most_nodes(record, steps, solver)
            sizes = dict.fromkeys(
                whole_nodes(mean.value * share, least_nodes(threads), most) for share in MAP_SHARES
            )
            entries += [paced_entry(aims, solver, nodes, threads, policy) for nodes in sizes]
    return entries


STUDY = Garre2014()
