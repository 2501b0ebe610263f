# SPDX-License-Identifier: MIT
"""Chains of threads that wait for one another, in tables drawn by hand."""

from __future__ import annotations

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Explanation, sentence
from rtgauge.explain.analysis.thread_path import Phase
from rtgauge.explain.trace.formats import Symbols
from tests.support.messages import missing
from tests.unit.explain.made_events import IDLE, MEASURED, THREAD, Story

MIDDLE = ("middle", 500, 60)
ORIGIN = ("origin", 600, 120)
SLEEPS, DISK = 1, 2


def wakes(story: Story, time_us: float, cpu: int, task: tuple[str, int, int], target: int = 1) -> Story:
    return story.at(time_us, cpu, "sched_waking", comm=task[0], pid=task[1], prio=task[2], target_cpu=target)


def story_of(origin: str) -> Story:
    """The thread asks `middle` at 20 us and sleeps in read; `middle` asks `origin`, and waits in a futex until
    `origin` wakes it at 900; `middle` wakes the thread at 920. Meanwhile, `origin` sleeps in fdatasync, or
    runs on CPU 0.
    """
    story = Story().switch(-500, 1, MEASURED, IDLE, state=SLEEPS).switch(-400, 2, IDLE, MIDDLE)
    story.switch(-400, 0, IDLE, ORIGIN).timer(2, 1).switch(10, 1, IDLE, MEASURED)
    story.at(20, 1, "sys_enter_read", fd=3).switch(25, 1, MEASURED, IDLE, state=SLEEPS)
    story.at(30, 2, "sys_enter_futex", uaddr=64, op=128, val=0, utime=0)
    story.switch(35, 2, MIDDLE, IDLE, state=SLEEPS)
    if origin == "fdatasync":
        story.at(40, 0, "sys_enter_fdatasync", fd=4).switch(45, 0, ORIGIN, IDLE, state=DISK)
        wakes(story, 880, 0, ORIGIN, 0)
        story.events[-1] = story.events[-1]._replace(flags=8)
        story.switch(885, 0, IDLE, ORIGIN).at(890, 0, "sys_exit_fdatasync", ret=0)
    wakes(story, 900, 0, MIDDLE, 2).switch(905, 2, IDLE, MIDDLE).at(906, 2, "sys_exit_futex", ret=0)
    wakes(story, 920, 2, MEASURED).switch(925, 1, IDLE, MEASURED).at(926, 1, "sys_exit_read", ret=1)
    return story.switch(950, 1, MEASURED, IDLE, state=SLEEPS)


def explained(story: Story) -> Explanation:
    return explain(story.moment(950, cpus=3), Symbols((), ()))


@pytest.mark.parametrize(
    ("origin", "phase", "call", "us", "words"),
    [
        ("fdatasync", Phase.BLOCKED, "fdatasync", 835, "which slept 835 us in fdatasync"),
        ("work", Phase.RUNNING, "", 865, "which ran for 865 us"),
    ],
)
def test_a_chain_leads_to_its_origin(origin: str, phase: Phase, call: str, us: int, words: str) -> None:
    parts_ns = explained(story_of(origin))
    assert [(link.name, link.call) for link in parts_ns.chain] == [
        ("measured", "read"),
        ("middle", "futex"),
        ("origin", call),
    ]
    assert parts_ns.chain[-1].phase is phase
    assert [link.ns / 1000 for link in parts_ns.chain] == [895, 865, us]
    assert not missing(sentence(parts_ns), "895 us in read for middle", "865 us in futex for origin", words)


def test_a_sleep_that_an_interrupt_ended_has_no_chain() -> None:
    story = story_of("work")
    at = next(n for n, event in enumerate(story.events) if event.number("pid") == THREAD and event.cpu == 2)
    story.events[at] = story.events[at]._replace(flags=8)
    assert explained(story).chain == ()


def test_an_origin_that_the_trace_does_not_show_is_unknown() -> None:
    """CPU 0 has no events but the waking, as if the kernel had overwritten them."""
    story = story_of("work")
    waking = next(event for event in story.events if event.number("pid") == MIDDLE[1] and event.cpu == 0)
    story.events = [event for event in story.events if event.cpu != 0 or event is waking]
    parts_ns = explained(story)
    assert [link.phase for link in parts_ns.chain] == [Phase.BLOCKED, Phase.BLOCKED, Phase.UNKNOWN]
    assert sentence(parts_ns).endswith("which waited 865 us in futex for pid 600")
