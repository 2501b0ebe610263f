# SPDX-License-Identifier: MIT
"""Makes the arguments for the engine's guard and agent, reads their answers, renews a guard's lease, and
watches the guard.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from rtgauge.errors import LockedError, MeasureError, SilentError
from rtgauge.input_file import json_object, json_objects
from rtgauge.target.ssh_errors import ConnectionBroken
from rtgauge.units import NS_PER_S, format_span

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import AtHeld, Target

LABEL_BYTES = 256
"""The longest label that the guard accepts, in bytes."""
MOST_RESTORED = 100_000
NOTICE_S, ANSWER_S = 5.0, 60.0
"""How long (s) a guard may be silent before rtgauge says so, and before it gives up. A guard that restores
settings of dead runs prints a line for each.
"""


def plain_label(text: str) -> str:
    """Return a label that a guard accepts: one printable line, cut to fit."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return (
        plain
        if len(plain.encode()) <= LABEL_BYTES
        else plain.encode()[: LABEL_BYTES - 3].decode(errors="ignore") + "..."
    )


def guard_words(run_id: str, lease_ns: int) -> list[str]:
    """Return the engine's arguments for a guard of this run."""
    return ["guard", "--run", run_id, "--lease-ns", str(lease_ns)]


def session_words(
    run_id: str, label: str, lease_ns: int, wait_s: float, host_pid: int | None = None
) -> list[str]:
    """Return the engine's arguments for a run's guard, which waits at most `wait_s` for its machine.

    `host_pid`: the process id of the run, if it is on this machine. Another run names it to its user.
    """
    host = [] if host_pid is None else ["--host-pid", str(host_pid)]
    waiting = ["--wait-ns", str(round(wait_s * NS_PER_S))] if wait_s else []
    words = [*guard_words(run_id, lease_ns), "--label", plain_label(label), "--lock", "--restore"]
    return [*words, *host, *waiting]


def agent_words(verb: str, arguments: Sequence[str], run_id: str, owner_pid: int | None) -> list[str]:
    """Return the engine's arguments for an agent verb of this run (with --stale: of dead runs).

    `owner_pid`: the process id of the guard that owns the settings.
    """
    run = [] if "--stale" in arguments else ["--run", run_id]
    owner = ["--owner-pid", str(owner_pid)] if verb == "set" and owner_pid is not None else []
    return [verb, *run, *owner, *arguments]


def agent_answers(
    verb: str, output: bytes, status: int | None, name: str | None = None
) -> list[dict[str, Any]]:
    """Return an agent verb's answers, one for each line of its output.

    `name`: the target, if messages must name it. Raises MeasureError if the verb failed or answered with an
    error.
    """
    try:
        answers = json_objects(output)
    except ValueError:
        raise MeasureError(f"the engine's command {verb} failed (exit status {status})", on=name) from None
    for answer in answers:
        if answer.get("type") == "error":
            raise MeasureError(str(answer.get("message")), on=name)
    return answers


class Lines(Protocol):
    """Reads a guard's output."""

    def __call__(self, silence_s: float, /) -> Iterator[bytes]:
        """Yield the lines from here on. Raises SilentError or ConnectionBroken after so long a silence."""
        ...


def _answers(lines: Lines, wait_s: float, name: str | None) -> Iterator[bytes]:
    """Yield a guard's lines. The first one comes at once, even if another run holds the target."""
    notice = threading.Timer(NOTICE_S, _print_waiting, [name])
    notice.daemon = True
    notice.start()
    try:
        first = next(lines(ANSWER_S), None)
    except SilentError:
        raise SilentError(
            f"the guard of this run has not answered for {ANSWER_S:g} s, because the machine is overloaded "
            f"or the engine hangs; try again",
            on=name,
        ) from None
    finally:
        notice.cancel()
    if first is not None:
        yield first
        yield from lines(ANSWER_S + wait_s)


def _print_waiting(name: str | None) -> None:
    """Say on standard error that the target has not answered yet."""
    print(
        f"waiting: {name or 'this machine'} has not answered for {NOTICE_S:g} s; rtgauge gives up after "
        f"{ANSWER_S:g} s",
        file=sys.stderr,
        flush=True,
    )


def wait_until_held(
    lines: Lines,
    wait_s: float,
    target: Target,
    at_held: AtHeld | None,
    name: str | None = None,
    engine: str = "the engine",
) -> None:
    """Read the output of a run's guard until the run holds its target and the guard has restored earlier
    runs' settings. `target.restored_before` then lists these.

    `wait_s`: how long the guard waits for another run. `name`: the target, if messages must name it.
    `engine`: the engine's name in messages. Raises MeasureError if another run holds the target, or the
    output is not a guard's; SilentError on this machine and ConnectionBroken on another if it is silent.
    """
    for text in _answers(lines, wait_s, name):
        line = json_object(text)
        if line is None or len(target.restored_before) > MOST_RESTORED:
            break
        holder = holder_of(line)
        if holder is not None and at_held is not None:
            at_held(target, holder)
        if line.get("type") == "restore":
            target.restored_before.append(line)
        if line.get("type") == "error":
            raise guard_error(line, name)
        if line.get("type") == "guard" and holder is None:
            return
    raise MeasureError(
        f"{engine} is not the engine that came with this rtgauge; unset RTGAUGE_ENGINE, or install rtgauge "
        f"again as you installed it",
        on=name,
    )


def expect_word(seconds: float) -> bytes:
    """Return the line with which a guard learns how much longer the run will need."""
    return b"expect %d\n" % round(seconds * NS_PER_S)


