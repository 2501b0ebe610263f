# SPDX-License-Identifier: MIT
"""Runs a fleet's jobs. Each board has a thread, each job a process, and each state a file.

Every job has a folder, `BOARD/JOB`, for its record, its log and its state. After a kill, the next start reads
them: a finished job stays finished, and an unfinished record is resumed. So all of them must be this user's.
A job's process holds the lock of its folder, so a process that outlived its fleet ends first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.analysis import change_words
from rtgauge.errors import (
    EXIT_CANNOT_MEASURE,
    EXIT_CANNOT_TELL,
    EXIT_FAILS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    MeasureError,
    RecordError,
    RtgaugeError,
)
from rtgauge.input_file import MIB
from rtgauge.record.model import Severity, VerdictWord
from rtgauge.record.own_folder import OwnFolder
from rtgauge.record.reader import PARTIAL, Record, read_run, record_folders
from rtgauge.units import format_span, plural
from rtgauge.verdict.coverage import left_out_of
from rtgauge.verdict.gate_result import GateResult
from rtgauge_ext.fleet.fleet_plan import ASIDE, Board, BoardImage, BoardTask, FleetPlan, Job
from rtgauge_ext.store.adding import GivenLabels, add
from rtgauge_ext.store.store import Store

COMMAND = (sys.executable, "-P", "-m", "rtgauge")
"""With -P, Python imports nothing from the present folder, which may be another user's."""
STATE, LOG, LOCK, FAILED = "state.json", "log.txt", "lock", "failed"
FLEET_LOCK = ".lock"
"""In the fleet's folder. No board has such a name."""
WORDS = {0: "holds", 1: "fails", 4: "cannot tell"}
"""The exit statuses of a job that has measured. Any other status is a failure of the board."""
NOT_JUDGED = "measured; nothing was required"
GATE_WORDS = {0: change_words.NOT_WORSE, 1: change_words.WORSE, 4: change_words.CANNOT_TELL}
STATUS_OF_WORD = {VerdictWord.HOLDS: EXIT_OK, VerdictWord.FAILS: EXIT_FAILS}
WAIT = "--wait=1h"
"""How long to wait for a board that another run holds, because the board is not at fault."""
MOST_LOG = 4096
"""The number of bytes at the end of a log to search for its last line."""
RETRY_S = 0.2
"""How often to look whether a process that outlived its fleet has ended, or whether Ctrl-C was pressed."""


