# SPDX-License-Identifier: MIT
"""The figures of a step, against numpy on the very samples that went into the windows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.record.histogram import OVERFLOW_NS, bin_of, upper_ns
from rtgauge.record.merged_windows import merge_moments
from rtgauge.record.model import Severity, ThreadCounts
from rtgauge.record.quantiles import QUANTILES
from rtgauge.record.summary import nearest_rank, summarise, summarise_step
from rtgauge.record.windows import NO_WINDOWS
from tests.unit.windows import engine_line, info, row, windows_of

latencies = st.one_of(st.integers(0, 20_000), st.integers(0, 50_000_000), st.integers(0, 2 * OVERFLOW_NS))


def summary_of(windows, **more):
    return summarise(windows, 0, metric="latency", unit="ns", labels={}, **more)


@settings(max_examples=200)
@given(parts=st.lists(st.lists(latencies, max_size=40), min_size=1, max_size=5))
def test_figures_of_many_windows_are_those_of_all_samples(parts):
    result = summary_of(windows_of(*(row(part, index=i) for i, part in enumerate(parts))))
    samples = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
    assert result.count == len(samples)
    if len(samples) == 0:
        figures = [*QUANTILES, "min_ns", "max_ns", "mean_ns", "std_ns"]
        assert result.model_dump(include=set(figures)) == dict.fromkeys(figures)
        return
    assert (result.min_ns, result.max_ns) == (samples.min(), samples.max())
    assert result.mean_ns == pytest.approx(samples.mean(), rel=1e-12)
    assert result.std_ns == pytest.approx(
        np.std(samples, ddof=1) if len(samples) > 1 else 0, rel=1e-9, abs=1e-6
    )
    for name, share in QUANTILES.items():
        true = int(np.quantile(samples, float(share), method="inverted_cdf"))
        got = getattr(result, name)
        if true >= OVERFLOW_NS:
            assert (got, name in result.lower_bounds) == (
                OVERFLOW_NS,
                samples.max() > OVERFLOW_NS,
            ) or got == samples.max()
        else:
            assert name not in result.lower_bounds
            assert (
                true <= got <= min(int(upper_ns(bin_of(true))), int(samples.max()))
                or got == samples.max() == true
            )
    assert result.filled.model_dump() == result.model_dump(include=set(type(result.filled).model_fields))


def test_a_quantile_in_the_overflow_is_a_lower_bound_and_says_so():
    result = summary_of(windows_of(row([1000] * 90 + [20_000_000_000] * 9 + [30_000_000_000])))
    assert (result.p50_ns, result.p95_ns, result.max_ns) == (1009, OVERFLOW_NS, 30_000_000_000)
    # p99 is rank 99 of 100; p99.9 and p99.99 are rank 100, the exact maximum.
    assert (result.p99_ns, result.p99_9_ns) == (OVERFLOW_NS, 30_000_000_000)
    assert result.lower_bounds == ["p95_ns", "p99_ns"]


def test_moments_of_nearly_equal_large_values_do_not_cancel():
    groups = [[10**9 + i % 3 for i in range(1000)], [10**9 + 1] * 500]
    rows = [row(g) for g in groups]
    merged = merge_moments(
        [r["count"] for r in rows], [r["sum_ns"] for r in rows], [r["m2_ns2"] for r in rows]
    )
    everything = np.array(groups[0] + groups[1])
    assert (merged.count, merged.sum_ns) == (1500, everything.sum())
    assert merged.m2_ns2 == pytest.approx(((everything - everything.mean()) ** 2).sum(), rel=1e-9)


def test_nearest_rank_does_not_round():
    """0.99 * 100 is 99.00000000000001 in floating point in some orders; the rank must be 99."""
    assert nearest_rank(Fraction(99, 100), 100) == 99
    assert nearest_rank(Fraction(9999, 10000), 1_000_000) == 999_900
    assert nearest_rank(Fraction(1, 2), 1) == 1


def test_missed_activations_are_filled_in_next_to_plain_ones():
    # One latency of 5.5 ms at a 1 ms interval: five missed, 4.5 ... 0.5 ms late.
    missed = [4_500_000, 3_500_000, 2_500_000, 1_500_000, 500_000]
    result = summary_of(windows_of(row([100_000] * 4 + [5_500_000], missed=missed)))
    assert (result.count, result.missed, result.p50_ns, result.max_ns) == (5, 5, 100_999, 5_500_000)
    assert (result.filled.count, result.filled.p50_ns, result.filled.max_ns, result.filled.min_ns) == (
        10,
        500_999,
        5_500_000,
        100_000,
    )
    everything = np.array([100_000] * 4 + [5_500_000, *missed])
    assert result.filled.mean_ns == pytest.approx(everything.mean(), rel=0.005)
    assert result.filled.std_ns == pytest.approx(np.std(everything, ddof=1), rel=0.005)


def test_missed_after_a_late_warm_up_have_figures_of_their_own():
    """A sample of the warm-up may be so late that the measured phase begins with missed activations only."""
    result = summary_of(
        windows_of(row([50_000_000], phase="warm-up"), row([], missed=[2_000_000, 1_000_000]))
    )
    assert (result.count, result.max_ns, result.warm_up.count, result.warm_up.max_ns) == (
        0,
        None,
        1,
        50_000_000,
    )
    assert (result.filled.count, result.filled.min_ns, result.filled.max_ns) == (2, 1_000_000, 2_000_999)


def test_missed_beyond_ten_seconds_make_lower_bounds():
    result = summary_of(windows_of(row([100, 25_000_000_000], missed=[15_000_000_000] * 5)))
    assert result.filled.lower_bounds == ["p50_ns", "mean_ns", "std_ns"]
    assert result.filled.max_ns == 25_000_000_000


def test_together_are_the_series_of_the_main_metric_only():
    windows = windows_of(row([100, 200], series=0), row([900], series=1), row([7], series=2))
    step = summarise_step(
        windows,
        [info(0), info(1), info(2, "switch")],
        [engine_line([100, 200]), engine_line([900], series=1), engine_line([7], series=2)],
    )
    assert [s.max_ns for s in step.series] == [200, 900, 7]
    assert step.total is not None
    assert (step.total.series, step.total.count, step.total.min_ns, step.total.max_ns, step.total.labels) == (
        None,
        3,
        100,
        900,
        {},
    )
    assert step.marks == []
    alone = summarise_step(windows.chosen(windows.series > 0), [info(2, "switch"), info(1, "other")]).total
    assert alone is not None
    assert (alone.metric, alone.max_ns) == ("switch", 7)
    assert summarise_step(NO_WINDOWS, []).total is None


def test_thread_counts_and_lost_come_from_the_engine():
    thread = {
        "voluntary_switches": 3,
        "involuntary_switches": 0,
        "minor_faults": None,
        "major_faults": 0,
        "run_delay_ns": 5,
        "cpu_ns": 8,
    }
    change = {"lost": 2, "impossible": 1, "thread": ThreadCounts(**thread)}
    lines = [engine_line([1], series=n).model_copy(update=change) for n in (0, 1)]
    step = summarise_step(windows_of(row([1], series=0), row([1], series=1)), [info(0), info(1)], lines)
    assert (step.series[0].lost, step.series[0].thread.voluntary_switches) == (2, 3)
    assert (
        step.total.lost,
        step.total.impossible,
        step.total.thread.voluntary_switches,
        step.total.thread.minor_faults,
    ) == (4, 2, 6, None)


@pytest.mark.parametrize(
    "change", [{"count": 3}, {"missed": 1}, {"max_ns": 99}, {"min_ns": 1}, {"sum_ns": 5}]
)
def test_a_summary_that_contradicts_the_windows_is_marked(change):
    step = summarise_step(
        windows_of(row([100, 200])), [info()], [engine_line([100, 200]).model_copy(update=change)]
    )
    assert [(m.name, m.severity) for m in step.marks] == [("windows-disagree", Severity.INVALID)]
    assert next(iter(change)) in step.marks[0].detail


def test_bins_that_do_not_hold_the_count_are_marked():
    broken = {**row([100, 200]), "counts": [1, 5]}
    assert summarise_step(windows_of(broken), [info()]).marks[0].name == "windows-disagree"
    broken = {**row([100, 200]), "missed": 1}
    assert summarise_step(windows_of(broken), [info()]).marks[0].name == "windows-disagree"


def test_a_missing_summary_and_an_unknown_series_are_marked():
    step = summarise_step(
        windows_of(row([1]), row([1], series=1), row([1], series=9)), [info(0), info(1)], [engine_line([1])]
    )
    assert {(m.name, m.series) for m in step.marks} == {("summary-missing", 1), ("windows-disagree", None)}


def test_values_in_no_bin_are_above_the_limit():
    """A foreign histogram that ends at 20 us: 98 below, 11 above, of which the largest is known."""
    r = {**row([12_000] * 98), "count": 109, "max_ns": 65_000}
    result = summary_of(windows_of(r), resolution_ns=1000, limits_ns={0: 20_000})
    assert (result.p50_ns, result.p95_ns, result.p99_ns, result.p99_99_ns, result.max_ns) == (
        12_000,
        20_000,
        20_000,
        65_000,
        65_000,
    )
    assert result.lower_bounds == ["p95_ns", "p99_ns"]
