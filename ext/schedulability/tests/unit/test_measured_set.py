# SPDX-License-Identifier: MIT
"""A measured task set beside the calculated one: counts, tables, timeline, figure, page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.support.messages import missing
from tests.unit.records import run, step
from tests.unit.windows import info, row, windows_of

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import get
from rtgauge.record.model import Mark, RunSegment, Severity
from rtgauge.record.reader import Record
from rtgauge.record.stream import StreamResult, parse_line
from rtgauge.record.summary import summarise_step
from rtgauge.record.task_counts import run_segments, task_counts
from rtgauge.record.windows_file import write_windows
from rtgauge.report.record_page import html
from rtgauge.report.table import tone_of
from rtgauge.runner.put_together import highest
from rtgauge_ext.schedulability.analysis.measured_set import (
    calculated_timeline,
    execution_from_record,
    measured_set,
    measured_timeline,
)
from rtgauge_ext.schedulability.page.schedule_figure import figure_name, measured_figure
from rtgauge_ext.schedulability.page.task_set_presenter import above_the_bound, figure_table, task_table
from rtgauge_ext.schedulability.task_set_probe import PROBE as TASKSET

MS = 1_000_000
METRICS = (
    "latency",
    "response",
    "response-from-start",
    "period",
    "absolute-jitter",
    "tardiness",
    "execution",
    "preemptions",
)
WRITTEN = {
    "task": [
        {"name": "high", "period": "10ms", "execution": "3ms"},
        {"name": "<low>", "period": "20ms", "execution": "5ms"},
    ]
}
MEASURED = {
    "high": {
        "response": [3 * MS + 5, 3 * MS + 7],
        "tardiness": [0, 0],
        "preemptions": [0, 0],
        "execution": [3 * MS, 3 * MS + 9],
    },
    "<low>": {
        "response": [8 * MS, 21 * MS],
        "tardiness": [0, MS],
        "preemptions": [1, 3],
        "execution": [5 * MS, 5 * MS],
    },
}


def a_step(*, execution="wall", load="idle", marks=(), name="01-taskset-idle", segments=()):
    """A step of the probe as the runner would make it, and its windows."""
    parameters = normalise(get("taskset"), {**WRITTEN, "execution": execution}, "here")
    lines, rows = [], []
    for task, given in MEASURED.items():
        for metric in METRICS:
            values = given.get(metric, [1_000, 2_000])
            rows.append(row(values, series=len(lines)))
            unit = "count" if metric == "preemptions" else "ns"
            lines.append(info(len(lines), metric, unit, cpu=0, task=task))
    windows = windows_of(*rows)
    summary = summarise_step(windows, lines)
    made = step([1_000], name=name, load=load, marks=marks)[0]
    key = made.key.model_copy(update={"probe": "taskset", "parameters": parameters, "load": load})
    changed = {
        "key": key,
        "series": summary.series,
        "total": summary.total,
        "tasks": task_counts(summary.series, windows),
        "segments": list(segments),
    }
    return made.model_copy(update=changed), windows


def segment(task, activation, start_ms, end_ms):
    return RunSegment(
        task=task, activation=activation, start_ns=round(start_ms * MS), end_ns=round(end_ms * MS)
    )


SEGMENTS = [
    segment("high", 1, 0.02, 1.0),
    segment("high", 1, 1.005, 3.02),
    segment("<low>", 1, 3.03, 8.03),
    segment("high", 2, 10.1, 13.1),
    segment("high", 3, 20, 31),
]


def test_counts_are_exact():
    assert [
        (task.task, task.cpu, task.activations, task.deadline_misses, task.preemptions)
        for task in a_step()[0].tasks
    ] == [
        ("high", 0, 2, 0, 0),
        ("<low>", 0, 2, 1, 4),
    ]


def test_a_step_of_another_probe_has_none():
    made, windows = step([1_000, 2_000])
    assert task_counts(made.series, windows) == []
    assert highest(made) == made.series


def test_only_the_highest_priority_shows_a_kernel_delay():
    assert [(task.metric, task.labels["task"]) for task in highest(a_step()[0])] == [("latency", "high")]


def test_segments_start_at_time_0():
    result = StreamResult()
    for series, task in enumerate("ab"):
        result.take(
            parse_line(
                json.dumps(
                    {
                        "type": "series",
                        "series": series,
                        "metric": "latency",
                        "unit": "ns",
                        "labels": {"cpu": 0, "task": task},
                    }
                )
            )
        )
        result.take(parse_line(json.dumps({"type": "started", "series": series, "start_ns": 1_000})))
    for series, start in ((1, 1_500), (0, 1_010), (7, 1_020)):
        result.take(
            parse_line(
                json.dumps(
                    {
                        "type": "segment",
                        "series": series,
                        "activation": 1,
                        "start_ns": start,
                        "end_ns": start + 5,
                    }
                )
            )
        )
    assert [(segment.task, segment.start_ns, segment.end_ns) for segment in run_segments(result)] == [
        ("a", 10, 15),
        ("b", 500, 505),
    ]


def test_table_6_with_what_was_measured():
    table = task_table(measured_set(a_step()[0]))
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in table.rows]
    assert [
        (
            r["task"],
            r["R calculated"],
            r["R measured, max (ms)"],
            r["measured - calculated (ms)"],
            r["deadline misses"],
            tone_of(r["deadline misses"]),
        )
        for r in rows
    ] == [
        ("high", "3 ms", "3.000", "0.000", "0", ""),
        ("<low>", "8 ms", "21.000", "13.000", "1", "alarm"),
    ]


def test_a_response_far_above_its_bound_gets_a_remark():
    (remark,) = above_the_bound(measured_set(a_step()[0]))  # of `high` it is as calculated
    assert remark.startswith("<low> ")
    assert not missing(remark, "21.0 ms", "2.6 times", "8 ms", "task set")


def test_tables_7_and_8():
    measured = measured_set(a_step()[0])
    table = figure_table(measured.tasks[1])
    places = [
        [column.title for column in table.columns].index(name) for name in ("", "response", "execution")
    ]
    assert [[row[at] for at in places] for row in table.rows] == [
        ["mean", "14.500", "5.000"],
        ["max", "21.000", "5.000"],
        ["min", "8.000", "5.000"],
        ["std", "9.192", "0.000"],
    ]


def test_the_timeline_joins_tiny_parts_and_shows_late_ones():
    measured_line = measured_timeline(measured_set(a_step(segments=SEGMENTS)[0]), 0)
    assert measured_line is not None
    assert measured_line.end_ns == 40 * MS
    assert [(segment.task, segment.start_ns, segment.end_ns) for segment in measured_line.segments[:2]] == [
        ("high", 20_000, 3_020_000),
        ("<low>", 3_030_000, 8_030_000),
    ]
    assert [
        (activation.activation, activation.missed)
        for activation in measured_line.activations
        if activation.task == "high"
    ] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert measured_line.preemptions == []
    assert measured_timeline(measured_set(a_step()[0]), 0) is None


def test_a_visible_gap_is_a_preemption():
    cut = [segment("<low>", 1, 3, 5), segment("<low>", 1, 6, 9)]
    measured_line = measured_timeline(measured_set(a_step(segments=cut)[0]), 0)
    assert measured_line is not None
    assert [(preemption.start_ns, preemption.end_ns) for preemption in measured_line.preemptions] == [
        (5 * MS, 6 * MS)
    ]


def test_the_calculated_timeline_is_as_long():
    actual = calculated_timeline(measured_set(a_step()[0]), 0)
    assert actual is not None
    assert actual.end_ns == 40 * MS
    assert max(segment.end_ns for segment in actual.segments) <= 40 * MS
    assert len([segment for segment in actual.segments if segment.task == "high"]) == 4


def test_the_figure():
    made = a_step(segments=SEGMENTS)[0]
    figure = measured_figure(made)
    assert figure is not None
    assert figure.name == figure_name(made) == "timeline-01-taskset-idle"
    assert "Missed deadlines: 1." in figure.specs[0]["description"]
    assert measured_figure(a_step()[0]) is None


@pytest.mark.parametrize("execution", ["wall", "cpu"])
def test_the_page_has_the_papers_tables(tmp_path, execution):
    idle, windows = a_step(
        segments=SEGMENTS,
        execution=execution,
        marks=[Mark(name="unfinished", severity=Severity.DOUBTFUL, detail="2 <of> them")],
    )
    loaded, _ = a_step(load="papers", name="02-taskset-papers", execution=execution)
    for item in (idle, loaded):
        place = tmp_path / "steps" / item.id
        place.mkdir(parents=True)
        with (place / "windows.parquet").open("wb") as file:
            write_windows(windows, file)
    page = html(Record(tmp_path, run(steps=[idle.id, loaded.id]), [idle, loaded], {}))
    body = page[
        page.index('<section id="tasksets"') : page.index("</section>", page.index('<section id="tasksets"'))
    ]
    for text in (
        "table 6",
        "table 7 (idle)",
        "table 8 (loaded)",
        "&lt;low&gt;",
        "14.500",
        "unfinished",
        'data-figure="timeline-01-taskset-idle"',
    ):
        assert text in body, text
    assert "<low>" not in body
    assert ("The busy loops counted CPU time" in body) == (execution == "cpu")
    assert "The run finished none of its steps" not in page


def test_execution_times_from_a_record(tmp_path):
    made = a_step()[0]
    measured, notes = execution_from_record(
        TASKSET.own(made.key).task_set, Record(tmp_path, run(), [made], {})
    )
    assert [task.execution_ns for task in measured.tasks] == [3 * MS + 9, 5 * MS]
    assert "01-taskset-idle" in notes[0]
    invalid = a_step(marks=[Mark(name="watchdog", severity=Severity.INVALID, detail="x")])[0]
    with pytest.raises(InputError, match="only in steps that are marked invalid"):
        execution_from_record(TASKSET.own(made.key).task_set, Record(tmp_path, run(), [invalid], {}))
    with pytest.raises(InputError, match="does not contain any execution times; measure the task set"):
        execution_from_record(TASKSET.own(made.key).task_set, Record(tmp_path, run(), [], {}))
    other = replace(TASKSET.own(made.key).task_set.tasks[0], name="third")
    with pytest.raises(InputError, match="high, <low>, but not of 'third'"):
        execution_from_record(
            replace(TASKSET.own(made.key).task_set, tasks=(other,)), Record(tmp_path, run(), [made], {})
        )
