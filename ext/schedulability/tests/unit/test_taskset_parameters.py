# SPDX-License-Identifier: MIT
"""The probe taskset on the host: what a plan may say, and the engine's command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, load_plan, make_plan
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import get
from rtgauge_ext.schedulability.task_set_probe import timeline_ns

MS = 1_000_000
A = {"name": "a", "period": "10ms", "execution": "3ms"}
B = {"name": "b", "period": "20ms", "execution": "5ms"}
PROBE = get("taskset")


def parameters(**written):
    return normalise(PROBE, {"task": [A, B], **written}, "here")


def refusal(**written):
    with pytest.raises(InputError) as caught:
        parameters(**written)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_left_out_is_filled_in():
    actual = parameters(name="pair")
    assert actual.name == "pair"
    assert [(task.name, task.priority, task.deadline_ns, task.cpu) for task in actual.tasks] == [
        ("a", 99, 10 * MS, 0),
        ("b", 98, 20 * MS, 0),
    ]
    assert (
        actual.policy,
        actual.execution,
        actual.pin,
        actual.duration_ns,
        actual.dma_latency_us,
    ) == ("fifo", "wall", True, 10**10, 0)
    assert actual.task_set.cpus == [0]


def test_the_engines_command_line():
    words = PROBE.arguments(parameters(execution="cpu", cpu=1, duration="2s"), "/samples")
    assert words[0] == "taskset"
    assert {
        "--tasks=1 99 10000000 3000000 10000000 0 a\n1 98 20000000 5000000 20000000 0 b",
        "--policy=fifo",
        "--execution=cpu",
        "--pin=on",
        "--timeline-ns=40000000",
        "--duration-ns=2000000000",
        "--samples-dir=/samples",
    } <= set(words)
    assert "--force" not in words
    assert "--force" in PROBE.arguments(parameters(force=True), None)
    assert PROBE.expected_ns(parameters(duration="2s")) == 2_200_000_000


def test_a_file_instead_of_tasks(tmp_path):
    path = tmp_path / "pair.toml"
    path.write_text('[[task]]\nname = "c"\nperiod = "1ms"\nexecution = "100us"\n')
    actual = normalise(PROBE, {"file": str(path)}, "here")
    assert (actual.name, actual.tasks[0].name) == ("pair", "c")
    assert "not both" in refusal(file=str(path))
    with pytest.raises(InputError, match=r"task set .*missing\.toml does not exist"):
        normalise(PROBE, {"file": str(tmp_path / "missing.toml")}, "here")
    with pytest.raises(InputError, match="give a task set"):
        normalise(PROBE, {}, "here")


@pytest.mark.parametrize(
    ("written", "expected_text"),
    [
        ({"task": [{**A, "period": "0s"}]}, "0"),
        ({"task": [{**A, "execution": "11ms"}]}, "can never meet its deadline"),
        ({"task": [A, {**B, "name": "a"}]}, "2 tasks are called 'a'"),
        ({"task": [{**A, "priority": 5}, {**B, "priority": 5}]}, "both have priority 5"),
        ({"task": [{**A, "priority": 100}]}, "the maximum is 99"),
        ({"task": [{**A, "cpu": 9000}]}, "too large"),
        (
            {"task": [{**A, "cpu": 0, "priority": 5}, {**B, "cpu": 1, "priority": 5}], "cpu": 0},
            "both have priority 5",
        ),
        ({"task": [{**A, "period": "100ns", "execution": "10ns"}]}, "1us to 1h"),
        ({"task": [{**A, "execution": "9600us"}]}, "96.0% of CPU 0, more than 95%"),
        ({"task": [{**A, "execution": "10ms"}], "force": True}, "at most 10s, warm-up included"),
        ({"task": [{**A, "deadline": "20ms"}], "policy": "deadline"}, "must not be longer than the period"),
        ({"cpu": "0-1"}, "give one instead of '0-1'"),
        ({"pin": "off"}, "policy deadline"),
        ({"pin": "maybe"}, "give on or off"),
        ({"policy": "other"}, "'other' is not one of 'fifo', 'rr' or 'deadline'"),
        ({"execution": "both"}, "'both' is not one of 'wall' or 'cpu'"),
        ({"task": [{**A, "name": f"t{n}", "execution": "1us"} for n in range(65)]}, "the maximum is 64"),
        ({"task": "a"}, ""),
        ({"task": []}, "has no task"),
    ],
)
def test_what_is_refused(written, expected_text):
    assert expected_text in refusal(**written)


@pytest.mark.parametrize("cpu", ["1", "1-1"])
def test_the_cpu_of_a_command_line_is_that_of_all_tasks(cpu):
    actual = parameters(cpu=cpu)
    assert (actual.cpu, [task.cpu for task in actual.tasks]) == (1, [1, 1])


def test_a_forced_overload_may_be_short():
    assert parameters(task=[{**A, "execution": "10ms"}], force=True, duration="2s").force is True


@given(
    st.dictionaries(
        st.sampled_from(["file", "task", "name", "cpu", "policy", "pin", "force", "duration"]),
        st.none()
        | st.integers()
        | st.text(max_size=8)
        | st.lists(st.integers(), max_size=2)
        | st.lists(
            st.dictionaries(st.sampled_from([*A, "cpu", "priority"]), st.text(max_size=6) | st.integers()),
            max_size=2,
        ),
    )
)
def test_hostile_parameters_are_parameters_or_one_line(written):
    try:
        normalise(PROBE, written, "here")
    except InputError as error:
        assert "\n" not in str(error)


def test_how_much_is_drawn():
    def length(*tasks):
        return timeline_ns(parameters(task=list(tasks)).task_set)

    assert length(A, B) == 40 * MS
    assert length(A, {**B, "offset": "5ms"}) == 45 * MS
    assert (
        length({**A, "period": "1ms", "execution": "1us"}, {**B, "period": "250ms", "execution": "1us"})
        == 250 * MS
    )  # one hyperperiod: two are too much
    assert (
        length({**A, "period": "1us", "execution": "1ns"}, {**B, "period": "1s"}) == 399_999
    )  # as many activations as can be seen


def test_the_preset_is_the_papers_table_6():
    plan = load_plan("delgado2020-tasks", Overrides())
    assert [step.load for step in plan.steps] == ["idle", "papers"]
    assert [
        (t.period_ns // MS, t.deadline_ns // MS, t.execution_ns // MS, t.priority)
        for t in plan.steps[0].parameters.get("tasks")
    ] == [
        (10, 10, 3, 99),
        (20, 20, 5, 80),
        (40, 40, 10, 50),
    ]
    assert plan.steps[0].parameters.get("duration_ns") == 600 * 10**9


def test_a_file_replaces_the_presets_tasks(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[task]]\nname = "c"\nperiod = "1ms"\nexecution = "100us"\n')
    plan = load_plan("delgado2020-tasks", Overrides(parameters={"file": str(path)}))
    assert [task.name for task in plan.steps[0].parameters.get("tasks")] == ["c"]


def test_a_plan_names_the_step_that_is_wrong():
    with pytest.raises(InputError, match=r"plan x, step 1: .*unknown key 'perod'; did you mean 'period'"):
        make_plan({"step": [{"probe": "taskset", "task": [{**A, "perod": "1ms"}]}]}, "plan x", Overrides())
