# SPDX-License-Identifier: MIT
"""Finds out how a boot ended: what each CPU did last, who waited for it, and what the kernel said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rtgauge.explain.analysis.explanation import priority_words
from rtgauge.explain.analysis.waits import kernel_lock_waits
from rtgauge.explain.trace.contexts import Context, CpuTimeline, NestedActivity, timelines
from rtgauge.explain.trace.moment import Event, EventTable
from rtgauge.record.strict_model import Model
from rtgauge.units import name_cpus
from rtgauge_ext.last_boot.kept_boot import KeptBoot

WINDOW_NS = 100_000_000
"""How much is explained before the end, or before the kernel's first message that it crashed or hung."""
SILENT_NS = WINDOW_NS
"""A CPU that ran something without an event for longer than this hung, or has no tick (nohz_full)."""
MOST_ACTIVITIES, MOST_WAITING = 4, 8
MOST_BEFORE, MOST_AFTER = 10, 40
"""The most messages that are shown from before the end, and after it."""
LEAST_SHARE = 0.005
"""Shorter activities are left out."""
IDLE = "idle"
REAL_TIME = 100
"""Real-time and deadline tasks have a lower priority number than this."""
PANIC = re.compile(r"Kernel panic - not syncing: (?P<why>.*)")
Ending = Literal["crash", "hang", "restart", "reset", "panic", "unknown"]
ENDINGS: tuple[tuple[Ending, re.Pattern[str]], ...] = (
    (
        "crash",
        re.compile(r"sysrq: Trigger a crash|Oops:|BUG: (?:kernel NULL|unable to handle)|kernel BUG at"),
    ),
    ("hang", re.compile(r"soft lockup|hard LOCKUP|detected (?:expedited )?stalls|self-detected stall")),
    ("hang", re.compile(r"blocked for more than \d+ seconds|hung_task|hardlockup")),
    ("restart", re.compile(r"reboot: (?:Restarting system|Power down|System halted)")),
    ("reset", re.compile(r"sysrq: Resetting|watchdog: watchdog\d+: watchdog did not stop")),
)
"""How the kernel's messages show the end. The first that matches counts."""


class Activity(Model):
    """How long one activity had a CPU in the last `WINDOW_NS` before this CPU's last event."""

    what: str
    ns: int


class CpuEnd(Model):
    """The end on one CPU. `silent_ns`: how long it had recorded nothing. `doing`: its activity then.
    `task_ns`: how long this task had had the CPU, at least if `task_since` is false, because the switch to it
    is not in the trace. `hung`: it ran something, and recorded nothing for longer than `SILENT_NS`.
    """

    cpu: int
    last_ns: int
    silent_ns: int
    doing: str
    idle: bool
    task: str
    pid: int | None
    priority: str
    task_ns: int
    task_since: bool
    hung: bool
    activities: list[Activity]


class Waiting(Model):
    """A task that was ready or waited for a kernel lock at the end, for how long, and what held it up."""

    task: str
    pid: int
    priority: str
    real_time: bool
    cpu: int | None
    ns: int
    held_by: list[Activity]
    lock: str | None = None


class Message(Model):
    """A message of the kernel, and how long before the end it came; negative: after it."""

    before_end_ns: int
    cpu: int
    text: str


class BootEnd(Model):
    """How a boot ended. `last_ns`: the time of the last event, in ns after the boot began. `end_ns`: the time
    to which everything here refers: of the first message that shows a crash or a hang, otherwise of the last
    event. `why`: the kernel's reason for its panic, or its message that shows a hang. `doubts`: why this may
    be incomplete.
    """

    ending: Ending
    why: str
    end_ns: int
    last_ns: int
    ended_realtime_ns: int | None
    events: int
    cpus: list[CpuEnd]
    waiting: list[Waiting]
    messages: list[Message]
    doubts: list[str]

    @property
    def hung(self) -> list[CpuEnd]:
        """The CPUs that hung, the longest silent one first."""
        return sorted((cpu for cpu in self.cpus if cpu.hung), key=lambda cpu: -cpu.silent_ns)


class LastBoot(Model):
    """What `rtgauge last-boot --json` prints. `armed`: whether the ring records this boot.
    `kept`: the file on the target that has the last boot; None if there is none. `end`: None if the ring was
    empty.
    """

    version: Literal[1] = 1
    instance: str
    armed: bool
    kept: str | None
    end: BootEnd | None


