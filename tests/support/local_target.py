# SPDX-License-Identifier: MIT
"""A target for tests of loads: this machine, without a session of the engine. Programs run in a session of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, BinaryIO

from rtgauge.load.processes import STAT_GLOB, descendants, parse_all
from rtgauge.target.file_batch import Files
from rtgauge.target.local import read_local
from rtgauge.target.target_protocol import Completed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LocalHandle:
    """A program and its descendants."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def stop(self, grace_s: float) -> int | None:
        pids = [process.pid for process in descendants(parse_all(read_local([STAT_GLOB])), self.pid)]
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGTERM)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return self._process.returncode


class LocalTarget:
    """`files` replaces what some files say; `hidden` are programs that it does not have."""

    def __init__(self, files: Mapping[str, str] | None = None, hidden: Sequence[str] = ()) -> None:
        self._files = dict(files or {})
        self._hidden = set(hidden)
        self.handles: list[LocalHandle] = []

    def start(self, argv: Sequence[str], log: BinaryIO) -> LocalHandle:
        handle = LocalHandle(
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        )
        self.handles.append(handle)
        return handle

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        try:
            completed = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                text=True,
                errors="replace",
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return Completed(127, "")
        return Completed(completed.returncode, completed.stdout)

    def which(self, program: str) -> str | None:
        return None if program in self._hidden else shutil.which(program)

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def read(self, paths: Sequence[str]) -> Files:
        return read_local([path for path in paths if path not in self._files]) | {
            path: {"text": self._files[path]} for path in paths if path in self._files
        }
