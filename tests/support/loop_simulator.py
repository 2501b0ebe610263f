# SPDX-License-Identifier: MIT
"""Draws schedules of one thread and writes the kernel events that a tracer would record, with the truth.

The simulator knows nothing of the engine: it runs a small program on a small kernel. One event a line, in
time order, numbers in ns:

    E time cpu tid call object flags     the thread entered a system call; flags of a futex: wait, lock_pi, wait2
    X time cpu tid result                it left the call; -516 to -512: a signal interrupted it
    T time cpu tid timer softexpires clock   it started an hrtimer, outside interrupts; clock: mono, real
    W time cpu waker hardirq tid         sched_waking
    S time cpu prev prev_state next      sched_switch; prev_state: R, S, D, T, and X if the thread has ended
    O time offset                        from here on, CLOCK_REALTIME - CLOCK_MONOTONIC
    L time                               events were lost up to here
    B time, F time                       the measured phase begins, and ends
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER_NS = 1 << 62
MS = 1_000_000
STEP_NS = 300_000_000
"""By how much the wall clock is set."""
RESTART_NO_HANDLER, RESTART_BLOCK, RESTART_SYSTEM = -514, -516, -512
TIMED_OUT, AGAIN, INTERRUPTED = -110, -11, -4


class Fate(Enum):
    """What the thread did with a release."""

    RUN = "run"
    """It waited for it, or came too late for a wait that then returned at once."""
    CAUGHT_UP = "caught up"
    """It ran it late, without a wait: no event shows this."""
    SKIPPED = "skipped"
    PENDING = "pending"
    """It had not begun when the measured phase ended."""


@dataclass(slots=True)
class Release:
    """One release, and what became of it until the measured phase ended."""

    release_ns: int
    start_ns: int | None
    end_ns: int | None
    """None: it had not ended."""
    fate: Fate = Fate.RUN
    timed: bool = True
    """False: another task or a device released it."""
    source: int = 0
    """Which of several timers released it."""
    hidden: bool = False
    """No event shows its true release or end."""


@dataclass(frozen=True)
class Late:
    """How many releases broke a bound."""

    due: int
    late: int
    open: int
    """Unfinished within the bound when the measured phase ended."""

    @property
    def least(self) -> float:
        """The share that was late for certain."""
        return self.late / self.due if self.due else 0

    @property
    def most(self) -> float:
        """The share that was late if all open ones were."""
        return (self.late + self.open) / self.due if self.due else 0


@dataclass
class Schedule:
    """The events of one thread, and the truth."""

    seed: int
    kind: str
    period_ns: int
    begin_ns: int
    end_ns: int
    tid: int
    deadline: bool
    """The thread has the policy SCHED_DEADLINE."""
    interval_ns: int
    """Of its timerfd or POSIX timer; 0: none."""
    lines: list[str]
    releases: list[Release]
    """In the measured phase, in time order."""
    traits: frozenset[str] = frozenset()
    gaps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Times in which events were lost."""

    @property
    def single_wait(self) -> bool:
        """Only one of the thread's waits can begin its cycle."""
        return self.kind not in {"two waits", "two periods", "executor"}

    @property
    def must_not_hold(self) -> bool:
        """No requirement can hold, whatever the releases are."""
        return "clock step" in self.traits

    @property
    def overruns(self) -> int:
        """Releases for which the thread did not wait."""
        return sum(release.fate is not Fate.RUN for release in self.releases)

    def bounds(self, *, response: bool, margin_ns: int = 5000) -> list[int]:
        """Bounds on the latency or the response, each at least a margin away from that of every release."""
        reached = sorted(
            (self.end_ns if value is None else value) - release.release_ns
            for release in self.releases
            for value in (release.end_ns if response else release.start_ns,)
            if release.fate is not Fate.SKIPPED
        )
        bounds = [
            (low + high) // 2
            for low, high in zip([0, *reached], reached, strict=False)
            if high - low >= 2 * margin_ns
        ]
        return [*bounds, reached[-1] + margin_ns] if reached else []

    def late(
        self, latency_ns: int | None = None, response_ns: int | None = None, source: int | None = None
    ) -> Late:
        """Count the releases that broke one of the bounds. Skipped ones break every bound."""
        late = still_open = due = 0
        for release in self.releases:
            if source is not None and release.source != source:
                continue
            due += 1
            if release.fate is Fate.SKIPPED:
                late += 1
                continue
            broken = unknown = False
            for bound_ns, reached_ns in (
                (latency_ns, release.start_ns),
                (response_ns, release.end_ns),
            ):
                if bound_ns is None:
                    continue
                broken |= (self.end_ns if reached_ns is None else reached_ns) - release.release_ns > bound_ns
                unknown |= reached_ns is None
            late += broken
            still_open += unknown and not broken
        return Late(due, late, still_open)


class _OverError(Exception):
    """The thread does nothing any more."""


