# SPDX-License-Identifier: MIT
"""Renews the leases of everything that runs under guard, from one thread."""

from __future__ import annotations

import contextlib
import os
import threading

LEASE_NS = 10_000_000_000
RENEW_EVERY_S = 2.5


class LeaseKeeper:
    """Says `renew` to every registered guard.

    Words go to the pipe with one os.write each: such a write is whole (pipe(7), PIPE_BUF), so that no lock is
    needed
    against a signal handler that says `stop` meanwhile.
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
