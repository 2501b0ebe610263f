# SPDX-License-Identifier: MIT
"""Frequencies: the paper's tables from the paper's latencies, the tables of drawn records, and fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.repeated_runs import System, runs, side, side_of
from tests.support.timing import Drawn, Series, facts, record

from rtgauge.errors import InputError
from rtgauge_ext.papers.frequency.figures import SERIAL_NS, timing_figures
from rtgauge_ext.papers.frequency.frequency import gather, highest_hz, limit_of, line_of
from rtgauge_ext.papers.frequency.frequency_options import FrequencyOptions, check_fraction
from rtgauge_ext.papers.frequency.frequency_tables import format_hz, frequency_grids, lower_hz
from rtgauge_ext.papers.frequency.order_statistics import Quantile

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "stock linux-chrt-user",
    "rt linux-chrt-user",
    "xeno xeno-user",
    "stock linux-kernel",
    "rt linux-kernel",
    "xeno xeno-kernel",
]
TABLE_4 = [(67, 307, 17227), (99, 157, 796), (26, 59, 90), (7, 16, 597), (28, 43, 336), (9, 18, 37)]
TABLE_5 = [(1.63, 0.03), (3.18, 0.63), (8.47, 5.56), (31.25, 0.84), (11.63, 1.49), (27.78, 13.51)]
TABLE_6 = [(-2, 69, 1205), (-1, 47, 158), (-1, 34, 57), (0, 17, 504), (0, 24, 98), (-1, 23, 41)]
TABLE_7 = [(7.25, 0.41), (10.64, 3.16), (14.71, 8.77), (29.41, 0.99), (20.83, 5.10), (21.74, 12.20)]


@pytest.mark.parametrize(
    ("latencies", "frequencies"), [(TABLE_4, TABLE_5), (TABLE_6, TABLE_7)], ids=["response", "periodic"]
)
def test_the_published_frequencies_follow_from_the_latencies(latencies, frequencies):
    """Tables 5 and 7 of Brown & Martin, all 24 numbers, to the paper's two decimals of a kHz."""
    for (_, at95, at100), (f95, f100) in zip(latencies, frequencies, strict=True):
        actual = [highest_hz(us * 1_000) for us in (at95, at100)]
        assert [round((hz or 0) / 1_000, 2) for hz in actual] == [f95, f100]


def _us(median: int, at95: int, at100: int, count: int = 2_000) -> list[int]:
    """Values whose median, 95 % and 100 % are these."""
    half, rest = count // 2, count - count // 2
    late = count // 20
    return (
        [median * 1_000] * half
        + [at95 * 1_000] * (rest - late)
        + [at95 * 1_000 + 1_000] * (late - 1)
        + [at100 * 1_000]
    )


def test_published_latencies_give_the_published_tables(tmp_path: Path):
    """From windows to text: tables 4 and 5 for records that hold the paper's numbers."""
    records = [
        record(
            tmp_path / name.replace(" ", "-"),
            [
                Drawn(
                    [Series(_us(*row), "response", {"role": "master"})], "response", {"path": "loop:eventfd"}
                )
            ],
        )
        for name, row in zip(NAMES, TABLE_4, strict=True)
    ]
    lateness, frequency = frequency_grids(gather(records))
    assert [column.title for column in lateness.columns] == ["", "samples", "median", "95 %", "100 %"]
    for row, published in zip(lateness.rows, TABLE_4, strict=True):
        assert [float(cell.replace(",", "")) for cell in row[2:]] == [
            pytest.approx(us, rel=0.011) for us in published
        ]  # read as the upper end of a bin
    assert [row[1][:3] for row in frequency.rows] == ["1.6", "3.1", "8.4", "31.", "11.", "27."]
    assert [row[3] for row in frequency.rows] == [
        "29.0 Hz",
        "628 Hz",
        "5.56 kHz",
        "838 Hz",
        "1.49 kHz",
        "13.5 kHz",
    ]
    assert "half a period" in frequency.title


def test_jitter_is_judged_without_sign_and_its_median_with_it(tmp_path: Path):
    values = [-2_000] * 1_500 + [-69_000] * 480 + [40_000] * 19 + [-1_205_000]
    recorded = record(
        tmp_path / "r",
        [Drawn([Series(values, "jitter", {"role": "self"})], "periodic", {"period_ns": 7_071_000})],
    )
    (table,) = gather([recorded])
    line = table.lines[0]
    assert line.median_ns == pytest.approx(-2_000, abs=20)
    assert [limit.ns for limit in line.limits] == [pytest.approx(69_000, rel=0.01), 1_205_000]
    assert line.interval_ns == 3_535_500
    assert [round((limit.hz or 0) / 1_000, 1) for limit in line.limits] == [7.2, 0.4]


def test_constant_lateness_has_no_jitter_but_is_judged(tmp_path: Path):
    series = [
        Series([300_000] * 1_000, "latency", {"role": "self"}),
        Series([1_000] * 1_000, "jitter", {"role": "self"}),
    ]
    recorded = record(tmp_path / "r", [Drawn(series, "periodic", {"period_ns": 2_000_000})])
    together = frequency_grids(gather([recorded]))[-1]
    assert together.rows == [[together.rows[0][0], "1.67 kHz", "lateness", "1.67 kHz", "lateness"]]
    assert lower_hz(100.0, None) == (100.0, "jitter")
    assert lower_hz(None, None)[0] is None


