# SPDX-License-Identifier: MIT
"""Every class of cause, in tables drawn by hand: the parts are those that were drawn, and add up to the
latency exactly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, sentence, sum_words
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Lost, Moment
from tests.support.messages import missing
from tests.unit.explain.made_events import HIGHER, IDLE, LOWER, MEASURED, MINE, RELEASE, THREAD, Story

if TYPE_CHECKING:
    from collections.abc import Callable

NO_SYMBOLS = Symbols((), ())


def explained(moment: Moment, symbols: Symbols = NO_SYMBOLS) -> Explanation:
    """The explanation, whose parts must add up."""
    explanation = explain(moment, symbols)
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    assert all(
        part.ns == sum(end - start for start, end, _ in part.spans)
        for part in explanation.parts
        if part.spans
    )
    return explanation


def parts(explanation: Explanation) -> dict[tuple[Kind, str], float]:
    """(kind, name) -> us."""
    return {(part.culprit.kind, part.culprit.name): part.ns / 1000 for part in explanation.parts}


def test_a_quiet_wake_up_from_idle_is_idle_exit_timer_and_switch() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).at(-490, 1, "cpu_idle", state=2)
    story.timer(10, 1).at(15, 1, "cpu_idle", state=0xFFFF_FFFF).switch(17, 1, IDLE, MEASURED)
    parts_ns = parts(explained(story.moment(20)))
    assert parts_ns == {
        (Kind.IDLE_EXIT, "state 2"): pytest.approx(11),
        (Kind.INTERRUPT, "local timer"): pytest.approx(4),
        (Kind.SWITCH, ""): pytest.approx(2),
        (Kind.OWN, ""): pytest.approx(3),
    }


@pytest.mark.parametrize("other", [LOWER, IDLE])
def test_a_timer_set_after_the_release_is_the_programs_own(other: tuple[str, int, int]) -> None:
    """Although interrupts ran on its CPU meanwhile, nothing was late but what the program had set."""
    story = Story().switch(-500, 1, MEASURED, other, state=1)
    story.at(60, 1, "local_timer_entry", vector=236).at(64, 1, "local_timer_exit", vector=236)
    story.timer(107, 1).switch(114, 1, other, MEASURED)
    moment = replace(story.moment(120), timer_ns=RELEASE + 100_000)
    explanation = explained(moment)
    assert explanation.main.culprit == Culprit(Kind.OWN_TIMER)
    assert explanation.main.ns == 100_000
    late = Kind.IDLE_EXIT if other is IDLE else Kind.TIMER_LATE
    assert sum(part.ns for part in explanation.parts if part.culprit.kind is late) == 7_000
    assert "100.000 us the program had set its timer for later than the release" in sentence(explanation)
    assert explained(replace(moment, timer_ns=0)).main.culprit.kind is late


def test_a_sleep_for_a_timer_set_after_the_release_is_the_programs_own() -> None:
    """The thread was late itself, and then slept for too long."""
    story = Story().switch(-500, 1, LOWER, MEASURED).switch(30, 1, MEASURED, LOWER, state=1)
    story.timer(107, 1).switch(114, 1, LOWER, MEASURED)
    parts_us = parts(explained(replace(story.moment(120), timer_ns=RELEASE + 100_000)))
    assert parts_us[Kind.OWN_TIMER, ""] == pytest.approx(70)
    assert parts_us[Kind.BLOCKED, ""] == pytest.approx(9)  # until the wake-up


def test_a_sleep_that_a_task_ends_is_not_for_the_timer() -> None:
    story = Story().switch(-500, 1, LOWER, MEASURED).switch(30, 1, MEASURED, LOWER, state=1)
    story.at(107, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.switch(114, 1, LOWER, MEASURED)
    parts_us = parts(explained(replace(story.moment(120), timer_ns=RELEASE + 100_000)))
    assert (Kind.OWN_TIMER, "") not in parts_us


def quiet() -> Story:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).at(-490, 1, "cpu_idle", state=2)
    return story.timer(10, 1).at(15, 1, "cpu_idle", state=0xFFFF_FFFF).switch(200, 1, IDLE, MEASURED)


def hogged() -> Story:
    return Story().switch(-500, 1, MEASURED, HIGHER, state=1).timer(2, 1).switch(200, 1, HIGHER, MEASURED)


def kept() -> Story:
    return Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(2, 1).switch(200, 1, LOWER, MEASURED)


def passed_over() -> Story:
    return (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .timer(2, 1)
        .switch(20, 1, HIGHER, LOWER)
        .switch(200, 1, LOWER, MEASURED)
    )


@pytest.mark.parametrize("reported", [quiet, hogged, kept, passed_over])
def test_a_thread_woken_by_its_own_cpu_needs_no_wake_up_event(
    reported: Callable[[], Story],
) -> None:
    story, lean = reported(), reported()
    lean.events = [event for event in lean.events if not event.name.startswith(("sched_wakeup", "hrtimer"))]
    assert parts(explained(lean.moment(210))) == parts(explained(story.moment(210)))


def test_a_handler_that_keeps_the_timer_is_named_with_its_number() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    story.at(-10, 1, "irq_handler_entry", irq=31, name="virtio-net").at(200, 1, "irq_handler_exit", irq=31)
    story.timer(201, 1).switch(207, 1, LOWER, MEASURED)
    explanation = explained(story.moment(210))
    assert explanation.main.culprit == Culprit(Kind.IRQ, "virtio-net", 31)
    assert explanation.main.ns == 200_000
    assert "handler of irq 31 (virtio-net)" in sentence(explanation)
    assert sum(part.ns for part in explanation.parts) == 210_000


def test_an_interrupt_within_a_task_counts_as_the_interrupts() -> None:
    story = Story().switch(-500, 1, MEASURED, HIGHER, state=1)
    story.timer(2, 1).at(50, 1, "irq_handler_entry", irq=9, name="disk").at(80, 1, "irq_handler_exit", irq=9)
    story.at(80, 1, "softirq_entry", vec=4).at(90, 1, "nmi_handler", handler=5, delta_ns=3000, handled=1).at(
        95, 1, "softirq_exit", vec=4
    )
    story.switch(300, 1, HIGHER, MEASURED, state=1)
    parts_ns = parts(explained(story.moment(301), Symbols((5,), ("perf_event_nmi_handler",))))
    assert parts_ns[Kind.IRQ, "disk"] == pytest.approx(30)
    assert parts_ns[Kind.SOFTIRQ, "BLOCK"] == pytest.approx(12)
    assert parts_ns[Kind.NMI, "perf_event_nmi_handler"] == pytest.approx(3)
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(300 - 6 - 30 - 15)
    assert parts_ns[Kind.TIMER_LATE, "hog"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("rearmed", "next_event", "programmed_ns"),
    [
        ([40], RELEASE, 40_000),
        ([40], RELEASE - 5_000, 40_000),
        ([10, 40], RELEASE, 40_000),
        ([40], RELEASE + 1, 0),
        ([-3], RELEASE, 0),
        ([], RELEASE, 0),
    ],
)
def test_a_late_programmed_timer_is_no_late_interrupt(
    rearmed: list[float], next_event: int, programmed_ns: int
) -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    for time_us in rearmed:
        story.at(time_us, 1, "hrtimer_rearm", next_event=next_event, deferred=1)
    story.at(60, 0, "hrtimer_rearm", next_event=next_event, deferred=1)
    explanation = explained(story.timer(100, 1).switch(107, 1, LOWER, MEASURED).moment(110))
    actual = {part.culprit: part.ns for part in explanation.parts}
    programmed = Culprit(Kind.TIMER_LATE, "hackbench", mechanism="hrtimer_rearm")
    assert actual.get(programmed, 0) == programmed_ns
    assert actual[Culprit(Kind.TIMER_LATE, "hackbench")] == 100_000 - programmed_ns
    assert ("timer programmed late in hackbench" in sum_words(explanation)) == bool(programmed_ns)


@pytest.mark.parametrize("values", [{"expires": RELEASE, "deferred": 1}, {"next_event": RELEASE}])
def test_an_event_without_the_known_fields_says_nothing(values: dict[str, int]) -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).at(40, 1, "hrtimer_rearm", **values)
    story.at(50, 1, "softirq_entry", vec=1).at(60, 1, "tmigr_handle_remote_cpu", group=3)
    story.at(70, 1, "softirq_exit", vec=1)
    words = sum_words(explained(story.timer(100, 1).switch(107, 1, LOWER, MEASURED).moment(110)))
    assert "programmed late" not in words
    assert "of CPU" not in words


def test_timers_of_an_idle_cpu_are_named_with_their_cpu() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    story.at(-10, 1, "softirq_entry", vec=1).at(30, 1, "tmigr_handle_remote_cpu", cpu=3, wakeup=0)
    story.at(40, 1, "timer_expire_entry", timer=5, function=1).at(70, 1, "timer_expire_exit", timer=5)
    story.at(80, 1, "tmigr_handle_remote_cpu", cpu=2, wakeup=0).at(100, 1, "softirq_exit", vec=1)
    parts_ns = parts(explained(story.timer(101, 1).switch(108, 1, LOWER, MEASURED).moment(110)))
    assert {name: us for (kind, name), us in parts_ns.items() if kind is Kind.SOFTIRQ} == {
        "TIMER": pytest.approx(30),
        "TIMER of CPU 3": pytest.approx(50),
        "TIMER of CPU 2": pytest.approx(20),
    }


def test_equal_priority_is_a_task_and_lower_is_preemption_off() -> None:
    for priority, kind in (
        (19, Kind.TASK),
        (-1, Kind.TASK),
        (20, Kind.PREEMPTION_OFF),
        (120, Kind.PREEMPTION_OFF),
    ):
        other = ("other", 400, priority)
        story = Story().switch(-500, 1, MEASURED, other, state=1).timer(1, 1).switch(400, 1, other, MEASURED)
        assert explained(story.moment(402)).main.culprit == Culprit(kind, "other"), priority


def test_a_task_raised_while_it_ran_counts_as_a_task() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, LOWER, state=1)
        .timer(1, 1)
        .switch(400, 1, ("hackbench", 200, 4), MEASURED)
    )
    assert explained(story.moment(402)).main.culprit == Culprit(Kind.TASK, "hackbench")


def test_interrupts_off_has_the_traced_functions_name() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    story.at(-5, 1, "irq_disable", caller_offs=0x40, parent_offs=0x80).at(
        490, 1, "irq_enable", caller_offs=0x44, parent_offs=0x80
    )
    story.timer(491, 1).switch(496, 1, LOWER, MEASURED)
    explanation = explained(story.moment(500), Symbols((0x1000, 0x1040), ("_stext", "stall_irqs_off+0x10")))
    assert explanation.main.culprit == Culprit(Kind.INTERRUPTS_OFF, "hackbench")
    assert explanation.main.ns == 490_000
    assert not missing(
        sentence(explanation), "interrupts were off", "stall_irqs_off", "hackbench", "nice 0, pid 200"
    )


def by_stack(frames: str) -> Explanation:
    """A timer that came 490 us late, with what its interrupt found: a function at 30, a thunk at 40."""
    story = (
        Story()
        .switch(-500, 1, MEASURED, LOWER, state=1)
        .timer(490, 1)
        .at(491.5, 1, "kernel_stack", size=3, caller=frames)
    )
    names = (
        "hrtimer_interrupt",
        "asm_sysvec_apic_timer_interrupt",
        "stall_irqs_off+0x2b",
        "__x86_indirect_thunk_rax+0x5",
    )
    return explained(
        story.switch(496, 1, LOWER, MEASURED).moment(500), Symbols((0x10, 0x20, 0x30, 0x40), names)
    )


@pytest.mark.parametrize("frames", ["10 20 30", "10 20 40 30"])
def test_a_late_interrupt_found_the_function_that_blocked_it(frames: str) -> None:
    explanation = by_stack(frames)
    assert explanation.main.culprit == Culprit(Kind.INTERRUPTS_OFF, "hackbench")
    assert "interrupts were off in stall_irqs_off while hackbench" in sentence(explanation)


def test_an_unnamed_function_does_not_explain_a_late_interrupt() -> None:
    assert by_stack("10 20 99").main.culprit == Culprit(Kind.TIMER_LATE, "hackbench")


def test_an_interrupt_late_in_a_program_was_not_softwares_doing() -> None:
    explanation = by_stack("10 20")
    assert explanation.main.culprit == Culprit(Kind.NO_SOFTWARE)
    assert "no software ran on CPU 1" in sentence(explanation)
    assert by_stack("10").main.culprit.kind is Kind.TIMER_LATE


def test_one_cpus_late_timer_is_no_stall_of_the_machine() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).switch(-600, 0, IDLE, LOWER)
    story.timer(500, 1).switch(505, 1, LOWER, MEASURED)
    assert explained(story.moment(510)).main.culprit == Culprit(Kind.TIMER_LATE, "hackbench")


def _stopped(first_busy: bool) -> Story:
    """All CPUs silent for 800 us, with timers due on both."""
    story = Story().switch(-500, 1, MEASURED, LOWER if first_busy else IDLE, state=1)
    story.at(-450, 0, "hrtimer_start", hrtimer=8, function=1, expires=RELEASE + 20_000).switch(
        -440, 0, ("other", 101, 19), IDLE, state=1
    )
    story.at(800, 0, "local_timer_entry", vector=236).at(
        801, 0, "hrtimer_expire_entry", hrtimer=8, function=1, now=0
    )
    return story.timer(803, 1).switch(810, 1, LOWER if first_busy else IDLE, MEASURED)


def test_no_software_ran_where_timers_of_several_cpus_came_late() -> None:
    explanation = explained(_stopped(first_busy=True).moment(812))
    assert explanation.main.culprit.kind is Kind.NO_SOFTWARE
    assert explanation.main.cpus == {0, 1}
    assert explanation.main.ns == 800_000
    assert "no software ran on CPUs 0-1" in sentence(explanation)


def test_no_software_ran_where_a_busy_cpu_missed_its_tick_too() -> None:
    for length, kind in ((21_000, Kind.NO_SOFTWARE), (3_000, Kind.TIMER_LATE)):
        story = Story().switch(-500, 1, MEASURED, LOWER, state=1).switch(-600, 0, IDLE, LOWER)
        story.timer(length, 1).switch(length + 7, 1, LOWER, MEASURED)
        assert explained(story.moment(length + 10)).main.culprit.kind is kind


def test_a_handler_from_before_the_trace_gets_a_later_name() -> None:
    story = Story().at(150, 1, "irq_handler_exit", irq=31).timer(151, 1).switch(157, 1, LOWER, MEASURED)
    story.at(-900, 0, "irq_handler_entry", irq=31, name="disk").at(-890, 0, "irq_handler_exit", irq=31)
    assert explained(story.moment(160)).main.culprit == Culprit(Kind.IRQ, "disk", 31)


def test_two_cpus_that_leave_idle_together_are_no_stall() -> None:
    assert explained(_stopped(first_busy=False).moment(812)).main.culprit.kind is Kind.IDLE_EXIT


def test_a_task_put_first_by_the_server_is_throttling() -> None:
    story = Story().switch(-500, 1, IDLE, MEASURED).switch(-5, 1, MEASURED, LOWER)
    story.switch(49_000, 1, LOWER, MEASURED)
    explanation = explained(story.moment(49_005))
    assert explanation.main.culprit == Culprit(Kind.THROTTLED, "hackbench", user="measured")
    assert explanation.main.ns == 49_000_000
    story = (
        Story()
        .switch(-500, 1, IDLE, MEASURED)
        .switch(100, 1, MEASURED, LOWER)
        .switch(50_000, 1, LOWER, MEASURED)
    )
    explanation = explained(story.moment(50_005))
    assert explanation.main.culprit == Culprit(Kind.THROTTLED, "hackbench", user="measured")
    assert explanation.main.ns == 49_900_000


def test_who_used_up_the_budget_of_real_time_tasks_is_named() -> None:
    poller = ("poller", 300, 9)
    story = Story().switch(-1900, 1, MEASURED, poller, state=1).timer(0, 1)
    story.switch(100, 1, poller, LOWER).switch(50_000, 1, LOWER, poller)
    explanation = explained(story.switch(50_100, 1, poller, MEASURED, state=1).moment(50_105))
    assert explanation.main.culprit == Culprit(Kind.THROTTLED, "hackbench", user="poller")
    assert "before that, poller had used the most CPU time" in sentence(explanation)


def test_a_reschedule_that_keeps_the_lower_task_is_throttling() -> None:
    for flags, kind in ((0, Kind.THROTTLED), (4, Kind.PREEMPTION_OFF)):
        story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(1, 1)
        story.at(2_000, 1, "local_timer_entry", vector=236).at(2_004, 1, "local_timer_exit", vector=236)
        story.events = [
            event._replace(flags=flags if event.time_ns > RELEASE + 1_000_000 else 4)
            for event in story.events
        ]
        assert explained(story.switch(40_000, 1, LOWER, MEASURED).moment(40_005)).main.culprit == Culprit(
            kind, "hackbench"
        )


def test_a_lower_task_without_need_resched_was_boosted() -> None:
    story = Story().switch(-500, 1, MEASURED, ("packets", 200, 79), state=1).timer(1, 1)
    story.events[-1] = story.events[-1]._replace(flags=4)
    story.at(300, 1, "softirq_entry", vec=3).at(350, 1, "softirq_exit", vec=3)
    parts_ns = parts(explained(story.switch(800, 1, ("packets", 200, 79), MEASURED).moment(802)))
    assert parts_ns[Kind.TASK, "packets"] == pytest.approx(795 - 50)
    assert not any(kind is Kind.THROTTLED for kind, _ in parts_ns)


def test_a_higher_task_without_need_resched_is_no_throttling() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(1, 1)
    story.events[-1] = story.events[-1]._replace(flags=4)
    story.switch(5, 1, LOWER, HIGHER).at(300, 1, "local_timer_entry", vector=236).at(
        305, 1, "local_timer_exit", vector=236
    )
    parts_ns = parts(explained(story.switch(800, 1, HIGHER, MEASURED, state=1).moment(802)))
    assert parts_ns[Kind.TASK, "hog"] == pytest.approx(790)
    assert not any(kind is Kind.THROTTLED for kind, _ in parts_ns)


def test_a_wake_up_on_another_cpu_goes_through_its_interrupt() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).switch(-600, 0, IDLE, LOWER)
    story.timer(1, 0, target=1).at(40, 1, "reschedule_entry", vector=253)
    story.at(41, 1, "sched_wakeup", comm="measured", pid=100, prio=19, target_cpu=1).at(
        42, 1, "reschedule_exit", vector=253
    )
    story.switch(44, 1, LOWER, MEASURED)
    parts_ns = parts(explained(story.moment(45)))
    assert parts_ns[Kind.REMOTE_WAKEUP, ""] == pytest.approx(37)
    assert parts_ns[Kind.INTERRUPT, "reschedule"] == pytest.approx(2)


def test_a_page_fault_of_the_thread_and_its_wait_for_the_page() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    story.at(8, 1, "page_fault_user", address=4096, ip=1, error_code=6).switch(20, 1, MEASURED, IDLE, state=2)
    story.timer(900, 1).switch(906, 1, IDLE, MEASURED)
    parts_ns = parts(explained(story.moment(910)))
    assert parts_ns[Kind.PAGE_FAULT, ""] == pytest.approx(12 + 882)


def test_a_page_fault_with_preemption_off_is_not_the_sleep_of_a_call() -> None:
    """As recorded on Linux 6.12 and 7.3: the tracer of a call reads the thread's stack, and fails."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    story.at(42, 1, "sys_enter_fdatasync", fd=5).at(49, 1, "page_fault_kernel", address=0, ip=1, error_code=0)
    story.events[-1] = story.events[-1]._replace(preempt_count=1)
    story.switch(76, 1, MEASURED, IDLE, state=2).timer(900, 1).switch(906, 1, IDLE, MEASURED)
    parts_ns = parts(explained(story.moment(910)))
    assert parts_ns[Kind.BLOCKED, "fdatasync"] == pytest.approx(826, abs=10)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(73, abs=10)
    assert not any(kind in {Kind.PAGE_FAULT, Kind.FAULT_OR_OWN} for kind, _ in parts_ns)


