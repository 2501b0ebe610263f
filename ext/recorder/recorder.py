# SPDX-License-Identifier: MIT
"""Runs engines one after another on the wanted program, and lets `Recording` put what they say into the
folder. The next engine is measuring before the last one stops.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from rtgauge.errors import MeasureError, RecordError, RtgaugeError
from rtgauge.runner.put_together import signal_name
from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.actions import Actions
from rtgauge_ext.recorder.clocks import Times, clocks
from rtgauge_ext.recorder.cpu_budget import CpuBudget
from rtgauge_ext.recorder.engine_session import EngineSession
from rtgauge_ext.recorder.entries import RecorderEvent
from rtgauge_ext.recorder.fitness import fitness
from rtgauge_ext.recorder.folder import AGE, HOUR_NS, RecorderFolder
from rtgauge_ext.recorder.markers import Markers
from rtgauge_ext.recorder.naming import Namer
from rtgauge_ext.recorder.program import PROC, Program, ProgramChoice, user_of
from rtgauge_ext.recorder.recording import MINUTE_NS, Recording, State, Taker
from rtgauge_ext.recorder.surroundings import Surroundings
from rtgauge_ext.recorder.thresholds import Threshold
from rtgauge_ext.recorder.tracing import remove_leftovers
from rtgauge_ext.recorder.trigger_socket import Messages
from rtgauge_ext.recorder.triggers import ENDED, Silence, Trigger, slices_of

LOOK_NS = NS_PER_S
SESSION_NS = HOUR_NS
FIRST_WAIT_NS, MOST_WAIT_NS = NS_PER_S, 60 * NS_PER_S
"""How long to wait until an engine that failed is tried again: doubled each time."""
NAMING_PART = 4
"""One part in this many of the CPU's share may go into naming culprits."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
EVENT_S = 60.0
STARTED, STOPPED = "recorder started", "recorder stopped"
PROGRAM = "program"


@dataclass(frozen=True)
class Options:
    """How to record. `for_ns`: for how long; None: until stopped. `budget`: share of a CPU (0 to 1)."""

    wanted: ProgramChoice
    watch: dict[str, str | int]
    for_ns: int | None = None
    budget: float = 0.005
    silent: Silence | None = None
    socket: Path | None = None
    bounds: dict[str, int] | None = None
    marker: str | None = None
    files: tuple[Threshold, ...] = ()


class RunningEngine(NamedTuple):
    """An engine and the taker of its lines."""

    session: EngineSession
    taker: Taker
    since_ns: int


def _facts() -> bytes:
    from rtgauge.system.collect_facts import read_facts

    try:
        return read_facts("local").facts.model_dump_json().encode()
    except RtgaugeError:
        return b""


