# SPDX-License-Identifier: MIT
"""This machine as a target."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Self

from rtgauge.errors import MeasureError
from rtgauge.target.base import Completed
from rtgauge.target.engine_path import engine_path
from rtgauge.target.lease import LEASE_NS, LeaseKeeper

PIPE_BYTES = 1 << 20
GRACE_S = 2.0
END_PATIENCE_S = 8.0
SET_UP_FAILED = 127


class LocalGuarded:
    """A program under guard on this machine."""

    def __init__(self, argv: Sequence[str], run_id: str, keeper: LeaseKeeper, log: BinaryIO | None) -> None:
        self._keeper = keeper
        command = [str(engine_path()), "guard", "--run", run_id, "--lease-ns", str(LEASE_NS), "--", *argv]
        # A session of its own: Ctrl-C in the terminal reaches rtgauge only, which then ends things in order.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if log is None else log,
            stderr=None if log is None else subprocess.STDOUT,
            start_new_session=True,
        )
        if self._process.stdout is not None:
            # A host that is busy for a moment must not make the engine wait.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        assert self._process.stdin is not None  # noqa: S101 - Popen was asked for a pipe
        self._stdin = self._process.stdin
        keeper.add(self._stdin.fileno())

    @property
    def pid(self) -> int:
        """Process id of the guard; the program is its child."""
        return self._process.pid

    def lines(self) -> Iterator[bytes]:
        """Standard output, line by line, until it ends."""
        if self._process.stdout is not None:
            yield from self._process.stdout

    def say(self, word: str) -> None:
        """Send one line; a program that has gone is not an error. May be called from a signal handler."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._stdin.fileno(), word.encode() + b"\n")

    def poll(self) -> int | None:
        """Exit status, None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end; exit status, or None when the time is over."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._close()
        return status

    def stop(self, grace_s: float = GRACE_S) -> int | None:
        """End it with all its children: in order, by force after `grace_s`. The end of its input is what tells the guard."""
        self._close()
        try:
            return self._process.wait(grace_s + END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _close(self) -> None:
        if not self._stdin.closed:
            self._keeper.remove(self._stdin.fileno())
            self._stdin.close()


class LocalTarget:
    """This machine. While it is open it is locked: a second run on it is refused."""

    name = "local"

    def __init__(self, run_id: str, label: str) -> None:
        """Lock the machine for the run `run_id`; `label` is what a refused second run is told. Raises MeasureError."""
        self.run_id = run_id
        self._keeper = LeaseKeeper()
        self._running: list[LocalGuarded] = []
        self.restored_before: list[dict[str, Any]] = []
        self._session = subprocess.Popen(
            [str(engine_path()), "guard", "--run", run_id, "--label", label, "--lock", "--restore", "--lease-ns", str(LEASE_NS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        if self._session.stdin is None or self._session.stdout is None:
            raise MeasureError("the engine's guard has no pipes")
        self._keeper.add(self._session.stdin.fileno())
        for text in self._session.stdout:
            line = json.loads(text)
            if line.get("type") == "restore":
                self.restored_before.append(line)
            if line.get("type") == "error":
                self.close()
                raise MeasureError(line["message"])
            if line.get("type") == "guard":
                break
        else:
            self.close()
            raise MeasureError("the engine's guard ended at once; is the engine the one that came with this rtgauge?")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
        """Files and globs in one batch."""
        return read_local(paths)

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def which(self, program: str) -> str | None:
        """Path of a program, also where root's folders are not in PATH."""
        return shutil.which(program) or shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin")

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end."""
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Completed(SET_UP_FAILED, str(error))
        return Completed(done.returncode, done.stdout)

    def start(self, argv: Sequence[str], log: BinaryIO | None = None) -> LocalGuarded:
        """Run a program under guard."""
        program = LocalGuarded(argv, self.run_id, self._keeper, log)
        self._running.append(program)
        return program

    def engine(self, *arguments: str) -> LocalGuarded:
        """Run a verb of the engine under guard."""
        return self.start([str(engine_path()), *arguments])

    def close(self) -> None:
        """End what still runs, put settings back, give the machine free."""
        for program in self._running:
            if program.poll() is None:
                program.stop()
        self._running.clear()
        self._keeper.close()
        if self._session.stdin is not None and not self._session.stdin.closed:
            self._keeper.remove(self._session.stdin.fileno())
            self._session.stdin.close()
        if self._session.stdout is not None:
            self._session.stdout.read()
        try:
            self._session.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._session.kill()
            self._session.wait()


def read_local(paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
    """The `read` hand on this machine. Needs no lock. Raises MeasureError."""
    asked = "\0".join(paths).encode()
    done = subprocess.run([str(engine_path()), "read", "-"], input=asked, capture_output=True, check=False)
    try:
        files: dict[str, dict[str, Any]] = json.loads(done.stdout)["files"]
    except (ValueError, KeyError):
        raise MeasureError(f"the engine's read hand failed (exit status {done.returncode})") from None
    return files
