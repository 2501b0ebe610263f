# SPDX-License-Identifier: MIT
"""Release jitter from a record."""

from __future__ import annotations

import pytest
from tests.unit.records import mark, run, step

from rtgauge.errors import InputError
from rtgauge.record.model import Severity
from rtgauge.record.reader import Record
from rtgauge_ext.schedulability.analysis.measured_set import jitter_from_record
from rtgauge_ext.schedulability.task_set import Task, TaskSet

MS = 1_000_000


def record(tmp_path, *steps) -> Record:
    return Record(tmp_path, run(), list(steps), {})


def task_set(*cpus, stated=()) -> TaskSet:
    tasks = tuple(
        Task(f"t{i}", 10 * MS, MS, 10 * MS, 99 - i, cpu, jitter_ns=5 if f"t{i}" in stated else 0)
        for i, cpu in enumerate(cpus)
    )
    return TaskSet("x", tasks, jitter_given=frozenset(stated))


def on_cpus(made, *cpus):
    """The step with its series on these CPUs."""
    for series, cpu in zip(made.series, cpus, strict=True):
        series.labels["cpu"] = cpu
    return made


def test_the_largest_latency_of_any_step_on_the_tasks_cpu(tmp_path):
    idle = on_cpus(step([[1_000, 9_000], [2_000, 3_000]])[0], 0, 1)
    loaded = on_cpus(step([[1_000, 4_000], [2_000, 70_000]], name="02-wakeup-cpu", load="cpu")[0], 0, 1)
    measured, notes = jitter_from_record(task_set(0, 1), record(tmp_path, idle, loaded))
    assert [task.jitter_ns for task in measured.tasks] == [9_000, 70_000]
    assert any("02-wakeup-cpu" in note and "CPU 1" in note for note in notes)


def test_what_the_file_states_stays(tmp_path):
    measured, _ = jitter_from_record(
        task_set(0, 1, stated=("t1",)), record(tmp_path, on_cpus(step([1_000])[0], 0))
    )
    assert [task.jitter_ns for task in measured.tasks] == [1_000, 5]


def test_missed_activations_count_with_their_later_latency(tmp_path):
    made = on_cpus(step([1_000, 2_000], missed=[3_000_000])[0], 0)
    measured, _ = jitter_from_record(task_set(0), record(tmp_path, made))
    assert measured.tasks[0].jitter_ns >= 2_900_000


def test_early_timers_are_no_negative_jitter(tmp_path):
    made = on_cpus(
        step([900])[0], 0
    )  # the histogram has no negative bins; a calibrated timer's summary may be negative all the same
    (series,) = made.series
    series.min_ns = series.max_ns = series.filled.min_ns = series.filled.max_ns = -100
    measured, _ = jitter_from_record(task_set(0), record(tmp_path, made))
    assert measured.tasks[0].jitter_ns == 0


def test_invalid_steps_are_left_out_and_doubtful_ones_named(tmp_path):
    invalid = on_cpus(step([9_000_000], marks=[mark()])[0], 0)
    doubtful = on_cpus(step([1_000], name="02-wakeup-cpu", marks=[mark(severity=Severity.DOUBTFUL)])[0], 0)
    measured, notes = jitter_from_record(task_set(0), record(tmp_path, invalid, doubtful))
    assert measured.tasks[0].jitter_ns == 1_000
    assert any("invalid" in note for note in notes)
    assert any("doubtful" in note for note in notes)
    with pytest.raises(InputError, match="does not contain valid latencies"):
        jitter_from_record(task_set(0), record(tmp_path, invalid))


def test_a_cpu_that_was_not_measured_and_what_is_no_latency(tmp_path):
    with pytest.raises(InputError, match="CPU 0, but not on CPU 2"):
        jitter_from_record(task_set(0, 2), record(tmp_path, on_cpus(step([1_000])[0], 0)))
    with pytest.raises(InputError, match="does not contain valid latencies"):
        jitter_from_record(task_set(0), record(tmp_path, on_cpus(step([1_000], metric="jitter")[0], 0)))