class JobState(BaseModel):
    """The content of `state.json`: the exit status of a job that has measured, and the text to show."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    status: int
    said: str = Field(max_length=10_000)


@dataclass
class Fleet:
    """A fleet in its folder. `notify`: prints a line of progress. `command`: the command that runs a job.
    `again`: whether to try boards that were put aside.
    """

    plan: FleetPlan
    folder: Path
    notify: Callable[[str], None]
    command: Sequence[str] = COMMAND
    again: bool = False
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
    def tasks(self) -> list[BoardTask]:
        """All jobs of all boards."""
        return [task for board in self.plan.boards for task in self.plan.tasks(board)]

    def run(self) -> int:
        """Run all unfinished jobs and return the exit status of the fleet.

        Raises KeyboardInterrupt after the running jobs have ended, MeasureError if another fleet uses the
        folder, and OSError if other users made or can change the folder.
        """
        own = OwnFolder.made(self.folder)
        try:
            with own.lock(FLEET_LOCK, wait=False):
                self._run(own)
        except BlockingIOError:
            raise MeasureError(
                f"another fleet is running in {self.folder}: wait until it has ended, or name another folder "
                f"with --out"
            ) from None
        if self.aside or self.unstored or len(self.statuses) < len(self.tasks):
            return EXIT_CANNOT_MEASURE
        worst = set(self.statuses.values())
        return EXIT_FAILS if EXIT_FAILS in worst else max(worst, default=EXIT_OK)

    def _run(self, own: OwnFolder) -> None:
        with ThreadPoolExecutor(self.plan.at_once) as threads:
            try:  # a Ctrl-C may come while the threads start
                ends = [threads.submit(self._board, own, board) for board in self.plan.boards]
                for end in ends:
                    # Python handles a signal that comes just before it blocks only after the wait.
                    while not wait((end,), timeout=RETRY_S).done:
                        pass
                    end.result()
            except BaseException:
                self._stop()
                raise

    def _stop(self) -> None:
        """Let the running jobs end in order, and begin no other job."""
        self._stopped.set()
        with self._lock:
            if self._running:
                self.notify(f"stopping; waiting for {plural(len(self._running), 'job')} to end")
            for process in self._running:
                process.send_signal(signal.SIGINT)

    def _board(self, own: OwnFolder, board: Board) -> None:
        """Run the jobs of a board. A board whose folder cannot be used does not end the fleet."""
        try:
            self._jobs(own.inner(board.name), board)
        except OSError as error:
            reason = f"its folder {self.folder / board.name} cannot be used: {error.strerror or error}"
            with self._lock:
                self.aside[board.name] = reason
                self.notify(f"{board.name}: {reason}")

    def _jobs(self, folder: OwnFolder, board: Board) -> None:
        if self.again and folder.has(ASIDE):
            folder.read_own(ASIDE, MIB)  # a folder of this name is not removed
            folder.remove(ASIDE)
        failures = 0
        for task in self.plan.tasks(board):
            while not self._stopped.is_set():
                if folder.has(ASIDE):
                    self.aside[board.name] = folder.read_own(ASIDE, MIB).decode(errors="replace").strip()
                    self._print_progress(task, f"put aside: {self.aside[board.name]}")
                    return
                status, reason = self._job(folder.inner(task.name), task)
                if status in WORDS:
                    failures = 0
                    with self._lock:
                        self.statuses[board.name, task.name] = status
                    self._print_progress(task, reason)
                    break
                if self._stopped.is_set() or status == EXIT_INTERRUPTED:
                    return
                failures += 1
                self._print_progress(task, f"failed ({failures} of {self.plan.tries}): {reason}")
                if failures >= self.plan.tries:
                    folder.write(ASIDE, f"{task.name}: {reason}\n".encode(errors="replace"))

    def _print_progress(self, task: BoardTask, what: str) -> None:
        with self._lock:
            finished = len(self.statuses)
            self.notify(f"[{finished}/{len(self.tasks)}] {task.board.name} {task.name}: {what}{self._left()}")

    def _left(self) -> str:
        """Return in words how long the rest will take; empty until a job has ended since this start."""
        left = len(self.tasks) - len(self.statuses)
        if not self._measured_s or not left:
            return ""
        at_once = min(self.plan.at_once, len(self.plan.boards))
        seconds = left * sum(self._measured_s) / len(self._measured_s) / at_once
        return f" (about {format_span(seconds)} left)"

    def _job(self, folder: OwnFolder, task: BoardTask) -> tuple[int, str]:
        """Run one job to its end and store its record. Return the exit status and the text to show. Raises
        OSError.
        """
        with ExitStack() as stack:
            lock = self._hold(folder, task, stack)
            if lock is None:
                return EXIT_INTERRUPTED, ""
            try:
                state = self._state(folder, task) or self._measure(folder, task, lock)
                if isinstance(state, JobState):
                    self._keep(folder, task, state)
                    return state.status, state.said
                status, reason = state
            except RecordError as error:
                status, reason = EXIT_CANNOT_MEASURE, str(error)
            _put_away(folder)
            return status, reason

    def _hold(self, folder: OwnFolder, task: BoardTask, stack: ExitStack) -> int | None:
        """Hold the lock of a job's folder; return its descriptor, or None if the fleet was stopped."""
        waits = False
        while not self._stopped.is_set():
            try:
                return stack.enter_context(folder.lock(LOCK, wait=False))
            except BlockingIOError:
                if not waits:
                    self._print_progress(
                        task, "waiting for the end of its run, which an earlier rtgauge fleet started"
                    )
                waits = True
                self._stopped.wait(RETRY_S)
        return None

    def _state(self, folder: OwnFolder, task: BoardTask) -> JobState | None:
        """Return how the job ended; None if it has to run, or if only its record can say it."""
        if not folder.has(STATE):
            return None
        with suppress(ValidationError):
            state = JobState.model_validate_json(folder.read_own(STATE, MIB), strict=True)
            if state.status in WORDS:
                return state
        self._print_progress(
            task, f"{folder.path / STATE} is damaged; rtgauge reads the result from the record"
        )
        return None

    def _measure(self, folder: OwnFolder, task: BoardTask, lock: int) -> JobState | tuple[int, str]:
        """Run a job; return its state, or the exit status and the reason of a failure. Raises OSError,
        RecordError.
        """
        status = self._outlived(task.job, folder)
        if status is None:
            began = time.monotonic()
            status = self._process(self._words(task, folder), folder, lock)
            self._measured_s.append(time.monotonic() - began)
        if status not in WORDS:
            return status, _reason(task.job, folder) or f"exit status {status}"
        wrong = _wrong_kernel(folder, task.image)
        if wrong is not None:
            return EXIT_CANNOT_MEASURE, wrong
        state = JobState(
            status=status, said=GATE_WORDS[status] if task.job.is_gate else _verdict_text(folder, status)
        )
        folder.write(STATE, state.model_dump_json().encode())
        return state

    def _keep(self, folder: OwnFolder, task: BoardTask, state: JobState) -> None:
        """Put a job's records into the store. If that fails, `state.said` says so."""
        try:
            self._store(task, folder)
        except RtgaugeError as error:
            with self._lock:
                self.unstored[str(folder.path)] = str(error)
            state.said += f"; not in the store: {error}"

    @staticmethod
    def _outlived(job: Job, folder: OwnFolder) -> int | None:
        """Return the status of a run that ended after its fleet; None if there is no such run, or for a
        gate.
        """
        ended = [] if job.is_gate else _complete(folder)
        if not ended:
            return None
        word = next((each.word for each in read_run(ended[-1]).verdicts if each.step is None), None)
        return EXIT_OK if word is None else STATUS_OF_WORD.get(word, EXIT_CANNOT_TELL)

    @staticmethod
    def _words(task: BoardTask, folder: OwnFolder) -> list[str]:
        """Return the job's command. It resumes an existing record; a complete gate shows its result."""
        records = _records(folder)
        begun = [record for record in records if record.suffix == PARTIAL]
        if task.job.is_gate and records:
            return ["resume", str(records[-1]), WAIT]
        if begun:
            return ["resume", str(begun[-1]), WAIT]
        return [*task.words, f"--out={folder.path}", WAIT]

    def _process(self, words: list[str], folder: OwnFolder, lock: int) -> int:
        with folder.open_log(LOG) as output:
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

    def _store(self, task: BoardTask, folder: OwnFolder) -> None:
        if self.plan.store is None:
            return
        labels = {} if task.image is None else {"image": task.image.name}
        with self._storing:
            if self._opened is None:
                self._opened = Store.open(self.plan.store, make=True)
            for record in _complete(folder):
                add(
                    self._opened,
                    record,
                    GivenLabels(labels=labels, machines={"": task.board.name}),
                    in_batch=True,
                )


