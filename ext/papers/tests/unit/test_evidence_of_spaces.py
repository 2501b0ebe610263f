# SPDX-License-Identifier: MIT
"""Advice and frequencies keep user and kernel space apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.timing import Drawn, Series, facts, record

from rtgauge.verdict.requirement import parse_requirement
from rtgauge_ext.papers.advise.flowchart import advise
from rtgauge_ext.papers.advise.flowchart_file import load_flowchart
from rtgauge_ext.papers.frequency.frequency import gather
from rtgauge_ext.papers.frequency.frequency_options import FrequencyOptions

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.reader import Record

REQUIREMENT = "latency<=200us hardness=95%"


def drawn(us: int, load: str, space: str) -> Drawn:
    """A step whose latencies are `us`; in this space."""
    parameters = {"interval_ns": 1_000_000, "space": space}
    return Drawn([Series([us * 1_000] * 20_000)], parameters=parameters, load=load)


@pytest.fixture
def both(tmp_path: Path) -> Record:
    """Idle and loaded, 900 us in user space and 20 us in kernel space."""
    steps = [
        drawn(us, load, space) for load in ("idle", "cpu") for us, space in ((900, "user"), (20, "kernel"))
    ]
    return record(tmp_path / "both", steps, facts("full"))


def test_a_step_in_kernel_space_is_evidence_for_a_kernel_module(both: Record):
    flowchart, chart = load_flowchart("brown2010")
    advice = advise(parse_requirement(REQUIREMENT), [both], flowchart, chart)
    evidence = {
        stage.way: [entry.step for entry in stage.evidence] for stage in [*advice.walk, *advice.also_measured]
    }
    assert evidence["user-stock"] == [step.id for step in both.steps if step.key.space == "user"]
    assert evidence["kernel-module"] == [step.id for step in both.steps if step.key.space == "kernel"]


def test_the_chart_ends_in_a_kernel_module_on_evidence(both: Record):
    """User space is in trouble, Xenomai was not measured, and a kernel module is enough."""
    flowchart, chart = load_flowchart("brown2010")
    advice = advise(parse_requirement(REQUIREMENT), [both], flowchart, chart)
    assert [stage.way for stage in advice.walk] == ["user-stock", "xenomai-user", "kernel-module"]
    assert "not measured" in advice.walk[1].why
    assert (advice.use, advice.measured) == ("kernel-module", True)
    bad = advise(parse_requirement("latency<=10us hardness=95%"), [both], flowchart, chart)
    assert [stage.way for stage in bad.walk] == ["user-stock", "dedicated"]


def test_the_frequencies_of_both_spaces_are_in_one_table(both: Record):
    (gathered,) = gather([both], FrequencyOptions())
    assert {line.traits["space"] for line in gathered.lines} == {"user space", "kernel space"}


def test_every_quantity_of_kernel_space_has_its_own_table(tmp_path: Path):
    three = [
        Series([us * 1_000] * 2_000, metric=metric)
        for metric, us in (("latency", 20), ("irq-latency", 5), ("user-latency", 25))
    ]
    parameters = {"interval_ns": 1_000_000}
    steps = [
        Drawn([Series([30_000] * 2_000)], parameters=parameters),
        Drawn(three, parameters={**parameters, "space": "kernel"}),
    ]
    tables = gather([record(tmp_path / "r", steps)], FrequencyOptions())
    assert [(gathered.metric, len(gathered.lines)) for gathered in tables] == [
        ("latency", 2),
        ("irq-latency", 1),
        ("user-latency", 1),
    ]
    (alone,) = gather([record(tmp_path / "user", steps[:1])], FrequencyOptions())
    assert alone.title == "Wakeup"
