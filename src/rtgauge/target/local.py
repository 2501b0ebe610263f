# SPDX-License-Identifier: MIT
"""Controls this machine as a target."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import select
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from rtgauge.errors import HungError, MeasureError, SilentError
from rtgauge.program_run import run_program
from rtgauge.target.engine_path import engine_path
from rtgauge.target.file_batch import Files, files_of
from rtgauge.target.guard import (
    LEASE_NS,
    LOOK_EVERY_S,
    GuardWatch,
    LeaseKeeper,
    agent_answers,
    agent_words,
    expect_word,
    guard_gone,
    guard_words,
    session_words,
    wait_until_held,
)
from rtgauge.target.target_protocol import MOST_FETCHED, AtHeld, Completed, ProgramPlace

PIPE_BYTES = 1 << 20
GRACE_S = 2.0
END_PATIENCE_S = 60.0
"""How long (s) after its grace period a guard may take to end, on a machine short of CPU time."""
VERB_PATIENCE_S = 60.0
"""Time limit (s) for a verb that answers immediately (`read`, `set`, `gather`, `restore`)."""
SET_UP_FAILED = 127


class LocalGuarded:
    """A program under guard on this machine."""

    def __init__(
        self,
        argv: Sequence[str],
        run_id: str,
        keeper: LeaseKeeper,
        log: BinaryIO | None,
        check: Callable[[], None],
    ) -> None:
        """Start `argv`. `log`: the file for its output and errors; None: `lines` yields its output.

        `check`: the method `check` of its target.
        """
        self._keeper = keeper
        self._watch = GuardWatch(check, lambda: self.send("stop"))
        command = [str(engine_path()), *guard_words(run_id, LEASE_NS), "--", *argv]
        # The program gets its own session, so that Ctrl-C in the terminal reaches only rtgauge, which then
        # ends all in order.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if log is None else log,
            stderr=None if log is None else subprocess.STDOUT,
            start_new_session=True,
        )
        if self._process.stdout is not None:
            # A larger pipe, so that the engine need not wait for a host that is busy for a moment.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        assert self._process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
        self._stdin = self._process.stdin
        keeper.add(self._stdin.fileno())

    @property
    def pid(self) -> int:
        """The guard's process id. The program is the guard's child."""
        return self._process.pid

    @property
    def reconnections(self) -> int:
        """0, because there is no connection that could break."""
        return 0

    @property
    def kept(self) -> ProgramPlace | None:
        """None, because the program does not outlive rtgauge."""
        return None

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:
        """Yield standard output, line by line, until it ends.

        Raises MeasureError if the run's own guard is gone and the program does not stop, SilentError if the
        program prints nothing for `silence_s`.
        """
        if self._process.stdout is not None:
            yield from _Output(self._process.stdout.fileno(), self._watch.look).lines(silence_s)

    def send(self, word: str) -> None:
        """Send one line; do nothing if the program has ended. A signal handler may call this."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._stdin.fileno(), word.encode() + b"\n")

    def poll(self) -> int | None:
        """Return the exit status; None while the program runs."""
        return self._process.poll()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the program to end. Return its exit status, or None after `timeout_s`."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    def stop(self, grace_s: float = GRACE_S) -> int | None:
        """Close the guard's standard input, so that the guard ends the program and all its children. Return
        the exit status.

        The guard is killed if it does not end within `grace_s` + `END_PATIENCE_S`.
        """
        self._close()
        status = self.wait(grace_s + END_PATIENCE_S)
        if status is None:
            self._process.kill()
            status = self.wait()
        return status

    @property
    def over(self) -> bool:
        """Whether the program has ended and all its files are closed."""
        return self._stdin.closed and self._process.returncode is not None

    def _close(self) -> None:
        if not self._stdin.closed:
            self._keeper.remove(self._stdin.fileno())
            self._stdin.close()


class _Output:
    """A program's standard output."""

    def __init__(self, descriptor: int, look: Callable[[], None] = lambda: None) -> None:
        """`look` is called at least every LOOK_EVERY_S while the output is read."""
        self._descriptor = descriptor
        self._look = look
        self._rest = b""
        self._whole: deque[bytes] = deque()

    def lines(self, silence_s: float | None) -> Iterator[bytes]:
        """Yield the lines that were not read yet, until the output ends.

        Raises SilentError if the program prints nothing for `silence_s`.
        """
        ready = select.poll()
        ready.register(self._descriptor, select.POLLIN)
        heard_s = time.monotonic()
        while True:
            while self._whole:
                yield self._whole.popleft() + b"\n"
                heard_s = time.monotonic()  # the caller may start a load before the program continues
            self._look()
            if not ready.poll(LOOK_EVERY_S * 1000):
                if silence_s is not None and time.monotonic() - heard_s > silence_s:
                    raise SilentError(f"the program sent nothing for {silence_s:.0f} s, so rtgauge gave up")
                continue
            piece = os.read(self._descriptor, PIPE_BYTES)
            if not piece:
                break
            *whole, self._rest = (self._rest + piece).split(b"\n")
            self._whole.extend(whole)
            heard_s = time.monotonic()
        if self._rest:
            rest, self._rest = self._rest, b""
            yield rest


