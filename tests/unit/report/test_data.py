# SPDX-License-Identifier: MIT
"""The numbers behind the figures are those of the record: sums are exact, maxima are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.histogram import OVERFLOW_BIN, OVERFLOW_NS, Histogram, bin_of
from rtgauge.record.reader import Record
from rtgauge.record.window_table import in_blocks
from rtgauge.record.windows_file import write_windows
from rtgauge.report.figure_data import ALL, by_cpu, course, exceedance, outline
from rtgauge.report.record_view import RecordView, RequiredBound
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

latencies = st.lists(st.integers(0, 20_000_000_000) | st.integers(0, 100_000), min_size=1, max_size=200)


def counts_of(values: list[int]) -> Histogram:
    bins, counts = np.unique(bin_of(values), return_counts=True)
    return Histogram(bins, counts)


@pytest.fixture(name="record")
def a_record(tmp_path: Path) -> Record:
    return Record.open(write_record(tmp_path))


def test_each_cpu_has_the_counts_and_the_maximum_of_its_summary(record: Record):
    for condition in RecordView(record).conditions:
        actual = by_cpu(record, condition)
        (step,) = condition.steps
        assert list(actual) == [ALL, "0", "1"]
        for summary in step.series:
            part = actual[str(summary.labels["cpu"])]
            assert (part.plain.total, part.missed.total, part.max_ns) == (
                summary.count,
                summary.missed,
                summary.max_ns,
            )
        assert step.total is not None
        assert (actual[ALL].plain.total, actual[ALL].missed.total, actual[ALL].max_ns) == (
            step.total.count,
            step.total.missed,
            step.total.max_ns,
        )


def test_repeats_are_one_condition_and_add_up(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(repeats=3, loads=("memory", "idle"))))
    actual = RecordView(record).conditions
    assert [condition.label for condition in actual] == ["idle", "memory"]
    assert [len(condition.steps) for condition in actual] == [3, 3]
    assert RecordView(record).labels["02-wakeup-idle-1"] == "idle #1"
    total = by_cpu(record, actual[0])[ALL]
    assert total.plain.total == sum(step.total.count for step in actual[0].steps if step.total)


def test_conditions_are_distinguished_by_what_differs(record: Record):
    steps = record.steps
    shorter = steps[1].key.with_parameters(interval_ns=100_000)
    foreign = steps[1].model_copy(
        update={"id": "x", "key": shorter.model_copy(update={"tool": "cyclictest"})}
    )
    labels = RecordView(replace(record, steps=[*steps, foreign])).labels
    assert labels["x"] == "cpu, cyclictest"
    assert labels[steps[1].id] == "cpu"
    other = steps[1].model_copy(update={"id": "y", "key": shorter})
    labels = RecordView(replace(record, steps=[*steps, foreign, other])).labels
    assert labels["y"] == "cpu, interval 100us"
    assert labels[steps[1].id] == "cpu, interval 1ms"
    assert len(set(labels.values())) == 5


def test_idle_stands_first_whatever_the_order(record: Record):
    turned = replace(record, steps=record.steps[::-1])
    assert [step.key.load for step in RecordView(turned).steps] == ["idle", "cpu", "memory"]


def test_the_bound_is_that_of_the_verdicts(record: Record):
    assert RecordView(record).bounds == {"latency": RequiredBound(200.0)}
    assert not RecordView(replace(record, run=record.run.model_copy(update={"verdicts": []}))).bounds


@given(latencies, st.sampled_from([1, 2, 10]))
def test_the_outline_holds_every_sample_once(values: list[int], width: int):
    actual = outline(counts_of(values), width)
    below = [value for value in values if value < 10_000_000]
    wide = np.diff(actual.x_us)
    narrow = (actual.x_us[:-1] < 10_000) & (actual.x_us[1:] <= 10_000)
    if all(value < 10_000_000 for value in values):
        assert round(float((wide * actual.count[:-1])[narrow].sum())) == len(below) * width
    assert actual.count[0] == actual.count[-1] == 0
    assert (wide >= 0).all()
    assert actual.x_us[-1] * 1_000 > min(max(values), OVERFLOW_NS - 1)


def test_the_outline_of_two_bins_with_a_gap():
    actual = outline(counts_of([1_000, 1_999, 2_500, 7_000]))
    assert actual.x_us.tolist() == [1, 1, 2, 3, 7, 8]
    assert actual.count.tolist() == [0, 2, 1, 0, 1, 0]


@given(latencies)
def test_the_exceedance_curve_is_the_share_above(values: list[int]):
    curve = exceedance(counts_of(values), max(values), points=10_000)
    ordered = np.sort(values)
    assert curve.x_us[-1] * 1_000 == pytest.approx(max(ordered[-1], 1))
    assert (np.diff(curve.share) <= 0).all()
    for x, share in zip(curve.x_us[1:-1], curve.share[1:-1], strict=True):
        if 1 < x * 1_000 < OVERFLOW_NS:  # 0 ns has no place on a log axis: it is drawn at 1 ns
            assert share == pytest.approx((ordered > x * 1_000 + 1e-3).mean())
    assert curve.share[-1] > 0


def test_unplaced_samples_keep_the_curve_to_the_maximum():
    curve = exceedance(counts_of([1_000] * 50 + [3_000] * 30), 450_000, unplaced=20)
    assert curve.x_us.tolist() == pytest.approx([1.0, 1.0, 3.0, 450.0], rel=0.011)
    assert curve.share.tolist() == [1.0, 0.5, 0.2, 0.2]
    assert curve.upper_bound
    assert not exceedance(counts_of([1_000]), 450_000, unplaced=1).upper_bound, "one of them is the largest"
    assert exceedance(counts_of([1_000]), None, unplaced=1).lower_bound


def test_thinning_keeps_the_ends_and_the_tail():
    values = np.random.default_rng(1).lognormal(10, 1, 200_000).astype(int).tolist()
    whole, thin = (
        exceedance(counts_of(values), max(values), 10**9),
        exceedance(counts_of(values), max(values), 80),
    )
    assert len(thin.x_us) < 200 < len(whole.x_us)
    assert thin.x_us[0] == whole.x_us[0]
    assert thin.x_us[-10:].tolist() == whole.x_us[-10:].tolist()
    assert set(zip(thin.x_us, thin.share, strict=True)) <= set(zip(whole.x_us, whole.share, strict=True))


def test_an_end_in_the_overflow_bin_is_a_lower_bound():
    histogram = Histogram(np.array([5, OVERFLOW_BIN]), np.array([9, 1]))
    assert exceedance(histogram, None).lower_bound
    assert exceedance(histogram, None).x_us[-1] * 1_000 == OVERFLOW_NS
    assert not exceedance(histogram, 12 * 10**9).lower_bound
    assert exceedance(histogram, 12 * 10**9).x_us[-1] * 1_000 == 12 * 10**9


def test_the_course_keeps_every_maximum_and_every_missed(record: Record):
    for buckets in (900, 5):
        course_points = course(record, buckets)
        assert course_points is not None
        assert course_points.continuous
        for step in record.steps:
            mine = [
                point for point in course_points.points if point.step == step.id and point.kind == "measure"
            ]
            assert step.total is not None
            assert step.total.max_ns is not None
            assert max(point.max_us or 0 for point in mine if point.cpu == ALL) == step.total.max_ns / 1_000
            assert sum(point.missed for point in mine if point.cpu == ALL) == step.total.missed
        fewer = len(course_points.points)
    assert fewer < 54  # the second time


def test_the_course_shows_the_load_before_the_measured_phase(record: Record):
    course_points = course(record)
    assert course_points is not None
    assert [
        (phase.kind, phase.start_s, phase.end_s)
        for phase in course_points.phases
        if phase.step.endswith("cpu")
    ] == [("warm-up", 8, 10), ("measure", 10, 15)]


def test_steps_of_different_clocks_are_laid_one_after_another(record: Record):
    turned = replace(
        record, steps=record.steps[::-1], run=record.run.model_copy(update={"steps": record.run.steps[::-1]})
    )
    course_points = course(turned)
    assert course_points is not None
    assert not course_points.continuous
    starts = [
        min(phase.start_s for phase in course_points.phases if phase.step == step.id) for step in turned.steps
    ]
    assert starts == sorted(starts)


def test_a_record_of_one_window_a_series_has_no_course(record: Record):
    for step in record.steps:
        windows = record.windows(step)
        with (record.path / "steps" / step.id / "windows.parquet").open("wb") as file:
            write_windows(in_blocks([windows.chosen(windows.measured)], 10**6), file)
    assert course(record) is None
