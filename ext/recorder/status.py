# SPDX-License-Identifier: MIT
"""Shows a recorder while it runs: on the terminal, and on a page in a browser. The recorder is on this
machine, or on a target (remote_status.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rtgauge.errors import InputError, RecordError
from rtgauge.escape import one_line
from rtgauge.known_extensions import from_where
from rtgauge.record.writer import wall_time
from rtgauge.report.table import Table
from rtgauge.verdict.requirement import parse_requirement
from rtgauge_ext.recorder.folder import HOURS, LOCK, MINUTES, MOMENTS, RecorderFolder
from rtgauge_ext.recorder.naming import culprit_of
from rtgauge_ext.recorder.recorder_report import (
    HOURS_SHOWN,
    LATEST_SHOWN,
    TRIGGERS_SHOWN,
    count_lines,
    hours_table,
    latest_table,
    triggers_table,
)
from rtgauge_ext.recorder.service_installation import FOLDERS
from rtgauge_ext.recorder.spool import LOGS, SESSIONS, is_spool, played_from
from rtgauge_ext.recorder.triggers import bounds

if TYPE_CHECKING:
    from rtgauge.cli.console import Console

NEWEST, EVENTS_SHOWN, EACH_S = 50, 3, 2.0
PAUSE = 20
"""After reading the folder for a time, wait for at least so many times as long."""
LOCKS = Path("/proc/locks")
TEMPLATE = Path(__file__).parent / "templates" / "recorder.html"


class Stretch(NamedTuple):
    """The largest value of a quantity in a time (wall clock, ns)."""

    begin_ns: int
    end_ns: int
    max_ns: int


@dataclass(frozen=True)
class Status:
    """What a recorder has seen so far. `course`: the largest values of `metric` in the last hours, by hour,
    and in the present hour by minute. `bound_ns`: what the requirement allows; None: no bound.
    """

    lines: list[str]
    tables: list[Table]
    events: list[str]
    metric: str
    bound_ns: int | None
    course: list[Stretch]

    def document(self, *, ended: bool) -> bytes:
        """Return it as the page wants it; `ended`: nobody will update the page any more."""
        tables = [
            {
                "title": table.title,
                "columns": [[column.title, column.is_number] for column in table.columns],
                "rows": table.rows,
            }
            for table in self.tables
        ]
        return json.dumps({**self.__dict__, "tables": tables, "ended": ended}).encode()


class ShownRecorder(Protocol):
    """A recorder whose status is shown."""

    def signature(self) -> object:
        """Return what is different after each change, without reading everything."""
        ...

    def status(self) -> Status:
        """Return what it has seen so far. Raises InputError, MeasureError or RecordError."""
        ...


def place_of(given: str) -> Path:
    """Return the folder of a recorder: a path, or the name of a folder in FOLDERS. Raises InputError."""
    path = Path(given) if "/" in given or given in {".", ".."} else FOLDERS / given
    if not path.is_dir() and FOLDERS / given == path:
        known = ", ".join(sorted(each.name for each in FOLDERS.glob("*"))) if FOLDERS.is_dir() else ""
        raise InputError(
            f"there is no folder {path}; " + (f"there are: {known}" if known else "name the folder")
        )
    return path


def holders(inode: int, locks: str) -> list[str]:
    """Return the processes that hold a file with this inode. `locks`: the text of /proc/locks.

    On some file systems, such as btrfs, it has another device than stat().
    """
    held = [line.split() for line in locks.splitlines() if " FLOCK " in line]
    return [words[-4] for words in held if words[-3].endswith(f":{inode}")]


def runs_in(path: Path) -> bool:
    """Return whether a recorder holds a folder. Asking does not keep a recorder from beginning."""
    lock = path if is_spool(path) else path / LOCK
    if not lock.exists():
        return False
    holding = holders(lock.stat().st_ino, LOCKS.read_text())
    return any(_has_open(Path("/proc", holder, "fd"), lock) for holder in holding)


def _has_open(descriptors: Path, file: Path) -> bool:
    """Return whether a process, whose open files are in this folder of /proc, has the file open."""
    try:
        return any(each.exists() and each.samefile(file) for each in descriptors.iterdir())
    except OSError:  # it has just ended, or belongs to somebody else
        return False


def status_in(folder: RecorderFolder, *, runs: bool) -> Status:
    """Return the status of an open folder. `runs`: whether a recorder holds it. Raises RecordError."""
    limits = bounds(None if folder.settings.require is None else parse_requirement(folder.settings.require))
    metric = next(iter(limits), "latency")
    answer, *counted = count_lines(folder)
    triggers = triggers_table(folder)
    return Status(
        [_state(folder, runs=runs), answer, *map(one_line, counted)],
        [latest_table(folder), *([triggers] if triggers.rows else []), hours_table(folder)],
        [
            f"{wall_time(event.wall_ns)} {event.what}: {one_line(event.detail)}"
            for event in folder.events[: -EVENTS_SHOWN - 1 : -1]
        ],
        metric,
        limits.get(metric),
        _course(folder, metric),
    )


def spool_status(folder: RecorderFolder, *, runs: bool) -> Status:
    """Return the same for the folder into which a spool was played, whose shown moments are named first."""
    moments = sorted(folder.keeping.moments.values(), key=lambda kept: kept.number)
    latest = [kept for kept in moments if not kept.trigger][-LATEST_SHOWN:]
    triggered = [kept for kept in moments if kept.trigger][-TRIGGERS_SHOWN:]
    for kept in (*latest, *triggered):
        with suppress(RecordError):
            head, line = folder.moment(kept.number)
            folder.name_moment(kept.number, culprit_of(folder.source(head.source), json.loads(line)))
    return status_in(folder, runs=runs)


def _state(folder: RecorderFolder, *, runs: bool) -> str:
    stretches = (*folder.stretches, *folder.minutes)
    until_ns = max((each.wall_ns + each.end_ns - each.start_ns for each in stretches), default=None)
    until = "no figures yet" if until_ns is None else f"figures until {wall_time(until_ns)}"
    return f"{'A' if runs else 'No'} recorder runs for {one_line(folder.settings.program)}; {until}"


def _course(folder: RecorderFolder, metric: str) -> list[Stretch]:
    course: list[Stretch] = []
    for stretch in (*folder.stretches[-HOURS_SHOWN:], *folder.minutes):
        largest = max((each.max_ns or 0 for each in stretch.figures if each.metric == metric), default=0)
        if largest:
            end_ns = stretch.wall_ns + stretch.end_ns - stretch.start_ns
            course.append(Stretch(stretch.wall_ns, end_ns, largest))
    return course


class RecorderHere:
    """A recorder's folder on this machine; of an engine that records alone, its spool."""

    def __init__(self, path: Path) -> None:
        """Take the folder's path."""
        self._path = path

    def signature(self) -> object:
        """Return what is different after each change of the folder, without reading it."""
        signature: list[tuple[int, int, int]] = []
        for name in (HOURS, MINUTES, MOMENTS, LOGS[-1], SESSIONS):
            with suppress(OSError):
                about = (self._path / name).stat()
                signature.append((about.st_ino, about.st_size, about.st_mtime_ns))
        return signature, runs_in(self._path)

    def status(self) -> Status:
        """Read the folder. Raises InputError or RecordError."""
        if is_spool(self._path):
            with played_from("local", self._path) as played:
                return spool_status(played, runs=runs_in(self._path))
        folder = RecorderFolder.open(self._path, NEWEST)
        try:
            return status_in(folder, runs=runs_in(self._path))
        finally:
            folder.close()


