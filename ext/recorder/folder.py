# SPDX-License-Identifier: MIT
"""A recorder's folder: at most a given number of bytes, and whole after a kill, a power cut or a full disk.

    recorder.json   what is recorded
    hours.log       figures and counts by hour, what the engine said at the end of each session, and events
    minutes.log     the figures and counts of the present hour
    moments/N       a latency with the kernel's events around it
    sources/ID      a boot's kernel, and how its events are written
    frozen          the trigger after which nothing may be recorded here any more

When an hour is over, its minutes fold into one entry. When the hours need more than a quarter of the room,
the older half folds by day, then by month.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, ValidationError

from rtgauge.errors import InputError, MeasureError, RecordError
from rtgauge.escape import one_line
from rtgauge.record.own_folder import OwnFolder
from rtgauge.record.strict_model import Model
from rtgauge.units import NS_PER_S, plural
from rtgauge.verdict.requirement import parse_requirement
from rtgauge_ext.recorder.append_log import AppendLog, entries, framed
from rtgauge_ext.recorder.entries import (
    PeriodSummary,
    RecorderEvent,
    SessionEnd,
    Time,
    folded,
    folded_sessions,
    packed,
    unpacked,
)
from rtgauge_ext.recorder.keeping import Keeping, Kept
from rtgauge_ext.recorder.triggers import bounds

SETTINGS, FROZEN, HOURS, MINUTES, MOMENTS, SOURCES, LOCK = (
    "recorder.json",
    "frozen",
    "hours.log",
    "minutes.log",
    "moments",
    "sources",
    "lock",
)
BLOCK = 4096
"""A file takes whole blocks of the disk."""
MOMENT_LEVEL = 3
"""How hard zlib compresses a moment: 6 takes twice the time, and a tenth less room."""
LOG_SHARE = 4
"""The logs may take one part in this many of the room."""
MOST_EVENTS = 1000
TRIGGERED = "trigger"
"""The metric of a moment of triggers."""
HOUR_NS = 3600 * NS_PER_S
DAY_NS, MONTH_NS = 24 * HOUR_NS, 30 * 24 * HOUR_NS
MOST_MOMENT, MOST_SOURCE, MOST_SETTINGS = 64 << 20, 64 << 20, 1 << 20
AGE = ("watched_ns", "unseen_ns", "absent_ns", "suspended_ns", "between_ns")
"""The counts of times that together are the age of a folder."""
LEAST_KEPT = 2 << 20
RESERVED_BYTES = 64 * BLOCK
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Settings(Model):
    """The content of recorder.json."""

    version: int = 1
    program: str
    """How the program is found: a process ID, a name or a unit."""
    require: str | None = None
    keep_bytes: int
    command: list[str]
    parameters: dict[str, str | int]
    """The options of `watch`, as a plan has them."""

    @property
    def bounds(self) -> dict[str, int]:
        """The bounds of the requirement: metric -> ns; empty without one. Raises InputError."""
        return {} if self.require is None else bounds(parse_requirement(self.require))


class MomentHead(Model):
    """What is known of a kept moment without its events."""

    task: str
    metric: str
    culprit: str
    latency_ns: int
    source: str
    wall_ns: Time
    triggers: list[str] = Field(default_factory=list[str])
    around: str = ""
    """What was unusual on the machine when it came."""
    details: list[str] = Field(default_factory=list[str])
    """The line of each trigger, for a moment of triggers."""


class KeptMoment(NamedTuple):
    """A kept moment: what is known of it, and the engine's line."""

    head: MomentHead
    line: bytes


class EntrySource(NamedTuple):
    """A boot (its boot_id), the first lines `hello` and `trace_formats` of an engine in it, and the facts of
    the machine (JSON). Empty: none.
    """

    boot: bytes
    hello: bytes
    formats: bytes
    facts: bytes

    @property
    def id(self) -> str:
        """Its name: the same for each session of one boot whose events are written alike."""
        return hashlib.sha256(self.boot + b"\0" + self.formats).hexdigest()[:16]