@dataclass(slots=True)
class _Faults:
    """What may go wrong in a schedule: shares of the cycles, unless named otherwise."""

    long_work: float = 0
    long_periods: float = 2
    work: float = 0.2
    """The ordinary work, as a share of the period."""
    work_spread: float = 0.1
    preempted: float = 0
    timer_late: float = 0
    wake_ns: float = 4000
    slack_ns: int = 0
    lock: float = 0
    lock_flags: str = "lock_pi"
    lock_periods: float = 0.3
    disk: float = 0
    handshake: float = 0
    timed_lock: float = 0
    pause_ns: int = 0
    """A relative sleep in each cycle; 0: none."""
    sensor_ns: int = 0
    """A read in each cycle that sleeps so long; 0: none."""
    calls: int = 0
    """Calls in each cycle that return at once."""
    missing: float = 0
    """The share of switches from the idle task that are not traced, as in many virtual machines."""
    hang: str = ""
    stack_moves: bool = False
    """The kernel puts the timer of each sleep at another address."""


class _Thread:
    """A thread on a small kernel: writes the events of what its program does."""

    def __init__(self, seed: int, period_ns: int, cycles: int) -> None:
        self.rng = rng = random.Random(seed)
        self.random = rng.random
        self.lines: list[str] = []
        self.times: list[int] = []
        self.releases: list[Release] = []
        self.faults = _Faults()
        self.tid = rng.randrange(300, 40_000)
        self.others = (0, 0, self.tid + 1, self.tid + 7, 17)
        self.cpu = rng.randrange(2)
        self.now = rng.randrange(10**12, 10**15)
        self.offset_ns = rng.randrange(10**18, 2 * 10**18)
        self.period_ns = period_ns
        self.interval_ns = 0
        self.timer = rng.randrange(1 << 47, 1 << 48)
        self.object = rng.randrange(3, 60)
        self.lock = rng.randrange(1 << 46, 1 << 47) & ~3
        self.begin_ns = self.now
        self.stop_ns = self.now + cycles * period_ns
        self.hang_ns = NEVER_NS
        self.signal_ns = NEVER_NS
        self.signal_every_ns = 0
        self.stop_length_ns = 0
        """0: the signal has a handler; else it stops the thread for so long."""
        self.signal_timer = 0
        """The thread's own interval timer that sends the signal; 0: another process sends it."""
        self.step_ns = NEVER_NS
        self.expiry_ns = 0
        self.note(f"O {self.now} {self.offset_ns}")

    def note(self, line: str) -> None:
        self.lines.append(line)
        self.times.append(self.now)

    def some_ns(self, mean: float) -> int:
        return int(mean * (0.5 + self.random()))

    def switch(self, prev: int, state: str, following: int) -> None:
        missing = self.faults.missing
        if missing and self.random() < (missing if prev == 0 else missing / 20):
            return
        self.note(f"S {self.now} {self.cpu} {prev} {state} {following}")

    def out(self, state: str) -> None:
        self.switch(self.tid, state, self.others[int(self.random() * 5)])

    def into(self) -> None:
        """The thread gets a CPU."""
        if self.random() < 0.05:
            self.cpu = int(self.random() * 2)
        self.switch(self.others[int(self.random() * 5)], "R", self.tid)

    def wake(self, hardirq: int, waker: int | None = None) -> None:
        if waker is None:
            waker = self.others[int(self.random() * 5)]
        self.note(f"W {self.now} {self.cpu} {waker} {hardirq} {self.tid}")

    def wake_latency(self) -> None:
        self.now += 1 + int(self.rng.expovariate(1 / self.faults.wake_ns))

    def enter(self, call: str, what: int, flags: str = "-") -> None:
        self.now += 100 + int(self.random() * 300)
        self.note(f"E {self.now} {self.cpu} {self.tid} {call} {what} {flags}")

    def leave(self, result: int) -> None:
        self.now += 200 + int(self.random() * 500)
        self.note(f"X {self.now} {self.cpu} {self.tid} {result}")

    def arm(self, timer: int, expiry_ns: int, clock: str) -> None:
        self.now += 100 + int(self.random() * 400)
        self.note(f"T {self.now} {self.cpu} {self.tid} {timer} {expiry_ns} {clock}")

    def stack_timer(self) -> int:
        """The address of a timer on the kernel's stack."""
        return self.rng.randrange(1 << 46, 1 << 47) if self.faults.stack_moves else self.timer ^ 0x10000

    def fire_ns(self, expiry_ns: int) -> int:
        """When a timer fires."""
        late_ns = 500 + int(self.rng.expovariate(1 / 2000))
        if self.faults.slack_ns:
            late_ns += int(self.random() * self.faults.slack_ns)
        if self.random() < self.faults.timer_late:
            late_ns += int(self.period_ns * self.rng.uniform(0.1, 2.5))
        return expiry_ns + late_ns

    def next_signal(self) -> None:
        self.signal_ns = (
            max(self.signal_ns, self.now - self.signal_every_ns) + self.signal_every_ns
            if self.signal_every_ns
            else NEVER_NS
        )

    def take_signal(self) -> None:
        """The handler runs, or the thread is stopped; it is outside a sleep."""
        if self.stop_length_ns:
            self.out("T")
            self.now += self.stop_length_ns
            self.wake(0)
            self.wake_latency()
            self.into()
        elif self.signal_timer:  # the kernel sets it anew when the signal is taken
            self.arm(self.signal_timer, self.signal_ns + self.signal_every_ns, "mono")
            self.now += self.some_ns(5000)
        else:
            self.now += self.some_ns(5000)
        self.next_signal()

    def run(self, ns: int) -> None:
        """Compute."""
        end_ns = self.now + ns
        if self.signal_ns < end_ns:
            before_ns = max(self.now, self.signal_ns)
            self.now = before_ns
            self.take_signal()
            end_ns += self.now - before_ns
        if self.random() < self.faults.preempted:
            left_ns = int((end_ns - self.now) * self.random())
            self.now = end_ns - left_ns
            self.out("R")
            self.now += int(self.period_ns * self.random() * (1.5 if self.random() < 0.2 else 0.1))
            self.into()
            end_ns = self.now + left_ns
        self.now = max(end_ns, self.now)

    def asleep(self, until_ns: int, hardirq: int, state: str = "S", waker: int | None = None) -> bool:
        """Sleep. Return False if a signal ended the sleep before its time."""
        self.now += 200 + int(self.random() * 600)
        if until_ns <= self.now:  # woken on its way to sleep
            self.wake(hardirq, self.tid if hardirq else waker)
            return True
        self.out(state)
        if state == "S" and self.signal_ns < until_ns:
            self.now = max(self.now, self.signal_ns) + 300
            self.wake(int(self.signal_timer > 0))
            self.wake_latency()
            self.into()
            return False
        self.now = until_ns
        self.wake(hardirq, waker)
        self.wake_latency()
        self.into()
        return True

    def timed_wait(
        self,
        call: str,
        what: int,
        *,
        until_ns: int | None = None,
        for_ns: int = 0,
        flags: str = "-",
        clock: str = "mono",
        result: int = 0,
        woken_ns: int = NEVER_NS,
        wake_result: int = 0,
    ) -> bool:
        """Wait until a time, or for a length. Return whether the timer ended the wait; `expiry_ns` is then its
        expiry on CLOCK_MONOTONIC.
        """
        timer = self.stack_timer()
        while True:
            self.enter(call, what, flags)
            if until_ns is None:
                self.expiry_ns = self.now + 200 + for_ns
                self.arm(timer, self.expiry_ns, clock)
            else:
                self.expiry_ns = until_ns - (self.offset_ns if clock == "real" else 0)
                self.arm(timer, until_ns, clock)
            if self.expiry_ns <= self.now:
                if self.random() < 0.5:  # the timer's interrupt comes before the sleep
                    self.wake(1, self.tid)
                self.leave(result)
                return True
            if clock == "real" and self.step_ns < self.expiry_ns:
                self.step_while_waiting()
            fire_ns = self.fire_ns(self.expiry_ns)
            by_timer = fire_ns <= woken_ns
            if self.asleep(min(fire_ns, max(woken_ns, self.now)), int(by_timer)):
                self.leave(result if by_timer else wake_result)
                return by_timer
            interrupted_ns = self.now
            if until_ns is None and self.expiry_ns <= interrupted_ns:  # no time is left to sleep
                self.leave(result)
                return True
            self.leave(RESTART_BLOCK if until_ns is None else RESTART_NO_HANDLER)
            stopped = self.stop_length_ns > 0
            self.take_signal()
            if until_ns is None and stopped:  # the kernel restarts it with the same expiry
                call, until_ns = "restart_syscall", self.expiry_ns
            elif until_ns is None:  # the program sleeps for the rest
                for_ns = max(self.expiry_ns - interrupted_ns, 1)

    def step_while_waiting(self) -> None:
        """The wall clock is set while the thread waits for one of its times."""
        due_ns = self.expiry_ns + self.offset_ns
        at_ns = max(self.step_ns, self.now)
        self.offset_ns += STEP_NS if self.random() < 0.5 else -STEP_NS
        self.lines.append(f"O {at_ns} {self.offset_ns}")
        self.times.append(at_ns)
        self.step_ns = NEVER_NS
        self.expiry_ns = max(due_ns - self.offset_ns, at_ns)

    def wait(
        self,
        call: str,
        what: int,
        until_ns: int,
        hardirq: int,
        result: int,
        *,
        flags: str = "-",
        state: str = "S",
        waker: int | None = None,
    ) -> bool:
        """Wait without a timer of its own. Return False if there was nothing to wait for, so that nobody woke it."""
        while True:
            self.enter(call, what, flags)
            waits = until_ns > self.now
            if not waits or self.asleep(until_ns, hardirq, state, waker):
                self.leave(result)
                return waits
            self.leave(RESTART_SYSTEM)
            self.take_signal()

    def at_once(self, call: str, what: int, result: int, flags: str = "-") -> None:
        """A call that does not wait."""
        self.enter(call, what, flags)
        self.leave(result)

    def begin(
        self, release_ns: int, fate: Fate = Fate.RUN, source: int = 0, *, timed: bool = True
    ) -> Release:
        """An activation starts."""
        release = Release(release_ns, self.now, None, fate, timed, source, fate is not Fate.RUN)
        if fate is Fate.CAUGHT_UP:  # no event shows when the one before ended
            before = (item for item in reversed(self.releases) if item.fate is not Fate.SKIPPED)
            next(before, release).hidden = True
        self.releases.append(release)
        return release

    def skip(self, release_ns: int) -> None:
        """The thread leaves out a release; its start is the time at which it does so, until `_measured` knows."""
        self.releases.append(Release(release_ns, self.now, None, Fate.SKIPPED, hidden=True))

    def finish(self) -> None:
        """The activation has ended."""
        self.releases[-1].end_ns = self.now

    def body(self) -> None:
        """The work of one cycle, with what goes wrong in it."""
        faults, chance = self.faults, self.random
        if self.now >= self.hang_ns:
            self.hang()
        work_ns = self.period_ns * faults.work * (1 + faults.work_spread * (2 * chance() - 1))
        if chance() < faults.long_work:
            work_ns = self.period_ns * self.rng.uniform(0.5, 1.5) * faults.long_periods
        half_ns = int(work_ns / 2)
        self.run(half_ns)
        for _ in range(faults.calls):
            self.some_call()
        if faults.sensor_ns:
            self.wait("read", self.object + 1, self.now + 500 + self.some_ns(faults.sensor_ns), 1, 8, waker=0)
        if faults.pause_ns:
            self.timed_wait("clock_nanosleep", 0, for_ns=faults.pause_ns)
        if chance() < faults.lock:
            self.wait(
                "futex",
                self.lock,
                self.now + 500 + int(self.period_ns * faults.lock_periods * chance()),
                0,
                0,
                flags=faults.lock_flags,
                waker=self.tid + 1,
            )
        if chance() < faults.disk:
            self.wait("fdatasync", 9, self.now + 2000 + int(self.period_ns * 1.5 * chance()), 1, 0, state="D")
        if chance() < faults.handshake:
            until_ns = self.now + 500 + int(self.period_ns * 0.4 * chance())
            self.wait("futex", self.lock + 64, until_ns, 0, 0, flags="wait", waker=self.tid + 7)
        if chance() < faults.timed_lock:
            self.timed_wait(
                "futex",
                self.lock + 128,
                until_ns=self.now + 100 * self.period_ns,
                flags="wait",
                woken_ns=self.now + 2000 + int(self.period_ns * 0.4 * chance()),
            )
        self.run(half_ns)

    def some_call(self) -> None:
        """A call that a tracer records by its number, though it does not wait here."""
        which = int(self.random() * 4)
        if which == 0:
            self.at_once("write", 1, 24)
        elif which == 1:
            self.at_once("futex", self.lock, 1)
            self.note(f"W {self.now} {self.cpu} {self.tid} 0 {self.tid + 1}")
        elif which == 2:
            self.at_once("read", self.object + 2, 8)
        else:
            self.at_once("recvfrom", self.object + 3, AGAIN)
        self.now += self.some_ns(700)

    def hang(self) -> None:
        """The thread does nothing for its releases any more."""
        how = self.faults.hang
        if how in {"futex", "fdatasync"}:
            self.enter(how, self.lock + 256, "wait" if how == "futex" else "-")
            self.now += 500
            self.out("D" if how == "fdatasync" else "S")
        elif how == "starved":
            self.out("R")
        elif how == "ends":
            self.finish()
            self.note(f"S {self.now} {self.cpu} {self.tid} X 0")  # its end is never missed
        raise _OverError  # or it spins

    def going_on(self) -> bool:
        return self.now < self.stop_ns


