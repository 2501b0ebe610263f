# SPDX-License-Identifier: MIT
"""How a boot ended, from events that are made up."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console
from tests.support.messages import missing

from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Event, EventTable
from rtgauge.record.stream import TraceFormatsLine
from rtgauge_ext.last_boot.boot_report import conclusion, print_boot_end
from rtgauge_ext.last_boot.ending import BootEnd, boot_end
from rtgauge_ext.last_boot.kept_boot import Arming, KeptBoot, Reading

MS = 1_000_000
THIS_BOOT, LAST_BOOT = "0000-this", "0000-last"


def event(time_ms: float, cpu: int, kind: str, runs: int, **values: int | str) -> Event:
    return Event(round(time_ms * MS), cpu, kind, runs, 0, 0, dict(values))


def switch(
    time_ms: float, cpu: int, old: tuple[int, str, int], new: tuple[int, str, int], state: int = 1
) -> Event:
    return event(
        time_ms, cpu, "sched_switch", old[0],
        prev_pid=old[0], prev_comm=old[1], prev_prio=old[2], prev_state=state,
        next_pid=new[0], next_comm=new[1], next_prio=new[2],
    )  # fmt: skip


def waking(time_ms: float, cpu: int, by: int, task: tuple[int, str, int], target: int) -> Event:
    return event(time_ms, cpu, "sched_waking", by, pid=task[0], comm=task[1], prio=task[2], target_cpu=target)


IDLE, HOG, LOOP, SHELL = (0, "swapper", 120), (7, "hog", 49), (8, "loop", 19), (9, "sh", 120)


def kept(
    events: list[Event], *, armed: bool = True, read: str = THIS_BOOT, kernel: str = "6.12.1"
) -> KeptBoot:
    reading = Reading(
        type="last_boot", instance="boot_map", info="", read_boot_id=read, release="6.12.1",
        kernel_version="#1", booted_realtime_ns=0,
    )  # fmt: skip
    arming = Arming(
        type="armed", boot_id=LAST_BOOT, release=kernel, kernel_version="#1", monotonic_ns=0,
        realtime_ns=1_700_000_000 * 10**9,
    )  # fmt: skip
    events = sorted(events, key=lambda known: known.time_ns)
    table = EventTable(events, tuple(sorted({known.cpu for known in events})))
    formats = TraceFormatsLine(
        type="trace_formats",
        clock="boot",
        events={},
        header_page="",
        header_event="",
        page_bytes=4096,
        cpus=2,
    )
    return KeptBoot(reading, arming if armed else None, table, Symbols((), ()), (), (), 0, {}, formats, {})


def ended(events: list[Event]) -> BootEnd:
    end = boot_end(kept(events), THIS_BOOT)
    assert end is not None
    return end


def console_line(time_ms: float, text: str, cpu: int = 0) -> Event:
    return event(time_ms, cpu, "console", 9, msg=f"{text}\n")


HANGS = [
    switch(100, 1, IDLE, HOG),
    event(101, 1, "local_timer_entry", 7, vector=236),
    event(101.1, 1, "local_timer_exit", 7, vector=236),
    switch(100, 0, IDLE, SHELL),
    waking(300, 0, 9, LOOP, 1),
    switch(20_000, 0, SHELL, IDLE),
    event(20_100, 0, "cpu_idle", 0, state=1),
]
"""CPU 1 records nothing after 101.1 ms, while loop waits for it."""


def test_a_cpu_that_stops_recording_while_it_runs_a_task_hung() -> None:
    end = ended(HANGS)
    assert end.ending == "hang"
    (hung,) = end.hung
    assert (hung.cpu, hung.task, hung.pid, hung.priority) == (1, "hog", 7, "real-time priority 50")
    assert hung.silent_ns == round((20_100 - 101.1) * MS)
    assert hung.task_ns == 20_000 * MS
    assert hung.task_since


def test_who_waited_for_the_hung_cpu_is_named_with_what_held_it() -> None:
    (wait,) = ended(HANGS).waiting
    assert (wait.task, wait.cpu, wait.real_time, wait.ns) == ("loop", 1, True, 19_800 * MS)
    assert [(held.what, held.ns) for held in wait.held_by] == [("task hog", 19_800 * MS)]


def test_the_answer_names_the_hog_and_who_waited() -> None:
    text = conclusion(ended(HANGS))
    ended_so, hung, waited, *more = re.split(r"(?<=\.) (?=[A-Z])", text)
    assert not missing(ended_so, "2023-11-14 22:13:40 UTC", "20.1 s", "hung")
    assert not missing(hung, "CPU 1", "20.0 s", "task hog", "real-time priority 50", "pid 7", "nohz_full")
    assert not missing(
        waited, "Loop", "real-time priority 80", "pid 8", "19.8 s", "CPU 1", "task hog", "100 %"
    )
    assert not more


def test_an_idle_cpu_that_records_nothing_did_not_hang() -> None:
    end = ended([switch(100, 1, SHELL, IDLE), switch(20_000, 0, IDLE, SHELL)])
    assert end.hung == []
    assert end.ending == "unknown"
    assert [cpu.idle for cpu in end.cpus] == [False, True]


@pytest.mark.parametrize(
    ("messages", "ending", "why"),
    [
        (
            ["sysrq: Trigger a crash", "Kernel panic - not syncing: sysrq triggered crash"],
            "crash",
            "sysrq triggered crash",
        ),
        (
            ["watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [hog:7]", "Kernel panic - not syncing: softlockup: hung tasks"],
            "hang",
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [hog:7]",
        ),
        (["Kernel panic - not syncing: VFS: Unable to mount root fs"], "panic", "VFS: Unable to mount root fs"),
        (["reboot: Restarting system"], "restart", "reboot: Restarting system"),
        (["sysrq: Resetting"], "reset", "sysrq: Resetting"),
        (["usb 1-1: new device"], "unknown", ""),
    ],
)  # fmt: skip
def test_the_kernels_messages_say_how_it_ended(messages: list[str], ending: str, why: str) -> None:
    texts = [console_line(10 + at, text) for at, text in enumerate(messages)]
    end = ended([switch(1, 0, IDLE, SHELL), *texts])
    assert (end.ending, end.why) == (ending, why)
    assert [message.text for message in end.messages] == messages


def test_a_task_that_waits_for_a_kernel_lock_is_named() -> None:
    end = ended(
        [
            switch(1, 0, IDLE, SHELL),
            event(2, 0, "contention_begin", 9, lock_addr=1, flags=0x20),
            switch(3, 0, SHELL, IDLE, state=2),
            event(50, 0, "cpu_idle", 0, state=1),
        ]
    )
    (wait,) = end.waiting
    assert (wait.task, wait.lock, wait.ns) == ("sh", "mutex", 48 * MS)


def test_a_preempted_task_waits_unless_it_ran_again() -> None:
    end = ended(
        [
            switch(1, 0, IDLE, SHELL),
            switch(2, 0, SHELL, LOOP, state=0),
            switch(3, 0, LOOP, SHELL),
            switch(4, 0, SHELL, HOG, state=0),
            event(9, 0, "irq_handler_entry", 7, irq=5, name="eth0"),
        ]
    )
    assert [(wait.task, wait.ns) for wait in end.waiting] == [("sh", 5 * MS)]
    assert end.cpus[0].doing == "interrupt 5 (eth0)"
    assert "interrupt 5 (eth0) in task hog" in conclusion(end)


def test_doubts_name_another_kernel_boot_or_ring() -> None:
    events = [switch(1, 0, IDLE, SHELL)]
    other = boot_end(kept(events, kernel="6.13.0", read="0000-earlier"), THIS_BOOT)
    assert other is not None
    assert [doubt.split(",")[0] for doubt in other.doubts] == [
        "this is an earlier boot",
        "another kernel ran then (6.13.0)",
    ]
    foreign = boot_end(kept(events, armed=False), THIS_BOOT)
    assert foreign is not None
    assert foreign.ended_realtime_ns is None
    (doubt,) = foreign.doubts
    assert not missing(doubt, "did not arm", "clock", "boot", "unknown")


def test_a_ring_without_events_has_no_end() -> None:
    assert boot_end(kept([]), THIS_BOOT) is None


def test_control_characters_of_a_task_do_not_reach_the_terminal() -> None:
    evil = (7, "\x1b[2Jhog", 49)
    out = StringIO()
    print_boot_end(
        ended([switch(1, 0, IDLE, evil), console_line(2, "\x1b]0;x\x07")]), Console(file=out), details=True
    )
    assert "\x1b" not in out.getvalue()