def test_two_roles_are_two_lines_and_response_parts_are_none(tmp_path: Path):
    periodic = Drawn(
        [Series([1_000] * 50, "jitter", {"role": role}) for role in ("self", "observer")],
        "periodic",
        {"period_ns": 2_000_000},
    )
    parts = [
        Series([9_000] * 50, "response", {"role": "master"}),
        Series([1_000] * 50, "response", {"segment": "service-time"}),
    ]
    recorded = record(tmp_path / "r", [periodic, Drawn(parts, "response", {"path": "loop:pipe"})])
    response, jitter = gather([recorded])
    assert [line.samples for line in response.lines] == [50]
    assert response.lines[0].limits[1].ns == 9_000
    assert [line.label.rpartition(", ")[2] for line in jitter.lines] == ["by itself", "observed"]


def test_the_100_percent_figure_says_that_nothing_bounds_it(tmp_path: Path):
    recorded = record(tmp_path / "r", [Drawn([Series(_us(6, 10, 200))])])
    (table,) = gather([recorded])
    assert table.lines[0].limits[1].low_hz == 0
    lateness, frequency = frequency_grids([table])
    assert "grows with the number of samples" in lateness.notes[0]
    assert any("no sample rules out" in note for note in frequency.notes)
    assert "†" in frequency.rows[0][1]  # measured every 1 ms
    assert "†" in frequency.rows[0][3]


def test_lost_answers_leave_no_frequency_at_100_percent(tmp_path: Path):
    recorded = record(
        tmp_path / "r",
        [
            Drawn(
                [Series([20_000] * 99, "response", {"role": "master"}, lost=1)],
                "response",
                {"interval_ns": 10**7},
            )
        ],
    )
    (table,) = gather([recorded])
    assert table.lines[0].limits[1].hz == 0
    lateness, frequency = frequency_grids([table])
    assert lateness.rows[0][-1] == "unbounded"
    assert frequency.rows[0][3] == "none"
    assert any("without an answer" in note for figure in timing_figures([table], []) for note in figure.notes)


def test_two_kernels_stand_side_by_side(tmp_path: Path):
    stock = record(tmp_path / "stock", [Drawn([Series(_us(6, 10, 200))])])
    rt = record(tmp_path / "rt", [Drawn([Series(_us(9, 12, 40))])], facts("PREEMPT_RT"))
    (table,) = gather([stock, rt])
    assert [line.label for line in table.lines] == ["6.12.0", "6.12.0-preempt_rt"]
    (log,) = timing_figures([table], [])
    assert "12 serial bytes at 115200 baud: 1.04 ms" in str(log.specs)


def test_fraction_moves_every_frequency():
    limit = limit_of(Quantile(100_000, 90_000, 110_000), Fraction(95, 100), Fraction(1, 4))
    assert (limit.hz, round(limit.low_hz), round(limit.high_hz or 0)) == (2_500.0, 2_273, 2_778)
    assert highest_hz(None) == 0
    assert highest_hz(0) is None


@pytest.mark.parametrize(
    ("hz", "shown"),
    [
        (None, "any"),
        (0, "none"),
        (29.02, "29.0 Hz"),
        (999.7, "1.00 kHz"),
        (13_513, "13.5 kHz"),
        (2e6, "2.00 MHz"),
    ],
)
def test_frequencies_in_words(hz, shown: str):
    assert format_hz(hz) == shown


def test_the_time_of_the_paper_is_12_bytes_of_10_bits():
    assert SERIAL_NS == 1_041_667


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", Fraction(1, 2)), ("1/3", Fraction(1, 3)), ("25%", Fraction(1, 4)), ("1", Fraction(1))],
)
def test_fractions(text: str, value: Fraction):
    assert check_fraction(text) == value


@given(st.text(max_size=30))
def test_a_fraction_is_a_part_of_the_period_or_refused(text: str):
    try:
        assert 0 < check_fraction(text) <= 1
    except InputError as error:
        assert "--fraction" in str(error)


def test_the_options_are_the_papers_by_default():
    assert FrequencyOptions().fraction == Fraction(1, 2)


# --- bounds of samples that depend on each other


@pytest.mark.parametrize(("system", "runs"), [(System(0.999), 1), (System(windows=4, run_shift=0.15), 5)])
def test_the_bounds_hold_for_bursts_and_for_other_runs(system, runs):
    """The 95 % quantile of all runs is known: the median times exp(1.645 s).

    Bounds by the binomial distribution alone missed it in more than half of cases.
    """
    rng = np.random.default_rng(3)
    truth = 20_000 * np.exp(1.645 * np.hypot(0.35, system.run_shift))
    held = 0
    for _ in range(30):
        line = line_of(side("one", system, runs, rng), FrequencyOptions())
        assert line is not None
        assert not line.supposes_independence
        limit = line.limits[0]
        held += (limit.low_ns or 0) <= truth and (limit.high_ns is None or truth <= limit.high_ns)
    assert held >= 25  # 90 % of 30, both bounds at 95 %; fewer has a probability of 3 %


def test_one_run_of_one_window_supposes_independent_samples():
    line = line_of(side("one", System(windows=1), 1, np.random.default_rng(1)), FrequencyOptions())
    assert line is not None
    assert line.supposes_independence


@settings(max_examples=60, deadline=None)
@given(runs())
def test_no_limit_excludes_its_own_estimate(values: list[np.ndarray]) -> None:
    line = line_of(side_of("one", values), FrequencyOptions())
    assert line is not None
    for limit in line.limits:
        assert limit.ns is not None
        assert (limit.low_ns or 0) <= limit.ns
        assert limit.high_ns is None or limit.ns <= limit.high_ns
