# SPDX-License-Identifier: MIT
"""Reconstructs each CPU's activity over time: its task, and the interrupts and callbacks nested in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.moment import Event, EventTable

SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
"""Names of softirqs by vector, from include/linux/interrupt.h."""
TIMERS = SOFTIRQS.index("TIMER")
IDLE_ENDS = 0xFFFF_FFFF
"""The state in a cpu_idle event that means the end of idling (PWR_EVENT_EXIT)."""
INTERRUPTS = frozenset({"nmi", "irq", "vector", "ipi"})
"""Kinds of frames that a CPU leaves only at their end, so that no other task can run in between."""
LOCK_EVENTS = ("contention_", "mmap_lock_")
"""Prefixes of the names of events that also occur within a page fault."""
LISTED = "mm_lru_insertion"
MAPPED_EVENTS = frozenset({"rss_stat", "tlb_flush", LISTED})
"""Events in which the kernel counts a thread's new page, flushes the address of its old one, or puts it on a
list.
"""
FLUSH_OTHERS = 4
"""TLB_REMOTE_SEND_IPI, the reason of a flush that other CPUs must do as well (include/linux/mm_types.h)."""
_CALLBACKS = {
    "hrtimer_expire": "hrtimer",
    "timer_expire": "timer",
    "csd_function": "function call",
    "tasklet": "tasklet",
}


@dataclass(frozen=True)
class KernelTask:
    """A task of the kernel's scheduler.

    `priority` in the kernel's numbers: below 0 for deadline, 0 to 99 for real-time (99 - priority), from 100
    for fair (120 is nice 0); None if unknown.
    """

    pid: int
    name: str
    priority: int | None

    @property
    def idle(self) -> bool:
        """Whether this is the idle task."""
        return self.pid == 0


@dataclass(frozen=True)
class Fault:
    """A page fault. `copies`: the thread wrote to a page that the kernel copies then. `reads`: the thread did
    not write. `mapped_ns`: when the kernel counted the new page, or had flushed its old address, which is
    shortly before the fault's end; None before that, or if the trace lacks it. `listed_ns`: the last event
    after that, in which the kernel put pages on its lists, as it does for many faults at once. `waits`: the
    kernel waits for other CPUs at the end. `interrupted_ns`: how long interrupts took of it.
    """

    since_ns: int
    copies: bool
    reads: bool = False
    mapped_ns: int | None = None
    listed_ns: int | None = None
    waits: bool = False
    interrupted_ns: int = 0


@dataclass(frozen=True)
class NestedActivity:
    """An activity nested in a task.

    `kind`: nmi, irq, vector, ipi, softirq or work; for callbacks hrtimer, timer, function call or tasklet.
    """

    kind: str
    name: str
    key: int | str
    since_ns: int | None = None


@dataclass(frozen=True)
class Context:
    """The activity of a CPU at one time.

    `frames`: the innermost frame is last. `idle_state`: None if the CPU is not asleep. `irqs_off`: the
    function that turned interrupts off, if this is traced. `fault`: the latest event, if a page fault.
    """

    task: KernelTask | None
    frames: tuple[NestedActivity, ...] = ()
    idle_state: int | None = None
    irqs_off: str | None = None
    preemption_off: str | None = None
    fault: Fault | None = None

    @property
    def interrupt(self) -> NestedActivity | None:
        """The innermost interrupt or softirq; None in a task."""
        kinds = INTERRUPTS | {"softirq"}
        return next((frame for frame in reversed(self.frames) if frame.kind in kinds), None)


@dataclass(frozen=True)
class Span:
    """A CPU's context from one event to the next."""

    start_ns: int
    end_ns: int
    context: Context


class Interrupted(NamedTuple):
    """What a timer interrupted, from a stack trace. `function`: a kernel function and its callers; None if a
    program was interrupted.
    """

    time_ns: int
    function: str | None


