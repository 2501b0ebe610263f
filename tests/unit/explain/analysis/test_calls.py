# SPDX-License-Identifier: MIT
"""Locks of the watched program, by its threads' system calls, in tables drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of
from rtgauge.explain.analysis.explanation import Explanation, Kind, sentence
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Lost, Moment
from rtgauge.record.facts import Facts
from tests.support.messages import missing
from tests.unit.explain.made_events import HIGHER, IDLE, LOWER, MEASURED, MINE, RELEASE, THREAD, Story

OWNER, KWORKER = ("owner", 600, 120), ("kworker/u8:2", 700, 120)
WAIT, LOCK_PI, UNLOCK_PI, CONTENDED, PRIVATE, LOCK = 0, 6, 7, 2, 128, 4096


def explained(moment: Moment) -> tuple[Explanation, dict[tuple[Kind, str, str], float]]:
    """(the explanation, (kind, name, call or delayed owner) -> us); the parts add up."""
    explanation = explain(moment, Symbols((), ()))
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    return explanation, {
        (part.culprit.kind, part.culprit.name, part.culprit.call or part.culprit.owner): part.ns / 1000
        for part in explanation.parts
    }


def remedies(explanation: Explanation) -> list[str]:
    actual = (remedy_of(ranked, Facts()) for ranked in ranked_culprits([explanation]))
    return [remedy.what for remedy in actual if remedy is not None]


def begun() -> Story:
    """The thread runs on CPU 1 from 10 us on, and the owner on CPU 0."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).switch(-400, 0, IDLE, OWNER)
    return story.timer(2, 1).switch(10, 1, IDLE, MEASURED)


def futex(story: Story, time_us: float, cpu: int, command: int, value: int = 0) -> Story:
    return story.at(time_us, cpu, "sys_enter_futex", uaddr=LOCK, op=command | PRIVATE, val=value)


def test_a_spin_for_a_lock_with_inheritance_is_its_owners() -> None:
    story = futex(begun(), 20, 1, LOCK_PI)
    story.at(21, 1, "sched_pi_setprio", comm="owner", pid=600, oldprio=120, newprio=MINE)
    story.at(900, 1, "sys_exit_futex", ret=0).switch(910, 1, MEASURED, IDLE, state=1)
    explanation, parts_ns = explained(story.moment(910))
    assert parts_ns[Kind.LOCK_SPIN, "owner", ""] == pytest.approx(880)
    assert parts_ns[Kind.OWN, "", ""] == pytest.approx(20)
    assert not missing(sentence(explanation), "spun in the kernel", "priority inheritance", "while owner")
    assert not missing(" ".join(remedies(explanation)), "owner", "shorter time", "avoid the lock")


