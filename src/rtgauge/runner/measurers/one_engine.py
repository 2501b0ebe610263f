# SPDX-License-Identifier: MIT
"""Measures with one engine on the target: the ordinary way."""

from __future__ import annotations

import math

from rtgauge.probe import registry as probes
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.runner.context import StepContext, StepInProgress, step_files
from rtgauge.runner.engine import STREAM, EngineStream, arm_and_stop, follow, start_engine
from rtgauge.runner.put_together import Measured
from rtgauge.target.target import Target
from rtgauge.units import NS_PER_S

arms = True
goes_on_alone = True


def why_not(key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG001 - of every way to measure
    """Return None: the engine comes with rtgauge."""
    return None


def try_arm(context: StepContext) -> None:
    """Arm and stop the probe. Raises InputError or MeasureError if the engine refuses."""
    key = context.key
    probe = probes.get(key.probe)
    # the tracefs instance is created only for the step itself; a co-kernel's engine refuses to trace
    parameters = probe.own(key)
    arm(
        context,
        probe.trial_arguments(parameters) if key.rt == "linux" else probe.arguments(parameters, None),
    )


def arm(context: StepContext, arguments: list[str]) -> None:
    """Arm the engine with these arguments and stop it. Raises as `try_arm` does."""
    arm_and_stop(start_engine(context, arguments), context.target, context.key.probe)


def measure(step: StepInProgress) -> Measured:
    """Measure with the engine; it already runs if the step was picked up. Raises InputError, MeasureError."""
    context = step.context
    files = step_files(step.key, context.target, step.folder)
    probe = probes.get(step.key.probe)
    program = step.picked_up or start_engine(context, probe.arguments(probe.own(step.key), files))

    def begin(armed: EngineStream) -> None:
        expected_ns = step.expected_ns
        armed.table.expect(
            math.inf if expected_ns is None else expected_ns / NS_PER_S * len(armed.result.series)
        )
        step.begin()
        state = step.state(program, files)
        if state is not None:
            context.on.save_step(state)

    stream = follow(program, step, step.folder / STREAM, begin=None if step.picked_up is not None else begin)
    stream.check(context.target)
    return Measured(stream.result, stream.table.windows(), (program,), context.target)
