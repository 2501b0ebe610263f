# SPDX-License-Identifier: MIT
"""The options `--for`, `--keep` and `--budget-cpu` of `rtgauge watch`, which record as `rtgauge recorder run`
does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from rtgauge.cli.extension_options import InsteadOfWatching
from rtgauge.errors import InputError

OF_THE_PROGRAM = ("program", "pid", "threads", "cycle", "require")


@dataclass(frozen=True)
class WatchFor(InsteadOfWatching):
    """Records the program instead of measuring it once."""

    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="Record for this long (e.g. 30d), like rtgauge recorder run, which has more options.",
        ),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="With --for: the most that the folder may take. [default: 50MiB]"),
    ] = None
    budget_cpu: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="With --for: share of a CPU that recording may take. [default: 0.5%]"
        ),
    ] = None
    install: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --for: record as a systemd service of this name, as rtgauge recorder install does.",
        ),
    ] = None

    def instead(self, given: Mapping[str, Any]) -> Callable[[], None] | None:
        """Return what records; see InsteadOfWatching."""
        if self.for_ is None:
            if self.keep is not None or self.budget_cpu is not None or self.install is not None:
                raise InputError("--keep, --budget-cpu and --install need --for, such as --for 30d")
            return None
        if self.install is None and given.get("target", "local") != "local":
            raise InputError("on a target, --for needs --install NAME: a service there records on its own")
        known = {*OF_THE_PROGRAM, "target", *(each.name for each in fields(self))}
        for name in given:
            if name not in known:
                raise InputError(
                    f"--for records, so it does not take {_written(name)}; see: rtgauge recorder run --help"
                )
        program = {name: given[name] for name in OF_THE_PROGRAM if name in given}
        if self.install is not None:
            return lambda: self._install(str(self.install), program, str(given.get("target", "local")))
        return lambda: self._record(program)

    def _install(self, name: str, program: Mapping[str, Any], target: str) -> None:
        from rtgauge_ext.recorder.recorder_command import install

        given = {**program, "for": self.for_, "keep": self.keep, "budget_cpu": self.budget_cpu}
        words = [
            f"--{option.replace('_', '-')}={value}" for option, value in given.items() if value is not None
        ]
        install(name, words, target)

    def _record(self, program: Mapping[str, Any]) -> None:
        from rtgauge_ext.recorder.recorder_command import Keep, ProgramOptions, Triggers, record

        usual = Keep()
        keep = Keep(
            for_=self.for_, keep=self.keep or usual.keep, budget_cpu=self.budget_cpu or usual.budget_cpu
        )
        record(ProgramOptions(**program), keep, Triggers())


def _written(name: str) -> str:
    """Return an option of `watch` as it is written."""
    if name == "command":
        return "a command"
    return "--no-explain" if name == "explain" else f"--{name.removesuffix('_ns').replace('_', '-')}"
