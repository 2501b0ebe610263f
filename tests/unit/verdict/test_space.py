# SPDX-License-Identifier: MIT
"""User and kernel space beside each other: labels, comparison and verdict keep them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.sides import sides_of
from rtgauge.errors import InputError
from rtgauge.probe.descriptor import TRACE_INSTANCE, normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.model import Result
from rtgauge.report.method import method_words
from rtgauge.report.presenter import step_lines
from rtgauge.report.record_view import RecordView
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from tests.support.timing import Drawn, Series, facts, record

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.reader import Record

REQUIREMENT = "latency<=200us hardness=95%"


def drawn(us: int, load: str, space: str | None) -> Drawn:
    """A step whose latencies are `us`; `space` None: of a record from before there was a choice."""
    parameters = {"interval_ns": 1_000_000} | ({} if space is None else {"space": space})
    return Drawn([Series([us * 1_000] * 20_000)], parameters=parameters, load=load)


@pytest.fixture
def both(tmp_path: Path) -> Record:
    """Idle and loaded, 900 us in user space and 20 us in kernel space."""
    steps = [
        drawn(us, load, space) for load in ("idle", "cpu") for us, space in ((900, "user"), (20, "kernel"))
    ]
    return record(tmp_path / "both", steps, facts("full"))


def test_user_space_is_the_default():
    assert normalise(PROBES["wakeup"], {}, "x").space == "user"


def test_a_condition_names_its_space_where_there_are_two(both: Record, tmp_path: Path):
    assert [condition.label for condition in RecordView(both).conditions] == [
        "idle, user space",
        "idle, kernel space",
        "cpu, user space",
        "cpu, kernel space",
    ]
    alone = record(tmp_path / "alone", [drawn(20, "idle", "kernel"), drawn(20, "cpu", "kernel")])
    assert [condition.label for condition in RecordView(alone).conditions] == ["idle", "cpu"]


def test_only_kernel_space_has_a_context(tmp_path: Path):
    """It is named where there are several, and user space has none."""

    def steps(*contexts: str | None) -> list[Drawn]:
        return [
            Drawn(
                [Series([20_000] * 2_000)],
                parameters={"space": "user" if name is None else "kernel", "context": name},
            )
            for name in contexts
        ]

    two = record(tmp_path / "two", steps(None, "irq"))
    assert [condition.label for condition in RecordView(two).conditions] == [
        "idle, user space",
        "idle, kernel space",
    ]
    assert {side.traits["parameters"] for side in sides_of([two])} == {"default parameters"}
    three = record(tmp_path / "three", steps(None, "irq", "thread"))
    assert [condition.label for condition in RecordView(three).conditions] == [
        "idle, user space",
        "idle, kernel space, context irq",
        "idle, kernel space, context thread",
    ]
    assert [side.label for side in sides_of([three])] == [
        "user space",
        "kernel space, context irq",
        "kernel space, context thread",
    ]


def test_kernel_space_is_compared_with_user_space(both: Record):
    sides = sides_of([both])
    assert [(side.label, baseline.label) for side, baseline in pairs(sides, None)] == [
        ("idle, kernel space", "idle, user space"),
        ("cpu, kernel space", "cpu, user space"),
    ]
    assert [side.label for side, _ in pairs(sides, "kernel space")] == ["idle, user space", "cpu, user space"]


def test_a_record_without_a_space_is_of_user_space(tmp_path: Path):
    old = record(tmp_path / "old", [drawn(20, "idle", None)])
    new = record(tmp_path / "new", [drawn(20, "idle", "user"), drawn(5, "idle", "kernel")])
    sides = sides_of([old, new])
    assert [side.traits["space"] for side in sides] == ["user space", "user space", "kernel space"]
    assert {side.traits["parameters"] for side in sides} == {"default parameters"}


def test_the_verdict_names_kernel_space(both: Record):
    requirement = parse_requirement(REQUIREMENT)
    user, kernel = (judge(requirement, step, both.windows(step)) for step in both.steps[:2])
    assert (user.evidence["space"], kernel.evidence["space"]) == ("user", "kernel")
    assert "in kernel space" in kernel.reason
    assert "in kernel space" not in user.reason


def test_the_method_covers_each_measured_space(both: Record, tmp_path: Path):
    probe = PROBES["wakeup"]
    assert {probe.method, probe.methods["kernel"]} <= set(method_words(RecordView(both)))
    assert probe.methods["kernel"] not in method_words(
        RecordView(record(tmp_path / "user", [drawn(20, "idle", "user")]))
    )


def test_wakeup_in_kernel_space_is_the_timerlat_tracer():
    probe = PROBES["wakeup"]
    parameters = normalise(probe, {"space": "kernel", "interval": "100us", "count": 50}, "x")
    words = probe.arguments(parameters, None)
    assert {"--space=kernel", f"--trace-instance={TRACE_INSTANCE}", "--count=50"} <= set(words)
    assert not any(word.startswith(("--timer", "--phase")) for word in words)
    assert probe.traces(parameters) == "timerlat"
    assert probe.traces(normalise(probe, {}, "x")) is None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"interval": "99us"}, "100us to 1s"),
        ({"interval": "1001ms"}, "100us to 1s"),
        ({"interval": "100500ns"}, "whole us"),
        ({"policy": "deadline"}, "fifo, rr or other"),
        ({"timer": "timerfd"}, "timer works only in user space"),
        ({"phase": "fixed"}, "phase works only in user space"),
    ],
)
def test_what_the_tracer_does_not_have_is_refused(written: dict[str, str], message: str):
    with pytest.raises(InputError, match=message):
        normalise(PROBES["wakeup"], {"space": "kernel", **written}, "x")


def test_the_lines_name_the_thread_and_dropped_events(both: Record):
    step = both.steps[1]
    names = {step.id: "kernel"}
    assert step_lines([step], names) == []
    result = Result(name="timerlat", values={"thread": "of the kernel", "dropped": 2, "dropped_events": 9})
    (line,) = step_lines([step.model_copy(update={"results": [result]})], names)
    assert "needs timerlat_fd" in line
    assert "2 times" in line
