# SPDX-License-Identifier: MIT
"""Reads the folder into which an engine recorded alone, on this machine or on a target, and plays it into a
recorder's folder as if the engine had just said it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.input_file import json_object
from rtgauge.record.stream import TraceFormatsLine, parse_line
from rtgauge.runner.put_together import signal_name
from rtgauge.target.file_batch import Files, Read
from rtgauge_ext.recorder.clocks import Times
from rtgauge_ext.recorder.folder import RecorderFolder, Settings
from rtgauge_ext.recorder.naming import Namer
from rtgauge_ext.recorder.recording import Recording, State, Taker
from rtgauge_ext.recorder.session_fold import window_of
from rtgauge_ext.recorder.triggers import ENDED, Trigger, bounds

SETTINGS, LOGS = "spool.json", ("log.old.ndjson", "log.ndjson")
SESSIONS, MOMENTS, FORMATS = "sessions", "moments", "formats"
ROOM = 4
"""A temporary folder may take so many times the room, because nothing is removed from it."""
MOST_BYTES = 1 << 30
"""A spool's files may have so many bytes together, because they are kept in memory; the target names and
fills them.
"""
PART = 32
"""How many files are read at once: each has at most 1 MiB."""
STARTED, STOPPED = "recorder started", "recorder stopped"
BEGINS, FAILED = "session begins", "engine failed"
COUNTS = (
    "moments_removed",
    "sessions_removed",
    "formats_removed",
    "moments_not_written",
    "lines_not_written",
)


class SpoolEvent(NamedTuple):
    """A line of the log. `session`: 0 for none."""

    what: str
    detail: str
    session: int
    boot_id: str
    times: Times
    counts: dict[str, int]
    cpu_ns: int


class SpoolMoment(NamedTuple):
    """A kept moment: its session, when it was kept, and the engine's line."""

    session: int
    times: Times
    line: bytes


def _document(line: str) -> dict[str, Any] | None:
    """Return the object of a line; None if it is damaged."""
    return json_object(line.encode())


def _times(document: dict[str, Any]) -> Times:
    """Return the clocks of a line. Raises KeyError or ValueError."""
    return Times(*(int(document[f"{name}_ns"]) for name in ("monotonic", "boottime", "realtime")))


