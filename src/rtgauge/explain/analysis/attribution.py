# SPDX-License-Identifier: MIT
"""Attributes a latency to its causes. Every nanosecond from release to end belongs to exactly one part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nlargest
from itertools import pairwise

from rtgauge.explain.analysis.calls import TIMER_CALLS, Call, Calls, Lock, LockSpin
from rtgauge.explain.analysis.explanation import COPY_ON_WRITE, OR, UNTIMED, Culprit, Explanation, Kind, Part
from rtgauge.explain.analysis.host_time import run_times
from rtgauge.explain.analysis.machine_stall import LateTimers, stood_still
from rtgauge.explain.analysis.ranking import LEAST_SHARE, OWN
from rtgauge.explain.analysis.thread_path import (
    IN_INTERRUPT,
    SLEEPS,
    STOPPED,
    TRACED,
    Link,
    Phase,
    Piece,
    ThreadPath,
    lent,
    owners,
    since_its_beginning,
    thread_path,
    waker_chain,
)
from rtgauge.explain.analysis.wait_chain import wait_chain
from rtgauge.explain.analysis.waits import (
    FAIR,
    CpuQuota,
    KernelLockWait,
    cpu_quota,
    deadline_throttling,
    kernel_lock_waits,
    server_of,
)
from rtgauge.explain.trace.contexts import (
    Context,
    CpuTimeline,
    Interrupted,
    KernelTask,
    Names,
    NestedActivity,
    Span,
    timelines,
)
from rtgauge.explain.trace.formats import Symbols
from rtgauge.explain.trace.missed_switches import MissedSwitch, Running, with_missed_switches
from rtgauge.explain.trace.moment import NEED_RESCHED, Event, Lost, Moment
from rtgauge.units import format_cpu_list

LEAST_FAULT_NS, QUICK_FAULT_NS, USUAL_FAULT_NS, LONGEST_FAULT_NS = 300, 3_000, 5_000, 20_000
"""The kernel records the beginning of a page fault but not its end. A fault takes 0.3 to 5 us for a small
page that needs no reading, and up to some 100 us for a huge page.

So up to QUICK_FAULT_NS without another event are the fault. Up to LONGEST_FAULT_NS, the fault is at most
USUAL_FAULT_NS, which is uncertain, and the rest is the program's own work. A longer time may be either.
"""
NEW_RETURN, COPY_RETURN, READ_RETURN, QUICK_RETURN = (0.875, 0.075), (0.6, 0.15), (0.525, 0.425), 1.5
"""If the trace shows when the kernel mapped the page, the way back to the program and into the next fault
took 0.83 to 0.91 times as long as the way there for a new page, and 0.49 to 0.74 times for a copy, with warm
to cold caches (AMD EPYC, Linux 6.18). A page that is read was not measured. So up to QUICK_RETURN times are
the fault. If more time follows, the first number times is the fault, which may be wrong by the second number
times, and the rest is the program's own work.
"""
MOST_AMONG_FAULTS = 20
"""Own work between two page faults is compared with the faults up to so many times the fault's time."""
INSTANCES_APART_NS = 20_000
"""The largest difference between the times of one event in two instances of tracefs. `watch` takes the ends
of its latencies and sleeps from an instance of its own.
"""
LEAST_STEAL_NS = 5_000_000
"""The shortest silence that steal can explain, because the kernel counts steal in ticks of 10 ms."""
LOWEST = 139
"""The lowest priority of fair tasks (from FAIR on), which take turns whatever their priority."""
LONGEST_SWITCH_NS = 10_000
"""The longest time that a switch away from a lower task takes. A task that stays longer could not be
preempted.

A switch takes 1 to 5 us on a small board.
"""