def holder_of(line: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the holder's description in a guard's event `waiting` or error `locked` (docs/formats/agent.md);
    None for any other line.
    """
    if line.get("type") == "guard" and line.get("event") == "waiting":
        return line
    detail = line.get("detail")
    return (
        cast("Mapping[str, Any]", detail)
        if line.get("code") == "locked" and isinstance(detail, dict)
        else None
    )


def held_text(holder: Mapping[str, Any], name: str | None = None, *, waits: bool = False) -> str:
    """Say who holds the machine, for how long, and how to end that run. `name`: the target, if the text must
    name it. `waits`: whether this run waits, so that the user need not end the other one.
    """

    def span(member: str) -> str | None:
        value = holder.get(member)
        return format_span(value / NS_PER_S) if isinstance(value, int) else None

    run, label, pid, process, uid = (
        holder.get(member) for member in ("run", "label", "host_pid", "pid", "uid")
    )
    elsewhere = " in another PID namespace" if holder.get("elsewhere") else ""
    number = f" (pid {pid}{elsewhere})" if pid is not None else ""
    if run is not None:
        who = f"run {run}{f', {label}' if label else ''}"
    elif process is not None:
        who = f"process {process} of user {uid}, which does not describe a run"
    else:
        who = "a run that this user may not see"
    there = "there " if name is not None else ""
    if pid is not None and not elsewhere:
        how = f"{there}with: kill -INT {pid}"
    elif run is None and process is not None:
        how = f"{there}with: kill {process}"
    elif process is not None and uid is not None:
        guard = f"its guard {there}(process {process} of user {uid}; its data is then lost)"
        how = f"where it was started (Ctrl-C), or end {guard} with: kill {process}"
    else:
        how = "where it was started (Ctrl-C)"
    silent, left = span("silent_ns"), span("left_ns")
    if silent is not None:
        ends = span("lease_left_ns") if holder.get("lease_left_ns") else None
        lease = (
            f"and its lease ends in {ends}; wait until then, or end the run with"
            if ends is not None
            else "its lease has expired, but its guard is stopped or hangs; end the run with"
        )
        tail = (
            f"its host has been silent for {silent}, {lease}: rtgauge restore "
            f"--release{f' --target {shlex.quote(name)}' if name is not None else ''}"
        )
    else:
        # The time of the planned steps; studies and gates choose later ones from the results.
        more = f"the run will take at least another {left}; " if holder.get("left_ns") else ""
        tail = f"{more}wait until the run has ended, or end it {how}"
        if waits:
            tail = more.removesuffix("; ") or "this run begins when that one has ended"
    return f"{f'{name}: ' if name is not None else ''}this machine is held by {who}{number}; {tail}"


def guard_error(line: Mapping[str, Any], name: str | None = None) -> MeasureError:
    """Return the error for a guard's `error` line (docs/formats/agent.md). `name`: the target in messages."""
    holder = holder_of(line)
    if holder is None:
        return MeasureError(str(line.get("message")), on=name)
    error = LockedError(held_text(holder, name))
    error.on = name
    error.run = str(holder["run"]) if holder.get("run") is not None else None
    return error


def guard_gone(lease_ns: int, name: str | None = None) -> MeasureError:
    """Return the error for a run whose guard has ended. `name`: the target, if the message must name it."""
    restore = f"rtgauge restore{f' --target {shlex.quote(name)}' if name is not None else ''}"
    return MeasureError(
        "the guard of this run has ended, because it was killed or did not hear from rtgauge for "
        f"{format_span(lease_ns / NS_PER_S)} (Ctrl-Z, a suspended machine, a broken connection); the next "
        f"run, or {restore}, restores any setting that remains",
        on=name,
    )


LEASE_NS = 10_000_000_000
RENEW_EVERY_S = 2.5
LOOK_EVERY_S = 1.0
STOP_S = 5.0
"""How long (s) a program may take to stop after its run's guard is gone."""


class LeaseKeeper:
    """Sends `renew` to every registered guard.

    Each word is written to the pipe with one os.write. Such a write is atomic (pipe(7), PIPE_BUF), so no lock
    is needed if a signal handler sends `stop` at the same time.
    """

    def __init__(self) -> None:
        self._pipes: set[int] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="lease", daemon=True).start()

    def add(self, descriptor: int) -> None:
        """Renew the lease of the guard that reads from this pipe."""
        with self._lock:
            self._pipes.add(descriptor)

    def remove(self, descriptor: int) -> None:
        """Stop renewing this lease. The caller may then close the descriptor."""
        with self._lock:
            self._pipes.discard(descriptor)

    def close(self) -> None:
        """End the thread that renews the leases."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            with self._lock:
                for descriptor in self._pipes:
                    with contextlib.suppress(OSError):
                        os.write(descriptor, b"renew\n")


class GuardWatch:
    """Checks whether a run still holds its target, while rtgauge follows one of the run's programs."""

    def __init__(self, check: Callable[[], None], stop: Callable[[], None]) -> None:
        """`check`: the target's method `check`. `stop`: asks the program to stop, which keeps its measured
        data.
        """
        self._check = check
        self._stop = stop
        self._next_s = time.monotonic() + LOOK_EVERY_S
        self._give_up_s: float | None = None

    def look(self) -> None:
        """Check the guard. Call this at least every `LOOK_EVERY_S`.

        If the run no longer holds its target, ask the program to stop, and raise MeasureError if it still
        runs after `STOP_S`. Raises ConnectionBroken if the target cannot be reached.
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