class LocalTarget:
    """This machine as a target. It is locked while it is open, so that a second run is refused."""

    name = "local"
    picked_up = False

    def __init__(
        self, run_id: str, label: str, *, wait_s: float = 0.0, at_held: AtHeld | None = None
    ) -> None:
        """Lock the machine for the run `run_id`. Another run shows `label` when it is refused. `open_target`
        explains the other parameters.

        Raises MeasureError if it cannot be locked.
        """
        self.run_id = run_id
        self._keeper = LeaseKeeper()
        self._running: list[LocalGuarded] = []
        self.restored_before: list[dict[str, Any]] = []
        self._session = subprocess.Popen(
            [str(engine_path()), *session_words(run_id, label, LEASE_NS, wait_s, os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        if self._session.stdin is None or self._session.stdout is None:
            raise MeasureError("the engine's guard has no pipes")
        self._keeper.add(self._session.stdin.fileno())
        try:
            lines = _Output(self._session.stdout.fileno()).lines
            wait_until_held(lines, wait_s, self, at_held, engine=str(engine_path()))
        except SilentError:
            self._session.kill()  # it hangs, so it would not end by itself
            self.close()
            raise
        except BaseException:
            self.close()
            raise

    def expect(self, seconds: float) -> None:
        """Tell waiting runs how much longer this run will need."""
        if self._session.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                os.write(self._session.stdin.fileno(), expect_word(seconds))

    def check(self) -> None:
        """Raise MeasureError if this run no longer holds the machine, because its guard was killed or heard
        nothing for a whole lease.
        """
        if self._session.poll() is not None:
            raise guard_gone(LEASE_NS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def controllers(self) -> list[int]:
        """The process ids of this process and of its session's guard."""
        return [os.getpid(), self._session.pid]

    def read(self, paths: Iterable[str]) -> Files:
        """Read files and globs in one batch."""
        return read_local(paths)

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def which(self, program: str) -> str | None:
        """Return a program's path, also from root's folders if PATH lacks them; None if it is missing."""
        return shutil.which(program) or shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin")

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end."""
        try:
            completed = run_program(argv, timeout_s=timeout_s)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Completed(SET_UP_FAILED, str(error))
        return Completed(completed.returncode, completed.stdout)

    def start(
        self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None
    ) -> LocalGuarded:
        """Run a program under a guard."""
        self._running = [program for program in self._running if not program.over]
        within = [str(engine_path()), "enter", group] if group is not None else []
        program = LocalGuarded([*within, *argv], self.run_id, self._keeper, log, self.check)
        self._running.append(program)
        return program

    def engine(self, *arguments: str, group: str | None = None) -> LocalGuarded:
        """Run a verb of the engine under a guard."""
        return self.start([str(engine_path()), *arguments], group=group)

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """Run `set`, `gather` or `restore` for this run (`restore --stale`: for dead runs); return its
        answers by line.

        The session's guard owns the settings. Raises MeasureError if the verb failed.
        """
        completed = engine_verb(*agent_words(verb, arguments, self.run_id, self._session.pid))
        return agent_answers(verb, completed.stdout, completed.returncode)

    def try_engine(self, *arguments: str) -> bytes:
        """Return the output of an engine verb that ends immediately."""
        return engine_verb(*arguments).stdout

    @property
    def machine(self) -> str:
        """The output of `uname -m`."""
        return platform.machine()

    @property
    def session(self) -> dict[str, Any] | None:
        """None, because nothing on this machine outlives rtgauge."""
        return None

    def attach(self, kept: ProgramPlace, log: BinaryIO | None = None) -> LocalGuarded:  # noqa: ARG002 - the same for every target
        """Raise MeasureError: nothing on this machine outlives rtgauge."""
        raise MeasureError("the programs that an earlier rtgauge started on this machine ended with it")

    def put(self, file: Path) -> str:
        """Return the file's own path, because it is already here."""
        return str(file.resolve())

    def files_folder(self, folder: Path) -> str:
        """Return the folder itself."""
        return str(folder)

    def use_files_folder(self, folder: Path, place: str) -> None:
        """Do nothing, because every folder is here."""

    def fetch(self, folder: Path, most_bytes: int = MOST_FETCHED) -> None:
        """Do nothing, because every file is here."""

    def end_others(self, kept: Sequence[str]) -> None:
        """Do nothing, because nothing on this machine outlives rtgauge."""

    def close(self) -> None:
        """End the programs that still run, restore settings, and release the machine."""
        for program in self._running:
            program.stop()
        self._running.clear()
        self._keeper.close()
        if self._session.stdin is None or self._session.stdin.closed:
            return
        self._keeper.remove(self._session.stdin.fileno())
        # Closing its input ends the guard. We read its output, so that it never waits for us. We do not kill
        # a slow guard: it is still restoring settings, and needs no help.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._session.communicate(timeout=END_PATIENCE_S)


def engine_verb(verb: str, *arguments: str, send: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a verb that answers immediately. `send`: its standard input.

    Raises MeasureError if it cannot be started, HungError if it does not end.
    """
    try:
        return subprocess.run(
            [str(engine_path()), verb, *arguments],
            input=send,
            capture_output=True,
            timeout=VERB_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HungError(
            f"the engine's command {verb} did not end within {VERB_PATIENCE_S:g} s, so rtgauge killed it"
        ) from None
    except OSError as error:
        raise MeasureError(f"the engine {engine_path()} cannot be started: {error.strerror}") from None


def read_local(paths: Iterable[str]) -> Files:
    """Run the engine's verb `read` on this machine; it needs no lock. Raises MeasureError if that fails."""
    completed = engine_verb("read", "-", send="\0".join(paths).encode())
    try:
        return files_of(completed.stdout).files
    except ValueError:
        raise MeasureError(f"the engine's command read failed (exit status {completed.returncode})") from None
