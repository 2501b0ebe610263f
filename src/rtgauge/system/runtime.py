# SPDX-License-Identifier: MIT
"""The co-kernels that extensions know: how to find one on a target, what its engine needs there, and its
facts. A step names the co-kernel that schedules its threads with `rt`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from rtgauge import extension
from rtgauge.errors import InputError, MeasureError
from rtgauge.known_extensions import from_where
from rtgauge.record.facts import Facts, RealTimeCore
from rtgauge.record.model import StepKey
from rtgauge.target.engine_path import cokernel_path
from rtgauge.target.file_batch import Files

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target


@dataclass(frozen=True)
class Need:
    """A need of a co-kernel's engine: whether the target meets it, and the remedy if it does not."""

    cokernel: str
    what: str
    met: bool
    remedy: str
    only_for: str | None = None
    """The only feature of rtgauge that has the need, if user-space probes do not have it."""


class ModulesToLoad(NamedTuple):
    """Kernel modules of a co-kernel to load for a step, and the words for the progress."""

    files: Sequence[str]
    """Each as `FILE PARAMETERS`."""
    phase: str


@dataclass(frozen=True, kw_only=True)
class Runtime(ABC):
    """A co-kernel on which an engine of its own measures."""

    name: str
    """The value of `rt`."""
    core: str
    """The real-time core's name in the facts."""
    config: str
    """The co-kernel's own program that says how to build for it. rtgauge's build runs it."""
    kernel_file: str
    """A file that only a kernel with this core has."""
    no_core: str
    """Words for a kernel without this file."""
    missing_library: str
    """The remedy if the target lacks a library that the engine is linked with."""
    early: str
    """How to calibrate the timers if they fire too early."""
    method: str
    """The paragraph on this co-kernel for the page of a record."""
    core_module: str | None = None
    """The kernel module whose loading starts the core; None if the kernel starts it."""
    module_help: str = "docs/kmod.md"
    """Where the user reads how to build the co-kernel's modules."""
    page: str
    """The page on how to install the co-kernel and its engine."""
    fact_paths: Sequence[str] = ()
    """The files that `facts` reads."""
    need_paths: Sequence[str] = ()
    """The files that `needs` reads."""

    def engine(self, machine: str) -> Path:
        """Return the path of the engine for a target with this `uname -m`.

        The engine is linked with the co-kernel's libraries, so the package has it only if rtgauge was built
        on a machine with these libraries. Raises MeasureError if it is missing.
        """
        path = cokernel_path(machine, self.name)
        if not os.access(path, os.X_OK):
            raise MeasureError(
                f"the engine for {self.name} is missing ({path}); install rtgauge again with {self.config} "
                f"in PATH, or set RTGAUGE_ENGINE_{self.name.upper()} ({self.page})"
            )
        return path

    @abstractmethod
    def facts(self, files: Files) -> RealTimeCore | None:
        """Return the core's facts, from the engine's `read` of `fact_paths`; None if it does not run."""

    @abstractmethod
    def needs(self, files: Files) -> list[Need]:
        """Return the engine's needs, from the engine's `read` of `need_paths`."""

    def why_not_chosen(self, core: RealTimeCore, *, loaded: bool) -> str | None:  # noqa: ARG002 - to be overridden
        """Return why `rt auto` does not choose this co-kernel on a target with its core; None if it does.

        `loaded`: whether rtgauge itself loaded `core_module`.
        """
        return None

    def modules(self, key: StepKey, target: Target, facts: Facts) -> ModulesToLoad:  # noqa: ARG002 - to be overridden
        """Return the co-kernel's own modules to load for the step, in this order.

        Raises NoModules if they cannot be loaded, or are loaded already in a way that the step cannot use.
        """
        return ModulesToLoad((), "")

    def step_for_facts(self, steps: Sequence[StepKey]) -> StepKey:
        """Return the step whose modules to load to read the facts. `steps`: those on this co-kernel."""
        return steps[0]


def runtimes() -> list[Runtime]:
    """Return the co-kernels that extensions know."""
    return [runtime_of(name) for name in extension.registered("runtimes")]


def runtime_of(name: str) -> Runtime:
    """Return a co-kernel by its value of `rt`. Raises InputError if no extension knows it."""
    if name not in extension.registered("runtimes"):
        instead = "; install an extension that does, or leave --rt out"
        raise InputError(f"rtgauge cannot measure on {name}{from_where('runtimes', name) or instead}")
    return cast("Runtime", extension.load("runtimes", name, Runtime))


def cokernel_paths() -> list[str]:
    """Return the files that `real_time_core` reads."""
    return [path for runtime in runtimes() for path in runtime.fact_paths]


def real_time_core(files: Files) -> RealTimeCore:
    """Return the target's real-time core. Its `name` is none if there is none, and None if that is unknown:
    if files cannot be read, or if no extension knows a co-kernel.
    """
    known = runtimes()
    cores = (runtime.facts(files) for runtime in known)
    core = next((core for core in cores if core is not None), None)
    if core is not None:
        return core
    # A core may appear in /proc or in sysfs. Only if both are readable can the answer be none.
    readable = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if known and readable else None
    return RealTimeCore(name=name, version=name, cpus=name)
