# SPDX-License-Identifier: MIT
"""Renews the leases of all that runs under guard, and notices that a run's own guard is gone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.target.ssh_errors import ConnectionBroken

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE_NS = 10_000_000_000
RENEW_EVERY_S = 2.5
LOOK_EVERY_S = 1.0
STOP_S = 5.0
"""How long a stopped program may take to end, once the guard of its run is gone."""


class LeaseKeeper:
    """Says `renew` to every registered guard.

    Words go to the pipe with one os.write each: such a write is whole (pipe(7), PIPE_BUF), so that no lock is
    needed against a signal handler that says `stop` meanwhile.
    """

    def __init__(self) -> None:
        self._pipes: set[int] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="lease", daemon=True).start()

    def add(self, descriptor: int) -> None:
        """Keep the lease of the guard that reads from this pipe."""
        with self._lock:
            self._pipes.add(descriptor)

    def remove(self, descriptor: int) -> None:
        """Keep it no longer: the descriptor may be closed when this returns."""
        with self._lock:
            self._pipes.discard(descriptor)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            with self._lock:
                for descriptor in self._pipes:
                    with contextlib.suppress(OSError):
                        os.write(descriptor, b"renew\n")


class GuardWatch:
    """Looks whether the run of a program that is followed still holds its target."""

    def __init__(self, check: Callable[[], None], stop: Callable[[], None]) -> None:
        """`check`: as of a target. `stop`: tells the program to stop, which keeps what it has measured."""
        self._check = check
        self._stop = stop
        self._next_s = time.monotonic() + LOOK_EVERY_S
        self._give_up_s: float | None = None

    def look(self) -> None:
        """To be called at least every `LOOK_EVERY_S`. Raises MeasureError if the run does not hold its target
        and the program has not stopped.
        """
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + LOOK_EVERY_S
        try:
            self._check()
        except ConnectionBroken:
            raise
        except MeasureError:
            if self._give_up_s is None:
                self._give_up_s = now + STOP_S
                self._stop()
            elif now >= self._give_up_s:
                raise
