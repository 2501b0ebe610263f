# SPDX-License-Identifier: MIT
"""Two sides alternately: the order of their steps, what a side may be, and how their record is compared."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.sides import sides_of
from rtgauge.errors import InputError, RecordError
from rtgauge.plan.alternating_plan import FLATTEST, alternating_plan, first_sides, further_pairs
from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.record.alternation import BLOCK, Alternation, alternation_of, pair_of, side_of
from rtgauge.record.reader import Record
from rtgauge.runner.measure_run import RunOptions, new_run
from rtgauge.runner.step_loop import pause_s
from rtgauge.units import NS_PER_S
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

BOTH = Overrides(loads=["idle", "cpu"], seed=7)


def plan(*sides: str, overrides: Overrides = BOTH, number: int = BLOCK, boot_between: bool = False) -> Plan:
    alternation = Alternation(sides=(sides[0], sides[1]), boot_between=boot_between)
    return alternating_plan("quick", overrides, alternation, number)


def runs(steps: Plan) -> list[list[tuple[str, str]]]:
    """The runs in their order: (load, deployment) of each step."""
    grouped = itertools.groupby(steps.steps, key=lambda key: key.repeat)
    return [[(key.load, key.deployment) for key in keys] for _, keys in grouped]


def test_each_pair_runs_both_sides_in_a_balanced_order() -> None:
    measured = plan("M", "MI", number=12)
    assert [len(steps) for steps in runs(measured)] == [2] * 24
    numbers = [key.repeat for key in measured.steps[::2]]
    assert sorted(numbers) == list(range(1, 25))
    assert [pair_of(number) for number in numbers] == [pair for pair in range(1, 13) for _ in range(2)]
    first = [side_of(number) for number in numbers[::2]]
    assert [sum(first[:BLOCK]), sum(first[BLOCK:])] == [3, 3]
    assert {key.deployment for key in measured.steps if side_of(key.repeat) == 0} == {"M"}
    assert len({tuple(load for load, _ in steps) for steps in runs(measured)}) == 1


def test_the_order_follows_from_the_seed() -> None:
    assert plan("M", "MI") == plan("M", "MI")
    assert len({first_sides(seed, 0) for seed in range(200)}) == FLATTEST
    assert len({first_sides(seed, 1) for seed in range(200)}) > 2 * FLATTEST


@pytest.mark.parametrize("pairs", [BLOCK, 2 * BLOCK, 8 * BLOCK])
@pytest.mark.parametrize("period_runs", [2, 2.7, 3, 3.9, 4, 4.1, 6, 8])
def test_no_period_of_the_machine_fits_the_order(pairs: int, period_runs: float) -> None:
    runs = np.exp(2j * np.pi * np.arange(2 * pairs) / period_runs)
    worst = 0.0
    for seed in range(100):
        order = [side for block in range(pairs // BLOCK) for side in first_sides(seed, block)]
        firsts = np.array(order) * 2 - 1
        worst = max(worst, abs((runs[::2] - runs[1::2]) @ firsts) / np.abs(runs[::2] - runs[1::2]).sum())
    # The share of the disturbance that one side gets more than the other; 1 if the order alternates with it.
    assert worst < (0.75 if pairs < 8 * BLOCK else 0.35)


def test_further_pairs_are_as_in_a_longer_plan() -> None:
    short, long = plan("M", "MI"), plan("M", "MI", number=15)
    run = new_run(short, RunOptions(out=None, command=[]), "x")  # pyright: ignore[reportArgumentType]
    assert [*short.steps, *further_pairs(run, range(BLOCK + 1, 16))] == long.steps


def test_a_side_is_target_deployment_parameters_or_all() -> None:
    mixed = plan("ssh://stock M interval=500us", "ssh://rt policy=rr")
    first, second = (next(key for key in mixed.steps if key.repeat == number) for number in (1, 2))
    assert (first.targets, first.deployment, first.parameters.get("interval_ns")) == (
        {"self": "ssh://stock"},
        "M",
        500_000,
    )
    assert (second.targets, second.deployment, second.parameters.get("policy")) == (
        {"self": "ssh://rt"},
        "as-is",
        "rr",
    )
    assert mixed.targets == ["ssh://stock", "ssh://rt"]


def test_both_sides_may_be_the_same() -> None:
    same = plan("local", "local")
    assert len({key.model_dump_json() for key in same.steps}) == 2 * BLOCK * 2


@pytest.mark.parametrize(
    ("sides", "overrides", "expected_text"),
    [
        (("M", "N"), BOTH, "'N' is not a side"),
        (("M", " "), BOTH, "a side is empty"),
        (("M", "smt=maybe"), BOTH, "smt must be on or off"),
        (("M", "perriod=1ms"), BOTH, "unknown key 'perriod'"),
        (("M", "MI"), dataclasses.replace(BOTH, repeats=2), "--repeats does not work"),
        (
            ("M", "MI"),
            dataclasses.replace(BOTH, targets=["local", "ssh://a"]),
            "give the side a single target",
        ),
    ],
)
def test_what_is_no_side_is_refused(sides: tuple[str, str], overrides: Overrides, expected_text: str) -> None:
    with pytest.raises(InputError, match=expected_text):
        plan(*sides, overrides=overrides)


def test_a_pause_between_runs_is_kept_and_counted() -> None:
    sides = Alternation(sides=("M", "MI"), pause_between_ns=90 * NS_PER_S)
    paused = alternating_plan("quick", BOTH, sides, 1)
    run = new_run(paused, RunOptions(out=None, command=[]), "x")  # pyright: ignore[reportArgumentType]
    assert alternation_of(run) == sides
    before = [None, *run.planned]
    assert [pause_s(key, last, run) for last, key in zip(before, run.planned, strict=False)] == [0, 0, 90, 0]


def test_wrong_sides_in_a_plan_are_a_damaged_record(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(seconds=1, loads=("idle",))))
    record.run.plan["alternate"] = {"sides": ["one"]}
    with pytest.raises(RecordError, match="does not say which sides"):
        alternation_of(record.run)


# --- compare

DRIFT = (1.0, 1.1, 1.6, 1.76, 0.8, 0.88)
"""Three pairs: the runs differ by a factor of two, and the second of each pair is slower by 10 %."""


def drawn(folder: Path, *, sides: tuple[str, str] = ("M", "MI"), repeats: int = 6) -> Record:
    shape = Shape(
        seconds=12, loads=("idle",), repeats=repeats, alternate=sides, factors=DRIFT, sigma=0.05,
        missed_under=(), verdict=None,
    )  # fmt: skip
    return Record.open(write_record(folder, shape))


def test_pairs_show_what_the_spread_of_the_runs_hides(tmp_path: Path) -> None:
    record = drawn(tmp_path)
    sides = sides_of([record])
    chosen = pairs(sides, None)
    assert [(side.label, baseline.label) for side, baseline in chosen] == [("MI", "M")]
    options = ComparisonOptions(within_ns=50)
    (row, *_) = compare(sides, chosen, options).quantiles
    assert row.paired
    assert row.p_different is not None
    assert row.p_different < 0.05
    del record.run.plan["alternate"]
    (unpaired,) = sides_of([record])
    assert len(unpaired.runs) == 6


def test_a_pair_without_its_second_run_is_not_paired(tmp_path: Path) -> None:
    record = drawn(tmp_path, repeats=5)
    sides = sides_of([record])
    assert not compare(sides, pairs(sides, None), ComparisonOptions()).quantiles[0].paired


def test_the_same_side_twice_is_two_sides(tmp_path: Path) -> None:
    sides = sides_of([drawn(tmp_path, sides=("local", "local"))])
    assert [side.label for side in sides] == ["local (A)", "local (B)"]


def test_one_pair_says_how_to_measure_more(tmp_path: Path) -> None:
    record = drawn(tmp_path, repeats=2)
    record.run.command = ["rtgauge", "run", "quick", "--alternate", "M", "MI", "--pairs", "1"]
    sides = sides_of([record])
    more = compare(sides, pairs(sides, None), ComparisonOptions()).next
    assert more is not None
    assert more.endswith("rtgauge run quick --alternate M MI --pairs 6")
