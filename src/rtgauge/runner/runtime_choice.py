# SPDX-License-Identifier: MIT
"""Which runtime a step with `rt = auto` is measured on: the co-kernel of its target where there is one and
its engine is here, else Linux.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rtgauge.errors import MeasureError
from rtgauge.record.model import COKERNELS, Mark, Severity, StepKey
from rtgauge.system.rt_core import RUNTIMES
from rtgauge.target.engine_path import cokernel_engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rtgauge.runner.context import RunContext

AUTO = "auto"


def choose_runtime(facts: Mapping[str, Any], machine: str) -> tuple[str, str]:
    """linux, cobalt or rtai for a target with these facts whose `uname -m` says `machine`; and why."""
    extension: dict[str, Any] = facts.get("kernel", {}).get("extension", {})
    name = str(extension.get("name"))
    runtime = RUNTIMES.get(name)
    if runtime is None:
        return "linux", "its kernel has no Cobalt and no RTAI"
    modules = extension.get("modules", [])
    if runtime == "rtai" and not (isinstance(modules, list) and "rtai_sched" in cast("list[Any]", modules)):
        return "linux", "RTAI's module rtai_sched is not loaded"
    try:
        cokernel_engine(machine, runtime)
    except MeasureError as error:
        return "linux", f"its kernel has {name}, but {error}"
    return runtime, f"its kernel has {name} {extension.get('version', '')}".rstrip()


def on_chosen_runtime(steps: Sequence[StepKey], context: RunContext) -> tuple[list[StepKey], list[Mark]]:
    """The steps of one target with what `auto` stands for there, and a mark that says so."""
    if all(key.rt != AUTO for key in steps):
        return list(steps), []
    runtime, why = choose_runtime(context.facts, context.target.machine)
    detail = f"rt auto on {context.target.name}: measured on {COKERNELS.get(runtime, 'Linux')}, because {why}"
    chosen = [
        key.model_copy(update={"parameters": {**key.parameters, "rt": runtime}}) if key.rt == AUTO else key
        for key in steps
    ]
    return chosen, [Mark(name="runtime-chosen", severity=Severity.NOTE, detail=detail)]