def changes(shown: ShownRecorder, wait: Callable[[float], object] = time.sleep) -> Iterator[Status]:
    """Yield the status now, and each time that it has changed. Raises as `shown.status` does."""
    before: object = None
    while True:
        began_s, took_s, now = time.monotonic(), 0.0, shown.signature()
        if now != before:
            status = shown.status()
            took_s, before = time.monotonic() - began_s, now
            yield status
        wait(max(EACH_S, PAUSE * took_s))


def print_status(status: Status, console: Console) -> None:
    """Print it on the terminal."""
    from rich.text import Text

    from rtgauge.report.terminal_table import print_tables

    for line in status.lines:
        console.print(Text(line))
    for event in status.events:
        console.print(Text(event, style="dim"))
    print_tables([table for table in status.tables if table.rows], console)


def follow(shown: ShownRecorder, console: Console) -> None:
    """Show the status until Ctrl-C: on a terminal in place, and else each new one after the last."""
    from rich.live import Live
    from rich.text import Text

    if not console.is_terminal:
        for status in changes(shown):
            print_status(status, console)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for status in changes(shown):
            with console.capture() as printed:
                print_status(status, console)
            live.update(Text.from_ansi(printed.get()), refresh=True)


class RecorderPage:
    """What the live page's server shows of a recorder."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self.watchers = 0
        self.on_frame: Callable[[], None] = lambda: None
        self.ended = False

    def run_ends(self) -> None:
        """Say on the page that it ends."""
        self.ended = True

    def frame_message(self) -> tuple[int, None]:
        """Return that there are no frames."""
        return 0, None

    def document(self) -> bytes:
        """Return the document of the page."""
        return self.status.document(ended=self.ended)


def serve(shown: ShownRecorder, address: str, notify: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C. Raises InputError, also if the extension live is not installed."""
    if why := from_where("options", "run --live"):
        raise InputError(f"--live shows no page{why}")
    from rtgauge_ext.live.live_server import LiveServer, parse_address

    states = changes(shown)
    page = RecorderPage(next(states))
    with LiveServer(page, parse_address(address), template=TEMPLATE) as server:
        notify(f"live  {server.url}")
        for status in states:
            page.status = status
