# SPDX-License-Identifier: MIT
"""No printed bound, interval or rate excludes its own estimate, whatever was measured."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rtgauge.analysis import gate_test
from rtgauge.analysis.comparison import ComparisonOptions, quantile_differences
from rtgauge.analysis.gate_rate import PairCounts, decide_rate
from rtgauge.analysis.median_of_runs import median_interval
from rtgauge.analysis.violation_bounds import Counted, design_effect, lower_bound, range_coverage, upper_bound
from rtgauge.record.explain_report import paired_cost
from rtgauge.report.record_conclusion import exposure_text
from rtgauge.units import format_share, round_up
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import Requirement
from rtgauge.verdict.run_verdict import exposure_of
from tests.support.repeated_runs import runs, side_of, windows_of
from tests.unit.records import run as empty_run
from tests.unit.records import step as drawn_step

CONFIDENCE = st.sampled_from([0.6, 0.9, 0.95, 0.999])
BOUND_NS = 100_000


@st.composite
def counted(draw: st.DrawFn) -> Counted:
    """The violations of a run, window by window: few, many, in bursts, all."""
    windows = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2_000)), min_size=1, max_size=30))
    late = [min(broken, every) if draw(st.booleans()) else 0 for broken, every in windows]
    return Counted.of_windows(late, [every for _, every in windows])


def printed_share(text: str) -> float:
    """Read a share back as `format_share` writes it."""
    if text.startswith("1 in "):
        return 1 / int(text.removeprefix("1 in ").replace(",", ""))
    return float(text.removesuffix("%")) / 100


@given(st.lists(st.lists(counted(), min_size=1, max_size=4), min_size=1, max_size=4), CONFIDENCE)
def test_bounds_of_a_share_enclose_it_however_it_is_spread(
    conditions: list[list[Counted]], confidence: float
):
    every = [run for of_condition in conditions for run in of_condition]
    late, total = sum(run.violations for run in every), sum(run.activations for run in every)
    assume(total)
    effect = design_effect(conditions, confidence)
    assert effect >= 1
    high, low = (bound(late / effect, total / effect, confidence) for bound in (upper_bound, lower_bound))
    assert 0 <= low <= late / total + 1e-12
    assert late / total <= high + 1e-12
    assert printed_share(format_share(high, up=True)) >= high * (1 - 1e-6)


@given(st.floats(1e-12, 1e12), st.integers(1, 6))
def test_a_bound_is_never_rounded_down(value: float, digits: int):
    assert value * (1 - 1e-6) <= round_up(value, digits) <= value * (1 + 10 ** (1 - digits)) * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(runs(), min_size=1, max_size=3), st.sampled_from([Fraction(1, 2), Fraction(99, 100)]))
def test_verdict_and_exposure(conditions: list[list[np.ndarray]], hardness: Fraction):
    requirement = Requirement("latency", BOUND_NS, hardness)
    template, _ = drawn_step([1])
    judged = []
    for load, of_load in enumerate(conditions):
        for repeat, values in enumerate(of_load):
            key = template.key.model_copy(update={"load": f"load-{load}", "repeat": repeat})
            step = template.model_copy(update={"id": f"{load}-{repeat}", "key": key})
            verdict = judge(requirement, step, windows_of(values))
            evidence = verdict.evidence
            assert evidence["violations_possible"] / evidence["activations"] <= (
                evidence["violation_share_at_most"] + 1e-12
            )
            judged.append((step, verdict))
    exposure = exposure_of(requirement, judged, empty_run())
    assert exposure is not None
    share = exposure.violations / exposure.activations
    assert share <= exposure.share_excluded + 1e-12
    assert exposure.per_hour_excluded is not None
    assert exposure.per_hour_excluded >= exposure.violations / exposure.measured_s * 3600 * (1 - 1e-9)
    printed = exposure_text(exposure).partition("at most ")[2].partition(" break the bound")[0]
    assert printed_share(printed) >= share * (1 - 1e-6)


FAR_BELOW = (
    [np.full((1, 20), 22_026)] * 2,
    [
        np.array(
            [
                [362126, 137048, 7779, 103960, 191077, 688415, 3894, 49741, 149280, 91464],
                [30351, 25403, 19403, 2401, 39442, 12207, 142865, 859968, 125600, 236688],
            ]
        )
    ],
)


@settings(max_examples=60, deadline=None)
@given(runs(), runs())
@example(*FAR_BELOW)
def test_differences_of_a_comparison(runs_of_side: list[np.ndarray], runs_of_baseline: list[np.ndarray]):
    sides = [side_of("a", runs_of_side), side_of("b", runs_of_baseline)]
    for row in quantile_differences([(sides[0], sides[1])], ComparisonOptions()):
        if row.p_different is not None and row.difference_ns is not None:
            assert row.low_ns is None or row.low_ns <= row.difference_ns
            assert row.high_ns is None or row.difference_ns <= row.high_ns


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=24), st.booleans())
def test_gate_and_tune(log_ratios: list[float], one_error: bool):
    decision = gate_test.decide(log_ratios, larger_than=0.1, max_pairs=24, same_error=one_error)
    assert decision.low is not None
    assert decision.high is not None
    assert decision.low <= decision.change <= decision.high


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=6, max_size=12))
def test_a_gate_of_a_bound(events: list[tuple[int, int]]):
    decision = decide_rate(PairCounts.of(events), larger_than=1, max_pairs=12)
    if decision.low is not None and decision.high is not None and math.isfinite(decision.change):
        assert decision.low <= decision.change + 1e-9
        assert decision.change <= decision.high + 1e-9


@given(st.lists(st.floats(0, 40), min_size=3, max_size=40))
def test_the_median_of_runs(levels: list[float]):
    interval = median_interval(levels)
    assert interval is not None
    assert interval[0] <= np.median(levels) <= interval[1]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=4, max_size=20))
def test_the_cost_of_explaining(values: list[tuple[float, float]]):
    cost = paired_cost([each for off, on in values for each in ((False, off), (True, on))])
    assert cost is not None
    assert cost.low_ns <= cost.median_ns <= cost.high_ns


@given(st.integers(0, 1_000))
def test_the_coverage_of_a_range_is_a_probability(results: int):
    assert 0 <= range_coverage(results) < 1 or results > 50