@dataclass(frozen=True)
class CpuTimeline:
    """The contexts of one CPU. `contexts[i]` ends at `times_ns[i]`; there is one context more than times."""

    cpu: int
    times_ns: list[int]
    contexts: list[Context]
    stacks: list[Interrupted]

    def at(self, time_ns: int) -> Context:
        """Return the context right after `time_ns`."""
        return self.contexts[bisect_right(self.times_ns, time_ns)]

    def before(self, time_ns: int) -> Context:
        """Return the context in which the first event at `time_ns` occurred."""
        return self.contexts[bisect_left(self.times_ns, time_ns)]

    def spans(self, start_ns: int, end_ns: int) -> list[Span]:
        """Return the contexts between two times, cut at both, without gaps."""
        spans: list[Span] = []
        at, since = bisect_right(self.times_ns, start_ns), start_ns
        while since < end_ns:
            until = min(self.times_ns[at], end_ns) if at < len(self.times_ns) else end_ns
            if until > since:
                spans.append(Span(since, until, self.contexts[at]))
            since, at = until, at + 1
        return spans

    def interrupted(self, start_ns: int, end_ns: int) -> Interrupted | None:
        """Return what a timer interrupted between two times; None if no stack trace shows it."""
        return next((stack for stack in self.stacks if start_ns <= stack.time_ns <= end_ns), None)

    def silent(self, start_ns: int, end_ns: int) -> bool:
        """Return whether no event occurred between two times."""
        at = bisect_right(self.times_ns, start_ns)
        return at == len(self.times_ns) or self.times_ns[at] >= end_ns


class Names:
    """The names and priorities of tasks, collected from all events that have them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._tasks: dict[int, KernelTask] = {0: KernelTask(0, "idle", None)}
        self._irqs: dict[int, str] = {}
        for event in events:
            if event.name == "sched_switch":
                self._learn(event, "prev_")
                self._learn(event, "next_")
            elif event.name in {"sched_waking", "sched_wakeup", "sched_wakeup_new"}:
                self._learn(event, "")
            elif event.name == "irq_handler_entry":
                self._irqs[event.number("irq")] = event.text("name")

    def _learn(self, event: Event, side: str) -> None:
        if (pid := event.number(f"{side}pid")) > 0:
            task = KernelTask(pid, event.text(f"{side}comm"), event.number(f"{side}prio", 120))
            self._tasks.setdefault(pid, task)

    def task(self, pid: int) -> KernelTask:
        """Return the task; its name is empty if no event has it."""
        return self._tasks.get(pid, KernelTask(pid, "", None))

    def label(self, pid: int) -> str:
        """Return the task's name, or "pid 7"."""
        return self.task(pid).name or f"pid {pid}"

    def irq(self, frame: NestedActivity) -> NestedActivity:
        """Return the frame with the name of its interrupt, which the event at the frame's end lacks."""
        if frame.kind != "irq" or frame.name or not isinstance(frame.key, int):
            return frame
        return replace(frame, name=self._irqs.get(frame.key, ""))


def timelines(table: EventTable, symbols: Symbols) -> dict[int, CpuTimeline]:
    """Return CPU -> its contexts over time."""
    names = Names(table.events)
    events: dict[int, list[Event]] = defaultdict(list)
    for event in table.events:
        events[event.cpu].append(event)
    return {
        cpu: _timeline(cpu, _with_nmis(events[cpu]), names, symbols) for cpu in sorted({*table.cpus, *events})
    }


def _with_nmis(events: Sequence[Event]) -> list[Event]:
    """Make two events of each NMI, because the kernel reports it only at its end, with its duration."""
    made: list[Event] = []
    for event in events:
        if event.name == "nmi_handler" and 0 < event.number("delta_ns") < 10**9:
            made.append(event._replace(name="nmi_entry", time_ns=event.time_ns - event.number("delta_ns")))
            made.append(event._replace(name="nmi_exit"))
        else:
            made.append(event)
    return sorted(made, key=lambda event: event.time_ns)


def _frame(event: Event, symbols: Symbols) -> tuple[bool, NestedActivity] | None:
    """Return (whether it begins, the frame) for an event that begins or ends a frame."""
    stem, _, edge = event.name.rpartition("_")
    if event.name in {"workqueue_execute_start", "workqueue_execute_end"}:
        function = symbols.name(event.number("function")) or ""
        return edge == "start", NestedActivity("work", function, event.number("work"))
    if edge not in {"entry", "exit"}:
        return None
    begins, since = edge == "entry", event.time_ns if edge == "entry" else None
    if stem == "irq_handler":
        return begins, NestedActivity("irq", event.text("name"), event.number("irq"), since)
    if stem == "softirq":
        vector = event.number("vec")
        name = SOFTIRQS[vector] if 0 <= vector < len(SOFTIRQS) else str(vector)
        return begins, NestedActivity("softirq", name, vector, since)
    if stem in _CALLBACKS:
        key = next(
            (event.number(name) for name in ("hrtimer", "timer", "csd", "tasklet") if name in event.values), 0
        )
        function = symbols.name(event.number("function", event.number("func"))) or ""
        return begins, NestedActivity(_CALLBACKS[stem], function, key, since)
    if stem == "nmi":
        return begins, NestedActivity("nmi", symbols.name(event.number("handler")) or "", 0, since)
    if stem == "ipi":
        return begins, NestedActivity(
            "ipi", event.text("reason") or "inter-processor interrupt", "ipi", since
        )
    if "vector" in event.values:
        return begins, NestedActivity("vector", stem.replace("_", " "), stem, since)
    return None