def _records(folder: OwnFolder) -> list[Path]:
    """Return the records in a job's folder. Raises OSError for one that another user made or can change."""
    records = record_folders(folder.path)
    for record in records:
        try:
            OwnFolder.existing(record).close()
        except OSError as error:
            raise OSError(error.errno, f"{record.name}: {error.strerror}") from None
    return records


def _complete(folder: OwnFolder) -> list[Path]:
    return [record for record in _records(folder) if record.suffix != PARTIAL]


def _wrong_kernel(folder: OwnFolder, image: BoardImage | None) -> str | None:
    """Return why the records in a job's folder do not belong to this image; None if they do."""
    if image is None or image.kernel is None:
        return None
    for record in _complete(folder):
        for facts in Record.open(record).systems.values():
            release = facts.kernel.release or "unknown"
            if not fnmatchcase(release, image.kernel):
                return f"runs kernel {release}, but image {image.name} has kernel {image.kernel}"
    return None


def _verdict_text(folder: OwnFolder, status: int) -> str:
    """Return in words the run's verdict, or that there was no requirement, and the loads that it left out."""
    runs = [read_run(record) for record in _complete(folder)]
    judged = status != EXIT_OK or any(verdict.step is None for run in runs for verdict in run.verdicts)
    missing = [reason for run in runs for reason in left_out_of(run)]
    return "; ".join([WORDS[status] if judged else NOT_JUDGED, *missing])


def _reason(job: Job, folder: OwnFolder) -> str:
    """Return why a job failed: its error, which it prints last, or else what its record says."""
    with folder.open_own(LOG, sys.maxsize) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_LOG))
        lines = file.read(MOST_LOG).decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    ended = _complete(folder)
    if not ended or last.startswith("rtgauge: "):
        return last
    record = Record.open(ended[-1])
    if job.is_gate:
        return GateResult.final(record).conclusion
    doubts = [
        f"{step.id}: {mark.detail}"
        for step in record.steps
        for mark in step.marks
        if mark.severity is Severity.INVALID
    ]
    return "; ".join(doubts) or last


def _put_away(folder: OwnFolder) -> None:
    """Move the complete records of a failed try into the folder `failed`. The next try makes its own."""
    for record in _complete(folder):
        folder.inner(FAILED).close()
        folder.rename(record.name, f"{FAILED}/{record.name}")
