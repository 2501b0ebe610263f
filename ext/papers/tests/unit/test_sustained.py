# SPDX-License-Identifier: MIT
"""The search for the highest sustained frequency: it ends near the truth, it counts what was lost, and it
says what it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.timing import Drawn, Series, record

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.record.model import Mark, Result, Severity
from rtgauge.study import study_registry
from rtgauge.units import parse_duration_ns
from rtgauge_ext.papers import adam2021
from rtgauge_ext.papers.frequency.figures import sustained_figure
from rtgauge_ext.papers.frequency.frequency_tables import sustained_grids
from rtgauge_ext.papers.frequency.sustained import (
    RepeatResult,
    SustainedPoint,
    curves,
    next_period,
    repeat_result,
)
from rtgauge_ext.papers.sustained_study import GRID, REPEATS, STUDY, next_keys
from rtgauge_ext.signal.period_searches import period_series, without_searches

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.model import StepKey
    from rtgauge.record.reader import Record

PERIODS = [parse_duration_ns(text) for text in GRID]


def point(period_ns: int, lost: int, repeat: int = 1) -> SustainedPoint:
    return SustainedPoint(
        step="s",
        repeat=repeat,
        period_ns=period_ns,
        cycles=1_000,
        lost=lost,
        over_half=lost,
        long=0,
        max_ns=1,
        worst_mark=None,
    )


def test_a_master_that_is_late_ends_it_too_and_is_named(tmp_path: Path):
    def drawn(period_ns: int, lost: int, not_made: int) -> Drawn:
        counts = Result(
            name="signal", labels={"role": "master"}, values={"stimuli": 100, "not-made": not_made}
        )
        series = Series([10_000] * 100, "response", {"role": "master"}, lost=lost)
        return Drawn([series], "response", {"interval_ns": period_ns}, results=[counts])

    (by_master,) = curves(
        [
            record(
                tmp_path / "master",
                [drawn(10_000_000, 0, 0), drawn(5_000_000, 0, 7), drawn(1_000_000, 3, 90)],
            )
        ]
    )
    assert [(p.cycles, p.lost, p.not_made) for p in by_master.points] == [
        (100, 0, 0),
        (100, 0, 7),
        (103, 3, 90),
    ]
    assert by_master.found == [
        RepeatResult(repeat=1, sustained_ns=10_000_000, failing_ns=5_000_000, by_master=True)
    ]
    result, points = sustained_grids([by_master])
    assert result.rows[0][4] == "5.00 ms (master)"
    assert any("the slave may sustain that period" in note for note in result.notes)
    assert points.columns[4].title == "not made"
    assert points.rows[1][3:5] == ["0", "7 %"]
    (by_slave,) = curves(
        [
            record(
                tmp_path / "slave", [drawn(10_000_000, 0, 0), drawn(5_000_000, 1, 7), drawn(1_000_000, 0, 0)]
            )
        ]
    )
    assert not by_slave.found[0].by_master


@settings(max_examples=100)
@given(st.integers(20_001, 9_999_999))
def test_the_search_ends_at_the_machines_limit(limit_ns: int):
    """A machine that loses cycles at every period below `limit_ns`, and none above."""
    points = [point(period, int(period < limit_ns)) for period in PERIODS]
    steps = 0
    while (period := next_period(repeat_result(points, 1))) is not None:
        points.append(point(period, int(period < limit_ns)))
        steps += 1
        assert steps < 8
    actual = repeat_result(points, 1)
    assert actual.sustained_ns is not None
    assert actual.failing_ns is not None
    assert actual.failing_ns < limit_ns <= actual.sustained_ns <= actual.failing_ns * 1.11


def test_a_loss_at_a_long_period_ends_the_search_there():
    actual = repeat_result([point(10_000, 0), point(5_000, 1), point(2_000, 0)], 1)
    assert (actual.sustained_ns, actual.failing_ns) == (10_000, 5_000)
    assert repeat_result([point(10_000, 1)], 1) == RepeatResult(
        repeat=1, sustained_ns=None, failing_ns=10_000
    )
    assert repeat_result([point(10_000, 0)], 1).failing_ns is None
    assert next_period(repeat_result([point(10_000, 0)], 1)) is None


def steps_of(limits_ns: list[int], lost_each: int = 2, **more: Any) -> list[Drawn]:
    """The first steps of a search on a machine whose repeats have these limits."""
    actual: list[Drawn] = []
    for repeat, limit in enumerate(limits_ns, 1):
        for period in PERIODS:
            series = Series(
                [10_000] * 500, "response", {"role": "master"}, lost=lost_each if period < limit else 0
            )
            actual.append(
                Drawn(
                    [series],
                    "response",
                    {"interval_ns": period, "path": "loop:eventfd"},
                    repeat=repeat,
                    **more,
                )
            )
    return actual


def test_each_repeat_is_halved_until_the_resolution(tmp_path: Path):
    drawn = steps_of([150_000, 300_000])
    for number in range(8):
        recorded = record(tmp_path / str(number), drawn)
        expected = next_keys(recorded)
        if not expected:
            break
        for key in expected:
            limit = [150_000, 300_000][key.repeat - 1]
            series = Series(
                [10_000] * 500,
                "response",
                {"role": "master"},
                lost=int(key.parameters.get("interval_ns") < limit),
            )
            drawn.append(Drawn([series], "response", key.parameters.values, repeat=key.repeat))
    (curve,) = curves([recorded])
    assert [actual.complete for actual in curve.found] == [True, True]
    low, high = curve.spread_ns or (0, 0)
    assert 150_000 <= low <= 165_000
    assert 300_000 <= high <= 330_000
    assert curve.sustained_ns == high  # what every repeat sustained
    assert curve.coverage == 0.5
    assert 2 <= number <= 5


def test_the_curve_counts_what_was_lost_and_what_was_long(tmp_path: Path):
    series = [
        Series([10_000] * 90 + [400_000] * 10, "response", {"role": "master"}, lost=3),
        Series([10_000] * 99 + [1_500_000], "response", {"role": "master"}),
        Series([10_000] * 100, "response", {"role": "master"}),
    ]
    drawn = [
        Drawn([item], "response", {"interval_ns": period})
        for item, period in zip(series, (500_000, 5_000_000, 10_000_000), strict=True)
    ]
    (curve,) = curves([record(tmp_path / "r", drawn)])
    assert [(p.period_ns, p.cycles, p.lost, p.over_half, p.long) for p in curve.points] == [
        (10_000_000, 100, 0, 0, 0),
        (5_000_000, 100, 0, 0, 1),
        (500_000, 103, 3, 13, 3),
    ]
    assert curve.sustained_ns == 5_000_000
    assert curve.sustained_hz == 200
    assert curve.loss_at_most == pytest.approx(0.0295, abs=0.001)
    result, points = sustained_grids([curve])
    assert result.rows[0][1:3] == ["5.00 ms", "200 Hz"]
    assert ["500 us", "2.00 kHz", "103", "2.91 %", "12.6 %", "2.91 %", "400.0"] in points.rows


def test_a_search_without_losses_has_no_end(tmp_path: Path):
    (curve,) = curves([record(tmp_path / "r", steps_of([0, 0]))])
    assert curve.no_end
    result = sustained_grids([curve])[0]
    assert result.rows[0][1:3] == ["≤ 20.0 us", "≥ 50.0 kHz"]
    assert any("shorter one may be sustained" in note for note in result.notes)


def test_no_sustained_period_is_reported(tmp_path: Path):
    (curve,) = curves([record(tmp_path / "r", steps_of([10**9]))])
    assert curve.sustained_hz is None
    assert sustained_grids([curve])[0].rows[0][1:4] == ["–", "none", "none was sustained"]
    assert sustained_figure([curve]) is not None


def test_an_invalid_step_says_nothing(tmp_path: Path):
    mark = Mark(name="engine-died", severity=Severity.INVALID, detail="why")
    recorded = record(tmp_path / "r", steps_of([0], marks=[mark]))
    assert curves([recorded]) == []
    assert next_keys(recorded) == []


def test_a_search_is_left_out_of_the_other_tables(tmp_path: Path):
    search = record(tmp_path / "search", [*steps_of([100_000]), Drawn([Series([5])], load="cpu")])
    kept = without_searches(search).steps
    assert [(step.key.probe, step.key.parameters.get("interval_ns")) for step in kept] == [
        ("response", 10_000_000),
        ("wakeup", 1_000_000),
    ]
    few = record(
        tmp_path / "few",
        [Drawn([Series([5])], parameters={"interval_ns": period}) for period in (10**6, 10**5, 10**4)],
    )
    assert len(without_searches(few).steps) == 3
    assert len(period_series(few)) == 1


def test_the_periodic_probe_acts_twice_a_period(tmp_path: Path):
    drawn = [
        Drawn([Series([5] * 10, labels={"role": "self"})], "periodic", {"period_ns": period})
        for period in (2_000_000, 1_000_000, 500_000)
    ]
    (curve,) = curves([record(tmp_path / "r", drawn)])
    assert [point.period_ns for point in curve.points] == [1_000_000, 500_000, 250_000]


@pytest.mark.parametrize(
    ("probe", "key", "first"),
    [
        ("response", "interval_ns", 10_000_000),
        ("wakeup", "interval_ns", 10_000_000),
        ("periodic", "period_ns", 20_000_000),
    ],
)
def test_the_first_steps_of_the_study(probe: str, key: str, first: int):
    plan = STUDY.begin(Overrides(parameters={"probe": probe}))
    assert len(plan.steps) == len(GRID) * REPEATS
    assert max(step.parameters.get(key) for step in plan.steps) == first
    assert {step.repeat for step in plan.steps} == {1, 2, 3}
    assert len(STUDY.begin(Overrides(repeats=1, loads=["idle", "cpu"])).steps) == 2 * len(GRID)


@pytest.mark.parametrize(
    "wrong", [{"probe": "noise"}, {"interval": "1ms"}, {"period": "1ms"}, {"frequency": 3}]
)
def test_what_the_study_sets_itself_is_refused(wrong: dict[str, Any]):
    with pytest.raises(InputError):
        STUDY.begin(Overrides(parameters=wrong))


def test_adam2021_has_the_paper_s_settings_and_a_search():
    plan = study_registry.adaptive_study("adam2021", Overrides()).plan()
    response = next(step for step in plan.steps if step.probe == "response")
    assert response.parameters.get("interval_ns") == 10_000_000
    periodic = next(step for step in plan.steps if step.probe == "periodic")
    assert (periodic.parameters.get("period_ns"), periodic.parameters.get("timer")) == (30_000_000, "timerfd")
    assert {step.tool for step in plan.steps} == {"rtgauge", "cyclictest"}
    assert {step.load for step in plan.steps} == set(adam2021.LOADS)
    assert len(
        {step.parameters.get("interval_ns") for step in plan.steps if step.probe == "response"}
    ) == len(GRID)
    longer = adam2021.STUDY.begin(Overrides(parameters={"cycles": 1_000_000, "timer": "nanosleep"}))
    assert {step.parameters.get("cycles") for step in longer.steps if step.probe == "response"} == {1_000_000}
    with pytest.raises(InputError, match="interval"):
        adam2021.STUDY.begin(Overrides(parameters={"interval": "1ms"}))


def test_no_later_step_is_longer_than_the_longest_of_the_first(tmp_path: Path):
    recorded: Record = record(tmp_path / "r", steps_of([3_000_000]))
    assert all(key.parameters.get("interval_ns") < max(PERIODS) for key in next_keys(recorded))


def test_brown2010_searches_idle_and_loaded_with_other_loads_too():
    """Sec. 4.3 and 4.4: stimuli at random from 3 us to 7071 us, a period of 7071 us by timerfd, FIFO 99."""
    plan = load_plan("brown2010", Overrides())
    places = [("user", "loop:eventfd"), ("user", "wire"), ("kernel", "wire")]
    rows = [
        (probe, load, *place)
        for probe in ("response", "periodic")
        for load in ("idle", "brown2010")
        for place in places
    ]
    assert [row_of(step) for step in plan.steps] == rows
    assert {step.parameters.get("priority") for step in plan.steps} == {99}
    responses, periodics = plan.steps[:6], plan.steps[6:]
    assert {
        (step.parameters.get("interval_min_ns"), step.parameters.get("interval_max_ns")) for step in responses
    } == {(3_000, 7_071_000)}
    assert {step.parameters.get("period_ns") for step in periodics} == {7_071_000}
    assert {step.parameters.get("timer") for step in periodics if step.space == "user"} == {"timerfd"}
    other = load_plan("brown2010", Overrides(loads=["cpu"]))
    assert [row_of(step) for step in other.steps] == [
        (probe, "cpu", *place) for probe in ("response", "periodic") for place in places
    ]


def row_of(step: StepKey) -> tuple[str, ...]:
    return step.probe, step.load, step.space, step.parameters.get("path")


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        # a path within user space: the rows in the kernel are none of this run
        ({"path": "loop:pipe"}, {("user", "loop:pipe")}),
        ({"path": "udp:192.0.2.1:7000", "role": "master"}, {("user", "udp:192.0.2.1:7000")}),
        # lines of a board: both spaces over the same ones
        (
            {"path": "gpio:gpiochip0:1,2,3,4"},
            {("user", "gpio:gpiochip0:1,2,3,4"), ("kernel", "gpio:gpiochip0:1,2,3,4")},
        ),
        ({"trace-parts": True}, {("user", "loop:eventfd"), ("user", "wire"), ("kernel", "wire")}),
    ],
)
@pytest.mark.parametrize("source", ["brown2010", "adam2021"])
def test_options_for_all_steps_reach_kernel_steps_that_take_them(
    source: str, words: dict[str, Any], rows: set[tuple[str, str]]
):
    overrides = Overrides(parameters=dict(words))
    plan = (
        study_registry.adaptive_study(source, overrides).plan()
        if source in study_registry.studies()
        else load_plan(source, overrides)
    )
    assert {row_of(step)[2:] for step in plan.steps if step.probe == "response"} == rows


def test_all_rows_can_be_in_kernel_space():
    plan = load_plan("brown2010", Overrides(parameters={"space": "kernel"}))
    assert {row_of(step)[2:] for step in plan.steps} == {("kernel", "wire")}
