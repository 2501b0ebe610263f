# SPDX-License-Identifier: MIT
"""The ways to measure a step, and which of them measures which step."""

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
    """A way to measure: each is a module of runner/measurers."""

    arms: bool
    """Whether it arms rtgauge's engine, which is timed and may need kernel modules."""
    goes_on_alone: bool
    """Whether the step goes on on its target when the connection to that breaks."""

    def why_not(self, key: StepKey, target: Target) -> LeftOut | None:
        """Why the target cannot be measured like this; None: it can, as far as is known before a try."""
        ...

    def try_arm(self, context: StepContext) -> None:
        """Try what measures, without measuring. Raises InputError or MeasureError for what is refused."""
        ...

    def measure(self, step: StepInProgress) -> Outcome:
        """Measure; `step.begin` is called when the probe is armed.

        Raises InputError or MeasureError for what is refused, Abandoned where the user ends the run before
        anything was measured.
        """
        ...


def measurer_of(key: StepKey) -> Measurer:
    """What measures a step; only that is imported."""
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
