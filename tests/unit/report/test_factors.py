# SPDX-License-Identifier: MIT
"""Factors on a logarithmic axis."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.report.figures.factors import PERCENT, TIMES, Factor, factor_axis, factors_figure
from rtgauge.report.figures.vega import Theme, config


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_the_axis_has_every_factor_and_1_and_ticks_within_it(factors: list[float]):
    axis = factor_axis("factor:Q", factors, "side / baseline")
    low, high = axis["scale"]["domain"]
    assert axis["scale"]["type"] == "log"
    assert low < min(*factors, 1.0, 1.0)
    assert high > max(*factors, 1.0, 1.0)
    ticks = axis["axis"]["values"]
    assert ticks == sorted(ticks)
    assert any(math.isclose(tick, 1.0) for tick in ticks)
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)


@pytest.mark.parametrize(("factors", "label"), [([0.99, 1.04], PERCENT), ([0.5, 18.0], TIMES)])
def test_large_changes_are_factors_and_small_ones_percentages(factors: list[float], label: str):
    assert factor_axis("factor:Q", factors, "")["axis"]["labelExpr"] == label


def test_an_unlimited_interval_reaches_the_rows_end():
    row = Factor("p99", 15.0, [5.0, 68.0], 5.0, None, (650_000, 9_700_000))
    figure = factors_figure([row], "policy=other / policy=fifo", [])
    assert figure is not None
    assert figure.description == "policy=other / policy=fifo. p99: 15 times (650 us -> 9.70 ms)"
    (spec,) = figure.specs
    (bars,) = (text for text in spec["datasets"].values() if text.startswith("name,low,high"))
    low, high = bars.splitlines()[1].split(",")[1:]
    (end,) = {
        layer["encoding"]["x"]["scale"]["domain"][1]
        for layer in spec["layer"]
        if "scale" in layer["encoding"]["x"]
    }
    assert (float(low), float(high)) == (5.0, pytest.approx(end))
    assert end > 68 * 1.05, "the ring at 68 is not on the edge"
    assert factors_figure([], "", []) is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_without_a_colour_have_the_ink_of_the_theme(theme: Theme):
    look = config(theme)
    assert look["rule"]["color"] == look["style"]["ink"]["color"]
