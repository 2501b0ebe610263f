# SPDX-License-Identifier: MIT
"""The search on simulated machines: what it keeps, and how many runs it takes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from rtgauge.record.alternation import BLOCK
from rtgauge_ext.tune.search import (
    PairOutcome,
    Purpose,
    SearchOptions,
    Tuned,
    TuningSearch,
    Visit,
    VisitResult,
)

NAMES = tuple(f"s{number}" for number in range(12))
BOUND_NS = 200_000
WISH = SearchOptions(dict.fromkeys(NAMES, ()), ["cpu"], ["memory"], most_runs=200, seed=1)


@dataclass
class Machine:
    """Runs of a machine with faults, each with the settings that remedy it all together, and its largest
    latency.
    """

    faults: Sequence[tuple[Collection[str], int]] = ()
    hurt_by: Collection[str] = ()
    spread: float = 0.25
    seed: int = 0
    drift: float = 0.0
    period: float = 0.0
    """A disturbance of this many runs, five times as large as the spread; 0: none."""
    least_ns: int = 60_000
    unset: Collection[str] = ()
    """Settings with which no run counts."""
    refused: Collection[str] = ()
    """Settings that the machine refuses, so that they change nothing."""
    forms: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """What a form of a setting mends."""
    visited: list[Visit] = field(default_factory=list[Visit])

    def run(self, visit: Visit) -> VisitResult:
        generator = random.Random(f"{self.seed} {len(self.visited)}")
        self.visited.append(visit)
        if set(visit.settings) & set(self.unset):
            return VisitResult(None)
        largest = self.least_ns
        settings = [name for name in visit.settings if name not in self.refused]
        in_force = {mended for name in settings for mended in self.forms.get(name, [name])}
        for mended_by, fault_ns in self.faults:
            if not set(mended_by) <= in_force:
                largest = max(largest, fault_ns)
        if set(settings) & set(self.hurt_by):
            largest *= 5
        noise = generator.gauss(0, self.spread) + self.drift * len(self.visited)
        if self.period:
            turns = len(self.visited) / self.period + self.seed / 7
            noise += 5 * self.spread * math.sin(2 * math.pi * turns)
        value = largest * math.exp(noise)
        refused = {name: "EINVAL" for name in visit.settings if name in self.refused}
        return VisitResult(value, value <= BOUND_NS, refused)


def searched(machine: Machine, options: SearchOptions = WISH, suspects: Sequence[str] = ()) -> Tuned:
    search = TuningSearch(options)
    visits = search.visits()
    block = next(visits)
    search.suspects = suspects
    try:
        while True:
            block = visits.send([machine.run(visit) for visit in block])
    except StopIteration:
        return search.result


def many(count: int, make: Callable[[int], Machine], suspects: Sequence[str] = ()) -> list[Tuned]:
    return [searched(make(seed), replace(WISH, seed=seed), suspects) for seed in range(count)]


def test_the_remedy_of_the_culprit_is_one_test() -> None:
    machine = Machine([(["s7"], 2_000_000)])
    search = searched(machine, suspects=["s7"])
    assert (search.kept, search.together) == (("s7",), ())
    test, confirmation = search.tests
    assert (test.purpose, test.found, test.meets) == (Purpose.REMEDY, PairOutcome.BETTER, True)
    assert search.confirmation is confirmation
    assert confirmation.found is PairOutcome.BETTER
    assert {visit.loads[0] for visit in machine.visited[-2 * BLOCK :]} == {"memory"}
    assert len(machine.visited) == 1 + 4 * BLOCK


@pytest.mark.parametrize("name", NAMES)
def test_without_a_culprit_the_halves_find_the_setting(name: str) -> None:
    assert searched(Machine([([name], 2_000_000)])).kept == (name,)


def test_two_faults_take_two_settings() -> None:
    machine = Machine([(["s2"], 2_000_000), (["s9"], 1_500_000)])
    assert set(searched(machine, replace(WISH, most_runs=400)).kept) == {"s2", "s9"}


def test_two_settings_that_help_only_together() -> None:
    machine = Machine([(["s2", "s9"], 2_000_000)])
    assert set(searched(machine, replace(WISH, most_runs=400)).kept) == {"s2", "s9"}


def test_a_wrong_suspicion_costs_one_test() -> None:
    search = searched(Machine([(["s3"], 2_000_000)]), suspects=["s8"])
    assert search.kept == ("s3",)
    assert search.tests[0].found is PairOutcome.NO_DIFFERENCE


def test_a_setting_that_hurts_does_not_hide_one_that_helps() -> None:
    machine = Machine([(["s1"], 320_000)], hurt_by=["s10"])
    search = searched(machine, replace(WISH, most_runs=400))
    assert search.kept == ("s1",)
    assert any(test.found is PairOutcome.WORSE and "s10" in test.changed for test in search.tests)


def test_a_setting_without_counted_runs_does_not_stop_the_search() -> None:
    search = searched(Machine([(["s1"], 2_000_000)], unset=["s11"]), replace(WISH, most_runs=400))
    assert search.kept == ("s1",)


def test_a_refused_setting_is_left_out_and_not_tried_again() -> None:
    machine = Machine([(["s1"], 2_000_000)], refused=["s8", "s11"])
    search = searched(machine, replace(WISH, most_runs=400), suspects=["s8"])
    assert search.kept == ("s1",)
    assert search.refused == {"s8": "EINVAL", "s11": "EINVAL"}
    first = search.tests[0]
    assert (first.changed, first.found) == (("s8",), PairOutcome.REFUSED)
    assert not any("s8" in test.changed for test in search.tests[1:])
    assert sum("s11" in visit.settings for visit in machine.visited) == BLOCK, "in the first group only"


def test_a_search_out_of_budget_says_what_is_left() -> None:
    faulty = [(["nothing"], 2_000_000)]
    short = searched(Machine(faulty), replace(WISH, most_runs=1 + 5 * BLOCK), suspects=["s3"])
    assert short.out_of_budget
    assert not short.final
    assert set(short.left) == set(NAMES) - {"s3"}
    whole = searched(Machine(faulty), replace(WISH, most_runs=short.left_runs), suspects=["s3"])
    assert not whole.out_of_budget
    assert not whole.left


def test_a_test_decides_with_the_error_of_its_interval() -> None:
    for actual in many(30, lambda seed: Machine([(["s6"], 400_000)], spread=0.5, seed=seed), ["s6"]):
        for test in actual.tests:
            low, high = test.decision.low, test.decision.high
            assert low is not None
            assert high is not None
            if test.found is PairOutcome.NO_DIFFERENCE:
                assert low <= 0, "a gain is printed if it is shown"
            else:
                assert (low > 0) == (test.found is PairOutcome.BETTER)
                assert (high < 0) == (test.found is PairOutcome.WORSE)


def test_a_machine_that_meets_the_requirement_is_left_alone() -> None:
    machine = Machine(spread=0.0)
    search = searched(machine)
    assert search.met_before
    assert len(machine.visited) == 1


def test_nothing_to_gain_keeps_nothing() -> None:
    """Of 800 searches at most 1 in 100 may keep anything, with drift, wrong suspicions, and a period of about
    four runs.
    """
    kept = [
        bool(found.final)
        for spread, drift, period in ((0.2, 0.0, 0.0), (0.6, 0.0, 0.0), (0.3, 0.01, 0.0), (0.05, 0.0, 4.05))
        for found in many(
            200,
            lambda seed, spread=spread, drift=drift, period=period: Machine(
                [(["nothing"], 2_000_000)], spread=spread, drift=drift, period=period, seed=seed
            ),
            suspects=["s4", "s5"],
        )
    ]
    assert len(kept) == 800
    assert sum(kept) <= 8


def test_a_fault_is_found_and_mended() -> None:
    """Of 100 searches with a fault in each run, as with one every 10 s in runs of 12 s."""
    actual = many(100, lambda seed: Machine([(["s6"], 1_000_000)], spread=0.4, seed=seed), ["s6"])
    assert sum(each.kept == ("s6",) for each in actual) >= 90


def test_an_undivided_group_is_named_if_the_budget_ends() -> None:
    options = replace(WISH, most_runs=1 + 8 * BLOCK)
    machine = Machine([(["s3"], 2_000_000)])
    search = searched(machine, options)
    assert search.out_of_budget
    assert search.kept == ()
    assert "s3" in search.together
    assert len(search.together) == len(NAMES) // 2, search.tests
    assert search.confirmation is not None
    assert len(machine.visited) == options.most_runs


def test_settings_in_conflict_are_never_in_force_together() -> None:
    candidates = {**dict.fromkeys(NAMES, ()), "s1": ("s2",)}
    machine = Machine([(["s2"], 2_000_000)])
    search = searched(machine, replace(WISH, candidates=candidates), suspects=["s2"])
    assert search.kept == ("s2",)
    assert not any({"s1", "s2"} <= set(visit.settings) for visit in machine.visited)


def test_what_is_in_conflict_with_the_others_is_tried_after_them() -> None:
    candidates = {**dict.fromkeys(NAMES, ()), "s1": ("s5",), "s5": ("s1",)}
    machine = Machine([(["s5"], 2_000_000)])
    search = searched(machine, replace(WISH, candidates=candidates))
    assert search.kept == ("s5",)
    assert not any({"s1", "s5"} <= set(visit.settings) for visit in machine.visited)


def test_the_order_of_pairs_is_balanced() -> None:
    machine = Machine([(["s3"], 2_000_000)])
    searched(machine, suspects=["s3"])
    block = machine.visited[1 : 1 + 2 * BLOCK]
    firsts = [pair.settings for pair in block[::2]]
    assert firsts.count(()) == BLOCK // 2


def test_the_same_values_give_the_same_search() -> None:
    """A record that was cut off is searched on from what it holds."""
    first, second = (Machine([(["s5"], 2_000_000)]) for _ in range(2))
    searched(first)
    searched(second)
    assert first.visited == second.visited


FORMS = [f"s3={cpus}" for cpus in ("7", "6-7", "5-7", "4-7")]


@pytest.mark.parametrize("enough", range(len(FORMS) + 1))
def test_the_fewest_that_are_enough_are_kept(enough: int) -> None:
    machine = Machine([(["s3"], 2_000_000)], forms={form: ["s3"] for form in FORMS[enough:]})
    search = searched(machine, replace(WISH, most_runs=400, fewer={"s3": FORMS}), suspects=["s3"])
    assert search.final == (([*FORMS, "s3"])[enough],)
    tried = [test for test in search.tests if test.purpose is Purpose.FEWER]
    assert 1 <= len(tried) <= 3
    assert search.confirmation is not None
    assert search.confirmation.candidate == search.final


def test_fewer_that_miss_the_requirement_are_not_enough() -> None:
    forms = {"s3": ["most", "rest"], "s3=7": ["most"]}
    machine = Machine(
        [(["most"], 2_000_000), (["rest"], 205_000)], least_ns=190_000, spread=0.001, forms=forms
    )
    options = replace(WISH, fewer={"s3": ["s3=7"]})
    assert searched(machine, options, suspects=["s3"]).final == ("s3",)


def test_a_budget_that_ends_keeps_the_setting_as_it_was_proven() -> None:
    options = replace(WISH, most_runs=1 + 4 * BLOCK, fewer={"s3": FORMS})
    machine = Machine([(["s3"], 2_000_000)], forms={form: ["s3"] for form in FORMS})
    search = searched(machine, options, suspects=["s3"])
    assert search.final == ("s3",)
    assert search.out_of_budget
    assert search.confirmation is not None
