# SPDX-License-Identifier: MIT
"""What is said of a step without a value, and of latencies below zero."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtgauge.probe import probe_registry
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import ExplainReport, Result, Step
from rtgauge.runner.put_together import (
    _early_marks,
    _nothing_marks,
    _program_marks,
    _throttle_marks,
)
from rtgauge.system.collect_facts import facts
from tests.unit.system.machines import texts


def series(**figures: int | None) -> SimpleNamespace:
    return SimpleNamespace(**{"count": 1, "missed": 0, "p99_ns": 5, "max_ns": 9, **figures})


def step(rt: str, *measured: SimpleNamespace, end_reason: str = "duration") -> Step:
    made = SimpleNamespace(
        series=list(measured), end_reason=end_reason, key=SimpleNamespace(rt=rt), results=[], marks=[]
    )
    return cast("Step", cast("Any", made))


@pytest.mark.parametrize(
    ("end_reason", "reported", "unsaid"),
    [
        ("duration", "the task was never activated in the measured time; measure for longer", "engine"),
        ("died", "the engine ended before it measured anything", "measure for longer"),
        ("program-ended", "the program ended before it could be measured", "the engine"),
    ],
)
def test_the_remedy_fits_what_ended_the_step(end_reason: str, reported: str, unsaid: str) -> None:
    (mark,) = _nothing_marks(
        step("linux", series(count=0), end_reason=end_reason), probe_registry.get("wakeup")
    )
    assert mark.kind is MarkKind.NOTHING_MEASURED
    assert reported in mark.detail
    assert unsaid not in mark.detail


def test_some_early_latencies_are_usual_on_a_cokernel() -> None:
    assert _early_marks(step("rtai", series(p99_ns=300), series(count=0, p99_ns=None))) == []
    assert _early_marks(step("linux", series(p99_ns=-5, max_ns=-1))) == []


@pytest.mark.parametrize(
    ("values", "kind", "reported"),
    [
        ({"signal": 11, "signal_after_ns": 310_000_000}, MarkKind.PROGRAM_KILLED, "SIGSEGV 0.310 s after"),
        (
            {"signal": 9, "signal_after_ns": 10**9, "rttime_us": 200_000},
            MarkKind.PROGRAM_KILLED,
            "RLIMIT_RTTIME, 200000 us",
        ),
        ({"signal": 15, "signal_after_ns": 10**9}, MarkKind.PROGRAM_ENDED, "SIGTERM"),
        ({"watched_ns": 2 * 10**9}, MarkKind.PROGRAM_ENDED, "the program ended 2.000 s after"),
    ],
)
def test_how_a_watched_program_ended_is_named(values: dict[str, int], kind: MarkKind, reported: str) -> None:
    ended = step("linux", end_reason="program-ended")
    ended.results.append(Result(name="watched", labels={}, values=dict(values)))
    (mark,) = _program_marks(ended)
    assert (mark.kind, reported in mark.detail) == (kind, True)


@pytest.mark.parametrize(("captured", "guessed"), [(None, True), ({"overwritten": 1}, True), ({}, False)])
def test_a_server_is_guessed_only_where_its_events_are_missing(
    captured: dict[str, int] | None, *, guessed: bool
) -> None:
    thread = SimpleNamespace(metric="latency", series=0, max_ns=50_000_000, thread=None)
    measured = cast("Any", step("linux", thread))
    measured.parameters, measured.tasks, measured.peer, measured.instrument = (
        {"policy": "fifo"},
        None,
        None,
        None,
    )
    measured.key = SimpleNamespace(rt="linux", probe="wakeup")
    measured.explain = None if captured is None else report("x/sched_dl_server_stop", captured)
    machine = facts(texts({"/proc/sys/kernel/osrelease": "7.3.4"}))
    marks = _throttle_marks(measured, machine)
    assert ["the fair server" in mark.detail for mark in marks] == [True] * guessed


def report(event: str, not_captured: dict[str, int]) -> ExplainReport:
    events = ["sched/sched_switch", event]
    return ExplainReport(events=events, moments=3, not_captured=not_captured, copy_max_ns=1, buffer_kb=512)


@pytest.mark.parametrize(
    ("event", "not_captured", "shown"),
    [
        ("rtgauge_1_explain/sched_dl_server_stop", {}, True),
        ("rtgauge_1_explain/sched_dl_server_stop", {"over_budget": 7}, True),
        ("rtgauge_1_explain/sched_dl_server_stop", {"over_budget": 7, "overwritten": 1}, False),
        ("rtgauge_1_explain/sched_set_need_resched", {}, False),
    ],
)
def test_the_largest_latency_shows_a_server_if_its_events_are_kept(
    event: str, not_captured: dict[str, int], *, shown: bool
) -> None:
    assert report(event, not_captured).shows_servers == shown
