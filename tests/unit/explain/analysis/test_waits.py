# SPDX-License-Identifier: MIT
"""What a watched thread waits for besides its CPU: a signal, a debugger, a disk, another thread; in tables
drawn by hand.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of
from rtgauge.explain.analysis.explanation import Explanation, Kind, culprit_name, sentence
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Moment
from rtgauge.record.facts import Facts
from tests.unit.explain.made_events import HIGHER, IDLE, LOWER, MEASURED, MINE, RELEASE, THREAD, Story

BASH = ("bash", 400, 120)
PRODUCER = ("producer", 500, 60)
SLEEPS, DISK, STOPPED, TRACED = 1, 2, 4, 8


def explained(moment: Moment) -> tuple[Explanation, dict[tuple[Kind, str], float]]:
    """(the explanation, (kind, name) -> us); the parts add up."""
    explanation = explain(moment, Symbols((), ()))
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    return explanation, {(part.culprit.kind, part.culprit.name): part.ns / 1000 for part in explanation.parts}


def held(state: int, *, waker: tuple[str, int, int] = BASH) -> Story:
    """The thread runs from 10 us on, leaves the CPU in a state at 50, is woken by a task on the other CPU at
    900, runs at 910.
    """
    story = (
        Story()
        .switch(-500, 0, IDLE, waker)
        .switch(-500, 1, MEASURED, IDLE, state=SLEEPS)
        .timer(2, 1)
        .switch(10, 1, IDLE, MEASURED)
    )
    story.switch(50, 1, MEASURED, IDLE, state=state)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    return story.switch(910, 1, IDLE, MEASURED).switch(1000, 1, MEASURED, IDLE, state=SLEEPS)


def test_a_stop_by_a_signal_names_the_signal_and_its_sender() -> None:
    story = held(STOPPED).at(20, 0, "signal_generate", sig=19, comm="measured", pid=THREAD)
    explanation, parts_ns = explained(story.moment(1000))
    assert parts_ns[Kind.STOPPED, "SIGSTOP from bash"] == pytest.approx(850)
    assert "850.000 us it was stopped by SIGSTOP from bash, until bash continued it" in sentence(explanation)


def test_a_stop_signal_of_the_program_reaches_its_threads() -> None:
    main = THREAD - 1
    story = held(STOPPED).at(20, 0, "signal_generate", sig=19, comm="main", pid=main, group=1)
    _, parts_ns = explained(replace(story.moment(1000), process=main))
    assert parts_ns[Kind.STOPPED, "SIGSTOP from bash"] == pytest.approx(850)
    _, parts_ns = explained(replace(story.moment(1000), process=main - 1))
    assert parts_ns[Kind.STOPPED, "a signal"] == pytest.approx(850)


def test_a_stop_that_began_before_the_release_is_a_stop() -> None:
    story = held(STOPPED).at(20, 0, "signal_generate", sig=19, comm="measured", pid=THREAD)
    moment = story.moment(1000)
    explanation, parts_ns = explained(replace(moment, release_ns=RELEASE + 400_000, latency_ns=600_000))
    assert parts_ns[Kind.STOPPED, "SIGSTOP from bash"] == pytest.approx(500)
    assert explanation.main.culprit.until == "bash"


def test_a_stop_that_began_before_all_events_is_known_by_its_end() -> None:
    """The kernel wakes each stopped thread, and then reports the signal that continues the program."""
    main = THREAD - 1
    story = Story().switch(-500, 0, IDLE, BASH).switch(-500, 1, IDLE, LOWER)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(915, 0, "signal_generate", sig=18, comm="main", pid=main, group=1)
    moment = replace(story.switch(910, 1, LOWER, MEASURED).moment(1000), process=main)
    explanation, parts_ns = explained(moment)
    assert parts_ns[Kind.STOPPED, "a signal"] == pytest.approx(900)
    assert explanation.main.culprit.until == "bash"
    _, parts_ns = explained(replace(moment, process=main - 1))
    assert Kind.STOPPED not in {kind for kind, _ in parts_ns}


def test_a_stop_whose_switch_was_not_traced_is_a_stop() -> None:
    """The signal wakes the thread, which then leaves its CPU without an event until a signal continues it."""
    story = Story().switch(-3000, 0, IDLE, BASH).switch(-3000, 1, IDLE, LOWER)
    story.at(-2000, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(-1990, 0, "sched_wakeup", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(-1980, 0, "signal_generate", sig=19, comm="measured", pid=THREAD)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(915, 0, "signal_generate", sig=18, comm="measured", pid=THREAD)
    _, parts_ns = explained(story.switch(910, 1, LOWER, MEASURED).moment(1000))
    assert parts_ns[Kind.STOPPED, "SIGSTOP from bash"] == pytest.approx(900)


def triggered(story: Story, us: float, held: tuple[tuple[int, str], ...] = ()) -> Explanation:
    """The explanation of the time before a trigger."""
    return explained(replace(story.moment(us), kind="triggered", held=held))[0]


def test_a_sleep_before_a_trigger_is_no_late_timer() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=SLEEPS).timer(400, 1)
    story.switch(410, 1, LOWER, MEASURED).switch(500, 1, MEASURED, LOWER, state=SLEEPS)
    explanation = triggered(story, 1000, ((RELEASE + 500_000, "clock_nanosleep"),))
    assert Kind.TIMER_LATE not in {part.culprit.kind for part in explanation.parts}
    assert explanation.trigger_cause is None and explanation.trigger_words == "nothing unusual"
    assert not explanation.doubts


def test_the_longest_span_before_a_trigger_is_its_cause() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=SLEEPS).timer(10, 1).switch(20, 1, IDLE, MEASURED)
    story.switch(100, 1, MEASURED, HIGHER).switch(700, 1, HIGHER, MEASURED)
    assert triggered(story, 1000).trigger_words == "task hog"


def test_a_thread_without_a_cpu_before_a_trigger_was_ready() -> None:
    story = Story().switch(-500, 1, IDLE, HIGHER).at(500, 1, "irq_handler_entry", irq=3, name="disk")
    story.at(501, 1, "irq_handler_exit", irq=3)
    assert triggered(story, 1000).trigger_words == "task hog"


def test_a_thread_that_slept_all_the_time_is_blocked_in_its_call() -> None:
    story = Story().switch(-500, 1, IDLE, HIGHER)
    explanation = triggered(story, 1000, ((RELEASE - 10**9, "read"),))
    assert culprit_name(explanation.main.culprit) == "blocked in read"


def test_a_thread_frozen_asleep_is_blocked_until_woken() -> None:
    """Its timer does not wake it meanwhile."""
    for call, kind in (("clock_nanosleep", Kind.BLOCKED), ("epoll_wait", Kind.WAKER)):
        story = Story().switch(-500, 0, IDLE, BASH).switch(-900, 1, LOWER, MEASURED)
        story.at(-510, 1, f"sys_enter_{call}").switch(-500, 1, MEASURED, LOWER, state=SLEEPS)
        story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
        story.switch(910, 1, LOWER, MEASURED).at(911, 1, f"sys_exit_{call}", ret=0)
        explanation, parts_ns = explained(story.moment(1000))
        assert explanation.main.culprit.kind is kind
        assert parts_ns.get((Kind.BLOCKED, call), 0) == pytest.approx(900 if kind is Kind.BLOCKED else 0)


def test_a_sleep_without_a_wake_up_is_a_doubt() -> None:
    """The ring of another CPU may have lost the event."""
    moment = held(SLEEPS).moment(1000)
    kept = [event for event in moment.table.events if event.time_ns != RELEASE + 900_000]
    explanation, _ = explained(replace(moment, table=replace(moment.table, events=kept)))
    assert explanation.doubts == ["the trace does not show what ended a sleep"]
    assert not explained(moment)[0].doubts


def test_a_thread_woken_again_slept_without_a_switch() -> None:
    story = Story().switch(-500, 0, IDLE, BASH).switch(-500, 1, MEASURED, LOWER, state=SLEEPS)
    story.at(-300, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    explanation, parts_ns = explained(story.switch(910, 1, LOWER, MEASURED).moment(1000))
    assert parts_ns[Kind.UNATTRIBUTED, ""] == pytest.approx(900)
    assert explanation.doubts == ["the trace does not show what one of the threads did during a part of it"]


def test_a_debugger_that_stops_the_thread_is_named() -> None:
    explanation, parts_ns = explained(held(TRACED, waker=("gdb", 400, 120)).moment(1000))
    assert parts_ns[Kind.STOPPED, "a debugger"] == pytest.approx(850)
    assert "stopped by a debugger, until gdb continued it" in sentence(explanation)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (((RELEASE + 50_500, "fdatasync"),), "it was blocked in fdatasync until bash woke it"),
        ((), "it was blocked until bash"),
    ],
)
def test_a_sleep_for_a_disk_has_the_name_of_its_system_call(
    calls: tuple[tuple[int, str], ...], words: str
) -> None:
    explanation, parts_ns = explained(replace(held(DISK).moment(1000), held=calls))
    assert parts_ns[Kind.BLOCKED, calls[0][1] if calls else ""] == pytest.approx(850)
    assert words in sentence(explanation)


def test_a_sleep_for_a_disk_needs_no_traced_switch_to_the_thread() -> None:
    story = held(DISK)
    story.events = [
        event
        for event in story.events
        if not (event.name == "sched_switch" and event.time_ns == RELEASE + 10_000)
    ]
    _, parts_ns = explained(story.moment(1000))
    assert parts_ns[Kind.BLOCKED, ""] == pytest.approx(850)


def test_a_waker_that_slept_is_named_with_its_call() -> None:
    """The thread waits for a semaphore, as for a lock of Python, which has no owner."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=SLEEPS).switch(-100, 0, IDLE, PRODUCER)
    story.at(10, 0, "sys_enter_fsync", fd=3).switch(15, 0, PRODUCER, IDLE, state=DISK)
    story.at(700, 0, "block_rq_complete").at(700, 0, "sched_waking", comm="producer", pid=500, prio=60)
    story.events[-1] = story.events[-1]._replace(flags=8)
    story.switch(702, 0, IDLE, PRODUCER).at(705, 0, "sys_exit_fsync", ret=0)
    story.at(710, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    moment = replace(story.moment(710), kind="waited")
    explanation, parts_ns = explained(moment)
    assert parts_ns[Kind.WAKER_ASLEEP, "producer"] == pytest.approx(685, abs=5)
    assert "its waker producer (real-time priority 39, pid 500) slept in fsync" in sentence(explanation)
    remedy = remedy_of(ranked_culprits([explanation])[0], Facts())
    assert remedy is not None
    assert remedy.what.startswith("let producer wake the thread, or release the lock")
    assert remedy.what.endswith("before it calls fsync")
    same = replace(explanation, path=replace(explanation.path, name="producer"))
    remedy = remedy_of(ranked_culprits([same])[0], Facts())
    assert remedy is not None
    assert remedy.what.startswith("let the other thread producer wake the thread")


@pytest.mark.parametrize(("timeout", "interprets"), [(4096, True), (0, False)])
def test_only_a_timed_wait_is_for_the_interpreter_lock(timeout: int, interprets: bool) -> None:
    story = Story().switch(-500, 0, IDLE, ("python3", 400, 120))
    story.switch(-500, 1, MEASURED, IDLE, state=SLEEPS).timer(2, 1).switch(10, 1, IDLE, MEASURED)
    story.at(40, 1, "sys_enter_futex", uaddr=4096, op=128 + 9, val=0, utime=timeout)
    story.switch(50, 1, MEASURED, IDLE, state=SLEEPS)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.switch(910, 1, IDLE, MEASURED).at(911, 1, "sys_exit_futex", ret=0)
    explanation, _ = explained(story.moment(1000))
    ranked = ranked_culprits([explanation])[0]
    assert culprit_name(ranked.culprit) == "blocked in futex until python3 woke it"
    remedy = remedy_of(ranked, Facts())
    assert remedy is not None
    assert ("setswitchinterval" in remedy.what) is interprets
    assert remedy.what.startswith("shorten what python3 does") is not interprets


def test_what_kept_the_waker_is_named_from_its_wake_up() -> None:
    story = (
        Story()
        .switch(-4000, 1, MEASURED, PRODUCER, state=SLEEPS)
        .switch(-3900, 1, PRODUCER, LOWER, state=SLEEPS)
    )
    story.switch(-100, 1, LOWER, HIGHER).timer(0, 1, wakes=PRODUCER[1])
    story.switch(800, 1, HIGHER, PRODUCER, state=SLEEPS)
    story.at(850, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1).switch(
        860, 1, PRODUCER, MEASURED
    )
    moment = story.moment(850)
    begin = RELEASE - 4_000_000
    moment = replace(moment, release_ns=begin, latency_ns=moment.end_ns - begin, kind="waited")
    explanation, parts_ns = explained(moment)
    assert (
        explanation.latency_ns == 848_000
    )  # from the interrupt that woke the producer, and not from when the thread went to sleep
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(796)
    assert parts_ns[Kind.WAKER, "producer"] == pytest.approx(50)
    assert "that measured waited for producer" in sentence(explanation)
