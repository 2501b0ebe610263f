# SPDX-License-Identifier: MIT
"""Models a load, and the methods that a load needs from its target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Protocol

from rtgauge.load.processes import ProcessStat
from rtgauge.record.model import LeftOut
from rtgauge.target.file_batch import Files
from rtgauge.target.target_protocol import Completed, ProgramPlace


class Handle(Protocol):
    """A program on a target with all its children, and a guard that ends them all."""

    @property
    def pid(self) -> int:
        """The process id of the guard or program on the target, from which all processes descend."""
        ...

    @property
    def kept(self) -> ProgramPlace | None:
        """The argument for `LoadTarget.attach` in another process; None if the program ends with this one."""
        ...

    def poll(self) -> int | None:
        """Return the exit status; None while the program runs."""
        ...

    def stop(self, grace_s: float) -> int | None:
        """Let the guard end the program with all its children, first by SIGTERM, then by SIGKILL. Return the
        exit status; None if unknown.

        `grace_s`: how long the guard may normally take.
        """
        ...


class LoadTarget(Protocol):
    """The methods of a target that loads use."""

    def start(self, argv: Sequence[str], log: BinaryIO) -> Handle:
        """Start a program with empty standard input. Output and errors go to `log`, a file on the host."""
        ...

    def attach(self, kept: ProgramPlace, log: BinaryIO) -> Handle:
        """Follow a program that an earlier process started. Raises MeasureError if it is gone."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        """Run a short command to its end. The status is not 0 if it cannot start or end in time."""
        ...

    def which(self, program: str) -> str | None:
        """Return the program's path on the target; None if it is missing."""
        ...

    def monotonic_ns(self) -> int:
        """Return the target's CLOCK_MONOTONIC (ns)."""
        ...

    def read(self, paths: Sequence[str]) -> Files:
        """Read files and globs in one batch with the engine's verb `read`."""
        ...


@dataclass(frozen=True)
class PartSpec:
    """One program of a load.

    `wanted`: the amounts that the part is meant to reach. `ready`: (prefix, number) of the processes that
    must run. `settled`: finds out on the target whether they have settled. `lasting`: whether these processes
    live as long as the load, so that a process missing at its end has died. `watch_memory`: whether to
    measure their resident memory. `reached`: parses from the output what the part achieved. `shortfall`:
    returns a note if this (LoadPart.reached) is too little.
    """

    program: str
    argv: list[str]
    wanted: dict[str, Any]
    ready: tuple[str, int]
    settled: Callable[[LoadTarget, Sequence[ProcessStat]], bool] = lambda _target, _processes: True
    lasting: bool = True
    watch_memory: bool = False
    reached: Callable[[str], dict[str, Any]] = lambda _log: {}
    shortfall: Callable[[Mapping[str, Any]], str | None] = lambda _reached: None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadContext:
    """The facts that a load may use to choose its programs. Sizes are in bytes.

    `bound_s`: a safety limit in seconds, after which every program ends itself if all else has failed.
    """

    target: LoadTarget
    cpus: int
    memory_total: int | None
    memory_available: int | None
    bound_s: int
    peer: str | None = None


def stress_ng(context: LoadContext, *options: str) -> list[str]:
    """Return stress-ng's command line with its time limit. Its temporary folder is the target's /tmp."""
    return ["stress-ng", *options, "--temp-path", "/tmp", "--timeout", f"{context.bound_s}s"]  # noqa: S108


class Load(ABC):
    """A kind of interference. A new kind needs a module with a subclass, and a line in the registry."""

    name: ClassVar[str]
    programs: ClassVar[tuple[str, ...]]
    packages: ClassVar[dict[str, str]] = {}
    parameter: ClassVar[str] = ""
    """The name of the constructor's parameter, which follows a colon; empty if there is none."""

    def left_out(self, target: LoadTarget) -> LeftOut | None:
        """Return why the load cannot run on this target and what to do; None if it can.

        By default, a load cannot run if the target lacks a program.
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
        """Return the programs to start, in order.

        Raises InputError or MeasureError if the parameters or the target do not allow it.
        """


@dataclass
class PartState:
    """A started part and its state so far."""

    spec: PartSpec
    handle: Handle
    log: BinaryIO
    ended_early: str | None = None
    pids: list[int] = field(default_factory=list[int])
    cpu_ticks_begin: int | None = None
    cpu_ticks_end: int | None = None
    resident: list[int] = field(default_factory=list[int])
