# SPDX-License-Identifier: MIT
"""Defines the protocol of a target: everything that happens on a target goes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Protocol, Self

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this version before Python 3.12

from rtgauge.target.file_batch import Files

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""A file that every target has, and whose content changes at each boot."""


MOST_FETCHED = 1 << 30
"""The most bytes to fetch from a target if its files' size is unknown."""


@dataclass(frozen=True)
class Completed:
    """The exit status and the output of a command that has ended."""

    returncode: int
    stdout: str


FolderName = Annotated[str, Field(pattern=r"^(program|files)-[0-9a-f]{8}$")]
"""The name of a folder in a session's folder. A record, which anybody may have written, names no path."""


class ProgramPlace(TypedDict):
    """Where to find a program that outlives its process: the name of its folder inside the session's folder.

    That folder has the process id of the program's guard.
    """

    name: FolderName


class Guarded(Protocol):
    """A program under the engine's guard, which ends it with all its children when its lease ends."""

    @property
    def pid(self) -> int:
        """The guard's process id on the target. Every process of the program descends from the guard."""
        ...

    @property
    def reconnections(self) -> int:
        """How often the connection broke and was renewed."""
        ...

    @property
    def kept(self) -> ProgramPlace | None:
        """The argument for `Target.attach` in another process; None if the program ends with this process."""
        ...

    def lines(self, silence_s: float | None = None) -> Iterator[bytes]:
        """Yield standard output, line by line, until it ends.

        `silence_s`: how long the program may print nothing (None: forever). If it is silent for longer,
        raises SilentError on this machine, ConnectionBroken on another.
        """
        ...

    def send(self, word: str) -> None:
        """Send one line to the program's standard input; do nothing if the program has ended."""
        ...

    def poll(self) -> int | None:
        """Return the exit status: None while the program runs, 128 + N if signal N ended it."""
        ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the program to end. Return its exit status, or None after `timeout_s`."""
        ...

    def stop(self, grace_s: float = 2.0) -> int | None:
        """Let the guard end the program with all its children, and wait. Return the exit status; None if it
        cannot be known.

        `grace_s`: how long the guard may normally take.
        """
        ...


class Target(Protocol):
    """A machine that is measured."""

    name: str
    restored_before: list[dict[str, Any]]
    """Settings of dead runs that were restored on opening the target: output lines of the verb `restore`."""

    picked_up: bool
    """Whether this continues a session that outlived its process."""

    @property
    def machine(self) -> str:
        """The output of `uname -m`."""
        ...

    @property
    def session(self) -> dict[str, Any] | None:
        """The argument for `open_target` in another process; None if everything ends with this process."""
        ...

    @property
    def controllers(self) -> list[int]:
        """The process ids, on the target, of the programs that control the measurement."""
        ...

    def read(self, paths: Iterable[str]) -> Files:
        """Read files and globs in one batch with the engine's verb `read`."""
        ...

    def monotonic_ns(self) -> int:
        """Return the target's CLOCK_MONOTONIC in ns."""
        ...

    def which(self, program: str) -> str | None:
        """Return a program's path on the target; None if the program is missing."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end, and return its status and output.

        The status is not 0 if the command cannot start, or does not end within `timeout_s`.
        """
        ...

    def start(self, argv: Sequence[str], log: BinaryIO | None = None, group: str | None = None) -> Guarded:
        """Run a program under a guard, in the control group `group` if given.

        `lines` yields its output; with `log`, the output goes to that file, together with standard error.
        """
        ...

    def engine(self, *arguments: str, group: str | None = None) -> Guarded:
        """Run a verb of the engine under a guard, in the control group `group` if given."""
        ...

    def agent(self, verb: str, *arguments: str) -> list[dict[str, Any]]:
        """Run `set`, `gather` or `restore` for this run (`restore --stale`: for dead runs); return its
        answers by line.

        Raises MeasureError if the verb failed.
        """
        ...

    def try_engine(self, *arguments: str) -> bytes:
        """Return the output of an engine verb that ends immediately and needs no lock, such as a probe with
        `--check`.

        Raises MeasureError if the verb cannot be run.
        """
        ...

    def attach(self, kept: ProgramPlace, log: BinaryIO | None = None) -> Guarded:
        """Follow a program that another process started (`Guarded.kept`), from the beginning of its output.

        Raises MeasureError if the program is gone.
        """
        ...

    def put(self, file: Path) -> str:
        """Copy a file from the host to the target for this session; return its path there. The name stays the
        same.

        Raises MeasureError if copying fails.
        """
        ...

    def files_folder(self, folder: Path) -> str:
        """Return a folder on the target for files that belong in the host's `folder`; `fetch` copies them."""
        ...

    def use_files_folder(self, folder: Path, place: str) -> None:
        """Use the folder that `files_folder(folder)` made for an earlier process. `place`: its FolderName."""
        ...

    def fetch(self, folder: Path, most_bytes: int = MOST_FETCHED) -> None:
        """Move the files that programs wrote into `files_folder(folder)` to the host.

        Raises MeasureError if that fails, or if the files exceed `most_bytes`.
        """
        ...

    def end_others(self, kept: Sequence[str]) -> None:
        """End what the earlier process started, except the programs whose folders are in `kept`."""
        ...

    def expect(self, seconds: float) -> None:
        """Tell waiting runs roughly how much longer this run will need."""
        ...

    def check(self) -> None:
        """Raise MeasureError if this run no longer holds the target."""
        ...

    def __enter__(self) -> Self:
        """Return the target; its constructor has opened it."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the target; but if the connection broke, leave running programs for a later process."""
        ...

    def close(self) -> None:
        """End the programs that still run, restore this run's settings, and release the target."""
        ...


AtHeld = Callable[[Target, Mapping[str, Any]], None]
"""Called with a target that another run holds, and with that run's description (`holder_of`), before this run
is refused or waits. Called again if the holder changes.
"""
