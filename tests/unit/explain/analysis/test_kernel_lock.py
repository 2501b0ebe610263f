# SPDX-License-Identifier: MIT
"""Waits for a lock of the kernel, spinning and asleep, in tables drawn by hand."""

from __future__ import annotations

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of
from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, culprit_name, sentence
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.record.facts import Facts
from tests.unit.explain.made_events import IDLE, IN_HARD_INTERRUPT, MEASURED, MINE, THREAD, Story

OWNER = ("mapper", 500, 120)
SLEEPS, DISK = 1, 2
MEMORY, OTHER_MEMORY, LOCK = 0xF00, 0xF01, 0xBEEF
SPIN, READ, WRITE, REAL_TIME, PERCPU, MUTEX = 1, 2, 4, 8, 16, 32


def running() -> Story:
    """The thread runs on CPU 1 from 10 us on, the owner on CPU 0."""
    return (
        Story()
        .switch(-500, 0, IDLE, OWNER)
        .switch(-500, 1, MEASURED, IDLE, state=SLEEPS)
        .timer(2, 1)
        .switch(10, 1, IDLE, MEASURED)
    )


def memory(story: Story, time_us: float, cpu: int, what: str, lock: int = MEMORY) -> Story:
    """An event of the lock of a memory."""
    return story.at(time_us, cpu, f"mmap_lock_{what}", mm=lock, write=1)


def explained(story: Story) -> tuple[Explanation, dict[tuple[Kind, str, str], float]]:
    """(the explanation, (kind, name, owner) -> us); the parts add up."""
    explanation = explain(story.moment(1000), Symbols((), ()))
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    return explanation, {
        (part.culprit.kind, part.culprit.name, part.culprit.until): part.ns / 1000
        for part in explanation.parts
    }


def test_spinning_for_the_memory_lock_is_no_own_work() -> None:
    story = memory(memory(running(), 20, 0, "start_locking"), 21, 0, "acquire_returned")
    memory(memory(story, 50, 1, "start_locking"), 900, 0, "released")
    explanation, parts_ns = explained(memory(story, 901, 1, "acquire_returned"))
    assert parts_ns[Kind.KERNEL_LOCK, "mmap_lock", "mapper"] == pytest.approx(851)
    assert parts_ns[Kind.OWN, "", ""] == pytest.approx(40 + 99)
    assert "851.000 us it waited for the kernel lock mmap_lock, which mapper held" in sentence(explanation)
    assert culprit_name(explanation.main.culprit) == "kernel lock mmap_lock of mapper"
    remedy = remedy_of(ranked_culprits([explanation])[0], Facts())
    assert remedy is not None
    assert "before the loop" in remedy.what


def test_an_early_owner_is_known_by_its_release() -> None:
    story = memory(memory(running(), 50, 1, "start_locking"), 900, 0, "released")
    _, parts_ns = explained(memory(story, 901, 1, "acquire_returned"))
    assert parts_ns[Kind.KERNEL_LOCK, "mmap_lock", "mapper"] == pytest.approx(851)


@pytest.mark.parametrize("lock", [MEMORY, OTHER_MEMORY])
def test_a_lock_that_nobody_has_is_not_waited_for(lock: int) -> None:
    story = memory(memory(running(), 20, 0, "acquire_returned", lock), 30, 0, "released", lock)
    memory(memory(story, 50, 1, "start_locking"), 900, 1, "acquire_returned")
    _, parts_ns = explained(memory(story, 950, 1, "released"))
    assert parts_ns[Kind.OWN, "", ""] == pytest.approx(990)


def test_a_lock_its_owner_reads_under_is_free_once_taken() -> None:
    story = memory(running(), 20, 0, "acquire_returned")
    memory(memory(story, 50, 1, "start_locking"), 60, 1, "acquire_returned")
    memory(memory(story, 61, 1, "released"), 100, 1, "start_locking")
    _, parts_ns = explained(memory(story, 900, 1, "acquire_returned"))
    assert parts_ns[Kind.KERNEL_LOCK, "mmap_lock", "mapper"] == pytest.approx(10)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (MUTEX | SPIN, "mutex"),
        (WRITE, "rwsem"),
        (READ, "rwsem"),
        (SPIN, "spinlock"),
        (SPIN | READ, "spinlock"),
        (REAL_TIME, "rt_mutex"),
        (PERCPU | READ, "percpu_rwsem"),
        (0, "semaphore"),
    ],
)
def test_a_contended_lock_has_its_kind_and_waker(flags: int, name: str) -> None:
    story = running().at(50, 1, "contention_begin", lock_addr=LOCK, flags=flags)
    story.switch(100, 1, MEASURED, IDLE, state=DISK)
    story.at(900, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.switch(910, 1, IDLE, MEASURED).at(912, 1, "contention_end", lock_addr=LOCK, ret=0)
    _, parts_ns = explained(story)
    assert parts_ns[Kind.KERNEL_LOCK, name, ""] == pytest.approx(52)
    assert parts_ns[Kind.KERNEL_LOCK, name, "mapper"] == pytest.approx(800)


def test_contention_within_the_memory_wait_is_the_same_wait() -> None:
    story = memory(memory(running(), 20, 0, "acquire_returned"), 50, 1, "start_locking")
    story.at(60, 1, "contention_begin", lock_addr=LOCK, flags=WRITE)
    memory(story, 899, 0, "released").at(900, 1, "contention_end", lock_addr=LOCK, ret=0)
    _, parts_ns = explained(memory(story, 901, 1, "acquire_returned"))
    assert parts_ns[Kind.KERNEL_LOCK, "mmap_lock", "mapper"] == pytest.approx(851)


def test_a_lock_that_an_interrupt_waits_for_is_not_the_threads() -> None:
    story = running().at(50, 1, "contention_begin", lock_addr=LOCK, flags=SPIN)
    story.at(52, 1, "contention_end", lock_addr=LOCK, ret=0)
    story.events[-2:] = [event._replace(flags=IN_HARD_INTERRUPT) for event in story.events[-2:]]
    _, parts_ns = explained(story)
    assert parts_ns[Kind.OWN, "", ""] == pytest.approx(990)


def test_a_fault_that_waits_for_a_lock_surrounds_the_wait() -> None:
    story = running().at(50, 1, "page_fault_user", address=4096)
    story.at(52, 1, "contention_begin", lock_addr=LOCK, flags=READ)
    story.at(902, 1, "contention_end", lock_addr=LOCK, ret=0).at(905, 1, "page_fault_user", address=8192)
    story.at(907, 1, "sched_wakeup_new", comm="x", pid=9, prio=120)
    explanation, parts_ns = explained(story)
    assert parts_ns[Kind.KERNEL_LOCK, "rwsem", ""] == pytest.approx(850)
    assert parts_ns[Kind.PAGE_FAULT, "", ""] == pytest.approx(2 + 3 + 2)
    assert explanation.main.culprit == Culprit(Kind.KERNEL_LOCK, "rwsem")
