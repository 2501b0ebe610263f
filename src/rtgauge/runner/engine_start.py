# SPDX-License-Identifier: MIT
"""Starting the engine that a step is measured by: the ordinary one, or that of a co-kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.record.model import COKERNELS
from rtgauge.system import cobalt
from rtgauge.target.engine_path import cokernel_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import StepKey
    from rtgauge.runner.context import RunContext
    from rtgauge.target.target import Guarded, Target

LOADING = "error while loading shared libraries: "
"""What the dynamic loader of glibc says before the name of what it misses."""
START_S = 30.0


def start_engine(key: StepKey, context: RunContext, arguments: Sequence[str]) -> Guarded:
    """Start a probe (its verb and options) on the step's target, under guard.

    Raises MeasureError where there is no engine for what it runs on.
    """
    target = context.target
    if key.rt == "linux":
        return target.engine(*arguments, group=context.group)
    return target.start(
        [target.put(cokernel_engine(target.machine, key.rt)), *arguments], group=context.group
    )


def check_engine_starts(runtime: str, target: Target) -> None:
    """Raises MeasureError where the engine of a co-kernel is missing here, or cannot be loaded on the target:
    it has libraries of the co-kernel.
    """
    engine = target.put(cokernel_engine(target.machine, runtime))
    done = target.run(["sh", "-c", 'exec "$0" version 2>&1', engine], START_S)
    if done.returncode == 0:
        return
    name = COKERNELS[runtime]
    last = (done.stdout.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    _, loading, missing = last.partition(LOADING)
    if loading and "error" in target.read([cobalt.VERSION])[cobalt.VERSION]:
        raise MeasureError("this kernel has no Xenomai 3 (Cobalt) core: boot one that has, or leave rt out")
    if loading:
        library = missing.partition(":")[0]
        remedy = (
            "install Xenomai's libraries there, in the folder that they were configured for where "
            "rtgauge was installed (docs/cokernels.md)"
        )
        raise MeasureError(f"the engine for {name} needs {library}, which is not on the target: {remedy}")
    raise MeasureError(f"the engine for {name} does not start on the target: {last}")
