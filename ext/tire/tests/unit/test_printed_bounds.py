# SPDX-License-Identifier: MIT
"""Every bound that is printed encloses the value for which it stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ext.tire.tests.synthetic import paced
from rtgauge_ext.tire.analysis.estimate import median_of, ratio_of
from rtgauge_ext.tire.analysis.frontier_search import FrontierSearch, state_of
from rtgauge_ext.tire.analysis.tire_results import real_time_maps


@given(
    st.lists(st.floats(1, 1e9), min_size=1, max_size=8), st.lists(st.floats(1, 1e9), min_size=1, max_size=8)
)
def test_medians_and_ratios_of_the_tire(above: list[float], below: list[float]):
    for estimate in (median_of(above), ratio_of(above, below)):
        if estimate.low is not None and estimate.high is not None:
            assert estimate.low <= estimate.value * (1 + 1e-9)
            assert estimate.value * (1 - 1e-9) <= estimate.high


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=5), st.integers(1, 400))
def test_missed_deadlines_of_the_tire(missed: list[int], frontier: int):
    (tire_map,) = real_time_maps([paced(400, 1, count, repeat=at) for at, count in enumerate(missed)])
    (cell,) = tire_map.cells
    assert cell.share <= cell.share_at_most + 1e-12
    search, trials = FrontierSearch(1, 400, bisections=2, confirmations=2), {}
    while (state := state_of(search, trials)).wanted:
        trials |= {
            trial: paced(trial[0], 1, int(trial[0] > 4 * frontier), deadlines=200) for trial in state.wanted
        }
    assert state.frontier is not None
    assert state.frontier.share_at_most is None or 0 < state.frontier.share_at_most <= 1