@dataclass
class _State:
    """The state of a CPU as its events are read."""

    task: KernelTask | None
    frames: list[NestedActivity]
    idle_state: int | None = None
    irqs_off: str | None = None
    preemption_off: str | None = None
    fault: Fault | None = None

    def context(self) -> Context:
        return Context(
            self.task,
            tuple(self.frames),
            self.idle_state,
            self.irqs_off,
            self.preemption_off,
            self.fault,
        )


def _open_at_start(events: Sequence[Event], symbols: Symbols) -> list[NestedActivity]:
    """Return the frames that end without a beginning, the outermost first."""
    depth: dict[tuple[str, int | str], int] = defaultdict(int)
    unmatched: list[NestedActivity] = []
    for event in events:
        edge = _frame(event, symbols)
        if event.name == "sched_switch":
            break
        if edge is None:
            continue
        begins, frame = edge
        key = (frame.kind, frame.key)
        if begins:
            depth[key] += 1
        elif depth[key] > 0:
            depth[key] -= 1
        else:
            unmatched.append(frame)
    return unmatched[::-1]


def _timeline(cpu: int, events: Sequence[Event], names: Names, symbols: Symbols) -> CpuTimeline:
    events = [event for event in events if not _is_of_tracer(event)]
    first = next((event for event in events), None)
    state = _State(
        names.task(first.pid) if first is not None else None,
        [names.irq(frame) for frame in _open_at_start(events, symbols)],
    )
    if first is not None and first.name == "cpu_idle" and first.number("state") == IDLE_ENDS:
        state.idle_state = -1
    kept: dict[int, list[NestedActivity]] = {}
    times: list[int] = []
    contexts = [state.context()]
    left: _LeftFault | None = None
    for event in events:
        fault = state.fault
        _take(state, event, names, symbols, kept)
        times.append(event.time_ns)
        if event.name.startswith(("sched_switch", "page_fault", "sys_")):
            left = None
        elif fault is not None and state.fault is None and not (fault.mapped_ns or fault.waits):
            left = _LeftFault(fault, event.pid, len(contexts))
        elif left is not None and left.goes_on(event, state):
            contexts[left.first :] = _in_fault(left.fault, times, contexts, left.first)
            state.fault = _mapped(contexts[-1].fault, event)
            left = None
        contexts.append(state.context())
    stacks = (_interrupted(event, symbols) for event in events if event.name == "kernel_stack")
    return CpuTimeline(cpu, times, contexts, [known for known in stacks if known is not None])


@dataclass(frozen=True)
class _LeftFault:
    """A fault whose page was not mapped when another event came, such as an interrupt's. `first`: the index
    of the context after that event.
    """

    fault: Fault
    pid: int
    first: int

    def goes_on(self, event: Event, state: _State) -> bool:
        """Return whether the event maps the fault's page. The fault then lasted until now."""
        maps = event.name in MAPPED_EVENTS and event.name != LISTED
        return maps and event.pid == self.pid and not state.frames


def _in_fault(fault: Fault, times: Sequence[int], contexts: Sequence[Context], first: int) -> list[Context]:
    """Return the contexts from `first` on, all in the fault. A context ends at the time with its index."""
    interrupted_ns = sum(
        times[at] - times[at - 1] for at in range(first, len(contexts)) if contexts[at].frames
    )
    whole = replace(fault, interrupted_ns=interrupted_ns)
    return [replace(context, fault=whole) for context in contexts[first:]]


