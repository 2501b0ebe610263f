# SPDX-License-Identifier: MIT
"""Prints how a boot ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from rtgauge.report.labelled_lines import print_labelled
from rtgauge.report.table import Column, Table, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.units import NS_PER_S, format_time, plural
from rtgauge_ext.last_boot.ending import Activity, BootEnd, CpuEnd, Ending, Waiting

NS_PER_MS = 1_000_000
ENDED: dict[Ending, str] = {
    "crash": "the kernel crashed",
    "panic": "the kernel panicked",
    "hang": "the machine hung",
    "restart": "the machine was restarted or shut down in an orderly way",
    "reset": "a command reset the machine",
    "unknown": "the kernel did not give a reason: the machine was reset from outside (a watchdog, the reset "
    "button or the hypervisor), or its power failed briefly",
}
SHOWN_MESSAGES = 12
LEAST_WAIT_NS = 100_000_000
"""Shorter waits are only in the table."""


def conclusion(end: BootEnd) -> str:
    """Return how the boot ended, and what it was doing, in a few sentences."""
    when = "" if end.ended_realtime_ns is None else f" at {_instant(end.ended_realtime_ns)}"
    why = f": {end.why}" if end.why else ""
    sentences = [
        f"the last boot ended{when}, {format_time(end.end_ns)} after its start; {ENDED[end.ending]}{why}"
    ]
    sentences += [hung_words(cpu) for cpu in end.hung]
    if not end.hung:
        busy = [cpu for cpu in end.cpus if not cpu.idle]
        sentences.append(
            "; ".join(f"CPU {cpu.cpu} ran {doing_words(cpu)}" for cpu in busy) or "all CPUs were idle"
        )
    if end.waiting and end.waiting[0].ns >= LEAST_WAIT_NS:
        sentences.append(waiting_words(end.waiting[0]))
    return ". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + "."


def hung_words(cpu: CpuEnd) -> str:
    """Return what hung on a CPU."""
    return (
        f"CPU {cpu.cpu} recorded nothing in its last {format_time(cpu.silent_ns)}, in which it ran "
        f"{doing_words(cpu)}: it hung there, or runs without a tick (nohz_full)"
    )


def doing_words(cpu: CpuEnd) -> str:
    """Return what a CPU did after its last event, such as "task hog (real-time priority 50, pid 7)"."""
    if cpu.idle:
        return "idle"
    about = ", ".join(part for part in (cpu.priority, f"pid {cpu.pid}" if cpu.pid else "") if part)
    task = f"task {cpu.task}{f' ({about})' if about else ''}"
    return task if cpu.doing.startswith("task ") else f"{cpu.doing} in {task}"


def waiting_words(wait: Waiting) -> str:
    """Return for what a task waited at the end."""
    about = f"{wait.task} ({wait.priority}, pid {wait.pid})" if wait.priority else wait.task
    if wait.lock is not None:
        return f"{about} waited for a kernel lock ({wait.lock}) in its last {format_time(wait.ns)}"
    held = f", which ran {shares_words(wait.held_by, wait.ns)}" if wait.held_by else ""
    return f"{about} was ready for the last {format_time(wait.ns)} but did not get CPU {wait.cpu}{held}"


def shares_words(activities: Sequence[Activity], ns: int) -> str:
    """Return activities with their shares of a time, "task hog 99 %, local timer interrupt 1 %"."""
    return ", ".join(f"{known.what} {100 * known.ns / ns:.0f} %" for known in activities) if ns else ""


def print_boot_end(end: BootEnd, console: Console, *, details: bool) -> None:
    """Print the conclusion, a row for each CPU, the tasks that waited and the kernel's last messages."""
    print_labelled("last", conclusion(end), console)
    for doubt in end.doubts:
        print_labelled("doubt", doubt, console, style="yellow")
    console.print()
    tables = [_cpus(end)]
    if end.waiting:
        tables.append(_waiting(end.waiting))
    messages = end.messages if details else end.messages[:SHOWN_MESSAGES]
    if messages:
        rows = [
            [f"{-each.before_end_ns / NS_PER_MS:+,.3f} ms", str(each.cpu), each.text] for each in messages
        ]
        columns = [Column("from the end", "number"), Column("CPU", "number"), Column("message", "prose")]
        tables.append(Table("The kernel's messages around the end", columns, rows))
    print_tables(tables, console)


def _cpus(end: BootEnd) -> Table:
    rows = [
        [
            f"CPU {cpu.cpu}",
            format_time(cpu.silent_ns),
            doing_words(cpu),
            f"{'' if cpu.task_since else '≥ '}{format_time(cpu.task_ns)}",
            shares_words(cpu.activities, sum(known.ns for known in cpu.activities)),
        ]
        for cpu in end.cpus
    ]
    columns = [
        Column("", "nowrap"),
        Column("silent for", "number"),
        Column("ran at the end"),
        Column("task had the CPU for", "number", 1),
        Column("its last 100 ms", "prose"),
    ]
    return Table("Each CPU", columns, rows, [f"{plural(end.events, 'event')} of the last boot were kept."])


def _waiting(waiting: Sequence[Waiting]) -> Table:
    rows = [
        [
            f"{wait.task} (pid {wait.pid})",
            wait.priority,
            format_time(wait.ns),
            f"a kernel lock ({wait.lock})" if wait.lock is not None else f"CPU {wait.cpu}",
            shares_words(wait.held_by, wait.ns),
        ]
        for wait in waiting
    ]
    columns = [*texts("task", "priority"), Column("waited", "number"), *texts("for", "which ran")]
    return Table("Waited at the end", columns, rows)


def _instant(realtime_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(realtime_ns / NS_PER_S, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return "an unknown time"
