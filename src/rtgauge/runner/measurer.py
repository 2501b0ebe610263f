# SPDX-License-Identifier: MIT
"""Defines a way to measure a step, and finds the one for each step."""

from __future__ import annotations

from typing import Protocol

from rtgauge.probe import registry as probes
from rtgauge.record.model import LeftOut, StepKey
from rtgauge.runner.context import StepContext, StepInProgress
from rtgauge.runner.measurers import one_engine
from rtgauge.runner.put_together import Outcome
from rtgauge.system.rt_core import CLOCK
from rtgauge.target.target import Target


class Measurer(Protocol):
    """A way to measure; each is a module in runner/measurers."""

    arms: bool
    """Whether it arms rtgauge's engine, which is timed and may need kernel modules."""
    goes_on_alone: bool
    """Whether the step continues on its target if the connection breaks."""

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:
        """Return why the target cannot be measured this way; None if nothing speaks against it before a
        try.
        """
        ...

    def try_arm(self, context: StepContext) -> None:
        """Try the measurer without measuring. Raises InputError or MeasureError if it refuses."""
        ...

    def measure(self, step: StepInProgress) -> Outcome:
        """Measure; `step.begin` is called when the probe is armed.

        Raises InputError or MeasureError if the measurer refuses, Abandoned if the user ends the run before
        anything was measured.
        """
        ...


def measurer_of(key: StepKey) -> Measurer:
    """Import and return the measurer of a step."""
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
        from rtgauge.runner.measurers import instrument

        return instrument
    return one_engine
