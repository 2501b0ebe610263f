# SPDX-License-Identifier: MIT
"""Kernels that do not trace every switch, in tables drawn by hand: no part is given to a task that did not
run without a doubt with its size.
"""

from __future__ import annotations

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Explanation, Kind, sentence
from rtgauge.explain.page.moment_figure import moment_figure
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.missed_switches import MissedSwitch, Running, with_missed_switches
from rtgauge.explain.trace.moment import EventTable
from tests.unit.explain.made_events import HIGHER, IDLE, LOWER, MEASURED, RELEASE, THREAD, Story
from tests.unit.records import step


def parts(story: Story, latency_us: float) -> tuple[Explanation, dict[tuple[Kind, str], float]]:
    """(the explanation, (kind, name) -> us); the parts add up."""
    explanation = explain(story.moment(latency_us), Symbols((), ()))
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    return explanation, {(part.culprit.kind, part.culprit.name): part.ns / 1000 for part in explanation.parts}


def taken_by(story: Story, cpu: int, task: tuple[str, int, int]) -> Story:
    """The CPU switches to a task, and the kernel does not trace it."""
    story.current[cpu] = task[1]
    return story


def known_hog() -> Story:
    """Another CPU tells the hog's name and priority, long before."""
    return Story().switch(-900, 0, HIGHER, ("swapper/0", 0, 120), state=1)


def test_a_task_without_its_switch_from_idle_is_named() -> None:
    story = known_hog().switch(-500, 1, MEASURED, IDLE, state=1).at(-490, 1, "cpu_idle", state=2)
    story.at(-60, 1, "cpu_idle", state=0xFFFF_FFFF)
    story = taken_by(story, 1, HIGHER).timer(2, 1).switch(400, 1, HIGHER, MEASURED, state=1)
    explanation, parts_ns = parts(story, 401)
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(394)
    # until the timer's interrupt it is not known whether the hog ran: 2 us are no doubt, but are not
    # attributed
    assert parts_ns[Kind.EITHER, "idle or hog"] == pytest.approx(2)
    assert explanation.unattributed_ns == 2_000
    assert not explanation.doubts


def test_an_interval_of_either_task_is_a_sized_doubt() -> None:
    story = known_hog().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1)
    story = (
        taken_by(story, 1, HIGHER)
        .at(205, 1, "irq_handler_entry", irq=9, name="disk")
        .at(210, 1, "irq_handler_exit", irq=9)
    )
    explanation, parts_ns = parts(story.switch(400, 1, HIGHER, MEASURED, state=1), 402)
    assert parts_ns[Kind.EITHER, "idle or hog"] == pytest.approx(200)
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(190)
    assert explanation.unattributed_ns == 200_000
    assert explanation.doubts == [
        "the kernel did not trace every switch, so 200.000 us may belong to either of two tasks"
    ]
    assert "200.000 us idle or hog ran" in sentence(explanation)


def test_the_figure_shows_no_idle_where_a_task_may_have_run() -> None:
    story = known_hog().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1)
    story = (
        taken_by(story, 1, HIGHER)
        .at(205, 1, "irq_handler_entry", irq=9, name="disk")
        .at(210, 1, "irq_handler_exit", irq=9)
    )
    explanation, _ = parts(story.switch(400, 1, HIGHER, MEASURED, state=1), 402)
    measured, _ = step([402_000])
    (spec,) = moment_figure(explanation, measured, Symbols((), ()), "title").specs
    idle, tasks = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"][:2])
    bars = [
        (lane, float(start), float(end))
        for lane, _, _, start, end in (line.split(",") for line in idle.splitlines()[1:])
    ]
    assert bars
    assert all(end <= 5 or start >= 205 for lane, start, end in bars if lane == "CPU 1")
    assert "hog" in tasks


def test_the_threads_own_switch_from_idle_may_be_missing() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).at(-490, 1, "cpu_idle", state=2)
    story.timer(10, 1).at(15, 1, "cpu_idle", state=0xFFFF_FFFF)
    story = taken_by(story, 1, MEASURED).switch(400, 1, MEASURED, IDLE, state=1)
    explanation, parts_ns = parts(story, 17)  # the clock was read at 17 us: the thread ran by then
    assert parts_ns[Kind.EITHER, "idle or the thread itself"] == pytest.approx(2)
    assert parts_ns[Kind.IDLE_EXIT, "state 2"] == pytest.approx(11)
    assert not explanation.doubts


def test_a_switch_recorded_later_here_is_not_missing() -> None:
    story = Story().switch(-500, 1, MEASURED, HIGHER, state=1).timer(2, 1)
    story.switch(401, 1, HIGHER, MEASURED)  # `watch` records the same switch 1 us earlier
    explanation, parts_ns = parts(story, 400)
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(394)
    assert not explanation.doubts
    assert not explanation.missed


