# SPDX-License-Identifier: MIT
"""Plans, task sets, charts and rules in which anything was changed are taken, or refused by an InputError."""

from __future__ import annotations

import copy
import os
import time
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.input_file import toml_of
from rtgauge.plan.plan import Overrides, make_plan, preset_texts
from rtgauge.system.rules import parse_rules
from rtgauge_ext.schedulability.task_set import check_task_set
from tests.support.mutated_text import mutated, places

EXAMPLES = 3_000 if os.environ.get("RTGAUGE_NIGHTLY") else 150
HOSTILE = st.one_of(
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=10),
    st.sampled_from(
        [
            "100us",
            "0s",
            "-1ms",
            "1e9d",
            "0-",
            "0-99999",
            "local",
            "ssh://",
            "lab:",
            "\x1b[2J",
            "\0",
            "a" * 10_000,
            "papers",
            "all",
            "idle",
            "M",
            "1/0",
        ]
    ),
    st.sampled_from(
        [[], {}, [[]], [{}], {"": {}}, ["idle", "cpu"] * 50, [1, "x"], {"name": []}, list(range(300))]
    ),
)


def presets() -> list[dict[str, Any]]:
    return [tomllib.loads(text) for text in preset_texts().values()]


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
OVERRIDES = Overrides()
DOCUMENTS: list[tuple[str, dict[str, Any], Callable[[dict[str, Any]], object]]] = [
    *(
        (f"plan {plan.get('name')}", plan, lambda written: make_plan(written, "plan", OVERRIDES))
        for plan in presets()
    ),
    ("task set", TASKS, lambda written: check_task_set(written, "task set")),
]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_document(data: st.DataObject) -> None:
    _, document, check = data.draw(st.sampled_from(DOCUMENTS))
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        inside = [place for place in places(document) if place]
        if not inside:
            break
        place = data.draw(st.sampled_from(inside))
        inner = document
        for key in place[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()) or not isinstance(inner, dict):
            inner[place[-1]] = copy.deepcopy(data.draw(HOSTILE))
        elif data.draw(st.booleans()):
            inner[data.draw(st.text(max_size=8))] = copy.deepcopy(data.draw(HOSTILE))
        else:
            del inner[place[-1]]
    started = time.process_time()
    try:
        check(document)
    except InputError as error:
        assert "\n" not in str(error)
    assert time.process_time() - started < 10


OWN_TEXTS = {
    "rules": (
        (resources.files("rtgauge.system") / "rules.toml").read_text(encoding="utf-8"),
        lambda text: parse_rules(text, "rules"),
    ),
    "task set": (
        '[[task]]\nname = "a"\nperiod = "1ms"\nexecution = "1us"\n',
        lambda text: check_task_set(toml_of(text, "task set"), "task set"),
    ),
}


@pytest.mark.parametrize("name", OWN_TEXTS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_text(name: str, data: st.DataObject) -> None:
    text, check = OWN_TEXTS[name]
    text = mutated(text, data)
    started = time.process_time()
    try:
        check(text)
    except InputError as error:
        assert "\n" not in str(error)
    assert time.process_time() - started < 10


def test_too_many_tasks_are_refused_soon() -> None:
    tasks = [
        {"name": str(number), "period": "1s", "execution": "1us", "cpu": number % 1000}
        for number in range(17_000)
    ]
    with pytest.raises(InputError, match="17000 tasks; the maximum is 1000"):
        check_task_set({"task": tasks}, "task set")


def test_a_large_matrix_is_planned_or_refused_soon() -> None:
    started = time.process_time()
    matrix = {
        "interval": [f"{number}us" for number in range(100, 300)],
        "duration": [f"{number}s" for number in range(1, 21)],
    }
    plan = make_plan({"matrix": {"probe": "wakeup", **matrix}}, "plan", OVERRIDES)
    assert len(plan.steps) == 4_000
    assert time.process_time() - started < 10