def test_a_page_fault_of_a_tracer_does_not_end_one_of_the_thread() -> None:
    """As recorded on Linux 7.3, on an emulated processor: 50 faults, each followed by 64 us of own work."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(50):
        story.at(10 + number * 118, 1, "page_fault_user", address=4096 * number, ip=1, error_code=6)
        story.at(41 + number * 118, 1, "rss_stat", mm_id=1, curr=1, member=1, size=1)
        story.at(48 + number * 118, 1, "page_fault_kernel", address=32, ip=2, error_code=0)
        story.events[-1] = story.events[-1]._replace(preempt_count=1)
    explanation = explained(story.switch(5910, 1, MEASURED, IDLE, state=1).moment(5910))
    assert parts(explanation)[Kind.PAGE_FAULT, ""] == pytest.approx(50 * (31 + 4.4), abs=5)
    assert ranked_culprits([explanation])[0].culprit.kind is Kind.OWN


def test_long_work_after_a_page_fault_may_be_the_programs_own() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    story.at(8, 1, "page_fault_user", address=4096, ip=1, error_code=6).at(
        18, 1, "page_fault_user", address=8192, ip=1, error_code=6
    )
    explanation = explained(story.switch(900, 1, MEASURED, IDLE, state=1).moment(900))
    assert parts(explanation)[Kind.PAGE_FAULT, ""] == pytest.approx(5)
    assert parts(explanation)[Kind.FAULT_OR_OWN, ""] == pytest.approx(882)
    assert "end of the fault" in sentence(explanation)


def test_work_between_page_faults_is_own_with_bounded_faults() -> None:
    """50 faults, each followed by 16 us of own work after 2.6 us in the kernel."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(50):
        story.at(10 + number * 18.6, 1, "page_fault_user", address=4096 * number, ip=1, error_code=6)
    explanation = explained(story.switch(940, 1, MEASURED, IDLE, state=1).moment(940))
    fault_us, own_us = parts(explanation)[Kind.PAGE_FAULT, ""], parts(explanation)[Kind.OWN, ""]
    assert explanation.main.culprit.kind is Kind.OWN
    assert 50 * 2.6 <= fault_us <= 250
    assert own_us >= 50 * 13.6
    (doubt,) = explanation.doubts
    assert "up to 235.000 us more or less" in doubt
    assert ranked_culprits([explanation])[0].culprit.kind is Kind.OWN


