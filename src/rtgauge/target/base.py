# SPDX-License-Identifier: MIT
"""What a target can do. Everything that happens on a target goes through here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol


@dataclass(frozen=True)
class Completed:
    """A command that has ended: exit status and what it printed."""

    returncode: int
    stdout: str


class Guarded(Protocol):
    """A program that runs on a target under the engine's guard: it ends, with all its children, when its lease does."""

    @property
    def pid(self) -> int:
        """Process id on the target of the guard; every process of the program descends from it."""
        ...

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

    def stop(self, grace_s: float = 2.0) -> int | None:
        """End it with all its children, in order and by force after `grace_s`, and wait. Exit status."""
        ...


class Target(Protocol):
    """A machine that is measured."""

    name: str

    @property
    def controllers(self) -> list[int]:
        """Process ids, on the target, of what controls the measurement."""
        ...

    def read(self, paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
        """Files and globs in one batch, as the `read` hand answers: path -> {"text": ...} or {"error": ...}."""
        ...

    def monotonic_ns(self) -> int:
        """The target's CLOCK_MONOTONIC."""
        ...

    def which(self, program: str) -> str | None:
        """Path of a program on the target, None where it is missing."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end; one that cannot be started or does not end in time has a status other than 0."""
        ...

    def start(self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None) -> Guarded:
        """Run a program under guard, in a control group where one is named. Its output is read by `lines`, or goes to `log` with its standard error."""
        ...

    def engine(self, *arguments: str, group: str | None = None) -> Guarded:
        """Run a verb of the engine under guard, in a control group where one is named."""
        ...

    def hand(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """`set`, `gather` or `restore` for this run (`restore --stale`: of dead runs): its answers, line by line. Raises MeasureError where it did nothing."""
        ...

    def check(self) -> None:
        """Raises MeasureError where the target is no longer held by this run."""
        ...

    def close(self) -> None:
        """End what still runs, put this run's settings back, give the target free."""
        ...
