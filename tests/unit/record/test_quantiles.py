# SPDX-License-Identifier: MIT
"""A quantile is shown only if enough samples lie above it; otherwise it says how much longer it takes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.analysis.quantile_interval import too_few_beyond
from rtgauge.record.model import Distribution
from rtgauge.record.quantiles import LEAST_BEYOND, QUANTILES, TITLES, times_longer
from rtgauge.record.summary import EMPTY
from rtgauge.report.step_tables import figure_cells
from rtgauge.report.text import figure_cell


@given(count=st.integers(1, 10**7), field=st.sampled_from(list(QUANTILES)))
def test_it_agrees_with_compare_and_the_longer_run_is_enough(count: int, field: str):
    share = QUANTILES[field]
    times = times_longer(field, count)
    assert (times is None) == (too_few_beyond(count, share) is None)
    if times is not None:
        assert times >= 2
        assert math.floor((1 - share) * count * times) >= LEAST_BEYOND
        assert math.floor((1 - share) * count * (times - 1)) < LEAST_BEYOND


@pytest.mark.parametrize(("count", "cell"), [(20_000, "5x longer"), (100_000, "12.3")])
def test_a_cell_is_the_quantile_or_how_much_longer_it_takes(count: int, cell: str):
    figures = EMPTY.model_copy(update={"count": count, "p99_99_ns": 12_345, "max_ns": 99_000})
    assert figure_cell(figures, "p99_99_ns") == cell
    assert figure_cell(figures, "max_ns") == "99.0"


def test_no_sample_is_a_dash():
    assert figure_cell(EMPTY, "p99_ns") == "–"


def test_a_distribution_has_a_field_for_each_quantile_in_order():
    assert [field for field in Distribution.model_fields if field in TITLES] == list(TITLES)


def test_a_record_without_p99_999_is_readable():
    old = EMPTY.model_dump(exclude={"p99_999_ns"})
    assert Distribution.model_validate(old).p99_999_ns is None


@pytest.mark.parametrize(("count", "shown"), [(999_999, False), (1_000_000, True)])
def test_a_table_has_p99_999_if_enough_samples_exceed_it(count: int, shown: bool):
    figures = EMPTY.model_copy(update={"count": count, "p99_999_ns": 12_345})
    assert ("12.3" in figure_cells(figures)) == shown