def test_a_write_to_a_page_that_is_present_is_a_copy() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(50):
        story.at(10 + number, 1, "page_fault_user", address=4096 * number, ip=1, error_code=7)
    explanation = explained(story.switch(61, 1, MEASURED, IDLE, state=1).moment(61))
    assert parts(explanation)[Kind.PAGE_FAULT, "copy on write"] == pytest.approx(51)
    assert "its own page fault (copy on write)" in sentence(explanation)


def test_successive_page_faults_are_certain() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(500):
        story.at(10 + number * 0.7, 1, "page_fault_user", address=4096 * number, ip=1, error_code=6)
    explanation = explained(story.switch(361, 1, MEASURED, IDLE, state=1).moment(361))
    assert parts(explanation)[Kind.PAGE_FAULT, ""] == pytest.approx(351)
    assert not explanation.doubts


def faulting(
    count: int, there_us: float, apart_us: float, code: int = 6, *mapped: tuple[str, int]
) -> Explanation:
    """Page faults of the thread whose pages are there after a while, and nothing else."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(count):
        begin = 10 + number * apart_us
        story.at(begin, 1, "page_fault_user", address=4096 * number, ip=1, error_code=code)
        for name, reason in mapped:
            story.at(begin + there_us, 1, name, reason=reason)
    end = 10 + count * apart_us
    return explained(story.switch(end, 1, MEASURED, IDLE, state=1).moment(end))


def test_a_present_page_bounds_its_fault_and_the_rest_is_own() -> None:
    for code, back, uncertain in ((6, 0.875, 0.075), (7, 0.6, 0.15), (4, 0.525, 0.425)):
        explanation = faulting(50, 1.1, 18, code, ("rss_stat", 0))
        parts_ns = parts(explanation)
        name = "copy on write" if code == 7 else ""
        assert parts_ns[Kind.PAGE_FAULT, name] == pytest.approx(50 * 1.1 * (1 + back), rel=0.001)
        assert parts_ns[Kind.OWN, ""] == pytest.approx(50 * (18 - 1.1 * (1 + back)) + 3, rel=0.001)
        up_to = f"up to {50 * round(1100 * uncertain) / 1000:,.3f} us more or less"
        assert [up_to in doubt for doubt in explanation.doubts] == ([True] if code == 4 else [])
        assert ranked_culprits([explanation])[0].culprit.kind is Kind.OWN


def test_slow_faults_of_present_pages_are_certain() -> None:
    for mapped in (("rss_stat", 0), ("tlb_flush", 3)):
        explanation = faulting(500, 4, 7, 7, mapped)
        assert parts(explanation)[Kind.PAGE_FAULT, "copy on write"] == pytest.approx(3500)
        assert not explanation.doubts


def test_pages_that_the_kernel_lists_at_a_fault_belong_to_it() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    for number in range(31):
        story.at(10 + number * 2, 1, "page_fault_user", address=4096 * number, ip=1, error_code=6)
        story.at(11 + number * 2, 1, "rss_stat", member=1)
    for number in range(31):
        story.at(71.5 + number / 10, 1, "mm_lru_insertion", pfn=number)
    explanation = explained(story.switch(75, 1, MEASURED, IDLE, state=1).moment(75))
    assert parts(explanation)[Kind.PAGE_FAULT, ""] == pytest.approx(65)
    assert not explanation.doubts


def test_a_huge_page_is_a_page_fault_until_it_is_there() -> None:
    explanation = faulting(1, 90, 200, 6, ("rss_stat", 0))
    assert parts(explanation)[Kind.PAGE_FAULT, ""] == pytest.approx(90 + 0.875 * 5)
    assert Kind.FAULT_OR_OWN not in {kind for kind, _ in parts(explanation)}


@pytest.mark.parametrize(("mapped", "fault_us"), [(True, 26 + 0.875 * 5), (False, 5)])
def test_a_fault_that_an_interrupt_delays_lasts_until_its_page_is_mapped(
    *, mapped: bool, fault_us: float
) -> None:
    """Without the page, the interrupt may have come after the fault."""
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED)
    story.at(10, 1, "page_fault_user", address=4096, ip=1, error_code=6)
    story.at(30, 1, "local_timer_entry", vector=236).at(70, 1, "rss_stat", member=1)
    story.at(80, 1, "local_timer_exit", vector=236)
    if mapped:
        story.at(86, 1, "rss_stat", member=1)
    explanation = explained(story.switch(115, 1, MEASURED, IDLE, state=1).moment(115))
    parts_ns = parts(explanation)
    assert parts_ns[Kind.PAGE_FAULT, ""] == pytest.approx(fault_us)
    assert parts_ns[Kind.OWN, ""] == pytest.approx(105 - 50 - fault_us + 3)


def test_a_flush_on_other_cpus_does_not_end_a_fault() -> None:
    for after in (8, 100):
        explanation = faulting(1, 2, 2 + after, 7, ("tlb_flush", 4), ("tlb_flush", 3))
        parts_ns = parts(explanation)
        assert parts_ns.get((Kind.FAULT_OR_OWN, "copy on write"), 0) == (100 if after == 100 else 0)
        assert parts_ns[Kind.PAGE_FAULT, "copy on write"] == pytest.approx(2 if after == 100 else 2 + 5)


def test_the_timer_found_what_kept_preemption_off() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, LOWER, state=1)
        .timer(1, 1)
        .at(2.5, 1, "kernel_stack", size=3, caller="10 20 30")
    )
    names = ("hrtimer_interrupt", "asm_sysvec_apic_timer_interrupt", "stall_preempt_off+0x2b")
    explanation = explained(
        story.switch(800, 1, LOWER, MEASURED).moment(802), Symbols((0x10, 0x20, 0x30), names)
    )
    assert explanation.main.culprit == Culprit(Kind.PREEMPTION_OFF, "hackbench")
    assert "stall_preempt_off" in sentence(explanation)


@pytest.mark.parametrize(("stolen_ms", "kind"), [(20, Kind.STEAL), (0, Kind.TIMER_LATE)])
def test_silence_with_counted_steal_is_the_hypervisors(stolen_ms: int, kind: Kind) -> None:
    story = (
        Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(23_000, 1).switch(23_006, 1, LOWER, MEASURED)
    )
    moment = replace(story.moment(23_010), stolen_ns={1: stolen_ms * 1_000_000} if stolen_ms else {})
    explanation = explained(moment)
    assert explanation.main.culprit.kind is kind
    assert explanation.main.ns == 23_000_000
    assert bool(missing(sentence(explanation), "steal time on CPU 1")) == (not stolen_ms)


def test_fair_tasks_take_turns_and_are_not_lower_tasks() -> None:
    story = (
        Story()
        .switch(-500, 1, ("measured", THREAD, 120), ("nice", 700, 130), state=1)
        .timer(1, 1)
        .switch(900, 1, ("nice", 700, 130), MEASURED)
    )
    for event in story.events:
        event.values.update({name: 120 for name in ("prio", "next_prio") if event.values.get(name) == MINE})
    assert explained(story.moment(902)).main.culprit == Culprit(Kind.TASK, "nice")


OWNER, OTHER_OWNER = ("owner", 600, 120), ("other-owner", 601, 120)


def blocked(story: Story, us: float) -> Explanation:
    return explained(replace(story.moment(us), kind="blocked"))


def test_what_ran_during_a_lock_wait_follows_its_owner() -> None:
    story = (
        Story()
        .switch(-950, 1, OWNER, MEASURED)
        .switch(0, 1, MEASURED, HIGHER, state=1)
        .switch(600, 1, HIGHER, OWNER, state=1)
    )
    story.at(900, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    explanation = blocked(story, 900)
    assert parts(explanation) == {(Kind.TASK, "hog"): 600, (Kind.LOCK_OWNER, "owner"): 300}
    assert sentence(explanation).startswith(
        "900.000 us that measured was blocked on a lock of owner: 600.000 us task hog ("
    )
    assert "owner (nice 0, pid 600) ran with the lock" in sentence(explanation)


def test_an_owner_working_after_a_page_fault_has_the_lock() -> None:
    story = Story().switch(-950, 1, OWNER, MEASURED).switch(0, 1, MEASURED, OWNER, state=1)
    story.at(100, 1, "page_fault_user", address=4096, ip=1, error_code=6)
    story.at(900, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    parts_ns = parts(blocked(story, 900))
    assert parts_ns[Kind.LOCK_OWNER, "owner"] >= 880
    assert (Kind.FAULT_OR_OWN, "") not in parts_ns


def test_both_instances_may_disagree_about_a_sleeps_ends() -> None:
    story = (
        Story()
        .switch(-950, 1, OWNER, MEASURED)
        .switch(0.3, 1, MEASURED, HIGHER, state=1)
        .switch(600, 1, HIGHER, OWNER, state=1)
    )
    story.at(900.4, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    explanation = blocked(story, 900)
    assert explanation.owners == ("owner",)
    assert parts(explanation)[Kind.LOCK_OWNER, "owner"] == pytest.approx(300)


def test_a_chain_of_locks_is_followed_to_who_had_the_last_one() -> None:
    story = Story().switch(-900, 1, IDLE, MEASURED).switch(0, 1, MEASURED, IDLE, state=1)
    story.switch(-100, 0, OWNER, OTHER_OWNER, state=1)
    story.at(10, 1, "sched_pi_setprio", comm="other-owner", pid=601, oldprio=120, newprio=MINE)
    story.at(700, 0, "sched_waking", comm="owner", pid=600, prio=120, target_cpu=0).switch(
        702, 0, OTHER_OWNER, OWNER, state=1
    )
    story.at(800, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    explanation = blocked(story, 800)
    assert parts(explanation)[Kind.LOCK_OWNER, "other-owner"] == pytest.approx(700)
    assert parts(explanation)[Kind.LOCK_OWNER, "owner"] == pytest.approx(98)
    assert not missing(
        sentence(explanation), "lock of owner", "waited for other-owner", "real-time priority 80"
    )


def test_an_owner_that_sleeps_with_the_lock_is_named() -> None:
    story = (
        Story()
        .switch(-900, 1, IDLE, MEASURED)
        .switch(0, 1, MEASURED, IDLE, state=1)
        .switch(-50, 0, OWNER, LOWER, state=1)
    )
    story.at(500, 0, "local_timer_entry", vector=236)
    story.at(501, 0, "sched_waking", comm="owner", pid=600, prio=120, target_cpu=0)
    story.events[-1] = story.events[-1]._replace(flags=8)
    story.at(502, 0, "local_timer_exit", vector=236).switch(504, 0, LOWER, OWNER)
    story.at(600, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    parts_ns = parts(blocked(story, 600))
    assert parts_ns[Kind.OWNER_ASLEEP, "owner"] == pytest.approx(501)
    assert parts_ns[Kind.LOCK_OWNER, "owner"] == pytest.approx(96)


def test_a_migration_is_reported_with_waits_on_both_cpus() -> None:
    story = Story().switch(-500, 1, MEASURED, HIGHER, state=1).switch(-600, 0, IDLE, LOWER)
    story.timer(1, 1).at(
        100, 0, "sched_migrate_task", comm="measured", pid=100, prio=19, orig_cpu=1, dest_cpu=0
    ).switch(103, 0, LOWER, MEASURED)
    explanation = explained(story.moment(105, cpu=0))
    assert parts(explanation)[Kind.TASK, "hog"] == pytest.approx(95)
    assert "it moved from CPU 1 to CPU 0" in sentence(explanation)


def test_a_waker_that_is_a_task_is_named() -> None:
    story = Story().switch(-500, 1, MEASURED, IDLE, state=1).switch(-1, 0, IDLE, ("feeder", 500, 120))
    story.at(60, 0, "sched_waking", comm="measured", pid=100, prio=19, target_cpu=1).at(
        63, 1, "sched_wakeup", comm="measured", pid=100, prio=19, target_cpu=1
    )
    story.switch(65, 1, IDLE, MEASURED)
    assert explained(story.moment(66)).main.culprit == Culprit(Kind.WAKER, "feeder")


def test_lost_events_are_unattributed_and_reported() -> None:
    story = Story().switch(-500, 1, MEASURED, HIGHER, state=1).timer(1, 1)
    story.lost.append(Lost(1, RELEASE + 5_000, RELEASE + 205_000, 17))
    story.at(205, 1, "irq_handler_entry", irq=9, name="disk").at(210, 1, "irq_handler_exit", irq=9).switch(
        300, 1, HIGHER, MEASURED, state=1
    )
    explanation = explained(story.moment(302))
    assert explanation.unattributed_ns == 200_000
    assert "events were lost" in sentence(explanation)
    story.lost[:] = [Lost(1, None, RELEASE - 400_000, 0)]
    assert not explained(story.moment(302)).doubts


def test_a_thread_without_a_wakeup_is_not_late() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).at(-300, 1, "local_timer_entry", vector=236)
    explanation = explained(story.moment(900))
    assert explanation.main.culprit.kind is Kind.UNATTRIBUTED
    assert explanation.doubts == ["the trace does not show what one of the threads did during a part of it"]


def test_a_thread_that_the_trace_does_not_show_is_unattributed() -> None:
    explanation = explained(Story().switch(-5, 1, IDLE, LOWER).moment(70))
    assert parts(explanation) == {(Kind.UNATTRIBUTED, ""): 70}
    assert explanation.doubts == ["the trace does not show what one of the threads did during a part of it"]


def test_a_latency_unequal_to_its_span_is_reported() -> None:
    moment = (
        Story().switch(-500, 1, MEASURED, IDLE, state=1).timer(1, 1).switch(7, 1, IDLE, MEASURED).moment(10)
    )
    other = Moment(
        **{**{name: getattr(moment, name) for name in Moment.__dataclass_fields__}, "latency_ns": 12_000}
    )
    explanation = explain(other, NO_SYMBOLS)
    assert sum(part.ns for part in explanation.parts) == 12_000
    assert explanation.doubts == [
        "the measured latency differs from the time between the recorded release and end"
    ]


_NAMES = (
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_migrate_task",
    "local_timer_entry",
    "local_timer_exit",
    "irq_handler_entry",
    "irq_handler_exit",
)
_MORE = (
    "softirq_entry",
    "softirq_exit",
    "nmi_handler",
    "cpu_idle",
    "page_fault_user",
    "hrtimer_start",
    "hrtimer_expire_entry",
    "irq_disable",
    "irq_enable",
    "odd",
)
_FIELDS = (
    "pid",
    "prev_pid",
    "next_pid",
    "prio",
    "prev_prio",
    "next_prio",
    "prev_state",
    "target_cpu",
    "orig_cpu",
    "dest_cpu",
    "irq",
    "vec",
    "state",
    "hrtimer",
)


@given(
    st.lists(
        st.tuples(
            st.integers(-50, 150),
            st.integers(0, 2),
            st.sampled_from(_NAMES + _MORE),
            st.dictionaries(
                st.sampled_from((*_FIELDS, "vector", "delta_ns", "expires")),
                st.sampled_from([-1, 0, 1, 2, 19, 100, 120, 256, 3000, 2**32 - 1]),
            ),
        ),
        max_size=40,
    ),
    st.integers(0, 120),
    st.integers(0, 3),
)
def test_any_table_is_explained_and_adds_up(
    drawn: list[tuple[int, int, str, dict[str, int]]], latency: int, cpu: int
) -> None:
    story = Story()
    for time, where, name, values in drawn:
        story.at(time, where, name, **values)
    for kind in ("maximum", "blocked"):
        explanation = explained(replace(story.moment(latency, cpu=cpu), kind=kind, stolen_ns={1: 10**7}))
        assert sum(part.ns for part in explanation.parts) == latency * 1000
    assert explanation.latency_ns == latency * 1000
    assert all(part.ns >= 0 for part in explanation.parts)
    assert sentence(explanation)
    assert bool(sum_words(explanation)) == bool(explanation.parts)


def _server_event(story: Story, time_us: float, name: str, kind: int, cpu: int = 1) -> Story:
    return story.at(time_us, 0, f"sched_dl_{name}", dl_se=0xFF00 + kind, cpu=cpu, type=kind)


@pytest.mark.parametrize(
    ("events", "mechanism"),
    [
        ([(50_099, "throttle", 2, 1)], "the fair server"),
        ([(50_099, "server_stop", 3, 1)], "the ext server"),
        ([(95, "replenish", 2, 1)], "the fair server"),
        ([(95, "replenish", 2, 1), (50_099, "throttle", 3, 1)], "the ext server"),
        ([(50_099, "throttle", 2, 0)], ""),
        ([(50_099, "throttle", 1, 1)], ""),
        ([(-1_000, "replenish", 2, 1)], ""),
        ([], ""),
    ],
)
def test_the_server_that_gave_the_cpu_to_a_lower_task_is_named(
    events: list[tuple[float, str, int, int]], mechanism: str
) -> None:
    """Only an event of this CPU's servers, at the time of its switches, names one."""
    story = Story().switch(-500, 1, IDLE, MEASURED).switch(100, 1, MEASURED, LOWER)
    story.switch(50_100, 1, LOWER, MEASURED)
    for time_us, name, kind, cpu in events:
        _server_event(story, time_us, name, kind, cpu)
    explanation = explained(story.moment(50_105))
    assert explanation.main.culprit == Culprit(
        Kind.THROTTLED, "hackbench", mechanism=mechanism, user="measured"
    )
    assert explanation.main.ns == 50_000_000