def boot_end(kept: KeptBoot, boot_id: str) -> BootEnd | None:
    """Return how the boot ended; None if the trace has no event. `boot_id`: the present boot."""
    table = kept.table
    if not table.events:
        return None
    last_ns = table.events[-1].time_ns
    messages = _messages(table.events, last_ns)
    ending, why = _ending(messages)
    end_ns = last_ns - max((each.before_end_ns for each in messages if _shows_end(each.text)), default=0)
    messages = [
        each.model_copy(update={"before_end_ns": each.before_end_ns - last_ns + end_ns}) for each in messages
    ]
    before = replace(table, events=[event for event in table.events if event.time_ns <= end_ns])
    lines = timelines(before, kept.symbols)
    cpus = [_cpu_end(lines[cpu], before, end_ns) for cpu in sorted(lines) if lines[cpu].times_ns]
    if ending == "unknown" and any(cpu.hung for cpu in cpus):
        ending = "hang"
    armed = kept.armed
    return BootEnd(
        ending=ending,
        why=why,
        end_ns=end_ns,
        last_ns=last_ns,
        ended_realtime_ns=None if armed is None else armed.realtime_ns + end_ns - armed.monotonic_ns,
        events=len(table.events),
        cpus=cpus,
        waiting=_waiting(before, lines, end_ns),
        messages=_around_end(messages),
        doubts=_doubts(kept, boot_id),
    )


def _doubts(kept: KeptBoot, boot_id: str) -> list[str]:
    doubts: list[str] = []
    if kept.reading.read_boot_id != boot_id:
        doubts.append("this is an earlier boot, because the last one left nothing in the ring")
    if kept.armed is None:
        doubts.append("rtgauge did not arm the ring, so its clock and its boot are unknown")
    elif (kept.armed.release, kept.armed.kernel_version) != (
        kept.reading.release,
        kept.reading.kernel_version,
    ):
        doubts.append(f"another kernel ran then ({kept.armed.release}), so events may have wrong names")
    if kept.lost and kept.table.events:
        doubts.append(
            f"the ring does not contain events of {name_cpus(list(kept.lost))}: this part of the "
            "memory did not survive, or the kernel found it damaged (see dmesg)"
        )
    if kept.left_out:
        doubts.append(
            f"not all events of {name_cpus(list(kept.left_out))} were kept, because there were too many"
        )
    if kept.damaged:
        doubts.append(f"{kept.damaged} pages of the trace are damaged")
    return doubts


def _ending(messages: Sequence[Message]) -> tuple[Ending, str]:
    """Return how the boot ended by its messages, and the message that says why."""
    panic = next((found for message in messages if (found := PANIC.search(message.text))), None)
    for ending, pattern in ENDINGS:
        for message in reversed(messages):
            if pattern.search(message.text):
                why = panic["why"] if panic is not None and ending == "crash" else message.text
                return ending, why.strip()
    return ("panic", panic["why"].strip()) if panic is not None else ("unknown", "")


def _around_end(messages: Sequence[Message]) -> list[Message]:
    before = [message for message in messages if message.before_end_ns > 0]
    after = [message for message in messages if message.before_end_ns <= 0]
    return [*before[-MOST_BEFORE:], *after[:MOST_AFTER]]


def _shows_end(text: str) -> bool:
    """Return whether a message of the kernel shows a crash, a panic or a hang."""
    fatal = (pattern for ending, pattern in ENDINGS if ending in {"crash", "hang"})
    return PANIC.search(text) is not None or any(pattern.search(text) for pattern in fatal)


def _messages(events: Iterable[Event], end_ns: int) -> list[Message]:
    return [
        Message(before_end_ns=end_ns - event.time_ns, cpu=event.cpu, text=text)
        for event in events
        if event.name == "console" and (text := event.text("msg").strip())
    ]


def _frame_words(frame: NestedActivity) -> str:
    match frame.kind:
        case "irq":
            return f"interrupt {frame.key}{f' ({frame.name})' if frame.name else ''}"
        case "vector":
            return f"{frame.name} interrupt"
        case "ipi":
            return frame.name
        case "nmi":
            return "NMI"
        case _:
            return f"{frame.kind}{f' {frame.name}' if frame.name else ''}"


def activity(context: Context) -> str:
    """Name what a CPU does: its innermost interrupt or callback, otherwise its task."""
    if context.frames:
        return _frame_words(context.frames[-1])
    if context.task is None:
        return "unknown"
    return IDLE if context.task.idle else f"task {context.task.name or context.task.pid}"


def _shares(line: CpuTimeline, start_ns: int, end_ns: int) -> list[Activity]:
    """Return what had the CPU between two times, the longest first."""
    taken: dict[str, int] = defaultdict(int)
    for span in line.spans(start_ns, end_ns):
        taken[activity(span.context)] += span.end_ns - span.start_ns
    least_ns = LEAST_SHARE * (end_ns - start_ns)
    ranked = sorted(taken.items(), key=lambda item: -item[1])
    return [Activity(what=what, ns=ns) for what, ns in ranked[:MOST_ACTIVITIES] if ns >= least_ns]


def _mostly_idle(line: CpuTimeline, start_ns: int, end_ns: int) -> bool:
    """Return whether the idle task had the CPU for most of a time."""
    idle_ns = sum(
        span.end_ns - span.start_ns
        for span in line.spans(start_ns, end_ns)
        if span.context.task is not None and span.context.task.idle
    )
    return 2 * idle_ns > end_ns - start_ns


