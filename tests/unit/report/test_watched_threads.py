# SPDX-License-Identifier: MIT
"""What is said of the threads of a watched program."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import cast

from rich.console import Console

from rtgauge.record.model import Result
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.report.figures.course import named_course
from rtgauge.report.record_conclusion import conclude
from rtgauge.report.record_view import RecordView, RequiredBound
from rtgauge.report.step_tables import heard_series, series_table
from rtgauge.report.watched_threads import FIGURES, WATCHED_THREADS
from tests.support.messages import missing
from tests.unit.records import run, step
from tests.unit.windows import row, windows_of


def lines(*results: Result) -> list[str]:
    measured, _ = step([[1_000, 2_000]])
    return WATCHED_THREADS.lines(measured.model_copy(update={"results": list(results)}))


def counted(name: str, label: str, **counts: int) -> list[Result]:
    return [
        Result(name=name, labels={"task": "control", label: who.replace("_", "/")}, values={"count": count})
        for who, count in counts.items()
    ]


THREAD = Result(
    name="thread",
    labels={"task": "control"},
    values={
        "tid": 7,
        "policy": "fifo",
        "priority": 80,
        "activations": 60_000,
        "preemptions": 12,
        "minor_faults": 3,
        "major_faults": 1,
    },
)


def test_a_threads_line_names_its_main_waker_and_preempter():
    others = counted("woken-by", "by", io=2, interrupt=998) + counted(
        "preempted-by", "by", migration_1=3, irq_31=9
    )
    (line,) = lines(THREAD, *others, *counted("sleeps-in", "syscall", futex=5, read=15))
    assert not missing(line, "task control (fifo 80)", "60,000 activations", "interrupt 99.8 %")
    assert not missing(line, "read 75 %, futex 25 %", "12 times", "irq/31 9, migration/1 3")
    assert not missing(line, "4 page faults", "1 of them")


def broken(rule: str, call: str, by: str, **values: int) -> Result:
    labels: dict[str, str | int] = {"task": "control", "rule": rule, "call": call, "by": by}
    return Result(name="broken-rule", labels=labels, values={**values})


def test_broken_rules_are_a_table_with_the_longest_first(tmp_path):
    actual = [
        broken("page-fault", "minor", "", count=40, max_after_ns=2_000_000_000),
        broken("disk", "fsync", "", count=3, total_ns=90_000, max_ns=70_500, max_after_ns=1_500_000_000),
        broken("lower-waker", "read", "io", count=1, total_ns=9_000, max_ns=9_000, max_after_ns=0),
    ]
    writer = RecordWriter.create(tmp_path, host="h", name="n")
    writer.write_run(run(writer.id))
    measured, windows = step([[1_000, 2_000]])
    watched = measured.model_copy(update={"results": [THREAD, *actual]})
    writer.commit_step(watched, windows)
    view = RecordView(Record.open(writer.finish("complete")))
    console = Console(file=io.StringIO(), width=120)
    WATCHED_THREADS.print_tables(view, [watched], console)
    assert isinstance(console.file, io.StringIO)
    head, _, *rows = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert head == "What real-time threads should not do"
    disk, sleep, faults = rows
    assert disk == "control uses a disk: fsync 3 70.5 1.50 s"
    assert not missing(sleep, "control", "read", "lower priority", "io 1 9.0 0 ns")
    assert faults == "control page fault (minor) 40 2.00 s"
    chapter = WATCHED_THREADS.chapter(view, [watched], ())
    assert chapter is not None
    assert [table.title for table in chapter.content][:1] == [head]


def test_a_thread_that_broke_no_rule_is_shown_as_clean():
    kept = THREAD.model_copy(update={"values": {**THREAD.values, "judged_cycles": 59_000}})
    (line,) = lines(kept)
    assert not missing(line, "no page fault", "memory", "disk", "no unsafe sleep", "59,000 cycles")
    (line,) = lines(kept, broken("memory", "brk", "", count=1))
    assert "no page fault" not in line


def test_a_pollers_line_begins_with_the_longest_stopper():
    poller = THREAD.model_copy(update={"values": {"policy": "fifo", "kind": "poller", "definitions": 2}})
    stops = [
        Result(
            name="stopped-by",
            labels={"task": "control", "by": by},
            values={"count": count, "total_ns": longest_ns * count, "max_ns": longest_ns},
        )
        for by, count, longest_ns in (("timer interrupt", 2_500, 8_100), ("throttling", 1, 50_000_000))
    ]
    (line,) = lines(poller, *stops)
    assert not missing(line, "2,501 times", "throttling 1", "50,000.0 us", "timer interrupt 2,500", "8.1 us")
    assert len(lines(poller, THREAD)) == 2  # it ran, although it had no activation


def test_results_that_lack_values_are_shown_as_far_as_they_go():
    bare = Result(name="thread", labels={}, values={})
    (line,) = lines(bare, Result(name="woken-by", labels={"task": "None", "by": "x"}, values={"count": "y"}))
    assert not missing(line, "None", "0 activations", "preempted 0 times", "0 page faults")


def test_the_page_has_each_threads_quantities_and_lines(tmp_path):
    writer = RecordWriter.create(tmp_path, host="h", name="n")
    writer.write_run(run(writer.id))
    measured, windows = step([[1_000, 2_000]])
    series = [
        measured.series[0].model_copy(update={"metric": metric, "labels": {"task": "control"}})
        for metric in ("latency", "response")
    ]
    watched = measured.model_copy(
        update={"series": series, "results": [THREAD, *counted("woken-by", "by", io=2)]}
    )
    writer.commit_step(watched, windows)
    chapter = WATCHED_THREADS.chapter(RecordView(Record.open(writer.finish("complete"))), [watched], ())
    assert chapter is not None
    assert chapter.place == "first"
    (grid,) = chapter.content
    assert [row[:2] for row in grid.rows] == [["latency, Task control", "2"], ["response, Task control", "2"]]
    assert any("woken by io" in note for note in grid.notes)


def test_the_first_line_has_the_largest_latency_and_its_thread(tmp_path):
    writer = RecordWriter.create(tmp_path, host="h", name="n")
    writer.write_run(run(writer.id))
    measured, windows = step([[1_000, 2_000], [3_000, 70_000]])
    series = [
        summary.model_copy(update={"labels": {"task": name}})
        for summary, name in zip(measured.series, ("control", "logger"), strict=True)
    ]
    key = measured.key.model_copy(update={"probe": "watch"})
    writer.commit_step(measured.model_copy(update={"key": key, "series": series}), windows)
    text = conclude(RecordView(Record.open(writer.finish("complete")))).text
    assert not missing(text, "70.0 us", "thread logger", "4 samples")


def test_threads_that_never_ran_are_one_line():
    idle = [
        THREAD.model_copy(
            update={
                "labels": {"task": f"GC Thread#{at}"},
                "values": {"tid": at, "policy": "other", "activations": 0},
            }
        )
        for at in range(60)
    ]
    shown = lines(THREAD, *idle)
    assert len(shown) == 2
    named = ", ".join(f"GC Thread#{number}" for number in range(6))
    assert not missing(shown[1], "60 threads", named, "54 more")


def test_threads_without_an_activation_are_one_row():
    measured, _ = step([[1_000, 2_000], [], [], []])
    series = [
        summary.model_copy(update={"labels": {"task": f"pool-{number}"}})
        for number, summary in enumerate(measured.series)
    ]
    watched = measured.model_copy(update={"series": series})
    assert [row[:2] for row in series_table(watched).rows] == [
        ["Task pool-0", "2"],
        ["3 threads without an activation", "0"],
    ]
    assert [each.labels["task"] for each in heard_series(watched)] == ["pool-0"]
    two = measured.model_copy(update={"series": series[:2]})
    assert [row[0] for row in series_table(two).rows] == ["Task pool-0", "Task pool-1"], (
        "a single one is named"
    )


def test_what_watching_costs_is_that_of_stretches_in_pairs():
    costs = [
        Result(
            name="watch-cost",
            values={
                "events": number % 4 in (1, 2),
                "cpu_ns": (20_300 if number % 4 in (1, 2) else 20_000) * 100,
                "slices": 100,
            },
        )
        for number in range(16)
    ]
    assert not missing(lines(THREAD, *costs)[-1], "watching", "0.30 us of CPU time", "0.30 to 0.30")
    assert len(lines(THREAD, *costs[:4])) == 1


def test_watching_cost_is_no_number_if_the_program_varies_more():
    costs = [
        Result(
            name="watch-cost",
            values={
                "events": number % 4 in (1, 2),
                "cpu_ns": (20_000 + 900 * (number % 3 - 1)) * 100,
                "slices": 100,
            },
        )
        for number in range(16)
    ]
    assert lines(THREAD, *costs)[-1].startswith("what watching costs is uncertain: -")


def test_a_thread_without_a_value_is_left_out_of_the_course() -> None:
    chart = named_course(windows_of(row([5_000, 9_000], series=1)), {1: "loop", 2: "idler"}, "latency")
    assert chart is not None
    description = str(chart["description"])
    assert not missing(description, "latency", "loop: up to 9.00 us")
    assert "idler" not in description


def test_each_threads_distribution_and_course_have_the_bound():
    measured, windows = step([[100_000] * 98 + [400_000] * 2, [9_000_000]])
    own = [
        summary.model_copy(update={"metric": "latency", "labels": {"task": "control"}})
        for summary in measured.series
        if summary.series is not None
    ]
    watched = measured.model_copy(update={"series": own})
    view = SimpleNamespace(
        record=SimpleNamespace(windows=lambda _: windows),
        bounds={"latency": RequiredBound(300.0, 0.01)},
        labels={watched.id: "idle"},
    )
    distribution, course = WATCHED_THREADS.figures(cast("RecordView", view), [watched])
    assert (distribution.name, course.name) == FIGURES
    facts = ("control: of 101", "2.97 % later than 300 us", "none later than 9.00 ms", "1 % allowed")
    assert not missing(distribution.description, *facts)
    assert "later than 300 us" in distribution.notes[0]
    assert "control: up to 9.00 ms" in course.description
    for figure in (distribution, course):
        assert "bound 300 us" in str(figure.specs)