def test_a_budget_counts_from_throttling_to_replenishing() -> None:
    mine = ("measured", THREAD, -1)
    other = ("other", 400, -1)
    story = Story().switch(-500, 1, IDLE, mine)
    story.at(100, 1, "sched_dl_throttle", dl_se=7, cpu=1, type=1).switch(103, 1, mine, LOWER)
    story.switch(400, 1, LOWER, other)
    story.at(700, 1, "sched_dl_replenish", dl_se=8, cpu=1, type=1)
    story.at(900, 1, "sched_dl_replenish", dl_se=7, cpu=1, type=1)
    story.switch(1_000, 1, other, mine, state=1)
    actual = {part.culprit: part.ns for part in explained(story.moment(1_005)).parts}
    budget = "its deadline budget"
    assert actual[Culprit(Kind.THROTTLED, "hackbench", mechanism=budget)] == 297_000
    assert actual[Culprit(Kind.THROTTLED, "other", mechanism=budget)] == 500_000
    assert actual[Culprit(Kind.TASK, "other")] == 100_000
    assert sum(actual.values()) == 1_005_000


def test_preemption_is_off_from_the_request_to_switch() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    story.at(0, 1, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
    story.at(1, 1, "sched_set_need_resched", cpu=0, tif=3)
    story.at(3, 1, "sched_set_need_resched", cpu=1, tif=3)
    story.at(200, 1, "sched_set_need_resched", cpu=1, tif=3)
    parts_ns = parts(explained(story.switch(403, 1, LOWER, MEASURED).moment(405)))
    assert parts_ns[Kind.PREEMPTION_OFF, "hackbench"] == pytest.approx(400)
    assert parts_ns[Kind.WAKEUP, ""] == pytest.approx(3)


def test_a_task_with_need_resched_could_not_be_preempted() -> None:
    """Without the event, the whole time counts as the wake-up on another CPU."""
    for requested, kind in ((True, Kind.PREEMPTION_OFF), (False, Kind.REMOTE_WAKEUP)):
        story = Story().switch(-500, 1, MEASURED, LOWER, state=1).switch(-600, 0, IDLE, HIGHER)
        story.at(1, 0, "sched_waking", comm="measured", pid=THREAD, prio=MINE, target_cpu=1)
        if requested:
            story.at(4, 0, "sched_set_need_resched", cpu=1, tif=3)
        explanation = explained(story.switch(404, 1, LOWER, MEASURED).moment(405))
        assert explanation.main.culprit.kind is kind
        assert explanation.main.ns == (400_000 if requested else 403_000)