def on_disk(size: int) -> int:
    """Return the bytes that a file of this size takes."""
    return -(-size // BLOCK) * BLOCK


class RecorderFolder:
    """An open folder, which belongs to one recorder or reader at a time."""

    def __init__(
        self, folder: OwnFolder, settings: Settings, *, writes: bool, newest: int | None = None
    ) -> None:
        """Read the logs and the moments (`newest`: only so many, the newest ones). If it `writes`, hold the
        folder, and cut what a kill left.

        Raises OSError, or InputError if another recorder holds the folder.
        """
        self._folder, self._writes = folder, writes
        self.settings = settings
        if writes:
            self._hold()
            os.fchmod(folder.descriptor, 0o700)
            for part in (MOMENTS, SOURCES):
                folder.make_folder(part, 0o700, exist_ok=True)
        self._hours = AppendLog(folder, HOURS, writes=writes)
        self._minutes = AppendLog(folder, MINUTES, writes=writes)
        if writes:
            os.fsync(folder.descriptor)  # a power cut must not lose the names of new logs
        self.stretches: list[PeriodSummary] = []
        self.ends: list[SessionEnd] = []
        self.events: list[RecorderEvent] = []
        self.damaged = int(self._hours.cut > 0) + int(self._minutes.cut > 0)
        """How many entries were cut off because they were damaged."""
        for entry in self._entries(self._hours):
            self._take(entry)
        self.fold = 1 + max((stretch.fold for stretch in self.stretches), default=0)
        """The number of the hour that the minutes belong to."""
        self.minutes = [
            entry
            for entry in self._entries(self._minutes)
            if isinstance(entry, PeriodSummary) and entry.fold == self.fold
        ]
        if writes and not self.minutes:
            self._minutes.clear()  # they were folded before a kill
        self.keeping = Keeping()
        self._sources: dict[str, int] = {}
        for name, data in self._files(SOURCES):
            self._sources[name] = on_disk(len(data))
        for name, data in self._files(MOMENTS, newest):
            self._find(name, data)
        self._next = 1 + max(self.keeping.moments, default=0)

    @classmethod
    def create(cls, path: Path, settings: Settings) -> Self:
        """Make the folder, or open an existing one with these settings. Raises InputError or MeasureError."""
        if settings.keep_bytes < LEAST_KEPT:
            raise InputError(f"--keep must be at least {LEAST_KEPT >> 20}MiB")
        try:
            folder = OwnFolder.made(path)
            if not folder.has(SETTINGS) and folder.names():
                raise InputError(
                    f"{path} has other files; name a folder that is empty, or does not exist yet"
                )
            if (why := _frozen(folder)) is not None:
                raise InputError(
                    f"{path} is frozen ({why}), so nothing more is recorded there; choose another folder "
                    f"with --folder, or remove {path / FROZEN} to go on in this one"
                )
            with folder.whole_file(SETTINGS) as file:
                file.write(settings.model_dump_json(indent=1).encode() + b"\n")
            return cls(folder, settings, writes=True)
        except OSError as error:
            raise _unusable(path, error) from None

    @classmethod
    def open(cls, path: Path, newest: int | None = None) -> Self:
        """Open a folder that a recorder made, for reading, with all moments or the newest ones only.

        Raises InputError.
        """
        if os.access(path, os.X_OK) and path.is_dir() and not os.path.lexists(path / SETTINGS):
            raise InputError(f"{path} is not the folder of a recorder, because it lacks {SETTINGS}")
        try:
            folder = OwnFolder.existing(path)
            settings = Settings.model_validate_json(folder.read_own(SETTINGS, MOST_SETTINGS))
            return cls(folder, settings, writes=False, newest=newest)
        except ValidationError:
            raise InputError(f"{path / SETTINGS} is damaged, or of another version of rtgauge") from None
        except OSError as error:
            raise _unusable(path, error) from None

    @property
    def path(self) -> Path:
        """The folder's path, for messages."""
        return self._folder.path

    @property
    def bytes(self) -> int:
        """The bytes that the folder takes on the disk."""
        logs = on_disk(self._hours.size) + on_disk(self._minutes.size)
        return logs + BLOCK + sum(self._sources.values()) + self.keeping.bytes

    @property
    def counts(self) -> Counter[str]:
        """Everything that was counted since the folder was made."""
        total: Counter[str] = Counter()
        for stretch in (*self.stretches, *self.minutes):
            total.update(stretch.counts)
        return total

    @property
    def frozen(self) -> str | None:
        """The trigger that has frozen the folder; None if none has. Raises RecordError if it is damaged."""
        try:
            return _frozen(self._folder)
        except OSError as error:
            raise RecordError(f"{self.path / FROZEN} cannot be read: {error.strerror or error}") from None

    def freeze(self, why: str) -> None:
        """Let no later recorder write into the folder. Raises OSError."""
        with self._folder.whole_file(FROZEN) as file:
            file.write(why.encode())

    def add_minute(self, minute: PeriodSummary) -> None:
        """Add the figures of a minute, and fold the hour if it is over. Raises OSError."""
        first = self.minutes[0] if self.minutes else minute
        if minute.source != first.source or minute.end_ns - first.start_ns > HOUR_NS:
            self.fold_hour()
        minute = minute.model_copy(update={"fold": self.fold})
        self._minutes.append([packed(minute)])
        self.minutes.append(minute)

    def fold_hour(self) -> None:
        """Make one entry of the minutes. Raises OSError."""
        if not self.minutes:
            return
        hour = folded(self.minutes)
        self._add(hour)
        self.fold += 1
        self.minutes = []
        self._minutes.clear()

    def add_end(self, end: SessionEnd) -> None:
        """Add what the engine said at the end of a session. Raises OSError."""
        self._add(end)

    def add_event(self, event: RecorderEvent) -> None:
        """Add an event. Raises OSError."""
        self._add(event)

    def has_source(self, name: str) -> bool:
        """Return whether a source is known."""
        return name in self._sources

    def add_source(self, source: EntrySource) -> str:
        """Keep a source unless it is known, and return its id. Raises OSError."""
        if source.id not in self._sources:
            data = b"".join(framed(zlib.compress(part, 9)) for part in source)
            self._write(f"{SOURCES}/{source.id}", data)
            self._sources[source.id] = on_disk(len(data))
        return source.id

    def source(self, name: str) -> EntrySource:
        """Return a source. Raises RecordError if it is missing or damaged."""
        try:
            parts = list(entries(self._folder.read_own(f"{SOURCES}/{name}", MOST_SOURCE)))
            return EntrySource(*map(zlib.decompress, parts))
        except (OSError, zlib.error, TypeError):
            raise RecordError(f"{self.path / SOURCES / name} is missing or damaged") from None

    def add_moment(self, head: MomentHead, line: bytes) -> list[Kept]:
        """Keep a moment, and remove what has no room any more; return what is not kept. Raises OSError."""
        data = framed(head.model_dump_json().encode()) + framed(zlib.compress(line, MOMENT_LEVEL))
        kept = self._kept(self._next, head, len(data))
        removed = self.keeping.over(self._room(), [kept])
        self._next += 1
        if kept in removed:
            return [kept]
        has_room = (
            kept.bytes <= RESERVED_BYTES
        )  # then a kill or a full disk loses neither the old nor the new
        if not has_room:
            self._remove(removed)
        self._write(f"{MOMENTS}/{kept.number:08d}", data)
        self.keeping.moments[kept.number] = kept
        if has_room:
            self._remove(removed)
        return removed

    def name_moment(self, number: int, culprit: str) -> None:
        """Write down the culprit of a kept moment. Raises OSError or RecordError."""
        head, line = self.moment(number)
        head = head.model_copy(update={"culprit": culprit})
        data = framed(head.model_dump_json().encode()) + framed(zlib.compress(line, MOMENT_LEVEL))
        self._write(f"{MOMENTS}/{number:08d}", data)
        self.keeping.moments[number] = self._kept(number, head, len(data))

    def moment(self, number: int) -> KeptMoment:
        """Return a kept moment. Raises RecordError if it is missing or damaged."""
        name = f"{MOMENTS}/{number:08d}"
        try:
            head, line = entries(self._folder.read_own(name, MOST_MOMENT))
            return KeptMoment(MomentHead.model_validate_json(head), zlib.decompress(line))
        except (OSError, ValueError, zlib.error):
            raise RecordError(f"{self.path / name} is missing or damaged") from None

    def trim(self) -> list[Kept]:
        """Fold old hours and remove moments until the folder fits its room; return what was removed.

        Raises OSError.
        """
        for unit_ns in (DAY_NS, MONTH_NS, None):
            if self._hours.size > self.settings.keep_bytes // LOG_SHARE or len(self.events) > 2 * MOST_EVENTS:
                self._fold_old(unit_ns)
        removed = self.keeping.over(self._room())
        self._remove(removed)
        return removed

    def close(self) -> None:
        """Close the files."""
        self._hours.close()
        self._minutes.close()
        if self._writes:
            self._lock.close()
        self._folder.close()

    def _hold(self) -> None:
        """Hold the folder until it is closed. Raises InputError if another recorder holds it."""
        self._lock = self._folder.open_log(LOCK, append=True)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another recorder uses {self._folder.path}; choose another with --folder"
            ) from None

    def _entries(self, log: AppendLog) -> Iterator[PeriodSummary | SessionEnd | RecorderEvent]:
        for data in log.found:
            try:
                yield unpacked(data)
            except (ValueError, zlib.error):
                self.damaged += 1
        log.found = []

    def _take(self, entry: PeriodSummary | SessionEnd | RecorderEvent) -> None:
        match entry:
            case PeriodSummary():
                self.stretches.append(entry)
            case SessionEnd():
                self.ends.append(entry)
            case RecorderEvent():
                self.events.append(entry)

    def _add(self, entry: PeriodSummary | SessionEnd | RecorderEvent) -> None:
        self._hours.append([packed(entry)])
        self._take(entry)

    def _files(self, part: str, newest: int | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each file in a folder, or of the last `newest` ones. Files that a
        recorder writes or removes meanwhile are left out, and what a killed one left is removed.
        """
        names = sorted(self._folder.names(part))
        for name in names if newest is None else names[-newest:]:
            if name.startswith("."):
                if self._writes:
                    self._folder.remove(f"{part}/{name}")
                continue
            try:
                data = self._folder.read_own(f"{part}/{name}", MOST_MOMENT)
            except FileNotFoundError:
                continue
            yield name, data

    def _find(self, name: str, data: bytes) -> None:
        """Take a moment's file, or remove it if it is damaged."""
        parts = list(entries(data))
        try:
            number, head = int(name), MomentHead.model_validate_json(parts[0])
        except (ValueError, IndexError):
            self.damaged += 1
            if self._writes:
                self._folder.remove(f"{MOMENTS}/{name}")
            return
        self.keeping.moments[number] = self._kept(number, head, len(data))

    def _kept(self, number: int, head: MomentHead, size: int) -> Kept:
        culprit = self.keeping.culprit(head.task, head.culprit)
        trigger = head.triggers[0] if head.metric == TRIGGERED else ""
        return Kept(head.latency_ns, number, head.task, culprit, on_disk(size), head.source, trigger)

    def _room(self) -> int:
        """The bytes that moments may take: what the logs may still grow by until they are folded, or a new
        moment may take until old ones are removed, is kept free.
        """
        return self.settings.keep_bytes - (self.bytes - self.keeping.bytes) - RESERVED_BYTES

    def _remove(self, removed: list[Kept]) -> None:
        for kept in removed:
            self._folder.remove(f"{MOMENTS}/{kept.number:08d}", missing_ok=True)
            self.keeping.moments.pop(kept.number, None)

    def _write(self, name: str, data: bytes) -> None:
        with self._folder.whole_file(name) as file:
            file.write(data)

    def _fold_old(self, unit_ns: int | None) -> None:
        """Fold the older half of the hours by `unit_ns` (None: all of a source into one), the sessions of
        each source into one, and leave out old events.
        """
        half = len(self.stretches) // 2
        groups: dict[tuple[str, int], list[PeriodSummary]] = {}
        for stretch in self.stretches[:half]:
            unit = 0 if unit_ns is None else stretch.start_ns // unit_ns
            groups.setdefault((stretch.source, unit), []).append(stretch)
        stretches = [*map(folded, groups.values()), *self.stretches[half:]]
        ends, events = folded_sessions(self.ends), self.events[-MOST_EVENTS:]
        left_out = len(self.events) - len(events)
        if left_out:
            events.insert(
                0,
                RecorderEvent(
                    what="events left out",
                    detail=plural(left_out, "older event"),
                    wall_ns=events[0].wall_ns,
                ),
            )
        data = b"".join(framed(packed(entry)) for entry in (*stretches, *ends, *events))
        self._hours.close()
        self._write(HOURS, data)
        self._hours = AppendLog(self._folder, HOURS)
        self._hours.found = []
        self.stretches, self.ends, self.events = stretches, ends, events


def _frozen(folder: OwnFolder) -> str | None:
    if not folder.has(FROZEN):
        return None
    return one_line(folder.read_own(FROZEN, MOST_SETTINGS).decode(errors="replace"))


def _unusable(path: Path, error: OSError) -> InputError | MeasureError:
    if error.errno in FULL:
        return MeasureError(f"the disk is full: {path} cannot be written; free space")
    return InputError(f"{path} cannot be used as a recorder's folder: {error.strerror or error}")