@pytest.mark.parametrize("by_owner", [True, False])
def test_a_lock_awaited_since_before_all_events_has_its_owner(*, by_owner: bool) -> None:
    """Of a long latency, only the events of its last part are kept."""
    story = Story().switch(200_000, 1, HIGHER, LOWER).at(200_000, 0, "local_timer_exit", vector=236)
    if by_owner:
        story.at(290_000, 0, "local_timer_entry", vector=236)
        story.at(290_001, 0, "sched_waking", comm="owner", pid=600, prio=120, target_cpu=0)
        story.events[-1] = story.events[-1]._replace(flags=8)
        story.at(290_002, 0, "local_timer_exit", vector=236).switch(290_004, 0, IDLE, OWNER)
        story.at(290_005, 0, "sys_exit_clock_nanosleep", ret=0)
        story.at(290_010, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    else:
        story.timer(290_004, 1)
    story.switch(290_020, 1, LOWER, MEASURED).at(290_021, 1, "sys_exit_futex", ret=0)
    moment = replace(
        story.moment(290_100),
        table=replace(
            story.moment(1).table, lost=[Lost(cpu, None, RELEASE + 200_000_000, 0) for cpu in (0, 1)]
        ),
    )
    explanation, parts_ns = explained(moment)
    assert parts_ns[Kind.UNATTRIBUTED, "", ""] == pytest.approx(200_000)
    first = ranked_culprits([explanation])[0].culprit
    assert first.kind is (Kind.OWNER_ASLEEP if by_owner else Kind.TIMER_LATE)
    if by_owner:
        assert parts_ns[Kind.OWNER_ASLEEP, "owner", "clock_nanosleep"] == pytest.approx(90_004, abs=5)
        assert "release the lock before owner calls clock_nanosleep" in remedies(explanation)


def test_an_owner_of_the_same_priority_is_known_by_its_unlocking() -> None:
    story = futex(futex(begun(), 20, 1, LOCK_PI), 890, 0, UNLOCK_PI)
    story.at(900, 1, "sys_exit_futex", ret=0).switch(910, 1, MEASURED, IDLE, state=1)
    _, parts_ns = explained(story.moment(910))
    assert parts_ns[Kind.LOCK_SPIN, "owner", ""] == pytest.approx(880)


def lock_of_a_sleeping_owner(command: int, value: int) -> Story:
    """The owner writes to a disk with the lock, which a kworker ends, and a hog delays its release."""
    story = begun().at(12, 0, "sys_enter_fdatasync", fd=3).switch(15, 0, OWNER, LOWER, state=2)
    story = futex(story, 20, 1, command, value).switch(25, 1, MEASURED, KWORKER, state=1)
    story.at(500, 1, "sched_waking", comm="owner", pid=600, prio=120, target_cpu=0)
    story.at(501, 0, "sched_wakeup", comm="owner", pid=600, prio=120, target_cpu=0)
    story.switch(505, 0, LOWER, HIGHER).switch(700, 0, HIGHER, OWNER, state=1)
    story.at(710, 0, "sys_exit_fdatasync", ret=0)
    story.at(800, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    return story.switch(810, 1, KWORKER, MEASURED).at(811, 1, "sys_exit_futex", ret=0)


@pytest.mark.parametrize("kind", ["maximum", "blocked", "waited"])
def test_an_owner_asleep_in_a_call_is_named_with_the_call(kind: str) -> None:
    story = lock_of_a_sleeping_owner(WAIT, CONTENDED)
    moment = story.moment(900)
    if kind != "maximum":
        release = moment.release_ns + 25_000
        moment = replace(moment, kind=kind, release_ns=release, end_ns=release + 775_000, latency_ns=775_000)
    explanation, parts_ns = explained(moment)
    assert parts_ns[Kind.OWNER_ASLEEP, "owner", "fdatasync"] == pytest.approx(475)
    assert parts_ns[Kind.TASK, "hog", "owner"] == pytest.approx(195)
    assert parts_ns[Kind.LOCK_OWNER, "owner", ""] == pytest.approx(100)
    assert explanation.owners == ("owner",)  # a kworker owns no futex
    text = sentence(explanation)
    assert ("waited for owner:" if kind == "waited" else "blocked on a lock of owner:") in text
    assert "owner (nice 0, pid 600) slept in fdatasync with the lock" in text
    words = remedies(explanation)
    assert (
        words[:2] == ["release the lock before owner calls fdatasync"] * 2
    )  # also what helps against the hog
    assert not any("PTHREAD_PRIO_INHERIT" in word for word in words)


MIDDLE = ("middle", 300, 60)


def lock_of_a_preempted_owner(command: int, value: int) -> Story:
    """The owner's CPU goes to a task of middle priority."""
    story = futex(begun(), 20, 1, command, value).switch(25, 1, MEASURED, LOWER, state=1)
    story.switch(30, 0, OWNER, MIDDLE).switch(700, 0, MIDDLE, OWNER, state=1)
    story.at(800, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    return story.switch(810, 1, LOWER, MEASURED).at(811, 1, "sys_exit_futex", ret=0)


@pytest.mark.parametrize(("command", "value", "inherits"), [(WAIT, CONTENDED, False), (LOCK_PI, 0, True)])
def test_only_a_lock_without_inheritance_is_to_inherit(command: int, value: int, inherits: bool) -> None:
    explanation, parts_ns = explained(lock_of_a_preempted_owner(command, value).moment(900))
    assert parts_ns[Kind.TASK, "middle", "owner"] == pytest.approx(670)
    words = remedies(explanation)
    assert any("PTHREAD_PRIO_INHERIT" in word for word in words) is not inherits
    assert any("give middle a lower real-time priority" in word for word in words) is inherits


def test_a_lock_that_the_cycle_before_waits_for_is_a_lock() -> None:
    moment = lock_of_a_sleeping_owner(WAIT, CONTENDED).moment(900)
    late = replace(moment, release_ns=moment.release_ns + 100_000, latency_ns=800_000)
    explanation, parts_ns = explained(late)
    assert parts_ns[Kind.OWNER_ASLEEP, "owner", "fdatasync"] == pytest.approx(400)
    assert explanation.owners == ("owner",)


@pytest.mark.parametrize("again", [LOCK, LOCK + 64])
def test_a_futex_wait_in_steps_has_the_last_steps_waker(again: int) -> None:
    """As for Python's interpreter lock."""
    story = futex(begun(), 20, 1, WAIT, 7).switch(22, 1, MEASURED, IDLE, state=1)
    story.timer(5_020, 1).switch(5_030, 1, IDLE, MEASURED).at(5_031, 1, "sys_exit_futex", ret=-110)
    story.at(5_035, 1, "sys_enter_futex", uaddr=again, op=WAIT | PRIVATE, val=7)
    story.switch(5_037, 1, MEASURED, IDLE, state=1)
    story.at(9_000, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.switch(9_010, 1, IDLE, MEASURED).at(9_011, 1, "sys_exit_futex", ret=0)
    explanation, _ = explained(story.moment(9_100))
    until = {
        part.culprit.until: part.ns / 1000 for part in explanation.parts if part.culprit.kind is Kind.BLOCKED
    }
    if again == LOCK:
        assert until == {"owner": pytest.approx(8_963, abs=10)}
    else:
        assert until == {"": pytest.approx(5_000, abs=10), "owner": pytest.approx(3_963, abs=10)}


def test_a_sleep_for_a_condition_is_no_lock() -> None:
    explanation, parts_ns = explained(lock_of_a_sleeping_owner(WAIT, 7).moment(900))
    assert parts_ns[Kind.BLOCKED, "futex", ""] == pytest.approx(775)
    assert not explanation.owners