def _cpu_end(line: CpuTimeline, table: EventTable, end_ns: int) -> CpuEnd:
    last_ns, context = line.times_ns[-1], line.contexts[-1]
    task, silent_ns = context.task, end_ns - line.times_ns[-1]
    idle = not context.frames and (task is None or task.idle)
    switched = [event for event in table.of_cpu(line.cpu) if event.name == "sched_switch"]
    since_ns = switched[-1].time_ns if switched else line.times_ns[0]
    first_ns = max(line.times_ns[0], last_ns - WINDOW_NS)
    return CpuEnd(
        cpu=line.cpu,
        last_ns=last_ns,
        silent_ns=silent_ns,
        doing=activity(context),
        idle=idle,
        task="idle" if task is None or task.idle else task.name or f"pid {task.pid}",
        pid=None if task is None or task.idle else task.pid,
        priority=priority_words(None if task is None else task.priority),
        task_ns=end_ns - since_ns,
        task_since=bool(switched),
        hung=not idle and silent_ns > SILENT_NS,
        activities=_shares(line, first_ns, last_ns),
    )


@dataclass
class _Task:
    """A task as the events show it. `ready_ns`: since when it has been ready without running."""

    name: str = ""
    priority: int | None = None
    ready_ns: int | None = None
    cpu: int | None = None


def _ready(table: EventTable) -> Mapping[int, _Task]:
    """Return the tasks that were ready, but did not run, after the last event."""
    tasks: dict[int, _Task] = defaultdict(_Task)
    running: dict[int, int] = {}
    for event in table.events:
        if event.pid > 0:
            tasks[event.pid].ready_ns = None  # it runs, even if the kernel did not trace the switch to it
        match event.name:
            case "sched_switch":
                previous, following = event.number("prev_pid"), event.number("next_pid")
                for pid, side in ((previous, "prev"), (following, "next")):
                    tasks[pid].name = event.text(f"{side}_comm")
                    tasks[pid].priority = event.number(f"{side}_prio", 120)
                preempted = event.number("prev_state") & 0xFF == 0
                tasks[previous].ready_ns, tasks[previous].cpu = (
                    (event.time_ns, event.cpu) if preempted else (None, None)
                )
                tasks[following].ready_ns = None
                running[event.cpu] = following
            case "sched_waking" | "sched_wakeup_new":
                task = tasks[event.number("pid")]
                task.name, task.priority = event.text("comm"), event.number("prio", 120)
                if task.ready_ns is None and event.number("pid") not in running.values():
                    task.ready_ns, task.cpu = event.time_ns, event.number("target_cpu", event.cpu)
            case "sched_migrate_task":
                task = tasks[event.number("pid")]
                task.cpu = event.number("dest_cpu", event.cpu) if task.ready_ns is not None else task.cpu
            case _:
                pass
    return {pid: task for pid, task in tasks.items() if pid > 0 and task.ready_ns is not None}


def _waiting(table: EventTable, lines: Mapping[int, CpuTimeline], end_ns: int) -> list[Waiting]:
    """Return the tasks that waited for a CPU or a kernel lock at the end: real-time ones first, then the
    longest wait.
    """
    waiting: list[Waiting] = []
    for pid, task in _ready(table).items():
        since_ns = task.ready_ns or 0
        line = lines.get(-1 if task.cpu is None else task.cpu)
        known = line is not None and line.times_ns
        if end_ns > since_ns:
            held_by = _shares(line, since_ns, end_ns) if line is not None and known else []
            if line is None or not known or not _mostly_idle(line, since_ns, end_ns):
                # else the kernel did not trace the switch to it
                waiting.append(_wait(pid, task, end_ns - since_ns, held_by))
    for pid in {event.pid for event in table.events if event.name == "contention_begin" and event.pid > 0}:
        open_waits = [wait for wait in kernel_lock_waits(table, pid) if wait.end_ns > end_ns]
        if open_waits:
            task = _named_task(table, pid)
            wait = _wait(pid, task, end_ns - open_waits[0].start_ns, [])
            waiting.append(wait.model_copy(update={"lock": open_waits[0].name}))
    waiting.sort(key=lambda wait: (not wait.real_time, -wait.ns))
    return waiting[:MOST_WAITING]


def _named_task(table: EventTable, pid: int) -> _Task:
    task = _Task()
    for event in table.events:
        for side in ("prev_", "next_"):
            if event.name == "sched_switch" and event.number(f"{side}pid") == pid:
                task.name, task.priority = event.text(f"{side}comm"), event.number(f"{side}prio", 120)
                task.cpu = event.cpu
    return task


def _wait(pid: int, task: _Task, ns: int, held_by: list[Activity]) -> Waiting:
    return Waiting(
        task=task.name or f"pid {pid}",
        pid=pid,
        priority=priority_words(task.priority),
        real_time=task.priority is not None and task.priority < REAL_TIME,
        cpu=task.cpu,
        ns=ns,
        held_by=held_by,
    )
