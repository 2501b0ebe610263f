# SPDX-License-Identifier: MIT
"""Task sets in which anything was changed are taken, or refused by an InputError."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.mutated_document import EXAMPLES, check_taken_or_refused, mutated_document
from tests.support.mutated_text import mutated

from rtgauge.errors import InputError
from rtgauge.input_file import toml_of
from rtgauge_ext.schedulability.task_set import check_task_set

TASKS = {
    "name": "set",
    "task": [
        {"name": "a", "period": "10ms", "execution": "1ms", "priority": 5},
        {
            "name": "b",
            "period": "20ms",
            "execution": "1ms",
            "priority": 4,
            "deadline": "15ms",
            "jitter": "1us",
            "offset": "1ms",
            "blocking": "1us",
            "cpu": 0,
        },
    ],
}
TEXT = '[[task]]\nname = "a"\nperiod = "1ms"\nexecution = "1us"\n'


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_task_set(data: st.DataObject) -> None:
    check_taken_or_refused(lambda written: check_task_set(written, "task set"), mutated_document(TASKS, data))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_text(data: st.DataObject) -> None:
    check_taken_or_refused(
        lambda text: check_task_set(toml_of(text, "task set"), "task set"), mutated(TEXT, data)
    )


def test_too_many_tasks_are_refused_soon() -> None:
    tasks = [
        {"name": str(number), "period": "1s", "execution": "1us", "cpu": number % 1000}
        for number in range(17_000)
    ]
    with pytest.raises(InputError, match="17000 tasks; the maximum is 1000"):
        check_task_set({"task": tasks}, "task set")