BUDGET = "its deadline budget"
REARM = "hrtimer_rearm"
"""The event of new kernels (7.3 is one) that shows when the CPU's timer was programmed, and for when."""
STOP_SIGNALS = {19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU"}
"""Stop signals by number, which are the same on all architectures of the engine."""
DEBUGGER, FROM = "a debugger", " from "
"""What stopped a thread: the debugger, or a signal from a task."""
SIGCONT, LONGEST_CONTINUE_NS = 18, 1_000_000
"""The signal that continues a program, and the longest time that the kernel takes to wake its threads."""
LEAST_DOUBT_NS, DOUBT_SHARE = 5_000, 0.01
"""Unknown time makes a latency doubtful if it is more than the larger of 5 us and 1 %."""


@dataclass(frozen=True)
class _Scene:
    """The data that the parts of one moment are derived from. `locked`: whether the threads that the thread
    waited for had locks.
    """

    moment: Moment
    path: ThreadPath
    locked: bool
    timelines: dict[int, CpuTimeline]
    late_timers: LateTimers
    throttled_ns: list[tuple[int, int]]
    over_budget: tuple[tuple[int, int], ...]
    """The intervals in which the kernel reported that the thread's deadline budget was used up."""
    quota: CpuQuota
    kernel_locks: tuple[KernelLockWait, ...]
    calls: Calls
    spins: tuple[LockSpin, ...]
    changed_priorities: dict[int, int]
    """pid -> the task's last priority, which may have been lent or set while it ran."""
    interrupts_traced: bool
    missed: list[MissedSwitch]
    names: Names
    _taken_ns: dict[tuple[int, int], Counter[int]] = field(
        default_factory=dict[tuple[int, int], "Counter[int]"]
    )

    def taken_ns(self, piece: Piece) -> Counter[int]:
        """Return for how long each task (pid) ran during a piece on its CPU, without interrupts."""
        key = piece.cpu, piece.start_ns
        if key not in self._taken_ns:
            taken_ns = self._taken_ns[key] = Counter[int]()
            for span in self.timelines[piece.cpu].spans(piece.start_ns, piece.end_ns):
                if span.context.interrupt is None and span.context.task is not None:
                    taken_ns[span.context.task.pid] += span.end_ns - span.start_ns
        return self._taken_ns[key]


def explain(moment: Moment, symbols: Symbols) -> Explanation:
    """Attribute the latency of a moment to its causes. The parts add up exactly to the latency.

    A wait for another thread, without a lock, is explained only from the time at which an interrupt woke the
    first waker.
    """
    table, missed = with_missed_switches(moment.table, _thread_at_end(moment))
    moment = replace(moment, table=table)
    apart_ns = INSTANCES_APART_NS if moment.is_wait else 0
    calls = Calls.of_table(table, moment.release_ns)
    path = _not_waiting_for_release(
        thread_path(table, moment.thread, moment.cpu, moment.release_ns, moment.end_ns, apart_ns),
        calls.of.get(moment.thread, []),
        moment,
    )
    if moment.is_triggered:
        path = _without_release(path, moment)
    lines = timelines(table, symbols)
    traced = any(event.name == "irq_disable" for event in table.events)
    scene = _Scene(
        moment,
        path,
        moment.is_locked or _waits_for_lock(calls, moment.thread, path),
        lines,
        LateTimers.of(table),
        _passed_over(moment, path),
        deadline_throttling(table.events, moment.thread),
        cpu_quota(moment, path, round(max(LEAST_DOUBT_NS, DOUBT_SHARE * moment.latency_ns)), symbols),
        kernel_lock_waits(table, moment.thread),
        calls,
        calls.spins(table, moment.thread),
        _last_priorities(moment),
        traced,
        missed,
        Names(table.events),
    )
    sleeps_to_follow = _sleeps(scene)
    links = waker_chain(table, moment.thread, path, partial(_follows, scene))
    if moment.is_wait and not scene.locked:
        links = since_its_beginning(links)
        begin = min((piece.start_ns for link in links for piece in link.path.pieces), default=moment.end_ns)
        moment = replace(moment, release_ns=begin, latency_ns=moment.end_ns - begin)
        scene = replace(scene, moment=moment)
    parts = _parts_of(scene, links)
    doubts = _doubts(scene, links, list(parts.values()))
    rest = moment.latency_ns - (moment.end_ns - moment.release_ns)
    if rest != 0:
        doubts.append("the measured latency differs from the time between the recorded release and end")
        parts.setdefault(Culprit(Kind.UNATTRIBUTED), Part(Culprit(Kind.UNATTRIBUTED))).ns += rest
    ordered = list(parts.values())
    if moment.is_wait:
        ordered.sort(key=lambda part: part.begin_ns)
    names = owners(links, moment.thread)
    lent_priority = lent(table, links, moment)
    sleeps = [calls.at(moment.thread, piece.since_ns) for piece in path.pieces if piece.phase in SLEEPS]
    inherits = bool(lent_priority) or any(call and call.lock is Lock.INHERITS for call in sleeps)
    return Explanation(
        moment,
        path,
        ordered,
        doubts,
        names,
        lent_priority,
        tuple(missed),
        lock_inherits=inherits,
        run_times=run_times(table.events),
        chain=wait_chain(table, calls, moment.thread, path.name, sleeps_to_follow),
    )


def _parts_of(scene: _Scene, links: Sequence[Link]) -> dict[Culprit, Part]:
    """Return the part of each culprit in the paths of the thread and of its wakers."""
    parts: dict[Culprit, Part] = {}
    for link in links:
        owner_scene = scene if link.thread == scene.moment.thread else _of_owner(scene, link)
        for piece in link.path.pieces:
            for span, lost in _known(owner_scene, piece):
                unknown = Part(Culprit(Kind.UNATTRIBUTED), span.end_ns - span.start_ns)
                for part in [unknown] if lost else _parts(owner_scene, piece, span):
                    culprit = part.culprit
                    if owner_scene is not scene:
                        culprit = _owner(owner_scene, link, piece, culprit)
                    known = parts.setdefault(culprit, Part(culprit))
                    known.ns += part.ns
                    known.uncertain_ns += part.uncertain_ns
                    known.among_faults_ns += part.among_faults_ns
                    known.spans += part.spans or [(span.start_ns, span.end_ns, piece.cpu)]
                    known.where |= part.where
                    known.cpus |= part.cpus
    return parts


def _doubts(scene: _Scene, links: Sequence[Link], parts: Sequence[Part]) -> list[str]:
    """Return why the latency is only partly explained."""
    moment, table, doubts = scene.moment, scene.moment.table, list[str]()
    pieces = [piece for link in links for piece in link.path.pieces]
    cpus = {piece.cpu for piece in pieces}
    if any(_overlaps(lost, moment.release_ns, moment.end_ns) for lost in table.lost if lost.cpu in cpus):
        doubts.append("events were lost during this latency")
    blind = sorted(cpus & set(moment.left_out))
    if blind:
        doubts.append(f"the events of CPU {format_cpu_list(blind)} did not fit into the trace")
    if any(piece.phase is Phase.UNKNOWN for piece in pieces):
        doubts.append("the trace does not show what one of the threads did during a part of it")
    if any(piece.phase is Phase.BLOCKED and piece.woken_by is None for piece in pieces[:-1]):
        doubts.append("the trace does not show what ended a sleep")
    either_ns = sum(part.ns for part in parts if part.culprit.kind is Kind.EITHER)
    if either_ns > max(LEAST_DOUBT_NS, DOUBT_SHARE * moment.latency_ns, _lead_ns(parts)):
        doubts.append(
            f"the kernel did not trace every switch, so {either_ns / 1000:,.3f} us may belong to either of "
            "two tasks"
        )
    uncertain_ns = sum(part.uncertain_ns for part in parts)
    if uncertain_ns > max(LEAST_DOUBT_NS, DOUBT_SHARE * moment.latency_ns):
        doubts.append(
            "the kernel does not trace when a page fault ends, so the page faults may have taken up to "
            f"{uncertain_ns / 1000:,.3f} us more or less"
        )
    if scene.quota.doubt:
        doubts.append(scene.quota.doubt)
    return doubts


def _sleeps(scene: _Scene) -> list[Piece]:
    """Return the sleeps whose chain is worth following: the wait itself, or else those within the latency. Of
    a sleep for a lock, the parts already name the owners.
    """
    moment = scene.moment
    if moment.is_blocked:
        return []
    pieces = [
        replace(piece, phase=Phase.BLOCKED) if moment.is_wait and piece.phase is Phase.LATE else piece
        for piece in scene.path.pieces
    ]
    calls = [scene.calls.at(moment.thread, piece.since_ns) for piece in pieces]
    return [
        piece
        for piece, call in zip(pieces, calls, strict=True)
        if call is None or call.lock in {Lock.NONE, Lock.PERHAPS}
    ]


def _lead_ns(parts: Sequence[Part]) -> float:
    """Return the longest time (ns) that may belong to either of two tasks and still cannot change which part
    is the largest, and which cause ranks first. Own work ranks first if every cause is below LEAST_SHARE.
    """
    known = [part for part in parts if part.culprit.kind is not Kind.EITHER]
    causes = [part.ns for part in known if part.culprit.kind not in OWN]
    least_ns = LEAST_SHARE * sum(part.ns for part in parts)
    first_ns, second_ns = nlargest(2, [*causes, 0, 0])
    largest_ns, next_ns = nlargest(2, [*(part.ns for part in known), 0, 0])
    return min(largest_ns - next_ns, first_ns - second_ns if first_ns >= least_ns else least_ns)


def _not_waiting_for_release(path: ThreadPath, calls: Sequence[Call], moment: Moment) -> ThreadPath:
    """Return the path with each sleep for a lock, and each stop that a signal ended, as blocked. Such a sleep
    may have begun before the release, if the cycle before was late, and even before all events. If a task
    ends a sleep for a time, the thread was frozen in it.
    """
    locked = [call for call in calls if call.lock is not Lock.NONE or call.name in TIMER_CALLS]
    by_task = (Lock.NONE, Lock.PERHAPS)
    return replace(
        path,
        pieces=[
            replace(piece, phase=Phase.BLOCKED)
            if (piece.phase in {Phase.LATE, Phase.UNKNOWN} and _continued(moment, piece))
            or (
                piece.phase is Phase.LATE
                and any(
                    call.covers(piece.since_ns)
                    and (call.lock not in by_task or (_by_task(piece.woken_by) and call.covers(piece.end_ns)))
                    for call in locked
                )
            )
            else piece
            for piece in path.pieces
        ],
    )


def _without_release(path: ThreadPath, moment: Moment) -> ThreadPath:
    """Return the path before a trigger, which is no release: the thread sleeps, even from before the first
    event or until after the last one, or it is ready without getting a CPU.
    """
    asleep_ns = moment.held[-1][0] if moment.held else None
    pieces = [
        replace(piece, phase=Phase.BLOCKED) if piece.phase is Phase.LATE else piece for piece in path.pieces
    ]
    last = pieces[-1] if pieces else None
    if last is not None and last.phase is Phase.UNKNOWN and (asleep_ns is not None or len(pieces) == 1):
        phase = Phase.READY if asleep_ns is None else Phase.BLOCKED
        since_ns = last.since_ns if asleep_ns is None else min(asleep_ns, last.start_ns)
        pieces[-1] = replace(last, phase=phase, since_ns=since_ns)
    return replace(path, pieces=pieces)


def _waits_for_lock(calls: Calls, thread: int, path: ThreadPath) -> bool:
    """Return whether a sleep of the thread was for a lock, whatever priority the owner has. Only if the owner
    has a lower priority does the engine report it as blocked.
    """
    sleeps = (calls.at(thread, piece.since_ns) for piece in path.pieces if piece.phase in SLEEPS)
    return any(call is not None and call.lock in {Lock.PLAIN, Lock.INHERITS} for call in sleeps)


def _continued(moment: Moment, piece: Piece) -> bool:
    """Return whether the task that woke the thread continued it: the kernel first wakes each stopped thread,
    and then reports the signal.
    """
    waking, threads = piece.woken_by, {moment.thread, moment.process}
    return waking is not None and any(
        event.name == "signal_generate"
        and event.pid == waking.pid
        and event.number("sig") == SIGCONT
        and event.number("pid") in threads
        and 0 <= event.time_ns - waking.time_ns <= LONGEST_CONTINUE_NS
        for event in moment.table.events
    )


def _by_task(waking: Event | None) -> bool:
    """Return whether a task woke the thread, and no interrupt."""
    return waking is not None and not waking.flags & IN_INTERRUPT and waking.pid > 0


def _follows(scene: _Scene, thread: int, piece: Piece) -> bool:
    """Return whether the waker of a sleep explains it. The owner of a lock explains a latency in which the
    thread waits for the lock. If the owner itself waits for a lock, that lock's owner explains it.
    """
    moment, call = scene.moment, scene.calls.at(thread, piece.since_ns)
    if thread != moment.thread:
        waits_for_lock = call is None or call.is_futex or not scene.locked
        return waits_for_lock and not piece.is_held
    return moment.is_wait or (
        piece.phase is Phase.BLOCKED and call is not None and call.lock is not Lock.NONE
    )


def _thread_at_end(moment: Moment) -> Running | None:
    """Return the thread that measured a latency, which was running at the end.

    Return None unless the thread was woken and no later switch shows it running. A switch to the thread up to
    INSTANCES_APART_NS after the end is the end itself.
    """
    if moment.is_wait or moment.is_triggered or moment.thread <= 0:
        return None
    woken = False
    for event in moment.table.events:
        if event.time_ns > moment.end_ns + INSTANCES_APART_NS:
            break
        pids = {event.number("prev_pid"), event.number("next_pid")}
        if event.name == "sched_switch" and moment.thread in pids:
            if event.time_ns > moment.end_ns:
                woken &= event.number("next_pid") != moment.thread
                break
            woken = False
        elif event.time_ns > moment.end_ns:
            continue
        elif event.name in {"sched_waking", "sched_wakeup"} and event.number("pid") == moment.thread:
            woken = woken or event.pid != moment.thread
    return Running(moment.end_ns, moment.cpu, moment.thread) if woken else None


def _of_owner(scene: _Scene, link: Link) -> _Scene:
    """Return the scene from the point of view of the lock's holder."""
    moment = replace(scene.moment, thread=link.thread)
    return replace(
        scene,
        moment=moment,
        path=link.path,
        throttled_ns=_passed_over(moment, link.path),
        over_budget=deadline_throttling(moment.table.events, link.thread),
        quota=CpuQuota(),
        kernel_locks=kernel_lock_waits(moment.table, link.thread),
        spins=scene.calls.spins(moment.table, link.thread),
        changed_priorities=_last_priorities(moment),
    )


def _owner(scene: _Scene, link: Link, piece: Piece, culprit: Culprit) -> Culprit:
    """Blame the lock's owner for its own work, or for sleeping with the lock, whatever its CPU did meanwhile.
    Without a lock, blame the waker.
    """
    locked = scene.locked
    if not locked and culprit.kind is Kind.BLOCKED:
        return Culprit(
            Kind.WAKER_ASLEEP,
            link.path.name,
            call=culprit.name,
            priority=link.path.priority,
            pid=link.thread,
        )
    asleep = locked and piece.phase in SLEEPS and culprit.kind is not Kind.UNATTRIBUTED
    if not asleep and not (culprit.kind is Kind.OWN or (locked and culprit.kind is Kind.FAULT_OR_OWN)):
        return replace(culprit, owner=link.path.name) if locked and culprit.kind is Kind.TASK else culprit
    call = scene.calls.at(link.thread, piece.since_ns) if asleep else None
    kind = Kind.OWNER_ASLEEP if asleep else Kind.LOCK_OWNER if locked else Kind.WAKER
    return Culprit(
        kind,
        link.path.name,
        call="" if call is None else call.name,
        priority=link.path.priority,
        pid=link.thread,
    )


def _overlaps(lost: Lost, start_ns: int, end_ns: int) -> bool:
    return lost.until_ns > start_ns and (lost.after_ns is None or lost.after_ns < end_ns)


def _known(scene: _Scene, piece: Piece) -> list[tuple[Span, bool]]:
    """Return (span, whether the CPU's events in it were lost) for each span of a piece."""
    line = scene.timelines.get(piece.cpu)
    if line is None or piece.cpu in scene.moment.left_out:
        return [(Span(piece.start_ns, piece.end_ns, Context(None)), True)]
    losses = [lost for lost in scene.moment.table.lost if lost.cpu == piece.cpu]
    holes = [lost for lost in losses if _overlaps(lost, piece.start_ns, piece.end_ns)]
    gaps = [(gap.after_ns, gap.until_ns) for gap in scene.missed if gap.cpu == piece.cpu]
    bounds = [
        *((hole.after_ns, hole.until_ns) for hole in holes),
        *gaps,
        *scene.quota.spans,
        *scene.over_budget,
    ]
    times = {time for bound in bounds for time in bound if time is not None}
    times.add(scene.moment.timer_ns)
    edges = {time for time in times if piece.start_ns < time < piece.end_ns}
    return [
        (span, any(_overlaps(hole, span.start_ns, span.end_ns) for hole in holes))
        for start, end in pairwise(sorted({piece.start_ns, piece.end_ns, *edges}))
        for span in line.spans(start, end)
    ]


def _passed_over(moment: Moment, path: ThreadPath) -> list[tuple[int, int]]:
    """Return the intervals in which a lower task had the CPU while the thread waited in the CPU's queue. Only
    throttling and servers cause this.

    Either the CPU switched to a lower task, or the scheduler left a lower task on the CPU. In the second case
    NEED_RESCHED, in the flags of every event, is cleared without a switch. While a task cannot be preempted,
    it stays set.
    """
    has_requests = any(event.flags & NEED_RESCHED for event in moment.table.events)
    passed: list[tuple[int, int]] = []
    if path.priority is None:
        return passed
    switches = [event for event in moment.table.events if event.name == "sched_switch"]
    priorities = {
        event.number("next_pid"): event.number("next_prio", 120)
        for event in switches
        if event.number("next_pid")
    }
    for piece in path.pieces:
        if piece.phase is not Phase.READY:
            continue
        since: int | None = None
        first, last = piece.since_ns + LONGEST_SWITCH_NS, piece.end_ns - LONGEST_SWITCH_NS
        if (
            has_requests
            and path.priority < FAIR
            and any(
                event.cpu == piece.cpu
                and first < event.time_ns < last
                and not event.flags & NEED_RESCHED
                and event.name != "sched_switch"
                and priorities.get(event.pid, LOWEST) > path.priority
                for event in moment.table.events
            )
        ):
            passed.append((piece.since_ns, piece.end_ns))
            continue
        for event in moment.table.events:
            if (
                event.name != "sched_switch"
                or event.cpu != piece.cpu
                or not piece.since_ns <= event.time_ns < piece.end_ns
            ):
                continue
            if since is not None:
                passed.append((since, event.time_ns))
            lower = event.number("next_pid") == 0 or (
                path.priority < FAIR and event.number("next_prio", 120) > path.priority
            )
            since = event.time_ns if lower and event.number("next_pid") != moment.thread else None
        if since is not None:
            passed.append((since, piece.end_ns))
    return passed


def _last_priorities(moment: Moment) -> dict[int, int]:
    return {
        event.number("prev_pid"): event.number("prev_prio", 120)
        for event in moment.table.events
        if event.name == "sched_switch"
        and event.number("next_pid") == moment.thread
        and moment.release_ns <= event.time_ns <= moment.end_ns
    }


def _parts(scene: _Scene, piece: Piece, span: Span) -> list[Part]:
    """Return the parts of one span: one part, or up to three if the machine stood still during the span."""
    if piece.start_ns < scene.moment.timer_ns <= piece.end_ns and span.end_ns <= scene.moment.timer_ns:
        by_timer = piece.phase is Phase.BLOCKED and not piece.is_held and not _by_task(piece.woken_by)
        if piece.phase is Phase.LATE or by_timer:
            return [Part(Culprit(Kind.OWN_TIMER), span.end_ns - span.start_ns)]
    line = scene.timelines[piece.cpu]
    if piece.phase is Phase.READY and scene.quota.covers(span.start_ns):
        return [Part(Culprit(Kind.QUOTA, scene.quota.group), span.end_ns - span.start_ns)]
    if piece.phase is Phase.READY and any(start <= span.start_ns < end for start, end in scene.over_budget):
        return [Part(_of_budget(span.context.task), span.end_ns - span.start_ns)]
    either = _either(scene, piece, span)
    if either is not None:
        return [Part(either, span.end_ns - span.start_ns)]
    culprit = _culprit(scene, piece, span)
    if culprit.kind is Kind.FAULT_OR_OWN:
        return _after_fault(scene, piece, span, culprit)
    part = Part(culprit, span.end_ns - span.start_ns)
    interrupted: Interrupted | None = None
    if part.culprit.kind is Kind.INTERRUPTS_OFF and span.context.irqs_off is None:
        interrupted = _timer_interrupt(scene, piece)
    elif part.culprit.kind is Kind.PREEMPTION_OFF and span.context.preemption_off is None:
        woke = line.before(piece.since_ns).interrupt
        since_ns = piece.since_ns if woke is None or woke.since_ns is None else woke.since_ns
        interrupted = line.interrupted(since_ns, piece.end_ns)  # woken by this timer or a later one
    functions = (span.context.irqs_off, span.context.preemption_off, interrupted and interrupted.function)
    part.where |= {name for name in functions if name is not None}
    if part.culprit.kind is Kind.NO_SOFTWARE:
        part.cpus = {piece.cpu}
    if piece.phase is Phase.BLOCKED or not line.silent(span.start_ns, span.end_ns):
        return [part]
    if part.ns >= LEAST_STEAL_NS and 2 * scene.moment.stolen_ns.get(piece.cpu, 0) >= part.ns:
        return [Part(Culprit(Kind.STEAL), part.ns, cpus={piece.cpu})]
    if span.context.frames:
        return [part]
    due = piece.phase is Phase.LATE
    stall = stood_still(scene.timelines, scene.late_timers, piece.cpu, span.start_ns, span.end_ns, due=due)
    if stall is None:
        return [part]
    spans = [(stall.start_ns, stall.end_ns, piece.cpu)]
    still = Part(Culprit(Kind.NO_SOFTWARE), stall.end_ns - stall.start_ns, spans, cpus=set(stall.cpus))
    around = [
        Part(part.culprit, end - start, [(start, end, piece.cpu)], set(part.where))
        for start, end in ((span.start_ns, stall.start_ns), (stall.end_ns, span.end_ns))
        if end > start
    ]
    return [still, *around]


def _of_budget(task: KernelTask | None) -> Culprit:
    """Return the deadline budget as a culprit, with the task that ran meanwhile."""
    if task is None or task.idle:
        return Culprit(Kind.THROTTLED, mechanism=BUDGET)
    return Culprit(Kind.THROTTLED, task.name, mechanism=BUDGET, priority=task.priority, pid=task.pid)


def _either(scene: _Scene, piece: Piece, span: Span) -> Culprit | None:
    """Return a culprit that names both tasks that may have run in a span with an untraced switch; None if
    there is no such switch.
    """
    if piece.phase in {Phase.BLOCKED, Phase.UNKNOWN}:
        return None
    gaps = [gap for gap in scene.missed if gap.cpu == piece.cpu]
    gap = next((gap for gap in gaps if gap.after_ns <= span.start_ns and span.end_ns <= gap.until_ns), None)
    if gap is None:
        return None
    who = (
        "the thread itself" if pid == scene.moment.thread else scene.names.label(pid)
        for pid in (gap.old, gap.new)
    )
    return Culprit(Kind.EITHER, OR.join(who))


def _culprit(scene: _Scene, piece: Piece, span: Span) -> Culprit:
    context = span.context
    if piece.phase is Phase.UNKNOWN:
        return Culprit(Kind.UNATTRIBUTED)
    if piece.phase is Phase.BLOCKED:
        return _blocked(scene, piece)
    if context.interrupt is not None:
        return _of_frame(context.interrupt)
    match piece.phase:
        case Phase.LATE:
            return _late(scene, piece, span)
        case Phase.WAKING:
            return _waking(scene, piece, context)
        case Phase.READY:
            return _ready(scene, piece, span)
        case _:
            return _running(scene, piece, span)


def _blocked(scene: _Scene, piece: Piece) -> Culprit:
    """Find why the thread did not want to run (stopped, page fault or system call), and which task woke
    it.
    """
    until = _until(scene, piece)
    if piece.prev_state & TRACED:
        return Culprit(Kind.STOPPED, DEBUGGER, until=until)
    if piece.prev_state & STOPPED or _continued(scene.moment, piece):
        return Culprit(Kind.STOPPED, _stop_signal(scene, piece), until=until)
    lock = _kernel_lock(scene, piece.start_ns)
    if lock is not None:
        return lock if lock.until else replace(lock, until=until)
    if _faulted(scene, piece):
        return Culprit(Kind.PAGE_FAULT)
    call = scene.calls.at(scene.moment.thread, piece.since_ns)
    held = scene.moment.held
    calls = [name for since_ns, name in held if abs(since_ns - piece.since_ns) <= INSTANCES_APART_NS]
    name = call.name if call is not None else calls[0] if calls else ""
    untimed = UNTIMED if call is not None and call.untimed else ""
    return Culprit(Kind.BLOCKED, name, mechanism=untimed, until=until)


def _until(scene: _Scene, piece: Piece) -> str:
    """Return which task ended a sleep; empty if none did.

    If a time-out ended a wait for a futex, it is the task that ended a later wait for this futex: a thread
    waits for Python's interpreter lock in steps of 5 ms.
    """
    if piece.woken_by is not None and _by_task(piece.woken_by):
        return scene.names.label(piece.woken_by.pid)
    call = scene.calls.at(scene.moment.thread, piece.since_ns)
    if call is None or call.address is None:
        return ""
    for later in scene.path.pieces:
        if later.phase is not Phase.BLOCKED or later.start_ns <= piece.start_ns:
            continue
        again = scene.calls.at(scene.moment.thread, later.since_ns)
        if again is None or again.address != call.address:
            break
        if later.woken_by is not None and _by_task(later.woken_by):
            return scene.names.label(later.woken_by.pid)
    return ""


def _kernel_lock(scene: _Scene, time_ns: int) -> Culprit | None:
    """Return the kernel lock that the thread waited for at this time, and its holder if the trace shows
    it.
    """
    wait = next((wait for wait in scene.kernel_locks if wait.covers(time_ns)), None)
    if wait is None:
        return None
    owner = "" if wait.owner is None else scene.names.task(wait.owner).name
    return Culprit(Kind.KERNEL_LOCK, wait.name, until=owner)


def _stop_signal(scene: _Scene, piece: Piece) -> str:
    """Return words such as "SIGSTOP from bash", or "a signal" if the trace does not show the signal."""
    stopped = {scene.moment.thread, scene.moment.process}
    for event in reversed(scene.moment.table.events):
        sent = event.name == "signal_generate" and event.number("pid") in stopped
        if sent and event.number("sig") in STOP_SIGNALS and event.time_ns <= piece.end_ns:
            return f"{STOP_SIGNALS[event.number('sig')]}{FROM}{scene.names.label(event.pid)}"
    return "a signal"


def _faulted(scene: _Scene, piece: Piece) -> bool:
    """Return whether the thread went to sleep in a page fault, which is so if the CPU that it left was in
    one.
    """
    for before in reversed(scene.path.pieces):
        if before.phase is Phase.RUNNING and before.end_ns <= piece.start_ns:
            line = scene.timelines.get(before.cpu)
            return line is not None and line.before(before.end_ns).fault is not None
    return False


def _of_frame(frame: NestedActivity) -> Culprit:
    match frame.kind:
        case "irq":
            return Culprit(Kind.IRQ, frame.name, frame.key if isinstance(frame.key, int) else None)
        case "softirq":
            return Culprit(Kind.SOFTIRQ, frame.name)
        case "nmi":
            return Culprit(Kind.NMI, frame.name)
        case _:
            return Culprit(Kind.INTERRUPT, frame.name)


def _of_task(kind: Kind, task: KernelTask | None) -> Culprit:
    if task is None:
        return Culprit(Kind.UNATTRIBUTED)
    return Culprit(kind, task.name or f"pid {task.pid}", priority=task.priority, pid=task.pid)


def _idle(context: Context) -> Culprit:
    state = context.idle_state
    return Culprit(Kind.IDLE_EXIT, "" if state is None or state < 0 else f"state {state}")


def _programmed_late(scene: _Scene, piece: Piece, span: Span) -> bool:
    """Return whether the CPU's timer was not programmed yet in this span, although it was due."""
    return any(
        event.name == REARM
        and event.cpu == piece.cpu
        and span.end_ns <= event.time_ns <= piece.end_ns
        and event.number("deferred")
        and event.number("next_event", piece.start_ns + 1) <= piece.start_ns
        for event in scene.moment.table.events
    )


def _late(scene: _Scene, piece: Piece, span: Span) -> Culprit:
    """Find what delays the timer's interrupt or the waking task while the thread sleeps past its release."""
    context, waking = span.context, piece.woken_by
    task = context.task
    by_task = waking is not None and scene.timelines[piece.cpu].before(waking.time_ns).interrupt is None
    if by_task and waking is not None:
        if task is not None and task.pid == waking.pid:
            return _of_task(Kind.WAKER, task)
        return Culprit(Kind.BLOCKED) if task is None or task.idle else _of_task(Kind.TASK, task)
    if _programmed_late(scene, piece, span):
        return replace(_of_task(Kind.TIMER_LATE, task), mechanism=REARM)
    if context.irqs_off is not None:
        return _of_task(Kind.INTERRUPTS_OFF, task)
    if task is not None and task.idle:
        return _idle(context)
    interrupted = _timer_interrupt(scene, piece)
    if interrupted is not None:
        # The kernel function kept the interrupt out until now. A program cannot do this.
        return (
            Culprit(Kind.NO_SOFTWARE) if interrupted.function is None else _of_task(Kind.INTERRUPTS_OFF, task)
        )
    return Culprit(Kind.NO_SOFTWARE) if scene.interrupts_traced else _of_task(Kind.TIMER_LATE, task)


def _timer_interrupt(scene: _Scene, piece: Piece) -> Interrupted | None:
    """Return what the late timer interrupted; None if no stack trace shows it."""
    line = scene.timelines[piece.cpu]
    entry = line.before(piece.end_ns).interrupt
    since_ns = piece.start_ns if entry is None or entry.since_ns is None else entry.since_ns
    return line.interrupted(since_ns, piece.end_ns)


def _waking(scene: _Scene, piece: Piece, context: Context) -> Culprit:
    task = context.task
    if task is not None and task.idle:
        return _idle(context)
    before = next((known for known in reversed(scene.path.pieces) if known.end_ns <= piece.start_ns), None)
    if before is not None and before.cpu != piece.cpu:
        return Culprit(Kind.REMOTE_WAKEUP)
    return Culprit(Kind.WAKEUP)


def _ready(scene: _Scene, piece: Piece, span: Span) -> Culprit:
    """Find which task has the CPU while the thread waits in the CPU's queue, and why."""
    task, priority = span.context.task, scene.path.priority
    if task is None or task.pid == scene.moment.thread:
        return Culprit(Kind.SWITCH)
    changed = scene.changed_priorities.get(task.pid)
    if changed is not None and priority is not None and changed <= priority:
        return _of_task(Kind.TASK, replace(task, priority=changed))
    if (
        not task.idle
        and priority is not None
        and task.priority is not None
        and task.priority <= max(priority, LOWEST if priority >= FAIR else priority)
    ):
        return _of_task(Kind.TASK, task)
    if scene.moment.is_triggered and priority is None and not task.idle:
        return _of_task(Kind.TASK, task)  # the thread did not get a CPU, so no event has its priority
    passed = next(((start, end) for start, end in scene.throttled_ns if start <= span.start_ns < end), None)
    if passed is not None:
        if priority is not None and priority >= 0 and task.priority is not None and task.priority < FAIR:
            # Throttling gives the CPU only to fair tasks, so this task's priority was raised, which no event
            # shows.
            return _of_task(Kind.TASK, replace(task, priority=None))
        if priority is not None and priority < 0:
            return _of_budget(task)
        return Culprit(
            Kind.THROTTLED,
            "" if task.idle else task.name,
            mechanism=server_of(scene.moment.table.events, piece.cpu, *passed),
            user=_budget_user(scene, piece.cpu, span.start_ns),
            priority=task.priority,
            pid=task.pid,
        )
    if task.idle and span.context.idle_state is not None:
        return _idle(span.context)
    if scene.taken_ns(piece)[task.pid] <= LONGEST_SWITCH_NS:
        return Culprit(Kind.SWITCH)
    return _idle(span.context) if task.idle else _of_task(Kind.PREEMPTION_OFF, task)


def _ends_in_fault(scene: _Scene, piece: Piece, span: Span) -> bool:
    """Return whether the fault lasts until the span's end, because the thread then waits in it for a lock or
    for the page.
    """
    fault = span.context.fault
    if span.end_ns < piece.end_ns:
        after = scene.timelines[piece.cpu].at(span.end_ns).fault
        return fault is not None and after is not None and after.since_ns == fault.since_ns
    next_piece = next((other for other in scene.path.pieces if other.start_ns == piece.end_ns), None)
    return next_piece is not None and next_piece.phase is Phase.BLOCKED and next_piece.is_held


def _after_fault(scene: _Scene, piece: Piece, span: Span, either: Culprit) -> list[Part]:
    """Return the parts of a time without an event after a page fault began, or after the kernel mapped its
    page.
    """
    ns, known = span.end_ns - span.start_ns, span.context.fault
    if known is None or known.mapped_ns is None:
        if ns > LONGEST_FAULT_NS:
            return [Part(either, ns)]
        there_ns, usual_ns, quick_ns = 0, USUAL_FAULT_NS, QUICK_FAULT_NS
        uncertain_ns = min(ns, usual_ns) - LEAST_FAULT_NS
    else:
        there_ns = known.mapped_ns - known.since_ns - known.interrupted_ns
        back = COPY_RETURN if known.copies else READ_RETURN if known.reads else NEW_RETURN
        usual_ns, uncertain_ns, quick_ns = (
            round(times * min(there_ns, USUAL_FAULT_NS)) for times in (*back, QUICK_RETURN)
        )
    fault_ns = ns if ns <= quick_ns else min(ns, usual_ns)
    middle_ns = span.start_ns + fault_ns
    fault = Part(Culprit(Kind.PAGE_FAULT, either.name), fault_ns, [(span.start_ns, middle_ns, piece.cpu)])
    if ns <= quick_ns:
        return [fault]
    fault.uncertain_ns = uncertain_ns
    own = Part(Culprit(Kind.OWN), ns - fault_ns, [(middle_ns, span.end_ns, piece.cpu)])
    after = scene.timelines[piece.cpu].at(span.end_ns).fault
    if after is not None and after.since_ns == span.end_ns:
        own.among_faults_ns = min(own.ns, MOST_AMONG_FAULTS * (there_ns + fault_ns))
    return [fault, own] if own.ns else [fault]


def _budget_user(scene: _Scene, cpu: int, time_ns: int) -> str:
    """Return the real-time task that had the CPU longest in the trace before the throttling at this time;
    empty if there is none.
    """
    line = scene.timelines[cpu]
    start_ns = next(start for start, end in scene.throttled_ns if start <= time_ns < end)
    ran: dict[str, int] = defaultdict(int)
    for span in line.spans(min(line.times_ns[0], start_ns), start_ns):
        task = span.context.task
        if task is not None and task.priority is not None and 0 <= task.priority < FAIR:
            ran[task.name] += span.end_ns - span.start_ns
    return max(ran, key=ran.__getitem__, default="")


def _running(scene: _Scene, piece: Piece, span: Span) -> Culprit:
    context = span.context
    lock = _kernel_lock(scene, span.start_ns)
    if lock is not None:
        return lock
    spin = next((spin for spin in scene.spins if spin.call.covers(span.start_ns)), None)
    if spin is not None:
        owner = KernelTask(0, "", None) if spin.owner is None else scene.names.task(spin.owner)
        return Culprit(Kind.LOCK_SPIN, owner.name, priority=owner.priority, pid=spin.owner)
    if context.fault is not None:
        ends = _ends_in_fault(scene, piece, span)
        name = COPY_ON_WRITE if context.fault.copies else ""
        return Culprit(Kind.PAGE_FAULT if ends else Kind.FAULT_OR_OWN, name)
    if context.task is not None and context.task.pid not in {scene.moment.thread, 0}:
        return _of_task(Kind.TASK, context.task)
    return Culprit(Kind.OWN)
