# SPDX-License-Identifier: MIT
"""What a target can do. Everything that happens on a target goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Protocol, Self

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""A file on every target: another text after each boot."""


MOST_FETCHED = 1 << 30
"""Bytes of files that are brought from a target, if it is not known how many they can have."""


@dataclass(frozen=True)
class Completed:
    """A command that has ended: exit status and what it printed."""

    returncode: int
    stdout: str


FolderName = Annotated[str, Field(pattern=r"^(program|files)-[0-9a-f]{8}$")]
"""A folder in that of a session. A record names no path: what is in it may come from elsewhere."""


class ProgramPlace(TypedDict):
    """Where a program is that outlives the process that started it: the name of its folder in the session's.

    The process id of its guard is in there.
    """

    name: FolderName


class Guarded(Protocol):
    """A program under the engine's guard: it ends, with all its children, when its lease does."""

    @property
    def pid(self) -> int:
        """Process id on the target of the guard; every process of the program descends from it."""
        ...

    @property
    def reconnections(self) -> int:
        """How often the connection to it broke and was made again."""
        ...

    @property
    def kept(self) -> ProgramPlace | None:
        """What `Target.attach` of another process takes; None if it does not outlive this one."""
        ...

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:
        """Standard output, line by line, until it ends.

        `silence_s`: of a program on another machine, how long it may say nothing (None: forever).

        Raises ConnectionBroken if it says nothing for longer.
        """
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
    restored_before: list[dict[str, Any]]
    """What dead runs had left and was put back at the start: lines of the engine's verb `restore`."""

    picked_up: bool
    """It was opened by going on with a session that had outlived its process."""

    @property
    def machine(self) -> str:
        """What `uname -m` says."""
        ...

    @property
    def session(self) -> dict[str, Any] | None:
        """What `open_target` of another process needs to go on from here; None if everything ends with it."""
        ...

    @property
    def controllers(self) -> list[int]:
        """Process ids, on the target, of what controls the measurement."""
        ...

    def read(self, paths: Iterable[str]) -> Mapping[str, dict[str, Any]]:
        """Files and globs in one batch, as the engine's verb `read` answers: path -> {"text": ...} or
        {"error": ...}.
        """
        ...

    def monotonic_ns(self) -> int:
        """The target's CLOCK_MONOTONIC."""
        ...

    def which(self, program: str) -> str | None:
        """Path of a program on the target, None if it is missing."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end; if it cannot start or end in time, its status is not 0."""
        ...

    def start(self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None) -> Guarded:
        """Run a program under guard, in a control group where one is named.

        Its output is read by `lines`, or goes to `log` with its standard error.
        """
        ...

    def engine(self, *arguments: str, group: str | None = None) -> Guarded:
        """Run a verb of the engine under guard, in a control group where one is named."""
        ...

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """`set`, `gather` or `restore` for this run (`restore --stale`: of dead runs): its answers, line by
        line.

        Raises MeasureError if it did nothing.
        """
        ...

    def try_engine(self, *arguments: str) -> bytes:
        """What a verb of the engine prints that ends at once and needs no lock, such as a probe with
        `--check`.

        Raises MeasureError.
        """
        ...

    def attach(self, kept: ProgramPlace, log: BinaryIO | None = None) -> Guarded:
        """Follow a program that another process had started (`Guarded.kept`), from the beginning of its
        output.

        Raises MeasureError.
        """
        ...

    def put(self, file: Path) -> str:
        """Where a file of the host is on the target, under the same name; it goes with the session.

        Raises MeasureError if it cannot be copied.
        """
        ...

    def files_folder(self, folder: Path) -> str:
        """A folder on the target for files that belong into the host's `folder`; `fetch` brings them."""
        ...

    def use_files_folder(self, folder: Path, place: str) -> None:
        """`files_folder(folder)` ended in `place` (a FolderName) in the process that is gone on from."""
        ...

    def fetch(self, folder: Path, most_bytes: int = MOST_FETCHED) -> None:
        """Bring the files that programs wrote into `files_folder(folder)` to the host.

        Raises MeasureError, also if they have more than `most_bytes`.
        """
        ...

    def end_others(self, kept: Sequence[str]) -> None:
        """End what the process before had started, except the programs whose folders are in `kept`."""
        ...

    def expect(self, seconds: float) -> None:
        """Tell those who wait for the target how much longer this run will need, about."""
        ...

    def check(self) -> None:
        """Raises MeasureError if the target is no longer held by this run."""
        ...

    def __enter__(self) -> Self:
        """It was opened by its constructor."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """`close`; but if the connection broke, what outlives it is left to be gone on with."""
        ...

    def close(self) -> None:
        """End what still runs, put this run's settings back, give the target free."""
        ...


AtHeld = Callable[[Target, Mapping[str, Any]], None]
"""Called with a target that another run holds, and with who that is (`held_text`): before it is refused or
waited for, and again when the holder changes.
"""