def _take(
    state: _State, event: Event, names: Names, symbols: Symbols, kept: dict[int, list[NestedActivity]]
) -> None:
    """Update a CPU's state with an event.

    `kept`: the softirqs and works in which tasks were preempted.
    """
    if event.name in MAPPED_EVENTS:
        state.fault = _mapped(state.fault, event)
    elif not event.name.startswith(LOCK_EVENTS):
        is_fault = event.name.startswith("page_fault")
        state.fault = _fault(event) if is_fault else None
    edge = _frame(event, symbols)
    match event.name:
        case "sched_switch":
            kept[event.number("prev_pid")] = [frame for frame in state.frames if frame.kind not in INTERRUPTS]
            pid = event.number("next_pid")
            state.frames = kept.pop(pid, [])
            state.task = names.task(pid)
            if pid:
                name, priority = event.text("next_comm") or state.task.name, event.number("next_prio", 120)
                state.task = replace(state.task, name=name, priority=priority)
            state.idle_state = state.preemption_off = None
        case "cpu_idle":
            number = event.number("state")
            state.idle_state = None if number == IDLE_ENDS else number
        case "irq_disable":
            state.irqs_off = _caller(event, symbols)
        case "irq_enable":
            state.irqs_off = None
        case "tmigr_handle_remote_cpu" if (
            state.frames and state.frames[-1].key == TIMERS and "cpu" in event.values
        ):
            # The softirq has finished its own CPU's timers. Now it runs the timers of an idle CPU.
            name = f"{SOFTIRQS[TIMERS]} of CPU {event.number('cpu')}"
            state.frames[-1] = replace(state.frames[-1], name=name)
        case "preempt_disable":
            state.preemption_off = _caller(event, symbols)
        case "preempt_enable":
            state.preemption_off = None
        case _ if edge is not None:
            begins, frame = edge
            if begins:
                state.frames.append(frame)
            else:
                places = [
                    at
                    for at, known in enumerate(state.frames)
                    if (known.kind, known.key) == (frame.kind, frame.key)
                ]
                del state.frames[places[-1] if places else len(state.frames) :]  # and all frames nested in it
        case _:
            pass
    if (
        not state.frames
        and event.name != "sched_switch"
        and (state.task is None or state.task.pid != event.pid)
        and event.pid >= 0
    ):
        state.task = names.task(event.pid)  # A switch was lost.


def _mapped(fault: Fault | None, event: Event) -> Fault | None:
    """Return the fault with the time of its new page. If other CPUs must flush the old address too, the
    kernel then waits for them, and the trace does not show for how long.
    """
    if fault is None or fault.waits:
        return fault
    if event.name == LISTED:
        return replace(fault, listed_ns=fault.mapped_ns and event.time_ns)
    if event.name == "tlb_flush" and event.number("reason") == FLUSH_OTHERS:
        return replace(fault, mapped_ns=None, waits=True)
    return replace(fault, mapped_ns=event.time_ns)


PREEMPTION_OFF = 0xF
"""Bits of an event's preempt_count; the upper ones count migrate_disable()."""
PRESENT, WRITE = 1, 2
"""Bits of a page fault's error code on x86 (arch/x86/include/asm/trap_pf.h). No other architecture of the
engine has these events.
"""


def _is_of_tracer(event: Event) -> bool:
    """Return whether this is a page fault with preemption off, which maps nothing and ends at once: a tracer
    has read the thread's stack.
    """
    return event.name.startswith("page_fault") and event.preempt_count & PREEMPTION_OFF != 0


def _fault(event: Event) -> Fault:
    """Return the page fault that begins. A write to a present page is copied, as after fork."""
    code = event.number("error_code")
    return Fault(event.time_ns, copies=code & PRESENT != 0 and code & WRITE != 0, reads=code & WRITE == 0)


def _caller(event: Event, symbols: Symbols) -> str:
    """Return the function that a `preemptirq` event is about, or its offset from _stext if it has no name."""
    address = event.number("caller_offs")
    return symbols.from_text(address) or f"_stext+0x{address:x}"


CALLED_BY, MOST_CALLERS = " from ", 3
"""The separator of a function and its caller, and the most callers shown. The function that turns interrupts
off is often a few calls up.
"""
THUNKS = ("__x86_indirect_", "__x86_return_")
"""Prefixes of gcc's thunks against branch prediction, which are no functions of interest."""
ENTRIES = ("asm_", "el1h_64_irq", "el1_irq", "el0t_64_irq", "el0_irq", "__irq_svc", "__irq_usr")
"""Prefixes of the functions through which an interrupt enters the kernel on x86, arm64 and Arm."""


def _interrupted(event: Event, symbols: Symbols) -> Interrupted | None:
    """Return the interrupted function in a stack trace; None if there is none or it has no name."""
    names = [symbols.name(int(word, 16)) or "" for word in event.text("caller").split()]
    entry = next((at for at, name in reversed(list(enumerate(names))) if name.startswith(ENTRIES)), None)
    if entry is None:
        return None
    functions = names[entry + 1 :]
    known = [name for name in functions if name and not name.startswith(THUNKS)] or [
        name for name in functions if name
    ]
    if functions and not known:
        return None
    return Interrupted(event.time_ns, CALLED_BY.join(known[:MOST_CALLERS]) or None)
