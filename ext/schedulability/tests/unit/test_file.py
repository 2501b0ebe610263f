# SPDX-License-Identifier: MIT
"""Task sets as people write them, and as they should not."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.escape import one_line
from rtgauge.input_file import toml_of
from rtgauge_ext.schedulability.task_set import Task, TaskSet, check_task_set, read_task_set

GOOD = {"name": '"a"', "period": '"10ms"', "execution": '"3ms"'}


def parse_task_set(text: str, what: str) -> TaskSet:
    return check_task_set(toml_of(text, what), what)


def written(*tasks: dict[str, str]) -> str:
    return "\n".join(
        "[[task]]\n" + "\n".join(f"{key} = {value}" for key, value in task.items()) for task in tasks
    )


def test_all_keys_and_their_defaults():
    given_all = {
        **GOOD, "name": '"b"', "deadline": '"9ms"', "priority": "7", "blocking": '"1us"', "jitter": '"2us"',
        "offset": '"1.5ms"', "cpu": "3",
    }  # fmt: skip
    task_set = parse_task_set('name = "drive"\n' + written({**GOOD, "priority": "50"}, given_all), "x")
    assert task_set.name == "drive"
    assert task_set.cpus == [0, 3]
    assert task_set.on(0) == [Task("a", 10_000_000, 3_000_000, 10_000_000, 50)]
    assert task_set.on(3) == [Task("b", 10_000_000, 3_000_000, 9_000_000, 7, 3, 1_000, 2_000, 1_500_000)]
    assert task_set.jitter_given == {"b"}


def test_rate_monotonic_priorities_on_each_cpu():
    rows = [("slow", "40ms", 0), ("fast", "10ms", 0), ("also fast", "10ms", 0), ("other", "1s", 1)]
    task_set = parse_task_set(
        written(*({**GOOD, "name": f'"{n}"', "period": f'"{t}"', "cpu": str(c)} for n, t, c in rows)), "x"
    )
    assert [(task.name, task.priority) for task in task_set.on(0)] == [
        ("fast", 99),
        ("also fast", 98),
        ("slow", 97),
    ]
    assert [task.priority for task in task_set.on(1)] == [99]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no task"),
        ("task = 3", "task"),
        ("[[task]", "is not TOML"),
        ("a = " + "[" * 5_000, "nested more than 64 levels deep"),
        (f"a = {'9' * 5_000}", "is not TOML"),
        ("[[tsak]]\nname = 'a'", "unknown key 'tsak'; did you mean 'task'"),
        (
            written({"name": '"a"', "peroid": '"1ms"', "execution": '"1us"'}),
            "unknown key 'peroid'; did you mean 'period'",
        ),
        (written({"name": '"a"', "execution": '"1us"'}), "task 1 ('a') has no period"),
        (written({"period": '"1ms"', "execution": '"1us"'}), "task 1 has no name"),
        (written({**GOOD, "period": '"0ms"'}), "task 1 ('a'): period: 0s is too short"),
        (written({**GOOD, "period": "0"}), "too short"),
        (written({**GOOD, "period": "10"}), "no unit"),
        (written({**GOOD, "period": '"10kg"'}), "unknown unit 'kg'"),
        (written({**GOOD, "period": '"-10ms"'}), "too short"),
        (written({**GOOD, "period": '"1000000d"'}), "longer than 292 years"),
        (written({**GOOD, "period": '"0.5ns"'}), "whole number of nanoseconds"),
        (written({**GOOD, "execution": '"11ms"'}), "execution 11ms is longer than the period"),
        (written({**GOOD, "deadline": '"2ms"'}), "execution 3ms is longer than the deadline (2ms)"),
        (written({**GOOD, "deadline": '"0s"'}), "too short"),
        (written({**GOOD, "jitter": '"-1us"'}), "too short"),
        (written({**GOOD, "priority": "0"}), "priority: 0 is too small; the minimum is 1"),
        (written({**GOOD, "priority": "100"}), "priority: 100 is too large; the maximum is 99"),
        (written({**GOOD, "priority": "true"}), "priority"),
        (written({**GOOD, "cpu": "-1"}), "cpu: -1 is too small"),
        (written({**GOOD, "cpu": "9000"}), "cpu: 9000 is too large"),
        (written({**GOOD, "name": '""'}), "name"),
        (written({**GOOD, "name": '" "'}), "empty"),
        (written({**GOOD, "name": '"\\u001b[2J"'}), "cannot be shown"),
        (written(GOOD, GOOD), "2 tasks are called 'a'"),
        (
            written({**GOOD, "priority": "5"}, {**GOOD, "name": '"b"', "priority": "5"}),
            "'a' and 'b' both have priority 5 on CPU 0",
        ),
        (
            written({**GOOD, "priority": "5"}, {**GOOD, "name": '"b"'}),
            "'b' has no priority, but other tasks have one",
        ),
        (written(*({**GOOD, "name": f'"{i}"'} for i in range(100))), "CPU 0 has 99 priorities"),
    ],
)
def test_an_error_is_one_line_that_names_its_cause(text, words):
    with pytest.raises(InputError) as error:
        parse_task_set(text, "task set x.toml")
    assert words in str(error.value)
    assert str(error.value).startswith("task set x.toml")
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)
    assert error.value.status == 2


def test_the_same_priority_on_two_cpus_is_no_clash():
    both = written({**GOOD, "priority": "5"}, {**GOOD, "name": '"b"', "priority": "5", "cpu": "1"})
    assert parse_task_set(both, "x").cpus == [0, 1]


def test_files(tmp_path):
    with pytest.raises(InputError, match=r"task set .* does not exist"):
        read_task_set(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_task_set(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not TOML"):
        read_task_set(binary)
    binary.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="larger than"):
        read_task_set(binary)
    good = tmp_path / "drive.toml"
    good.write_text(written(GOOD), encoding="utf-8")
    assert read_task_set(good).name == "drive"


VALUES = st.one_of(
    st.text(max_size=12).map(json.dumps),
    st.sampled_from(
        [
            '"10ms"',
            '"0s"',
            '"3us"',
            '"1e3ms"',
            "true",
            "1.5",
            "nan",
            "-1",
            "[]",
            "{}",
            "2024-01-01",
            '"99999999999999999999d"',
        ]
    ),
    st.integers(-(2**70), 2**70).map(str),
)
KEYS = st.sampled_from([*GOOD, "deadline", "priority", "blocking", "jitter", "offset", "cpu", "perod"])


@settings(max_examples=300)
@given(
    st.lists(st.dictionaries(KEYS, VALUES, max_size=9).map(lambda more: {**GOOD, **more}), max_size=4).map(
        lambda all_: written(*all_)
    )
    | st.text()
)
def test_hostile_text_is_a_task_set_or_one_line(text):
    try:
        task_set = parse_task_set(text, "task set x.toml")
    except InputError as error:
        assert str(error) == one_line(str(error)), ascii(str(error))
        return
    assert all(
        0 < task.execution_ns <= task.deadline_ns and 1 <= task.priority <= 99 for task in task_set.tasks
    )
    with contextlib.suppress(InputError):
        assert sum(len(task_set.on(cpu)) for cpu in task_set.cpus) == len(task_set.tasks)