Program = tuple[str, "Callable[[_Thread], None]", int]
"""The kind, what the thread does, and how often it is drawn."""


def _periodic(
    t: _Thread,
    late: str,
    call: str = "clock_nanosleep",
    clock: str = "mono",
    *,
    computed: bool = False,
    unit_ns: int = 1,
    polls: bool = False,
) -> None:
    """A loop on a grid. `late`: what it does if a point has passed: "call" it all the same (a sleep of no
    length if it computes), "catch up", "skip", or "begin anew" with another grid, without a call. computed: it
    asks for the time left, not for the point, in whole units. polls: before its work, it looks for other events
    with the same call, as event loops do.
    """
    due_ns = t.now + t.period_ns
    real = clock == "real"
    if real:
        due_ns += t.offset_ns
    futex = call == "futex"
    what, flags, result = (t.lock + 32, "wait", TIMED_OUT) if futex else (0, "-", 0)
    while t.going_on():
        while late == "skip" and due_ns <= t.now:
            t.skip(due_ns)
            due_ns += t.period_ns
        if due_ns <= t.now and late == "begin anew":
            first_ns = due_ns
            while due_ns + t.period_ns <= t.now:
                due_ns += t.period_ns
                t.skip(due_ns)
            t.begin(first_ns, Fate.CAUGHT_UP)
            due_ns = t.now
        elif due_ns <= t.now and late == "catch up":
            t.begin(due_ns, Fate.CAUGHT_UP)
        else:
            passed = due_ns <= t.now
            until_ns = due_ns
            if computed:  # it reads the clock, and computes; the time passes meanwhile
                left_ns = -(-max(due_ns - t.now, 0) // unit_ns) * unit_ns
                until_ns = t.now + left_ns + t.some_ns(3000)
            t.timed_wait(call, what, until_ns=until_ns, flags=flags, clock=clock, result=result)
            t.begin(due_ns - t.offset_ns if real else due_ns).hidden = computed and passed
        if polls:
            t.at_once(call, what, 0)
        t.body()
        t.finish()
        due_ns += t.period_ns


def _relative(t: _Thread, call: str = "clock_nanosleep") -> None:
    """It sleeps for a length after its work."""
    for_ns = int(t.period_ns * t.rng.uniform(0.5, 1))
    while t.going_on():
        t.timed_wait(call, 0, for_ns=for_ns)
        t.begin(t.expiry_ns)
        t.body()
        t.finish()


def _own(t: _Thread) -> None:
    """Its distances vary."""
    due_ns = t.now
    while t.going_on():
        due_ns += int(t.period_ns * t.rng.uniform(0.5, 1.5))
        t.timed_wait("clock_nanosleep", 0, until_ns=due_ns)
        t.begin(due_ns)
        t.body()
        t.finish()


def _interval_timer(t: _Thread, how: str, surplus: str) -> None:
    """A timer of the kernel with an interval. The kernel sets it anew when the thread takes the expirations."""
    t.interval_ns = t.period_ns
    expiry_ns = t.now + t.period_ns
    t.arm(t.timer, expiry_ns, "mono")
    while t.going_on():
        count = _take_expirations(t, how, expiry_ns)
        activations = count if surplus == "catch up" else 1
        for i in range(count):
            if i >= activations:
                t.skip(expiry_ns + i * t.period_ns)
        for i in range(activations):
            t.begin(expiry_ns + i * t.period_ns, Fate.CAUGHT_UP if i else Fate.RUN)
            t.body()
            t.finish()
        expiry_ns += count * t.period_ns


def _take_expirations(t: _Thread, how: str, expiry_ns: int) -> int:
    """Wait for the timer; return how often it had expired."""
    fire_ns = t.fire_ns(expiry_ns)
    call, what = {
        "read": ("read", t.object),
        "epoll": ("epoll_wait", t.object + 1),
        "sigwait": ("rt_sigtimedwait", 0),
        "sigsuspend": ("rt_sigsuspend", 0),
    }[how]
    result = {"read": 8, "epoll": 1, "sigwait": 14, "sigsuspend": RESTART_NO_HANDLER}[how]
    while True:
        t.enter(call, what)
        if fire_ns <= t.now or t.asleep(fire_ns, 1):
            break
        t.leave({"read": RESTART_SYSTEM, "sigsuspend": RESTART_NO_HANDLER}.get(how, INTERRUPTED))
        t.take_signal()
    if how in {"epoll", "sigsuspend"}:
        t.leave(result)
    if how == "epoll":
        t.enter("read", t.object)
    count = (t.now - expiry_ns) // t.period_ns + 1
    t.arm(t.timer, expiry_ns + count * t.period_ns, "mono")
    if how == "sigsuspend":
        t.now += t.some_ns(1500)  # the handler
    else:
        t.leave(8 if how == "epoll" else result)
    return count


def _data(t: _Thread, call: str, hardirq: int, *, drops: bool = False) -> None:
    """Another task or a device releases it. drops: what comes while it works is lost; else it waits in a
    queue, of which no event tells. With a condition variable, the thread looks into this queue before it waits
    again, and what it finds there belongs to the activation.
    """
    regular = t.random() < 0.5
    arrival_ns = t.now + t.period_ns
    waker = 0 if hardirq else t.tid + 1
    futex = call == "futex"
    while t.going_on():
        if arrival_ns > t.now:
            waited = t.wait(
                call,
                t.lock + 32 if futex else t.object,
                arrival_ns,
                hardirq,
                0 if futex else 64,
                flags="wait" if futex else "-",
                waker=waker,
            )
            t.begin(arrival_ns, timed=False).hidden = not waited
        else:
            t.at_once(call, t.object, 64)
            t.begin(arrival_ns, timed=False).hidden = True
        t.body()
        t.finish()
        while True:
            arrival_ns += int(
                t.period_ns * (0.99 + 0.02 * t.random() if regular else 0.05 + t.rng.expovariate(1.05))
            )
            if arrival_ns > t.now or not (drops or futex) or not t.going_on():
                break
            if futex:
                t.body()
                t.finish()


def _receive_timeout(t: _Thread) -> None:
    """The time-out of a socket is its clock: a timer of the timer wheel, which starts no hrtimer."""
    tick_ns = 4 * MS
    while t.going_on():
        until_ns = -(-(t.now + t.period_ns) // tick_ns) * tick_ns + t.some_ns(20_000)
        waited = t.wait("recvfrom", t.object, until_ns, 0, AGAIN)
        t.begin(until_ns, timed=False).hidden = not waited
        t.body()
        t.finish()


def _mixed(t: _Thread) -> None:
    """A condition variable with a time-out: timed releases on a grid, and data in between. Data that came while
    it worked belong to the activation, as in `_data`.
    """
    due_ns = t.now + t.period_ns
    arrival_ns = t.now + int(t.period_ns * t.rng.uniform(0.3, 2))
    while t.going_on():
        timed = t.timed_wait(
            "futex",
            t.lock + 32,
            until_ns=due_ns,
            flags="wait",
            result=TIMED_OUT,
            woken_ns=arrival_ns,
        )
        t.begin(due_ns if timed else arrival_ns, timed=timed, source=int(not timed))
        t.body()
        t.finish()
        if timed:
            due_ns += t.period_ns
        else:
            arrival_ns += int(t.period_ns * t.rng.uniform(0.3, 3))
        while arrival_ns <= t.now and t.going_on():
            t.body()
            t.finish()
            arrival_ns += int(t.period_ns * t.rng.uniform(0.3, 3))


def _mixed_epoll(t: _Thread) -> None:
    """epoll over a timerfd and a socket."""
    t.interval_ns = t.period_ns
    expiry_ns = t.now + t.period_ns
    fire_ns = t.fire_ns(expiry_ns)
    arrival_ns = t.now + int(t.period_ns * t.rng.uniform(0.3, 2))
    t.arm(t.timer, expiry_ns, "mono")
    while t.going_on():
        first_ns = min(fire_ns, arrival_ns)
        timed = fire_ns <= arrival_ns
        waited = t.wait("epoll_wait", t.object + 1, first_ns, int(timed), 1)
        if timed:
            t.enter("read", t.object)
            count = (t.now - expiry_ns) // t.period_ns + 1
            t.arm(t.timer, expiry_ns + count * t.period_ns, "mono")
            t.leave(8)
            for i in range(1, count):
                t.skip(expiry_ns + i * t.period_ns)
            t.begin(expiry_ns)
            expiry_ns += count * t.period_ns
            fire_ns = t.fire_ns(expiry_ns)
        else:
            t.at_once("recvfrom", t.object + 2, 64)
            t.begin(arrival_ns, timed=False, source=1).hidden = not waited
            arrival_ns += int(t.period_ns * t.rng.uniform(0.3, 3))
        t.body()
        t.finish()


def _executor(t: _Thread) -> None:
    """Two timers of different periods in one thread."""
    periods_ns = (t.period_ns, int(t.period_ns * t.rng.choice((1.5, 2, 3, 5))))
    due_ns = [t.now + periods_ns[0], t.now + periods_ns[1] + int(t.period_ns * 0.3)]
    while t.going_on():
        which = int(due_ns[1] < due_ns[0])
        t.timed_wait("futex", t.lock + 32, until_ns=due_ns[which], flags="wait", result=TIMED_OUT)
        t.begin(due_ns[which], source=which)
        t.body()
        t.finish()
        due_ns[which] += periods_ns[which]


def _two_waits(t: _Thread, every: int) -> None:
    """A second wait within the cycle, in each cycle or in each second one. The truth is that of the first."""
    due_ns = t.now + t.period_ns
    cycle = 0
    while t.going_on():
        t.timed_wait("clock_nanosleep", 0, until_ns=due_ns)
        t.begin(due_ns)
        t.body()
        if cycle % every == 0:
            t.timed_wait("clock_nanosleep", 0, until_ns=due_ns + int(t.period_ns * 0.4))
            t.run(int(t.period_ns * 0.1))
        t.finish()
        due_ns += t.period_ns
        cycle += 1


def _deadline(t: _Thread) -> None:
    """SCHED_DEADLINE with sched_yield: the kernel sets the thread's timer, whose expiry gives it new budget
    without a wake-up. Work beyond the budget goes on in the next period.
    """
    due_ns = t.now + t.period_ns
    budget_ns = int(t.period_ns * 0.5)
    while t.going_on():
        while due_ns <= t.now:
            t.skip(due_ns)
            due_ns += t.period_ns
        t.enter("sched_yield", 0)
        t.arm(t.timer, due_ns, "mono")
        if due_ns > t.now:
            _throttled(t, due_ns)
        t.leave(0)
        t.begin(due_ns)
        due_ns += t.period_ns
        work_ns = int(t.period_ns * t.faults.work * t.rng.uniform(0.8, 1.2))
        if t.random() < t.faults.long_work:
            work_ns = int(t.period_ns * t.rng.uniform(0.4, 0.9))
        while work_ns > budget_ns:
            t.run(budget_ns)
            work_ns -= budget_ns
            if due_ns > t.now:
                _throttled(t, due_ns)
            t.skip(due_ns)
            t.releases[-2:] = t.releases[:-3:-1]  # the activation that goes on stays the last
            due_ns += t.period_ns
        if t.now >= t.hang_ns:
            t.hang()
        t.run(work_ns)
        t.finish()


def _throttled(t: _Thread, until_ns: int) -> None:
    t.now += t.some_ns(600)
    t.out("R")
    t.now = max(until_ns + t.some_ns(1500), t.now)
    t.wake_latency()
    t.into()


PROGRAMS: tuple[Program, ...] = (
    ("absolute", partial(_periodic, late="call"), 12),
    ("rate that catches up", partial(_periodic, late="catch up"), 7),
    ("rate that skips", partial(_periodic, late="skip"), 6),
    ("rate that begins anew", partial(_periodic, late="begin anew"), 2),
    ("computed, sleeps for no time", partial(_periodic, late="call", computed=True), 5),
    ("computed, catches up", partial(_periodic, late="catch up", computed=True), 4),
    ("computed, skips", partial(_periodic, late="skip", computed=True), 3),
    ("absolute, wall clock", partial(_periodic, late="call", clock="real"), 4),
    ("condition variable", partial(_periodic, late="call", call="futex"), 3),
    ("condition variable, wall clock", partial(_periodic, late="call", call="futex", clock="real"), 2),
    (
        "computed, event loop",
        partial(_periodic, late="catch up", call="epoll_pwait2", computed=True, polls=True),
        3,
    ),
    # its sleeps end up to 1 ms after their point, which no event shows: drawn only if it is named
    (
        "event loop, whole ms",
        partial(_periodic, late="catch up", call="epoll_wait", computed=True, polls=True, unit_ns=MS),
        0,
    ),
    ("ppoll", partial(_periodic, late="catch up", call="ppoll", computed=True), 2),
    ("relative", _relative, 7),
    ("relative, nanosleep", partial(_relative, call="nanosleep"), 3),
    ("own schedule", _own, 3),
    ("timerfd, skips", partial(_interval_timer, how="read", surplus="skip"), 5),
    ("timerfd, catches up", partial(_interval_timer, how="read", surplus="catch up"), 3),
    ("timerfd with epoll", partial(_interval_timer, how="epoll", surplus="skip"), 4),
    ("POSIX timer", partial(_interval_timer, how="sigwait", surplus="skip"), 3),
    ("setitimer", partial(_interval_timer, how="sigsuspend", surplus="skip"), 2),
    ("data, socket", partial(_data, call="recvfrom", hardirq=0), 4),
    ("data, device", partial(_data, call="read", hardirq=1, drops=True), 4),
    ("data, condition variable", partial(_data, call="futex", hardirq=0), 3),
    ("receive time-out", _receive_timeout, 2),
    ("mixed", _mixed, 4),
    ("mixed, epoll", _mixed_epoll, 3),
    ("executor", _executor, 3),
    ("two waits", partial(_two_waits, every=1), 2),
    ("two periods", partial(_two_waits, every=2), 2),
    ("deadline", _deadline, 5),
)
_WITHOUT_TIMERS = ("data", "receive")
_WALL_CLOCK = "wall clock"
_PERIODS_NS = (100_000, 250_000, 500_000, MS, MS, 2 * MS, 4 * MS, 5 * MS, 10 * MS, 20 * MS, 100 * MS)


def _draw_faults(t: _Thread, kind: str) -> set[str]:
    """Choose what goes wrong, and return its names."""
    rng, faults = t.rng, t.faults
    traits = set[str]()

    def happens(name: str, share: float) -> bool:
        if rng.random() >= share:
            return False
        traits.add(name)
        return True

    faults.work = rng.choice((0.02, 0.1, 0.2, 0.35))
    faults.work_spread = rng.choice((0.001, 0.05, 0.3))
    faults.wake_ns = min(rng.choice((2000, 4000, 15_000)), t.period_ns / 25)
    faults.stack_moves = rng.random() < 0.5
    if happens("slack", 0.15):
        faults.slack_ns = min(50_000, t.period_ns // 4)
    if happens("long work", 0.4):
        faults.long_work = rng.choice((0.005, 0.02, 0.05, 0.2))
        faults.long_periods = rng.choice((0.8, 1.5, 3, 5))
    if happens("late timer", 0.2):
        faults.timer_late = rng.choice((0.01, 0.05))
    if happens("preempted", 0.2):
        faults.preempted = rng.choice((0.01, 0.1))
    if happens("calls", 0.3):
        faults.calls = rng.choice((1, 2, 4))
    if happens("lock", 0.15):
        faults.lock = rng.choice((0.02, 0.3, 1))
        faults.lock_flags = rng.choice(("lock_pi", "wait2"))
        faults.lock_periods = rng.choice((0.1, 0.5, 4 if faults.lock < 0.1 else 0.5))
    if happens("disk", 0.08):
        faults.disk = rng.choice((0.01, 0.1))
    if not kind.startswith(_WITHOUT_TIMERS):
        if happens("handshake", 0.05):
            faults.handshake = 1
        if happens("timed lock", 0.05):
            faults.timed_lock = rng.choice((0.1, 1))
        if happens("sensor", 0.07):
            faults.sensor_ns = t.period_ns // 4
        if kind.startswith(("absolute", "computed", "rate", "timerfd")) and happens("pause", 0.07):
            faults.pause_ns = t.period_ns // 4
    if happens("signals", 0.1):
        t.signal_every_ns = int(t.period_ns * rng.choice((0.7, 3.3, 10)))
        t.signal_ns = t.now + t.signal_every_ns
        if not kind.startswith(_WITHOUT_TIMERS) and rng.random() < 0.5:
            t.signal_timer = rng.randrange(1 << 46, 1 << 47)
            traits.add("own interval timer")
    elif happens("stopped", 0.05):
        t.signal_ns = rng.randrange(t.now, t.stop_ns)
        t.stop_length_ns = int(t.period_ns * rng.uniform(1, 5))
    if happens("missing switches", 0.15):
        faults.missing = rng.choice((0.01, 0.5, 1))
    if happens("hangs", 0.05):
        faults.hang = rng.choice(("futex", "fdatasync", "starved", "spins", "ends"))
        traits.discard("hangs")
        traits.add("ends" if faults.hang == "ends" else f"hangs: {faults.hang}")
        t.hang_ns = t.now + int((t.stop_ns - t.now) * rng.uniform(0.2, 0.9))
    if _WALL_CLOCK in kind and happens("clock step", 0.3):
        t.step_ns = t.now + int((t.stop_ns - t.now) * rng.uniform(0.2, 0.8))
    return traits


def simulate(seed: int, kind: str | None = None) -> Schedule:
    """Draw a schedule of 50 to 400 cycles, mostly short ones; the same seed draws the same one. kind: one of
    PROGRAMS.
    """
    rng = random.Random(seed)
    chosen, program = _choose(rng, kind)
    cycles = int(50 * 8 ** (rng.random() ** 3))
    period_ns = rng.choice(_PERIODS_NS)
    if chosen in {"receive time-out", "event loop, whole ms"}:
        period_ns = max(period_ns, 4 * MS)
    t = _Thread(seed, period_ns, cycles)
    traits = _draw_faults(t, chosen)
    hung = False
    try:
        program(t)
    except _OverError:
        hung = True
    if t.step_ns != NEVER_NS:
        traits.discard("clock step")  # it did not meet a wait
    begin_ns = t.begin_ns + int(period_ns * rng.uniform(2, 12))
    end_ns = t.now - int(period_ns * rng.uniform(0, 3))
    if hung:
        end_ns = max(t.now, t.hang_ns) + int(period_ns * rng.uniform(0.1, 30))
    else:
        traits = {trait for trait in traits if not trait.startswith(("hangs", "ends"))}
    _go_on(t, chosen, t.now if "ends" in traits else end_ns)
    gaps = _draw_gaps(rng, begin_ns, end_ns, period_ns)
    if gaps:
        traits.add("lost events")
    return Schedule(
        seed,
        chosen,
        period_ns,
        begin_ns,
        end_ns,
        t.tid,
        chosen == "deadline",
        t.interval_ns,
        _lines(t, begin_ns, end_ns, gaps),
        _measured(t, begin_ns, end_ns),
        frozenset(traits),
        gaps,
    )


_WEIGHTS = [weight for _, _, weight in PROGRAMS]


def _choose(rng: random.Random, kind: str | None) -> tuple[str, Callable[[_Thread], None]]:
    if kind is None:
        return rng.choices(PROGRAMS, _WEIGHTS)[0][:2]
    return next((name, program) for name, program, _ in PROGRAMS if name == kind)


def _go_on(t: _Thread, kind: str, end_ns: int) -> None:
    """The releases that come while the thread hangs, or is busy with earlier ones. A loop without a grid has
    none, because each of its releases depends on the one before.
    """
    if kind.startswith(("relative", "own", "receive")) or not t.releases:
        return
    last: dict[int, int] = {}
    steps: dict[int, int] = {}
    for release in t.releases:
        if release.source in last:
            steps.setdefault(release.source, release.release_ns - last[release.source])
        last[release.source] = max(release.release_ns, last.get(release.source, 0))
    if kind == "rate that begins anew" and t.releases[-1].fate is not Fate.RUN:
        last[0] = t.releases[-1].start_ns or last[0]  # its grid began anew there
    for source, before_ns in last.items():
        timed = not kind.startswith("data") and not (kind.startswith("mixed") and source)
        if not timed:
            continue  # the data may have ended too
        step_ns = t.period_ns if not source else steps[source]
        t.releases.extend(
            Release(release_ns, None, None, Fate.PENDING, source=source, hidden=True)
            for release_ns in range(before_ns + step_ns, end_ns, step_ns)
        )


def _measured(t: _Thread, begin_ns: int, end_ns: int) -> list[Release]:
    """The releases of the measured phase, as they were when it ended."""
    actual = sorted(
        (release for release in t.releases if begin_ns <= release.release_ns < end_ns),
        key=lambda release: release.release_ns,
    )
    for release in actual:
        if release.end_ns is not None and release.end_ns > end_ns:
            release.end_ns = None
        if release.start_ns is not None and release.start_ns > end_ns:
            release.start_ns = None
            release.fate = Fate.PENDING
            release.hidden = True
        elif release.fate is Fate.SKIPPED:
            release.start_ns = None
    return actual


def _draw_gaps(rng: random.Random, begin_ns: int, end_ns: int, period_ns: int) -> list[tuple[int, int]]:
    """Times in which the kernel lost events."""
    if rng.random() >= 0.1 or end_ns <= begin_ns:
        return []
    gaps: list[tuple[int, int]] = []
    for _ in range(rng.choice((1, 1, 3))):
        from_ns = rng.randrange(begin_ns, end_ns)
        if gaps and from_ns <= gaps[-1][1]:
            continue
        gaps.append((from_ns, from_ns + int(period_ns * rng.uniform(0.2, 6))))
    return gaps


def _lines(t: _Thread, begin_ns: int, end_ns: int, gaps: list[tuple[int, int]]) -> list[str]:
    """The events up to the end, without those of the gaps, with the lines that the tracer adds."""
    times, lines = t.times, t.lines
    if any(line[0] == "O" for line in lines[1:]):  # a step of the clock is written ahead of its time
        order = sorted(range(len(times)), key=times.__getitem__)
        times, lines = [times[i] for i in order], [lines[i] for i in order]
    added = [(begin_ns, f"B {begin_ns}"), (end_ns, f"F {end_ns}")]
    added.extend((min(to_ns, end_ns), f"L {min(to_ns, end_ns)}") for _, to_ns in gaps)
    result: list[str] = []
    position = 0
    for at_ns, line in sorted(added, key=lambda event: (event[0], event[1][0] == "F")):
        reached = bisect_left(times, at_ns, position)
        result.extend(_kept(times, lines, position, reached, gaps))
        result.append(line)
        position = reached
    return result


def _kept(
    times: list[int], lines: list[str], first: int, last: int, gaps: list[tuple[int, int]]
) -> list[str]:
    if not gaps:
        return lines[first:last]
    return [
        lines[i]
        for i in range(first, last)
        if lines[i][0] == "O" or not any(from_ns <= times[i] < to_ns for from_ns, to_ns in gaps)
    ]