@dataclass
class Spool:
    """Everything that a spool's folder has. `damaged`: how many of its lines or files could not be read."""

    settings: Settings
    events: list[SpoolEvent] = field(default_factory=list[SpoolEvent])
    sessions: dict[int, str] = field(default_factory=dict[int, str])
    moments: dict[int, list[SpoolMoment]] = field(default_factory=lambda: defaultdict(list))
    formats: dict[int, bytes] = field(default_factory=dict[int, bytes])
    damaged: int = 0
    read_bytes: int = 0
    """Of the files that were read."""

    @classmethod
    def read(cls, read: Read, folder: str) -> Spool:
        """Read a spool. `read`: reads files where it is. Raises InputError if it is none, or too large."""
        files = read([f"{folder}/{name}" for name in (SETTINGS, *LOGS, SESSIONS, MOMENTS, FORMATS)])
        text = files.text(f"{folder}/{SETTINGS}")
        if text is None:
            why = files.error(f"{folder}/{SETTINGS}") or "the file is missing"
            raise InputError(f"{folder} is not a recorder's folder ({SETTINGS}: {why})")
        try:
            spool = cls(Settings.model_validate_json(text))
        except ValidationError:
            raise InputError(f"{folder}/{SETTINGS} is damaged, or of another version of rtgauge") from None
        for name in LOGS:
            spool._take_log((files.text(f"{folder}/{name}") or "").splitlines())
        for number, text in spool._parts(read, files, f"{folder}/{FORMATS}"):
            spool._take_formats(number, text.strip().encode())
        for number, text in spool._parts(read, files, f"{folder}/{SESSIONS}"):
            spool.sessions[number] = text
        for _, text in spool._parts(read, files, f"{folder}/{MOMENTS}"):
            spool._take_moment(text)
        return spool

    def _parts(self, read: Read, files: Files, place: str) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each file in a folder, in order."""
        names = sorted(name for name in files.entries(place) if name[:1].isdigit())
        for at in range(0, len(names), PART):
            part = names[at : at + PART]
            content = read([f"{place}/{name}" for name in part])
            for name in part:
                text, number = content.text(f"{place}/{name}"), name.partition(".")[0]
                self.read_bytes += len(text or "")
                if self.read_bytes > MOST_BYTES:
                    raise InputError(
                        f"{place} and the folders next to it have more than {MOST_BYTES >> 20} MiB, "
                        "which `import` does not read; remove some moments, or record with a smaller --keep"
                    )
                if text is not None and number.isdigit():
                    yield int(number), text
                else:
                    self.damaged += 1

    def _take_log(self, lines: Iterable[str]) -> None:
        for line in lines:
            document = _document(line)
            try:
                assert document is not None  # noqa: S101 - counted below
                self.events.append(
                    SpoolEvent(
                        str(document["what"]),
                        str(document["detail"]),
                        int(document["session"]),
                        str(document["boot_id"]),
                        _times(document),
                        {name: int(document[name]) for name in COUNTS if document[name]},
                        int(document["cpu_ns"]),
                    )
                )
            except (AssertionError, KeyError, ValueError, TypeError):
                self.damaged += 1

    def _take_formats(self, number: int, text: bytes) -> None:
        try:
            assert isinstance(parse_line(text), TraceFormatsLine)  # noqa: S101 - counted below
        except (AssertionError, RecordError, ValueError):
            self.damaged += 1
        else:
            self.formats[number] = text

    def _take_moment(self, text: str) -> None:
        head, _, line = text.partition("\n")
        document = _document(head)
        try:
            assert document is not None  # noqa: S101 - counted below
            session = int(document["session"])
            self.moments[session].append(SpoolMoment(session, _times(document), line.encode()))
        except (AssertionError, KeyError, ValueError, TypeError):
            self.damaged += 1


class _Unnamed(Namer):
    """Names nothing: `import` explains every moment."""

    def __init__(self) -> None:
        super().__init__(0)

    def may(self) -> bool:
        return False


class Player:
    """Plays a spool into a recorder's folder."""

    def __init__(self, spool: Spool, folder: RecorderFolder, facts: bytes, bounds: dict[str, int]) -> None:
        """`facts`: of the machine (JSON); empty if unknown. `bounds`: metric -> bound (ns)."""
        self._spool, self._folder, self._facts, self._bounds = spool, folder, facts, bounds
        self._now = Times(0, 0, 0)
        self._recording: Recording | None = None
        self._boot: str = ""
        self._cpu_ns = 0
        self._last: SpoolEvent | None = None
        self._played: set[int] = set()
        self._state: State = "absent"

    def play(self) -> None:
        """Play everything. Raises OSError if the folder cannot be written."""
        for event in (*self._without_event(), *self._spool.events):
            self._take(event)
        if self._recording is not None:
            left = sum(map(len, self._spool.moments.values()))  # of sessions that are gone
            self._recording.counts["damaged"] += self._spool.damaged + left
            self._recording.flush()

    def _without_event(self) -> Iterator[SpoolEvent]:
        """Yield the beginnings of sessions that the log no longer has."""
        known = {event.session for event in self._spool.events}
        for number, text in self._spool.sessions.items():
            lines = text.split("\n", 2)[:2]
            first, hello = ((_document(line) or {}) for line in (*lines, "", "")[:2])
            if number not in known and "boot_id" in hello:
                with suppress(KeyError, ValueError, TypeError):
                    yield SpoolEvent(BEGINS, "", number, str(hello["boot_id"]), _times(first), {}, 0)

    def _at(self, times: Times, state: State) -> Recording:
        """Let the time pass until then; it never goes back, although sessions overlap."""
        assert self._recording is not None  # noqa: S101 - the first event has made it
        if times.monotonic_ns > self._now.monotonic_ns:
            self._now = times
            self._recording.tick(state)
        return self._recording

    def _take(self, event: SpoolEvent) -> None:
        if event.boot_id != self._boot or self._recording is None:
            if self._recording is not None:
                self._recording.flush()
            self._boot, self._now = event.boot_id, event.times
            self._recording = Recording(
                self._folder, lambda: self._now, _Unnamed(), lambda: self._facts, bounds=self._bounds
            )
        started = event.what == STARTED
        if started and self._last is not None and self._last.boot_id == event.boot_id:
            between_ns = event.times.monotonic_ns - self._now.monotonic_ns
            self._recording.flush()
            self._now = event.times
            self._recording = Recording(
                self._folder, lambda: self._now, _Unnamed(), lambda: self._facts, bounds=self._bounds
            )
            self._recording.counts["between_ns"] += max(0, between_ns)
        recording = self._at(event.times, self._state)
        if started:
            self._cpu_ns = 0
            recording.counts["kills"] += self._last is not None and self._last.what != STOPPED
        recording.counts["cpu_ns"] += max(0, event.cpu_ns - self._cpu_ns)
        recording.counts.update(event.counts)
        self._cpu_ns, self._last = event.cpu_ns, event
        if event.what == BEGINS:
            self._state = "absent"
            self._play(event.session)
        elif event.session == 0:
            self._state = "unseen" if event.what == FAILED else "absent"
            recording.event(event.what, event.detail)

    def _play(self, number: int) -> None:
        """Play one session, up to its end."""
        recording = self._recording
        text = self._spool.sessions.get(number)
        assert recording is not None  # noqa: S101 - an event has made it
        if text is None or number in self._played:
            return
        self._played.add(number)
        taker = recording.begin()
        moments = sorted(self._spool.moments.pop(number, []), key=lambda moment: moment.times)
        windows: list[bytes] = []
        for line in text.splitlines():
            document = _document(line)
            if document is None:
                self._spool.damaged += 1
                continue
            try:
                if document.get("type") == "clocks":
                    moments = self._pass(taker, _times(document), windows, moments)
                    windows = []
                elif document.get("type") == "formats":
                    taker.take(self._spool.formats.get(int(document["number"]), b""))
                elif document.get("type") == "window":
                    windows.append(line.encode())
                elif document.get("type") == "folded":
                    windows.append(window_of(document))
                else:
                    taker.take(line.encode())
            except (RecordError, KeyError, ValueError, TypeError):
                self._spool.damaged += 1
        self._take_lines(taker, windows)
        self._keep(taker, moments)
        if taker.end is not None and taker.end.reason == "program-ended":
            recording.counts["program_ends"] += 1
            signal = taker.value("watched", "signal")
            how = "the program ended" if signal is None else f"the program was ended by {signal_name(signal)}"
            recording.ended(taker, Trigger(ENDED, how))
        recording.end(taker)

    def _pass(
        self, taker: Taker, until: Times, windows: list[bytes], moments: list[SpoolMoment]
    ) -> list[SpoolMoment]:
        """Let the time of a session pass, in which these windows came; return the moments that come later."""
        from_ns = taker.from_ns
        if from_ns is not None and self._now.monotonic_ns < from_ns <= until.monotonic_ns:
            self._at(Times(*(each + from_ns - until.monotonic_ns for each in until)), "unseen")
        self._take_lines(taker, windows)
        self._keep(taker, [moment for moment in moments if moment.times <= until])
        is_measuring = from_ns is not None and until.monotonic_ns > from_ns
        self._at(until, "watched" if is_measuring else "unseen")
        return [moment for moment in moments if moment.times > until]

    def _take_lines(self, taker: Taker, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                taker.take(line)
            except (RecordError, KeyError, ValueError, TypeError):
                self._spool.damaged += 1

    def _keep(self, taker: Taker, moments: list[SpoolMoment]) -> None:
        """Keep moments with the wall clock of their own time."""
        now = self._now
        for moment in moments:
            self._now = moment.times
            self._take_lines(taker, [moment.line])
        self._now = now


def is_spool(folder: Path) -> bool:
    """Return whether an engine recorded alone into a folder of this machine."""
    return (folder / SETTINGS).is_file()


@contextmanager
def played(spool: Spool, name: str, facts: bytes = b"") -> Generator[RecorderFolder]:
    """Yield a temporary recorder's folder of this name with everything that a spool has.

    `facts`: of the machine (JSON); empty if unknown. Raises InputError or MeasureError.
    """
    from rtgauge.verdict.requirement import parse_requirement

    requirement = spool.settings.require
    limits = {} if requirement is None else bounds(parse_requirement(requirement))
    with TemporaryDirectory(prefix="rtgauge-") as place:
        keep_bytes = ROOM * min(spool.settings.keep_bytes, MOST_BYTES)
        settings = spool.settings.model_copy(update={"keep_bytes": keep_bytes})
        folder = RecorderFolder.create(Path(place) / (name if name not in {"", ".."} else "spool"), settings)
        try:
            Player(spool, folder, facts, limits).play()
            folder.settings = spool.settings
            yield folder
        finally:
            folder.close()


@contextmanager
def played_by(machine: str, read: Read, path: Path) -> Generator[RecorderFolder]:
    """Yield the same for the spool in a folder that `read` reads. `machine`: the `uname -m` there.

    Raises InputError or MeasureError.
    """
    from rtgauge.system.collect_facts import facts_by

    spool = Spool.read(read, str(path))
    facts = facts_by(read, machine).facts.model_dump_json().encode()
    with played(spool, path.name, facts) as folder:
        yield folder


@contextmanager
def played_from(target: str, path: Path) -> Generator[RecorderFolder]:
    """Yield the same for the spool in a folder of a target. Raises InputError or MeasureError."""
    from rtgauge.target.open_target import reader

    with reader(target) as (machine, read), played_by(machine, read, path) as folder:
        yield folder
