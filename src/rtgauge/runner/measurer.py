# SPDX-License-Identifier: MIT
"""Defines a way to measure a step, and finds each step's way. The ordinary way is one engine on the
target.
"""

from __future__ import annotations

import math
from typing import Protocol

from rtgauge.instrument.address import is_latmon
from rtgauge.probe import registry as probes
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.runner.context import StepContext, StepInProgress, step_files
from rtgauge.runner.engine import STREAM, EngineStream, arm_trial, follow, start_engine
from rtgauge.runner.put_together import Measured, Outcome
from rtgauge.system.rt_core import CLOCK
from rtgauge.target.target import Target
from rtgauge.units import NS_PER_S


class Measurer(Protocol):
    """A way to measure a step: OneEngine, or a module in runner/measurers."""

    arms: bool
    """Whether it arms rtgauge's engine. Arming is timed, and may need kernel modules."""
    goes_on_alone: bool
    """Whether the step continues on its target if the connection breaks."""

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:
        """Return why the target cannot be measured in this way; None if no reason is known before trying."""
        ...

    def try_arm(self, context: StepContext) -> None:
        """Try this way without measuring. Raises InputError or MeasureError if the engine or tool refuses."""
        ...

    def measure(self, step: StepInProgress) -> Outcome:
        """Measure the step; call `step.begin` when the probe is armed.

        Raises InputError or MeasureError if the engine or tool refuses, Abandoned if the user ends the run
        before anything was measured.
        """
        ...


class OneEngine:
    """Measures with one engine on the target."""

    arms = True
    goes_on_alone = True

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:  # noqa: ARG002 - of every measurer
        """Return None: the engine comes with rtgauge."""
        return None

    def try_arm(self, context: StepContext) -> None:
        """Arm and stop the probe. Raises InputError or MeasureError if the engine refuses."""
        arm_trial(context)

    def measure(self, step: StepInProgress) -> Measured:
        """Measure with the engine. If the step was picked up, the engine already runs.

        Raises InputError, MeasureError.
        """
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

        stream = follow(
            program, step, step.folder / STREAM, begin=None if step.picked_up is not None else begin
        )
        stream.check(context.target)
        return Measured(stream.result, stream.table.windows(), (program,), context.target)


ONE_ENGINE = OneEngine()


def measurer_of(key: StepKey) -> Measurer:
    """Return the measurer of a step; import its module unless it is the ordinary one."""
    if key.tool != "rtgauge":
        from rtgauge.runner.measurers import other_tool

        return other_tool
    if key.peer is not None:
        from rtgauge.runner.measurers import two_ends

        return two_ends
    probe = probes.get(key.probe)
    if CLOCK in probe.changes(probe.own(key)):
        from rtgauge.runner.measurers import autotune

        return autotune
    if key.parameters.get("instrument") is not None:
        if is_latmon(str(key.parameters.get("instrument"))):
            from rtgauge.runner.measurers import instrument_latmon

            return instrument_latmon
        from rtgauge.runner.measurers import instrument_serial

        return instrument_serial
    return ONE_ENGINE