def test_work_after_a_missing_switch_is_the_threads_own() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(10, 1)
    story = (
        taken_by(story, 1, MEASURED)
        .at(20, 1, "irq_handler_entry", irq=9, name="disk")
        .at(30, 1, "irq_handler_exit", irq=9)
    )
    _, parts_ns = parts(story.switch(500, 1, MEASURED, IDLE, state=1), 500)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(470)
    assert parts_ns[Kind.EITHER, "idle or the thread itself"] == pytest.approx(6)
    assert not any(kind in {Kind.THROTTLED, Kind.SWITCH} for kind, _ in parts_ns)


@pytest.mark.parametrize("begins_in_trace", [True, False])
def test_a_loop_that_is_woken_before_it_slept_runs_itself(begins_in_trace: bool) -> None:
    story = Story().switch(-500, 1, LOWER, MEASURED) if begins_in_trace else taken_by(Story(), 1, MEASURED)
    story.timer(300, 1)  # on its way to sleep: its interrupt finds the thread itself
    _, parts_ns = parts(story.switch(814, 1, MEASURED, LOWER, state=1), 814)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(810)
    assert not any(kind is Kind.SWITCH for kind, _ in parts_ns)


def test_a_loop_woken_before_it_slept_runs_itself() -> None:
    story = Story().switch(-500, 1, LOWER, MEASURED).timer(300, 0, target=1)
    _, parts_ns = parts(story.switch(814, 1, MEASURED, LOWER, state=1), 814)
    assert parts_ns == {(Kind.OWN, ""): 814}


def test_gaps_are_bounded_by_the_events_around_them() -> None:
    story = known_hog().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1)
    story = taken_by(story, 1, HIGHER).switch(400, 1, HIGHER, MEASURED, state=1)
    table, missed = with_missed_switches(EventTable(sorted(story.events), (0, 1)))
    assert missed == [MissedSwitch(1, RELEASE + 5_000, RELEASE + 400_000, 0, HIGHER[1])]
    (made,) = [event for event in table.events if event not in story.events]
    assert (made.text("next_comm"), made.number("next_prio")) == ("hog", HIGHER[2])
    assert with_missed_switches(table)[1] == []


def test_the_idle_task_leaves_soon_if_there_is_work() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1)
    story = taken_by(story, 1, MEASURED).at(400, 1, "page_fault_user", address=4096)
    explanation, parts_ns = parts(story.switch(401, 1, MEASURED, IDLE, state=1), 401)
    assert parts_ns[Kind.EITHER, "idle or the thread itself"] == pytest.approx(20)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(375)
    assert not explanation.doubts  # idle would take 5 % only if it had more than these 20 us


@pytest.mark.parametrize(("call", "unsure_us"), [("clock_nanosleep", 10), ("read", 395)])
def test_a_thread_returns_from_a_wait_soon_after_it_got_the_cpu(call: str, unsure_us: float) -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(1, 1)
    story = taken_by(story, 1, MEASURED).at(400.3, 1, f"sys_exit_{call}", ret=0)
    _, parts_ns = parts(story, 400)  # `watch` recorded the return a little earlier
    assert parts_ns[Kind.EITHER, "hackbench or the thread itself"] == pytest.approx(unsure_us)
    assert parts_ns.get((Kind.PREEMPTION_OFF, "hackbench"), 0) == pytest.approx(395 - unsure_us, abs=0.01)


def test_a_task_that_another_cpu_wakes_did_not_run_before() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(300, 0, target=1)
    story = taken_by(story, 1, MEASURED).at(310, 1, "page_fault_user", address=4096)
    _, missed = with_missed_switches(EventTable(sorted(story.events), (0, 1)))
    assert [(gap.after_ns, gap.until_ns) for gap in missed] == [(RELEASE + 302_000, RELEASE + 310_000)]


def test_a_migrated_task_leaves_the_idle_task_its_time() -> None:
    story = Story().switch(-500, 1, LOWER, IDLE, state=1).switch(-900, 0, IDLE, MEASURED)
    story = taken_by(story, 1, MEASURED).at(400, 1, "page_fault_user", address=4096)
    _, missed = with_missed_switches(EventTable(sorted(story.events), (0, 1)))
    assert [(gap.after_ns, gap.until_ns) for gap in missed] == [(RELEASE - 500_000, RELEASE + 400_000)]


def test_who_is_known_to_have_run_bounds_a_gap_too() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1)
    assert with_missed_switches(EventTable(story.events, (1,)))[1] == []
    _, missed = with_missed_switches(EventTable(story.events, (1,)), Running(RELEASE + 9_000, 1, THREAD))
    assert missed == [MissedSwitch(1, RELEASE + 5_000, RELEASE + 9_000, 0, THREAD)]
