# SPDX-License-Identifier: MIT
"""Starting the engine that a step is measured by: the ordinary one, or that of a co-kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.target.engine_path import cokernel_engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import StepKey
    from rtgauge.runner.context import RunContext
    from rtgauge.target.target import Guarded


def start_engine(key: StepKey, context: RunContext, arguments: Sequence[str]) -> Guarded:
    """Start a probe (its verb and options) on the step's target, under guard. Raises MeasureError where there is no engine for what it runs on."""
    target = context.target
    if key.rt == "linux":
        return target.engine(*arguments, group=context.group)
    return target.start([target.put(cokernel_engine(target.machine, key.rt)), *arguments], group=context.group)
