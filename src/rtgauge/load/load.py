# SPDX-License-Identifier: MIT
"""What a load is, and what it needs of the target that it runs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from rtgauge.record.model import LeftOut
from rtgauge.target.target import Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rtgauge.load.processes import ProcessStat
    from rtgauge.target.target import Completed, ProgramPlace


class Handle(Protocol):
    """A program that runs on a target, with everything it starts, under a guard that ends them all."""

    @property
    def pid(self) -> int:
        """Process id on the target of the guard or of the program; every process of the load descends from
        it.
        """
        ...

    @property
    def kept(self) -> ProgramPlace | None:
        """What `LoadTarget.attach` of another process takes; None if it ends with this one."""
        ...

    def poll(self) -> int | None:
        """Exit status, None while it runs."""
        ...

    def stop(self, grace_s: float) -> int | None:
        """SIGTERM to the group, after `grace_s` seconds SIGKILL to every descendant; returns the exit status,
        None if it is not known.
        """
        ...


class LoadTarget(Protocol):
    """What loads ask of a target."""

    def start(self, argv: Sequence[str], log: BinaryIO) -> Handle:
        """Start a program, its standard output and error to `log` (a file of the host), standard input
        empty.
        """
        ...

    def attach(self, kept: ProgramPlace, log: BinaryIO) -> Handle:
        """Follow a program that an earlier process has started. Raises MeasureError."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end; a command that cannot be started or does not end in time has a
        status other than 0.
        """
        ...

    def which(self, program: str) -> str | None:
        """The program's path on the target, None if it has none."""
        ...

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC of the target (ns)."""
        ...

    def read(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Files and globs in one batch: path -> {"text": ...} or {"error": ...} (the `files` of the engine's
        `read`).
        """
        ...


def nothing_more(_log: str) -> dict[str, Any]:
    """For a part whose own output tells nothing that is kept."""
    return {}


def nothing_short(_reached: Mapping[str, Any]) -> str | None:
    """For a part that reaches what it was asked, or whose figures say by themselves that it did not."""
    return None


def no_more_to_wait_for(_target: LoadTarget, _processes: Sequence[ProcessStat]) -> bool:
    """For a part that runs as soon as its processes do."""
    return True


@dataclass(frozen=True)
class PartSpec:
    """One program of a load.

    `ready`: the load runs when the part has at least so many processes whose name begins so.
    `settled`: what else must be so, asked of the target with the part's processes.
    `lasting`: these processes live as long as the load; fewer of them at its end means that some died.
    `reached`: what the part's own output says that it reached. `shortfall`: a note where what it reached
    (LoadPart.reached) is too little.
    """

    program: str
    argv: list[str]
    wanted: dict[str, Any]
    ready: tuple[str, int]
    settled: Callable[[LoadTarget, Sequence[ProcessStat]], bool] = no_more_to_wait_for
    lasting: bool = True
    watch_memory: bool = False
    reached: Callable[[str], dict[str, Any]] = nothing_more
    shortfall: Callable[[Mapping[str, Any]], str | None] = nothing_short
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadContext:
    """What a load may ask before it says what it starts. Sizes in bytes.

    `bound_s` is a safety limit: every program ends by itself after so many seconds, should all else fail.
    """

    target: LoadTarget
    cpus: int
    memory_total: int | None
    memory_available: int | None
    bound_s: int
    peer: str | None = None


class Load(ABC):
    """A kind of interference. A new one is one module with a subclass, and a line in the registry."""

    name: ClassVar[str]
    programs: ClassVar[tuple[str, ...]]
    packages: ClassVar[dict[str, str]] = {}
    parameter: ClassVar[str] = ""
    """What may follow its name and a colon, for a message; empty: nothing. The constructor takes it then."""

    def left_out(self, target: LoadTarget) -> LeftOut | None:
        """Why the load cannot run on this target and what to do, None if it can.

        This one: the target lacks a program.
        """
        missing = [program for program in self.programs if target.which(program) is None]
        if not missing:
            return None
        packages = sorted({self.packages.get(program, program) for program in missing})
        reason = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        return LeftOut(
            what=f"load {self.name}", reason=reason, remedy=f"apt-get install {' '.join(packages)}"
        )

    @abstractmethod
    def parts(self, context: LoadContext) -> list[PartSpec]:
        """The programs to start, in order.

        Raises InputError or MeasureError if the target or the parameters do not allow it.
        """


@dataclass
class PartState:
    """One started part: what it was, and what is known of it so far."""

    spec: PartSpec
    handle: Handle
    log: BinaryIO
    ended_early: str | None = None
    pids: list[int] = field(default_factory=list[int])
    cpu_ticks_begin: int | None = None
    cpu_ticks_end: int | None = None
    resident: list[int] = field(default_factory=list[int])
