# SPDX-License-Identifier: MIT
"""Hard and soft maps and their frontier, against counting by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ext.tire.tests.synthetic import paced
from rtgauge_ext.tire.analysis.tire_results import real_time_maps


def test_repeats_are_added_up_and_conditions_kept_apart() -> None:
    runs = [
        paced(400, 1, 0),
        paced(400, 1, 3, repeat=2),
        paced(800, 2, 1),
        paced(400, 1, 9, policy="other"),
        paced(400, 1, 0, solver="halo"),
    ]
    maps = {(tire_map.solver, tire_map.policy): tire_map for tire_map in real_time_maps(runs)}
    assert set(maps) == {("semaphore", "fifo"), ("semaphore", "other"), ("halo", "fifo")}
    (first, second) = maps["semaphore", "fifo"].cells
    assert (first.runs, first.deadlines, first.missed, first.held, first.share) == (2, 2000, 3, False, 0.0015)
    assert (second.nodes, second.threads, second.missed) == (800, 2, 1)
    assert maps["halo", "fifo"].cells[0].held
    assert maps["semaphore", "fifo"].threads == [1, 2]
    assert maps["semaphore", "fifo"].deadlines == 3000


def test_a_share_of_zero_has_an_upper_bound() -> None:
    (tire_map,) = real_time_maps([paced(400, 1, 0)])
    bound = tire_map.cells[0].share_at_most
    assert stats.binom.cdf(0, 1000, bound) - 0.05 < 1e-9
    (tire_map,) = real_time_maps([paced(400, 1, 7)])
    assert abs(stats.binom.cdf(7, 1000, tire_map.cells[0].share_at_most) - 0.05) < 1e-9


@given(st.dictionaries(st.integers(1, 300).map(lambda n: 4 * n), st.integers(0, 1), min_size=1))
def test_the_frontier_is_where_the_first_miss_is(missed: dict[int, int]) -> None:
    (tire_map,) = real_time_maps([paced(nodes, 3, count) for nodes, count in missed.items()])
    (edge,) = tire_map.frontier
    bad = sorted(nodes for nodes, count in missed.items() if count)
    good = sorted(nodes for nodes, count in missed.items() if not count)
    assert edge.misses == (bad[0] if bad else None)
    assert edge.holds == max((nodes for nodes in good if not bad or nodes < bad[0]), default=None)


def test_a_run_without_a_deadline_is_no_cell() -> None:
    assert real_time_maps([paced(400, 1, 0, deadlines=0)]) == []
