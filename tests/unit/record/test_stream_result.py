# SPDX-License-Identifier: MIT
"""Two streams of one step as if they were one."""

from __future__ import annotations

from typing import Literal

from rtgauge.record.model import Mark, Outlier, Result, Severity
from rtgauge.record.stream import End, SeriesLine, StreamResult


def stream(reason: Literal["count", "stopped"]) -> StreamResult:
    result = StreamResult()
    result.series = [
        SeriesLine(type="series", series=0, metric="latency", unit="ns", labels={"cpu": 0}),
        SeriesLine(type="series", series=1, metric="latency", unit="ns", labels={"cpu": 1}),
    ]
    result.outliers = [Outlier(series=1, time_ns=100, value_ns=7, cpu=None)]
    result.results = [Result(name="signal", values={"answers": 3})]
    result.marks = [
        Mark(name="a", severity=Severity.NOTE, detail="of all"),
        Mark(name="b", severity=Severity.NOTE, detail="of one", series=1),
    ]
    result.end = End(type="end", reason=reason, status=0)
    return result


def test_moved_copies_a_stream_with_other_numbers_and_times():
    first = stream("count")
    moved = first.moved(2, {"machine": "peer"}, added_ns=-30, mark_prefix="on peer: ")
    assert [(line.series, line.labels) for line in moved.series] == [
        (2, {"cpu": 0, "machine": "peer"}),
        (3, {"cpu": 1, "machine": "peer"}),
    ]
    assert [(outlier.series, outlier.time_ns, outlier.value_ns) for outlier in moved.outliers] == [(3, 70, 7)]
    assert [(mark.series, mark.detail) for mark in moved.marks] == [
        (None, "on peer: of all"),
        (3, "on peer: of one"),
    ]
    moved.append(stream("stopped"))
    assert [line.series for line in first.series] == [0, 1]
    assert len(first.results) == 1


def test_append_ends_with_the_stream_that_was_added_last():
    both = stream("count")
    both.append(stream("stopped").moved(2, {}))
    assert [line.series for line in both.series] == [0, 1, 2, 3]
    assert len(both.results) == 2
    assert both.end is not None
    assert both.end.reason == "stopped"
