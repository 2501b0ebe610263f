# SPDX-License-Identifier: MIT
"""A guard: its label and length, its lease, and the errors if it does not start or is gone."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from rtgauge.errors import LockedError, MeasureError
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.units import NS_PER_S, format_span

LABEL_BYTES = 256
"""The longest label that the guard takes."""


def plain_label(text: str) -> str:
    """One line that a guard takes as its label: printable, and cut where it is too long."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return (
        plain
        if len(plain.encode()) <= LABEL_BYTES
        else plain.encode()[: LABEL_BYTES - 3].decode(errors="ignore") + "..."
    )


def session_words(run_id: str, label: str, lease_ns: int, wait_s: float) -> list[str]:
    """The engine's words for the guard of a run, which waits for its machine at most `wait_s`."""
    words = [
        "guard",
        "--run",
        run_id,
        "--label",
        plain_label(label),
        "--lock",
        "--restore",
        "--lease-ns",
        str(lease_ns),
    ]
    return [*words, *(["--wait-ns", str(round(wait_s * NS_PER_S))] if wait_s else [])]


def expect_word(seconds: float) -> bytes:
    """What tells such a guard how much longer the run will need."""
    return b"expect %d\n" % round(seconds * NS_PER_S)


def holder_of(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The members about the holder in a guard's event `waiting` or error `locked` (docs/formats/agent.md);
    None in another line.
    """
    if line.get("type") == "guard" and line.get("event") == "waiting":
        return line
    detail = line.get("detail")
    return (
        cast("Mapping[str, Any]", detail)
        if line.get("code") == "locked" and isinstance(detail, dict)
        else None
    )


def held_text(holder: Mapping[str, Any], name: str | None = None) -> str:
    """Who holds the machine and how long that may take. `name`: the target, where the text has to say it."""

    def span(member: str) -> str | None:
        value = holder.get(member)
        return format_span(value / NS_PER_S) if isinstance(value, int) else None

    run, label, pid = (holder.get(member) for member in ("run", "label", "pid"))
    who = "a run that this user may not see" if run is None else f"run {run}{f', {label}' if label else ''}"
    number = (
        f" (pid {pid}{' in another PID namespace' if holder.get('elsewhere') else ''})"
        if pid is not None
        else ""
    )
    silent, left = span("silent_ns"), span("left_ns")
    if silent is not None:
        ends = span("lease_left_ns") if holder.get("lease_left_ns") else None
        lease = (
            f"and its lease ends in {ends}; wait for that, or end it"
            if ends is not None
            else "its lease is over, and its guard is stopped or hangs; end it"
        )
        tail = (
            f"its host has been silent for {silent}, {lease}: rtgauge restore "
            f"--release{f' --target {shlex.quote(name)}' if name is not None else ''}"
        )
    else:
        tail = (
            f"{f'it needs about {left} more; ' if left is not None else ''}wait until it has ended, or end it"
        )
    return f"{f'{name}: ' if name is not None else ''}this machine is held by {who}{number}; {tail}"


def guard_error(line: Mapping[str, Any], name: str | None = None) -> MeasureError:
    """The error of a guard's line `error` (docs/formats/agent.md); `name`: the target, for the message."""
    holder = holder_of(line)
    if holder is None:
        return MeasureError(str(line.get("message")) if name is None else f"{name}: {line.get('message')}")
    error = LockedError(held_text(holder, name))
    error.run = str(holder["run"]) if holder.get("run") is not None else None
    return error


def guard_gone(lease_ns: int, name: str | None = None) -> MeasureError:
    """The error of a run whose guard has ended; `name`: the target, if the message has to say it."""
    where = f"{name}: " if name is not None else ""
    restore = f"rtgauge restore{f' --target {shlex.quote(name)}' if name is not None else ''}"
    return MeasureError(
        f"{where}the guard of this run has ended: it was killed, or it did not hear of rtgauge for "
        f"{format_span(lease_ns / NS_PER_S)} (Ctrl-Z, a suspended machine, a broken connection); the next "
        f"run restores any setting that remains"
        f", or {restore} does"
    )


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
