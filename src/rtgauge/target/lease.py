# SPDX-License-Identifier: MIT
"""Renews the leases of everything that runs under guard, from one thread."""

from __future__ import annotations

import contextlib
import threading
from typing import IO

LEASE_NS = 10_000_000_000
RENEW_EVERY_S = 2.5


class LeaseKeeper:
    """Says `renew` to every registered guard. A guard that has gone is forgotten."""

    def __init__(self) -> None:
        self._pipes: dict[int, tuple[IO[bytes], threading.Lock]] = {}
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def add(self, pipe: IO[bytes]) -> threading.Lock:
        """Keep this guard's lease; the lock is to be held by whoever else writes to the pipe."""
        lock = threading.Lock()
        with self._guard:
            self._pipes[id(pipe)] = (pipe, lock)
        return lock

    def remove(self, pipe: IO[bytes]) -> None:
        """Keep it no longer."""
        with self._guard:
            self._pipes.pop(id(pipe), None)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            with self._guard:
                pipes = list(self._pipes.values())
            for pipe, lock in pipes:
                with lock, contextlib.suppress(OSError, ValueError):
                    pipe.write(b"renew\n")
                    pipe.flush()
