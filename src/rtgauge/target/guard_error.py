# SPDX-License-Identifier: MIT
"""The errors for a guard that does not start, mostly since a run holds the machine, or that is gone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, cast

from rtgauge.errors import LockedError, MeasureError
from rtgauge.units import NS_PER_S, format_span

if TYPE_CHECKING:
    from collections.abc import Mapping


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
