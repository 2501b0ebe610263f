# SPDX-License-Identifier: MIT
"""What a target can do. Everything that happens on a target goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Guarded(Protocol):
    """A program that runs on a target under the engine's guard: it ends, with all its children, when its lease does."""

    def lines(self) -> Iterator[bytes]:
        """Standard output, line by line, until it ends."""
        ...

    def say(self, word: str) -> None:
        """Send one line to the program's standard input; a program that has gone is not an error."""
        ...

    def poll(self) -> int | None:
        """Exit status, None while it runs; 128 + N where signal N ended it."""
        ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end; exit status, or None when the time is over."""
        ...

    def end(self) -> int | None:
        """End it in order (then by force) with all its children, and wait. Exit status."""
        ...


class Target(Protocol):
    """A machine that is measured."""

    name: str

    def read(self, paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
        """Files and globs in one batch, as the `read` hand answers: path -> {"text": ...} or {"error": ...}."""
        ...

    def clock_ns(self) -> int:
        """The target's CLOCK_MONOTONIC."""
        ...

    def which(self, program: str) -> str | None:
        """Path of a program on the target, None where it is missing."""
        ...

    def start(self, argv: Sequence[str], *, log: Path | None = None) -> Guarded:
        """Run a program under guard. Its standard output is read by `lines`, or goes to `log` with its standard error."""
        ...

    def engine(self, *arguments: str) -> Guarded:
        """Run a verb of the engine under guard."""
        ...

    def close(self) -> None:
        """End what still runs, put this run's settings back, give the target free."""
        ...
