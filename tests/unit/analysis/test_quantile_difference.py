# SPDX-License-Identifier: MIT
"""Intervals over runs against scipy's Welch test, Holm's correction against a worked example, and how often
like is called different from like.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_ind

from rtgauge.analysis.comparison import ComparisonOptions, quantile_differences
from rtgauge.analysis.comparison_conclusion import finding, worse
from rtgauge.analysis.comparison_document import ComparisonFinding
from rtgauge.analysis.quantile_difference import Difference, RunFigures, between_runs, holm
from tests.support.repeated_runs import System, side


def exact(values) -> RunFigures:
    """Figures without a width."""
    return RunFigures(values, values)


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=10, unique=True),
    st.lists(st.integers(-(10**9), 0), min_size=2, max_size=10, unique=True),
)
def test_figures_without_a_logarithm_are_compared_by_welchs_test(item, other):
    if min(np.var(item), np.var(other)) < 1:
        return
    difference = between_runs(exact(item), exact(other)).interval(alpha=0.05, within_ns=2_000)
    welch = ttest_ind(item, other, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert (difference.low_ns, difference.high_ns) == (
        pytest.approx(low, rel=1e-6, abs=2),
        pytest.approx(high, rel=1e-6, abs=2),
    )
    assert difference.p_different == pytest.approx(welch.pvalue, abs=1e-6)
    within = max(
        ttest_ind(item, np.array(other) + offset, equal_var=False, alternative=way).pvalue
        for offset, way in ((-2_001, "greater"), (2_001, "less"))
    )
    assert difference.p_not_within == pytest.approx(within if within < 0.5 else 1, abs=1e-6)


@given(
    st.lists(st.integers(10**3, 10**7), min_size=2, max_size=10, unique=True),
    st.lists(st.integers(10**3, 10**7), min_size=2, max_size=10, unique=True),
)
def test_runs_on_both_sides_give_welchs_test_of_logarithms(item, other):
    logs, other_logs = np.log(item), np.log(other)
    if min(logs.std(ddof=1), other_logs.std(ddof=1)) < 0.01:
        return
    difference = between_runs(exact(item), exact(other)).interval(alpha=0.05, within_ns=2_000)
    welch = ttest_ind(logs, other_logs, equal_var=False)
    ends = [np.exp(other_logs.mean()) * np.expm1(min(end, 50)) for end in welch.confidence_interval(0.95)]
    for ns, expected in zip((difference.low_ns, difference.high_ns), ends, strict=True):
        assert (np.inf if ns is None else ns) == pytest.approx(
            expected if expected < 2.0**59 else np.inf, rel=1e-6, abs=2
        )
    assert difference.p_different == pytest.approx(welch.pvalue, abs=1e-6)


def test_three_runs_against_one_show_a_difference_of_35_times():
    """On the raw scale, 1,054 us against 30 us was not shown."""
    slow, fast = exact([600_000.0, 900_000.0, 2_170_000.0]), exact([30_000.0])
    difference = between_runs(slow, fast).interval(alpha=0.05, within_ns=2_000)
    assert difference.p_different < 0.05
    assert difference.low_ns is not None
    assert difference.low_ns > 0


def test_a_single_run_varies_as_those_of_the_other_side():
    """A prediction interval: mean and deviation of the runs, one more from the same (Student's t with n - 1
    degrees).
    """
    runs = [10_000.0, 10_400.0, 9_600.0, 10_000.0]
    logs = np.log(runs)
    error = np.std(logs, ddof=1) * np.sqrt(1 + 1 / 4) * t.ppf(0.975, 3)
    difference = between_runs(exact([12_000.0]), exact(runs)).interval(alpha=0.05, within_ns=0)
    base, ratio = np.exp(logs.mean()), np.log(12_000) - logs.mean()
    assert (difference.low_ns, difference.high_ns) == (
        pytest.approx(base * np.expm1(ratio - error), abs=1),
        pytest.approx(base * np.expm1(ratio + error), abs=1),
    )


def test_what_rounding_hides_is_in_the_interval():
    """Runs that are all in one bin may differ by it; bins that touch are no difference."""
    first, second = RunFigures([5_000, 5_000], [5_049, 5_049]), RunFigures([5_050, 5_050], [5_099, 5_099])
    difference = between_runs(second, first).interval(alpha=0.05, within_ns=2_000)
    assert difference.p_different > 0.5
    assert difference.p_not_within < 0.01
    assert difference.low_ns is not None
    assert difference.high_ns is not None
    assert difference.low_ns < 1
    assert difference.high_ns > 99


def test_what_has_no_limit_shows_nothing_on_that_side():
    endless = Difference(lambda errors: (1_000 - 10 * errors, 2.0**60), 5).interval(alpha=0.05, within_ns=100)
    assert endless.high_ns is None
    assert endless.p_not_within == 1
    assert endless.p_different < 1e-4


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    assert [c for _, c in sorted(zip(p_values, corrected, strict=True))] == sorted(corrected)


# --- like with like: a short form of bench/compare_coverage.py, whose table is in docs/benchmarks.md


@pytest.mark.parametrize(
    ("system", "runs"),
    [
        (System(windows=4, per_window=400, run_shift=0.05), (5, 5)),
        (System(windows=4, per_window=400, run_shift=0.15), (3, 3)),
        (System(windows=4, per_window=400, run_shift=0.10), (8, 8)),
        (System(0.999), (1, 1)),
        (System(0.95, windows=30), (1, 1)),
        (System(windows=4, per_window=400, run_shift=0.05), (1, 5)),
    ],
)
def test_like_is_rarely_called_different_from_like(system, runs):
    """Of 40 pairs, 6 or more would be called so in less than 1 of 70 tries at a level of 5 %; when windows
    were the units it was 13 to 26.
    """
    rng = np.random.default_rng(11)
    different = covered = of = 0
    for _ in range(40):
        item, other = (
            side(name, system, number, rng) for name, number in zip(("one", "other"), runs, strict=True)
        )
        rows = quantile_differences([(item, other)], ComparisonOptions())
        different += any(
            finding(row, alpha=0.05) in {ComparisonFinding.WORSE, ComparisonFinding.BETTER} for row in rows
        )
        reported = [row for row in rows if row.p_different is not None]
        covered += sum(
            (row.low_ns is None or row.low_ns <= 0) and (row.high_ns is None or row.high_ns >= 0)
            for row in reported
        )
        of += len(reported)
        assert min(runs) > 1 or worse(rows, alpha=0.05) == []
    assert different < 6
    assert covered >= 0.9 * of


def test_a_system_that_is_slower_is_called_worse():
    rng = np.random.default_rng(12)
    system = System(windows=20, run_shift=0.05)
    slow, fast = side("slow", system, 5, rng, factor=1.3), side("fast", system, 5, rng)
    rows = quantile_differences([(slow, fast)], ComparisonOptions())
    assert worse(rows, alpha=0.05) == ["slow"]
    median = rows[0]
    assert len(median.side_runs_ns) == len(median.baseline_runs_ns) == 5
    assert median.side_ns == round(np.exp(np.log(median.side_runs_ns).mean()))
    assert median.low_ns is not None
    assert median.high_ns is not None
    assert median.low_ns < 6_000 < median.high_ns


def test_alike_sides_are_the_same_within_their_runs():
    rng = np.random.default_rng(13)
    system = System(windows=20, run_shift=0.01)
    item, other = (side(name, system, 6, rng) for name in ("one", "other"))
    median = quantile_differences([(item, other)], ComparisonOptions(within_ns=2_000))[0]
    assert finding(median, alpha=0.05) is ComparisonFinding.SAME
    assert (
        finding(quantile_differences([(item, other)], ComparisonOptions(within_ns=10))[0], alpha=0.05)
        is ComparisonFinding.NOT_SHOWN
    )
