# SPDX-License-Identifier: MIT
"""Runs a fleet's jobs. Each board has a thread, each job a process, and each state a file.

Every job has a folder, `BOARD/JOB`, for its record, its log and its state. After a kill, the next start reads
them: a finished job stays finished, and an unfinished record is resumed. A job's process holds the lock of
its folder, so a process that outlived its fleet ends first.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from rtgauge.errors import (
    EXIT_CANNOT_MEASURE,
    EXIT_CANNOT_TELL,
    EXIT_FAILS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    RtgaugeError,
)
from rtgauge.fleet.archive import archive_of, send
from rtgauge.fleet.plan import Board, FleetPlan, Image, Job, Task
from rtgauge.record.files import write_whole
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import PARTIAL, Record, read_run, record_folders
from rtgauge.store.adding import Said, add
from rtgauge.store.store import Store
from rtgauge.units import format_span, plural
from rtgauge.verdict.coverage import left_out_of

COMMAND = (sys.executable, "-m", "rtgauge")
STATE, LOG, LOCK, ASIDE, FAILED = "state.json", "log.txt", "lock", "put-aside.txt", "failed"
WORDS = {0: "holds", 1: "fails", 4: "cannot tell"}
"""The exit statuses of a job that has measured. Any other status is a failure of the board."""
NOT_JUDGED = "measured; nothing was required"
GATE_WORDS = {0: "no worse", 1: "worse", 4: "cannot tell"}
STATUS_OF_WORD = {VerdictWord.HOLDS: EXIT_OK, VerdictWord.FAILS: EXIT_FAILS}
WAIT = "--wait=1h"
"""How long to wait for a board that another run holds, because the board is not at fault."""
MOST_LOG = 4096
"""The number of bytes at the end of a log to search for its last line."""


@dataclass
class Fleet:
    """A fleet in its folder. `say`: prints a line of progress. `command`: the command that runs a job."""

    plan: FleetPlan
    folder: Path
    say: Callable[[str], None]
    command: Sequence[str] = COMMAND
    statuses: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    aside: dict[str, str] = field(default_factory=dict[str, str])
    """Board -> why it was put aside."""
    unstored: dict[str, str] = field(default_factory=dict[str, str])
    """Folder of a job -> why its record is not in the store. The next start tries again."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _storing: threading.Lock = field(default_factory=threading.Lock)
    """Held while a record is stored, because a database has one writer at a time."""
    _opened: Store | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _measured_s: list[float] = field(default_factory=list[float])
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set[subprocess.Popen[bytes]])

    @cached_property
    def tasks(self) -> list[Task]:
        """All jobs of all boards."""
        return [task for board in self.plan.boards for task in self.plan.tasks(board)]

    def run(self) -> int:
        """Run all unfinished jobs and return the exit status of the fleet.

        Raises KeyboardInterrupt after the running jobs have ended.
        """
        with ThreadPoolExecutor(self.plan.at_once) as threads:
            ends = [threads.submit(self._board, board) for board in self.plan.boards]
            try:
                for end in ends:
                    end.result()
            except BaseException:
                self._stop()
                raise
        if self.aside or self.unstored or len(self.statuses) < len(self.tasks):
            return EXIT_CANNOT_MEASURE
        worst = set(self.statuses.values())
        return EXIT_FAILS if EXIT_FAILS in worst else max(worst, default=EXIT_OK)

    def _stop(self) -> None:
        """Let the running jobs end in order, and begin no other job."""
        self._stopped.set()
        with self._lock:
            if self._running:
                self.say(f"stopping; waiting for {plural(len(self._running), 'job')} to end")
            for process in self._running:
                process.send_signal(signal.SIGINT)

    def _board(self, board: Board) -> None:
        put_aside = self.folder / board.name / ASIDE
        failures = 0
        for task in self.plan.tasks(board):
            while not self._stopped.is_set():
                if put_aside.exists():
                    self.aside[board.name] = put_aside.read_text(errors="replace").strip()
                    self._say(task, f"put aside: {self.aside[board.name]}")
                    return
                status, reason = self._job(task)
                if status in WORDS:
                    failures = 0
                    with self._lock:
                        self.statuses[board.name, task.name] = status
                    self._say(task, reason)
                    break
                if self._stopped.is_set() or status == EXIT_INTERRUPTED:
                    return
                failures += 1
                self._say(task, f"failed ({failures} of {self.plan.tries}): {reason}")
                if failures >= self.plan.tries:
                    write_whole(put_aside, f"{task.name}: {reason}\n".encode(errors="replace"))

    def _say(self, task: Task, what: str) -> None:
        with self._lock:
            done = len(self.statuses)
            self.say(f"[{done}/{len(self.tasks)}] {task.board.name} {task.name}: {what}{self._left()}")

    def _left(self) -> str:
        """Return in words how long the rest will take; empty until a job has ended since this start."""
        left = len(self.tasks) - len(self.statuses)
        if not self._measured_s or not left:
            return ""
        at_once = min(self.plan.at_once, len(self.plan.boards))
        seconds = left * sum(self._measured_s) / len(self._measured_s) / at_once
        return f" (about {format_span(seconds)} left)"

    def _job(self, task: Task) -> tuple[int, str]:
        """Run one job to its end and store its record. Return the exit status and the text to show."""
        board, job = task.board, task.job
        folder = self.folder / board.name / task.name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a process that outlived a killed fleet ends first
            state = folder / STATE
            if not state.exists():
                status = self._outlived(job, folder)
                if status is None:
                    began = time.monotonic()
                    status = self._process(self._words(task, folder), folder / LOG, lock.fileno())
                    self._measured_s.append(time.monotonic() - began)
                if status not in WORDS:
                    _put_away(folder)
                    return status, _last_line(folder / LOG) or f"exit status {status}"
                wrong = _wrong_kernel(folder, task.image)
                if wrong is not None:
                    _put_away(folder)
                    return EXIT_CANNOT_MEASURE, wrong
                said = GATE_WORDS[status] if job.is_gate else _said(folder, status)
                write_whole(state, json.dumps({"status": status, "said": said}).encode())
            known = json.loads(state.read_bytes())
            status, said = int(known["status"]), str(known["said"])
        for keep, where in ((self._store, "store"), (self._archive, "archive")):
            try:
                keep(task, folder)
            except RtgaugeError as error:
                with self._lock:
                    self.unstored[str(folder)] = str(error)
                said += f"; not in the {where}: {error}"
        return status, said

    @staticmethod
    def _outlived(job: Job, folder: Path) -> int | None:
        """Return the status of a run that ended after its fleet; None if there is no such run, or for a
        gate.
        """
        ended = [] if job.is_gate else _complete(folder)
        if not ended:
            return None
        word = next((each.word for each in read_run(ended[-1]).verdicts if each.step is None), None)
        return EXIT_OK if word is None else STATUS_OF_WORD.get(word, EXIT_CANNOT_TELL)

    @staticmethod
    def _words(task: Task, folder: Path) -> list[str]:
        """Return the job's command. It resumes an existing record; a complete gate shows its result."""
        records = record_folders(folder)
        begun = [record for record in records if record.suffix == PARTIAL]
        if task.job.is_gate and records:
            return ["gate", f"--resume={records[-1]}", WAIT]
        if begun:
            return ["run", "--resume", str(begun[-1]), WAIT]
        return [*task.words, f"--out={folder}", WAIT]

    def _process(self, words: list[str], log: Path, lock: int) -> int:
        with log.open("wb") as output:
            with self._lock:
                if self._stopped.is_set():
                    return EXIT_INTERRUPTED
                process = subprocess.Popen(
                    [*self.command, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(lock,),
                    start_new_session=True,
                )
                self._running.add(process)
            status = process.wait()
            with self._lock:
                self._running.discard(process)
        return status

    def _store(self, task: Task, folder: Path) -> None:
        if self.plan.store is None:
            return
        labels = {} if task.image is None else {"image": task.image.name}
        with self._storing:
            if self._opened is None:
                self._opened = Store.open(self.plan.store, make=True)
            for record in _complete(folder):
                add(self._opened, record, Said(labels=labels, machines={"": task.board.name}))

    def _archive(self, _task: Task, folder: Path) -> None:
        if self.plan.archive is None:
            return
        for record in _complete(folder):
            send(record, archive_of(self.plan.archive))


def _complete(folder: Path) -> list[Path]:
    return [record for record in record_folders(folder) if record.suffix != PARTIAL]


def _wrong_kernel(folder: Path, image: Image | None) -> str | None:
    """Return why the records in a job's folder do not belong to this image; None if they do."""
    if image is None or image.kernel is None:
        return None
    for record in _complete(folder):
        for facts in Record.open(record).systems.values():
            release = facts.kernel.release or "unknown"
            if not fnmatchcase(release, image.kernel):
                return f"runs kernel {release}, but image {image.name} has kernel {image.kernel}"
    return None


def _said(folder: Path, status: int) -> str:
    """Return in words the run's verdict, or that there was no requirement, and the loads that it left out."""
    runs = [read_run(record) for record in _complete(folder)]
    judged = status != EXIT_OK or any(verdict.step is None for run in runs for verdict in run.verdicts)
    missing = [reason for run in runs for reason in left_out_of(run)]
    return "; ".join([WORDS[status] if judged else NOT_JUDGED, *missing])


def _last_line(log: Path) -> str:
    """Return the last line that a process printed, such as its error."""
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_LOG))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _put_away(folder: Path) -> None:
    """Move the complete records of a failed try into the folder `failed`. The next try makes its own."""
    for record in _complete(folder):
        (folder / FAILED).mkdir(exist_ok=True)
        record.rename(folder / FAILED / record.name)
