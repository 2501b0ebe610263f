# SPDX-License-Identifier: MIT
"""Known costs must be found again, within their intervals as often as these claim."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import optimize, stats

from ext.tire.tests.synthetic import NODES, SPRINGS_PER_NODE, Machine
from rtgauge_ext.tire.analysis.cost_model import CostModel, cost_model
from rtgauge_ext.tire.analysis.estimate import (
    Estimate,
    Uncertain,
    combine,
    fit,
    median_of,
    quotient,
    ratio_of,
)
from rtgauge_ext.tire.analysis.prediction import (
    predicted_frontiers,
    predictions,
    speed_points,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge_ext.tire.analysis.runs import FastRun

SWITCH = {"fifo": Estimate(value=1_200.0, low=1_100.0, high=1_300.0, measurements=3)}


def model_of(runs: Sequence[FastRun]) -> CostModel:
    actual = cost_model(runs, SWITCH, SPRINGS_PER_NODE)
    assert actual is not None
    return actual


def part(model: CostModel, name: str, solver: str) -> Estimate:
    (actual,) = [part for part in model.parts if (part.name, part.solver) == (name, solver)]
    assert actual.estimate is not None
    return actual.estimate


def test_without_noise_every_term_is_exact() -> None:
    machine = Machine(noise=0.0)
    model = model_of(machine.campaign())
    for solver in ("serial", "semaphore"):
        rest = machine.rest + (4 * machine.lock if solver == "semaphore" else 0)
        for name, value in (
            ("T_mass", machine.mass),
            ("T_spring", machine.spring),
            ("T_rest", rest),
            ("T_step", 300.0),
        ):
            assert part(model, name, solver).value == pytest.approx(value, rel=1e-3), (name, solver)
    assert part(model, "T_ipc", "semaphore").value == pytest.approx(machine.lock, rel=1e-3)
    assert part(model, "T_switch", "").value == 1_200.0
    extra = {part.threads: part.extra_ns.value for part in model.synchronisation if part.solver == "halo"}
    assert extra == pytest.approx({2: 3_700.0, 4: 20_700.0}, rel=1e-3)


def test_intervals_hold_the_truth_as_often_as_they_claim() -> None:
    truth = {
        ("T_mass", "serial"): 8.0,
        ("T_spring", "serial"): 20.0,
        ("T_rest", "serial"): 1.5,
        ("T_ipc", "semaphore"): 35.0,
        ("T_step", "serial"): 300.0,
    }
    tries = 200
    inside = dict.fromkeys(truth, 0)
    for seed in range(tries):
        model = model_of(Machine(seed=seed, noise=0.02).campaign())
        for place, value in truth.items():
            estimate = part(model, *place)
            assert estimate.low is not None
            assert estimate.high is not None
            inside[place] += estimate.low <= value <= estimate.high
    # 95 % of 200, within what a binomial of 200 does in all but one of 10 000 cases; above it is no fault of
    # an approximation.
    least = stats.binom.ppf(1e-4, tries, 0.95)
    assert all(count >= least for count in inside.values()), inside


def test_what_was_not_measured_is_shown_as_missing() -> None:
    runs = [
        run
        for run in Machine().campaign()
        if run.configuration.without != "integration" and run.configuration.solver != "serial"
    ]
    model = cost_model(runs, {}, SPRINGS_PER_NODE)
    assert model is not None
    missing = {(part.name, part.solver) for part in model.parts if part.estimate is None}
    lacking = {("T_mass", "semaphore"), ("T_rest", "semaphore"), ("T_ipc", "semaphore"), ("T_switch", "")}
    assert missing == lacking | {("T_mass", "halo"), ("T_spring", "halo"), ("T_rest", "halo")}
    assert cost_model([run for run in runs if run.configuration.nodes <= 256], {}, SPRINGS_PER_NODE) is None


def test_what_the_scheduler_takes_is_no_cost_of_a_node() -> None:
    """Wall time ten times as long as CPU time, at one size: the terms stay what they are, and the
    predictions see it.
    """
    machine = Machine(noise=0.0)
    runs = [
        replace(run, cpu_ns=run.wall_ns, wall_ns=run.wall_ns * (10 if run.configuration.nodes == 1024 else 1))
        for run in machine.campaign()
    ]
    model = model_of(runs)
    assert part(model, "T_spring", "serial").value == pytest.approx(machine.spring, rel=1e-3)
    assert part(model, "T_ipc", "semaphore").value == pytest.approx(machine.lock, rel=1e-3)
    slowed = predictions(speed_points(runs), runs, SWITCH, cpus=2)
    assert (
        max(part.measured_ns / machine.step_ns(part.solver, part.nodes, part.threads) for part in slowed) > 3
    )


def test_a_line_agrees_with_curve_fit() -> None:
    rng = np.random.default_rng(3)
    x = np.array([10.0, 50, 200, 1000, 4000])
    y = (500 + 12 * x) * (1 + 0.03 * rng.standard_normal(len(x)))
    line = fit(x, y)
    assert line is not None
    expected = line.intercept_ns + line.slope_ns * x
    actual, covariance = optimize.curve_fit(
        lambda n, a, b: a + b * n, x, y, p0=[400, 10], sigma=expected, absolute_sigma=False
    )
    assert (line.intercept_ns, line.slope_ns) == pytest.approx(tuple(actual), rel=1e-6)
    assert line.covariance == pytest.approx(covariance, rel=1e-4)
    half = stats.t.ppf(0.975, 3) * np.sqrt(covariance[1, 1])
    assert line.slope.high == pytest.approx(line.slope_ns + half, rel=1e-4)
    assert line.residuals == pytest.approx((y - expected) / expected)


def test_repeats_of_a_bent_line_do_not_make_it_sure() -> None:
    """Twice the slope above 4096, as where a cache is left: however often it is repeated, the interval holds
    the misfit.
    """

    def bent(n: float) -> float:
        return 300 + 10 * n + max(0.0, n - 4096) * 10

    few = fit(NODES, [bent(n) for n in NODES])
    many = fit(NODES * 50, [bent(n) for n in NODES] * 50)
    assert few is not None
    assert many is not None
    assert few.slope.low == pytest.approx(many.slope.low or 0)
    assert max(abs(few.residuals)) > 0.1


def test_a_rare_slow_repeat_does_not_move_the_line() -> None:
    """A mean would contain the slow run of one size, and miss it at the others."""
    nodes, step_ns = NODES * 3, [300 + 10.0 * n for n in NODES] * 3
    step_ns[2] *= 1.5
    line = fit(nodes, step_ns)
    assert line is not None
    assert line.slope_ns == pytest.approx(10)


def test_what_bends_two_lines_alike_is_not_in_their_difference() -> None:
    """Memory that is slower beyond a cache costs both the same at each size; a sum of slopes would take it
    for scatter.
    """
    bend = {n: max(0.0, n - 4096) * 10 for n in NODES}
    more, less = (
        fit(NODES, [300 + 30 * n + bend[n] for n in NODES]),
        fit(NODES, [300 + 10 * n + bend[n] for n in NODES]),
    )
    assert more is not None
    assert less is not None
    difference = combine([(1, more), (-1, less)])
    assert difference is not None
    assert difference.slope_ns == pytest.approx(20.0)
    assert difference.slope.low == pytest.approx(20.0)
    assert more.slope.low is not None
    assert more.slope.low < 29


def test_only_sizes_that_both_have_are_compared() -> None:
    item, other = fit([100, 200, 300, 400], [10.0, 20, 30, 40]), fit([100, 300, 500], [5.0, 15, 25])
    assert item is not None
    assert other is not None
    assert combine([(1, item), (-1, other)]) is None
    third = fit([100, 200, 400, 800], [1.0, 2, 4, 8])
    assert third is not None
    actual = combine([(1, item), (-1, third)])
    assert actual is not None
    assert actual.nodes.tolist() == [100, 200, 400]
    assert actual.slope_ns == pytest.approx(0.09)


def test_two_sizes_are_no_line() -> None:
    assert fit([64, 128, 128], [1.0, 2.0, 2.1]) is None


def test_fieller_agrees_with_drawing() -> None:
    """The interval of a quotient holds the true one in 95 % of draws, also with covariance."""
    rng = np.random.default_rng(5)
    covariance = np.array([[90.0**2, -0.6 * 90 * 0.4], [-0.6 * 90 * 0.4, 0.4**2]])
    draws = rng.multivariate_normal([1000.0, 5.0], covariance, size=4000)
    inside = 0
    for above, below in draws:
        actual = quotient(
            Uncertain(above, covariance[0, 0], 1e9),
            Uncertain(below, covariance[1, 1], 1e9),
            covariance[0, 1],
            1,
        )
        assert actual is not None
        assert actual.low is not None
        assert actual.high is not None
        inside += actual.low <= 200.0 <= actual.high
    assert abs(inside / len(draws) - 0.95) < 0.015


def test_a_quotient_by_what_may_be_zero_has_no_interval() -> None:
    assert quotient(Uncertain(5, 0.1, 3), Uncertain(1, 4.0, 3), 0.0, 2) == Estimate(value=5.0, measurements=2)
    assert quotient(Uncertain(-1, 0.1, 3), Uncertain(1, 0.1, 3), 0.0, 2) is None


def test_medians_and_ratios_of_repeats() -> None:
    """Two degrees of freedom for six repeats, whose spread is that of their logarithms."""
    values, others = [10.0, 11.0, 10.5, 9.7, 10.2, 10.2], [5.1, 4.8, 5.3, 5.0, 4.9, 5.0]
    spread, other = (stats.sem(np.log(each)) for each in (values, others))
    actual, ratio = median_of(values), ratio_of(values, others)
    assert actual.value == 10.2
    assert actual.high == pytest.approx(10.2 * np.exp(stats.t.ppf(0.975, 2) * spread))
    assert ratio.value == pytest.approx(10.2 / 5.0)
    assert ratio.low == pytest.approx(10.2 / 5.0 * np.exp(-stats.t.ppf(0.975, 2) * np.hypot(spread, other)))
    assert median_of([3.0]) == Estimate(value=3.0)
    assert median_of([3.0, 3.1]).low is None
    assert ratio_of([3.0, 2.9, 3.1], [2.0, 2.0]).low is None


def test_speed_up_and_efficiency() -> None:
    machine = Machine(noise=0.0, begin={1: 0.0, 2: 0.0, 4: 0.0})
    runs = machine.campaign()
    points = {(p.solver, p.threads, p.nodes): p for p in speed_points(runs)}
    two = points["halo", 2, 4096]
    assert two.speed_up is not None
    assert two.efficiency is not None
    assert (two.speed_up.value, two.efficiency.value) == pytest.approx((2.0, 1.0), rel=1e-4)
    four = points["halo", 4, 4096]
    assert four.efficiency is not None
    assert four.efficiency.value == pytest.approx(0.5, rel=1e-4)  # two CPUs only
    assert points["halo", 1, 4096].speed_up is None
    assert two.node_steps_per_s == pytest.approx(4096e9 / (2048 * machine.per_node("halo")), rel=1e-4)
    beside = points["semaphore", 1, 4096].times_serial
    assert beside is not None
    expected = machine.per_node("serial") / machine.per_node("semaphore")
    assert beside.value == pytest.approx(expected, rel=1e-3)
    assert all(p.solver != "serial" or p.threads == 1 for p in points.values())


def test_predictions_fit_a_machine_that_is_as_the_model_says() -> None:
    runs = Machine(noise=0.0).campaign()
    actual = predictions(speed_points(runs), runs, SWITCH, cpus=2)
    assert {(p.solver, p.threads) for p in actual} == {
        ("serial", 1),
        ("halo", 1),
        ("halo", 2),
        ("halo", 4),
        ("semaphore", 1),
        ("semaphore", 2),
        ("semaphore", 4),
    }
    assert all(abs(p.residual) < 0.01 for p in actual)


def test_the_predicted_frontier_is_where_a_step_takes_the_period() -> None:
    machine = Machine(noise=0.0)
    for frontier in predicted_frontiers(machine.campaign(), 10_000_000, cpus=2):
        assert frontier.mean is not None
        nodes = 4 * round(frontier.mean.value / 4)
        assert machine.step_ns(frontier.solver, nodes, frontier.threads) == pytest.approx(10e6, rel=2e-3)
        assert frontier.delay_ns == pytest.approx(machine.delay, rel=0.01)
        assert frontier.worst is not None
        assert frontier.worst.value < frontier.mean.value


def test_its_interval_holds_the_truth() -> None:
    tries, inside = 200, 0
    truth = {}
    for seed in range(tries):
        machine = Machine(seed=seed, noise=0.02)
        (actual,) = [
            f
            for f in predicted_frontiers(machine.campaign(), 10_000_000, cpus=2)
            if (f.solver, f.threads) == ("halo", 2)
        ]
        truth = (10e6 - machine.begin[2]) / machine.per_node("halo") * 2
        assert actual.mean is not None
        assert actual.mean.low is not None
        assert actual.mean.high is not None
        inside += actual.mean.low <= truth <= actual.mean.high
    assert inside >= stats.binom.ppf(1e-4, tries, 0.95)


def test_a_period_before_the_lines_start_has_no_frontier() -> None:
    assert all(
        frontier.mean is None for frontier in predicted_frontiers(Machine(noise=0.0).campaign(), 250, cpus=2)
    )
