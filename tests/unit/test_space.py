# SPDX-License-Identifier: MIT
"""User and kernel space beside each other: labels, comparison, frequency, verdict and advice keep them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.analysis.frequency import Options, gather
from rtgauge.analysis.sides import pairs, sides_of
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.registry import PROBES
from rtgauge.report.conditions import conditions
from rtgauge.report.method import method_words
from rtgauge.verdict.decision import judge
from rtgauge.verdict.flowchart import advise
from rtgauge.verdict.flowchart_file import load_flowchart
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
    steps = [drawn(us, load, space) for load in ("idle", "cpu") for us, space in ((900, "user"), (20, "kernel"))]
    return record(tmp_path / "both", steps, facts("full"))


def test_user_space_is_the_default():
    for name in ("wakeup", "periodic", "response"):
        assert normalise(PROBES[name], {}, "x")["space"] == "user"


def test_a_condition_names_its_space_where_there_are_two(both: Record, tmp_path: Path):
    assert [condition.label for condition in conditions(both)] == ["idle, kernel space", "idle, user space", "cpu, kernel space", "cpu, user space"]
    alone = record(tmp_path / "alone", [drawn(20, "idle", "kernel"), drawn(20, "cpu", "kernel")])
    assert [condition.label for condition in conditions(alone)] == ["idle", "cpu"]


def test_kernel_space_is_compared_with_user_space_under_the_same_load(both: Record):
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


def test_the_frequencies_of_both_spaces_are_in_one_table(both: Record):
    (gathered,) = gather([both], Options(tails=False))
    assert {line.traits["space"] for line in gathered.table.lines} == {"user space", "kernel space"}


def test_the_verdict_names_kernel_space(both: Record):
    requirement = parse_requirement(REQUIREMENT)
    user, kernel = (judge(requirement, step, both.windows(step)) for step in both.steps[:2])
    assert (user.evidence["space"], kernel.evidence["space"]) == ("user", "kernel")
    assert "in kernel space" in kernel.reason
    assert "in kernel space" not in user.reason


def test_a_step_in_kernel_space_is_evidence_for_a_kernel_module(both: Record):
    flowchart, chart = load_flowchart("brown2010")
    advice = advise(parse_requirement(REQUIREMENT), [both], flowchart, chart)
    evidence = {stage.way: [entry.step for entry in stage.evidence] for stage in [*advice.walk, *advice.also_measured]}
    assert evidence["user-stock"] == [step.id for step in both.steps if step.key.space == "user"]
    assert evidence["kernel-module"] == [step.id for step in both.steps if step.key.space == "kernel"]


def test_the_method_is_told_for_each_space_that_was_measured(both: Record):
    assert PROBES["wakeup"].method in method_words(both)