class Recorder:
    """Records until it is stopped."""

    def __init__(self, folder: RecorderFolder, options: Options, actions: Actions) -> None:
        """Take over the folder."""
        self._folder, self._options, self._actions = folder, options, actions
        self._surroundings = Surroundings()
        self._recording = Recording(
            folder,
            clocks,
            Namer(options.budget / NAMING_PART),
            _facts,
            bounds=options.bounds,
            on_trigger=self._act,
            around=self._surroundings.words,
        )
        actions.count = self._count
        self._selector = selectors.DefaultSelector()
        self._messages = None if options.socket is None else Messages(options.socket)
        if self._messages is not None:
            self._selector.register(self._messages, selectors.EVENT_READ, self._take_messages)
        self._markers: Markers | None = None
        self._threads: set[int] = set()
        """The threads of the program, also ones that have ended."""
        self._now: RunningEngine | None = None
        self._next: RunningEngine | None = None
        self._sessions = 0
        self._fitness = ""
        """Of the last program, as it was written down."""
        self._wait_ns, self._again_ns = FIRST_WAIT_NS, 0
        self._said = ""
        self._told_s: dict[str, float] = {}
        self._stop = False
        self._frozen_by = ""
        """The trigger that has frozen the folder."""
        self._suspends = 0
        self._cpu_ns = self._cpu_used_ns()
        self._budget = CpuBudget(options.budget, self._counts())
        self._cpu_looked_ns = self._silent_looked_ns = self._triggers_looked_ns = 0

    def run(self) -> None:
        """Record until the time is over, a signal comes, or a trigger freezes the folder."""
        begun_ns = clocks().boot_ns - age_ns(self._folder, clocks())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._caught)
        self._begin()
        try:
            while not self._is_over(begun_ns):
                for key, _ in self._selector.select(self._pause_s()):
                    key.data()
                self._tick()
        finally:
            self._end()

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        self._stop = True

    def _is_over(self, begun_ns: int) -> bool:
        limit_ns = self._options.for_ns
        over = limit_ns is not None and clocks().boot_ns - begun_ns >= limit_ns
        gone = self._options.wanted.pid is not None and self._now is None and not self._options.wanted.find()
        return self._stop or over or gone or self._actions.frozen

    def _begin(self) -> None:
        """Account for the time since the last recorder of this folder, and open what can trigger."""
        remove_leftovers()
        if self._options.marker is not None:
            self._markers = Markers(self._options.marker)
            for ring in self._markers.descriptors.values():
                self._selector.register(ring, selectors.EVENT_READ, self._take_markers)
        last = _last_event(self._folder)
        self._count("between_ns", _between_ns(self._folder, clocks()))
        if last is not None and last.what == STARTED:
            self._count("kills")
        self._recording.event(STARTED, " ".join(self._folder.settings.command))

    def _end(self) -> None:
        """Stop the engines, and write everything down."""
        for running in (self._next, self._now):
            if running is not None:
                running.session.stop()
        for running in (self._next, self._now):
            while running is not None and running in (self._next, self._now):
                self._read(running)
        self._actions.close()
        if self._messages is not None:
            self._messages.close()
        if self._markers is not None:
            self._markers.close()
        self._recording.forget_requests(all_of=True)
        self._look_at_cpu()
        self._recording.tick("absent")
        self._recording.flush()
        why = (
            "a trigger ended the recording (--on-trigger freeze)"
            if self._actions.frozen
            else "it got a signal to stop, or its time (--for) was over"
        )
        self._recording.event(STOPPED, why)
        self._freeze()
        remove_leftovers()
        self._folder.close()

    def _freeze(self) -> None:
        """Let nobody record into the folder any more, if a trigger asked for that."""
        if not self._actions.frozen:
            return
        try:
            if self._folder.frozen is None:
                self._folder.freeze(self._frozen_by)
        except (OSError, RecordError):
            self._count("events_not_written")  # the disk is full; it is tried again at the end

    def _count(self, name: str, number: int = 1) -> None:
        self._recording.counts[name] += number

    def _act(self, trigger: Trigger) -> None:
        """Act, and write the trigger down. In a storm, events would need more room than moments, so only the
        first one of a minute is an event; all are counted.
        """
        now_s = time.monotonic()
        if now_s - self._told_s.get(trigger.name, -EVENT_S) >= EVENT_S:
            self._told_s[trigger.name] = now_s
            self._recording.event(f"trigger {trigger.name}", trigger.detail)
        self._actions.act(trigger, self._now.session.program if self._now is not None else None, now_s)
        if self._actions.frozen and not self._frozen_by:
            self._frozen_by = f"trigger {trigger.name}: {trigger.detail}"
            self._freeze()

    def _take_messages(self) -> None:
        """Let the datagrams that have come pull the trigger."""
        if self._messages is None:
            return
        for trigger in self._messages.read(self._now.session.program if self._now is not None else None):
            self._request(trigger)
        self._count("messages_refused", self._messages.refused)
        self._messages.refused = 0

    def _request(self, trigger: Trigger) -> None:
        """Pull a trigger whose events the engine has."""
        self._recording.ask(trigger, lambda word: self._now is not None and self._now.session.send(word))

    def _take_markers(self) -> None:
        """Let the lines of trace_marker that have come pull the trigger."""
        if self._markers is None:
            return
        program = self._now.session.program if self._now is not None else None
        for trigger in self._markers.read(program, lambda: self._threads):
            self._request(trigger)
        self._count("markers_refused", self._markers.refused)
        self._markers.refused = 0

    def _look_for_triggers(self) -> None:
        """Look at the files, at the program's user, who may send messages, and at its threads, whose markers
        may come after their end.
        """
        for threshold in self._options.files:
            if (trigger := threshold.look()) is not None:
                self._request(trigger)
        if self._messages is not None and self._now is not None:
            try:
                self._messages.let(user_of(self._now.session.program.pid))
            except OSError as error:
                self._note("socket", f"only root can send messages: {error.strerror or error}")
        if self._markers is not None and self._now is not None:
            tasks = (PROC / str(self._now.session.program.pid) / "task").glob("[0-9]*")
            self._threads.update(int(place.name) for place in tasks)
        self._recording.forget_requests()

    def _pause_s(self) -> float:
        silent = self._options.silent
        every_ns = LOOK_NS if silent is None else min(LOOK_NS, silent.every_ns)
        return every_ns / NS_PER_S

    def _state(self) -> State:
        if self._now is None:
            return "absent"
        return "watched" if self._now.taker.is_measuring else "unseen"

    def _tick(self) -> None:
        now_ns = clocks().monotonic_ns
        before_ns = self._recording.counts["watched_ns"]
        self._recording.tick(self._state())
        if self._now is not None and self._now.session.spares:
            self._count("spared_ns", max(0, self._recording.counts["watched_ns"] - before_ns))
        self._actions.look(time.monotonic())
        if now_ns - self._triggers_looked_ns >= LOOK_NS:
            self._triggers_looked_ns = now_ns
            self._look_for_triggers()
            self._surroundings.look(now_ns)
        if self._now is None and now_ns >= self._again_ns:
            self._again_ns = now_ns + LOOK_NS
            self._now = self._find_program(now_ns)
        self._follow_on(now_ns)
        silent = self._options.silent
        if (
            silent is not None
            and self._now is not None
            and now_ns - self._silent_looked_ns >= silent.every_ns
        ):
            self._silent_looked_ns = now_ns
            slices = slices_of(self._now.session.program, self._now.taker.tasks)
            for trigger in silent.look(slices, now_ns):
                self._request(trigger)
        if now_ns - self._cpu_looked_ns >= MINUTE_NS // 2:
            self._cpu_looked_ns = now_ns
            self._look_at_cpu()

    def _find_program(self, now_ns: int) -> RunningEngine | None:
        """Start an engine on the wanted program, if it runs."""
        programs = self._options.wanted.find()
        if len(programs) > 1:
            self._note("several programs", f"{len(programs)} programs fit {self._options.wanted}")
            return None
        return self._started(programs[0], now_ns) if programs else None

    def _note(self, what: str, detail: str) -> None:
        """Write down an event unless it is the same as the last one."""
        if detail != self._said:
            self._recording.event(what, detail)
        self._said = detail

    def _instances(self) -> list[str]:
        """Return the instances of tracefs that are in use."""
        running = [each for each in (self._now, self._next) if each is not None]
        own = [self._markers.name] if self._markers is not None else []
        return [*own, *(name for each in running for name in each.session.instances)]

    def _started(self, program: Program, now_ns: int) -> RunningEngine | None:
        self._sessions += 1
        remove_leftovers(self._instances())  # somebody may have used an instance when it should go
        try:
            session = EngineSession(self._sessions, program, self._options.watch, spares=self._budget.spares)
        except (MeasureError, OSError) as error:
            self._failed(str(error), now_ns)
            return None
        if (words := fitness(program.pid).words) != self._fitness:
            self._fitness = words
            self._recording.event(PROGRAM, words)
        running = RunningEngine(session, self._recording.begin(), now_ns)
        self._selector.register(session.stdout, selectors.EVENT_READ, partial(self._read, running))
        return running

    def _failed(self, why: str, now_ns: int) -> None:
        self._count("engine_failures")
        self._note("engine failed", why)
        self._again_ns = now_ns + self._wait_ns
        self._wait_ns = min(2 * self._wait_ns, MOST_WAIT_NS)

    def _follow_on(self, now_ns: int) -> None:
        """Start the next engine if this one has run for long, and stop this one once the next measures."""
        now, following = self._now, self._next
        if now is None:
            return
        suspends = self._folder.counts["suspends"] + self._recording.counts["suspends"]
        is_old = (
            now_ns - now.since_ns >= SESSION_NS
            or suspends != self._suspends
            or self._budget.spares != now.session.spares
        )
        if following is None and is_old and now.taker.is_measuring and now_ns >= self._again_ns:
            self._suspends = suspends
            self._next = self._started(now.session.program, now_ns)
        elif following is not None and following.taker.is_measuring and not now.session.stopping:
            now.taker.until_ns = following.taker.from_ns
            now.session.stop()

    def _read(self, running: RunningEngine) -> None:
        """Read what an engine has written."""
        lines = running.session.lines()
        if lines is None:
            self._ended(running)
            return
        armed = running.taker.armed
        for line in lines:
            try:
                running.taker.take(line)
            except OSError:
                self._count("lines_not_written")
            except (RecordError, ValueError, KeyError) as error:
                self._note("engine failed", str(error))
                running.session.stop()
        if running.taker.armed and not armed:
            running.session.send("go")

    def _ended(self, running: RunningEngine) -> None:
        """Take over what an engine left at its end."""
        self._selector.unregister(running.session.stdout)
        status = running.session.close()
        taker, now_ns = running.taker, clocks().monotonic_ns
        self._recording.end(taker)
        if running is self._now:
            self._now, self._next = self._next, None
            if self._now is not None and taker.end is not None and self._now.taker.from_ns is not None:
                self._wait_ns = FIRST_WAIT_NS
        else:
            self._next = None
        if taker.end is None:
            why = taker.error.message if taker.error is not None else f"it ended with status {status}"
            self._failed(why, now_ns)
        elif taker.end.reason == "program-ended" and self._next is None and self._now is None:
            self._wait_ns = FIRST_WAIT_NS
            self._count("program_ends")
            self._recording.ended(taker, Trigger(ENDED, self._how_it_ended(taker)))
        self._recording.flush()  # a kill must not lose these counts

    def _how_it_ended(self, taker: Taker) -> str:
        number = taker.value("watched", "signal")
        return "the program ended" if number is None else f"the program was ended by {signal_name(number)}"

    def _cpu_used_ns(self) -> int:
        """Return the CPU time of this process and of its engines (ns)."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s = time.process_time() + children.ru_utime + children.ru_stime
        ticks = sum(_ticks(running.session.pid) for running in (self._now, self._next) if running is not None)
        return round(used_s * NS_PER_S) + ticks * NS_PER_S // TICKS_PER_S

    def _look_at_cpu(self) -> None:
        used_ns = self._cpu_used_ns()
        self._count("cpu_ns", max(0, used_ns - self._cpu_ns))
        self._cpu_ns = max(used_ns, self._cpu_ns)
        if (changed := self._budget.look(self._counts())) is not None:
            self._recording.event("CPU budget", changed)

    def _counts(self) -> Counter[str]:
        return self._folder.counts + self._recording.counts


def _last_event(folder: RecorderFolder) -> RecorderEvent | None:
    """Return the last event of a recorder's start or end."""
    return next((event for event in reversed(folder.events) if event.what in {STARTED, STOPPED}), None)


def _between_ns(folder: RecorderFolder, now: Times) -> int:
    """Return for how long no recorder has run, by the wall clock."""
    last, stretches = _last_event(folder), folder.minutes or folder.stretches
    if last is None or not stretches:
        return 0
    newest = stretches[-1]
    length_ns = newest.end_ns - newest.start_ns + newest.counts.get("suspended_ns", 0)
    return max(0, now.wall_ns - max(last.wall_ns, newest.wall_ns + length_ns))


def age_ns(folder: RecorderFolder, now: Times) -> int:
    """Return how long ago the recording in a folder began: in the clock that `--for` means, which counts
    suspended time, and time without a recorder.
    """
    return sum(folder.counts[name] for name in AGE) + _between_ns(folder, now)


def _ticks(pid: int) -> int:
    """Return the CPU time of a process in ticks."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0
