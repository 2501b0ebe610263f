# SPDX-License-Identifier: MIT
"""What a run tells while it goes on. The runner calls, a display listens."""

from __future__ import annotations

from typing import Protocol

from rtgauge.record.model import LeftOut, Step, StepKey
from rtgauge.record.stream import Window


class Progress(Protocol):
    """A listener. Times are in seconds."""

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """The steps that will be measured and how long each is expected to take."""
        ...

    def left_out(self, what: LeftOut) -> None:
        """Something that was asked for and cannot be done here."""
        ...

    def step_begins(self, number: int, key: StepKey) -> None:
        """Step `number` (from 0) begins."""
        ...

    def phase(self, text: str) -> None:
        """What the step does now: `load warms up`, `measuring`."""
        ...

    def window(self, window: Window) -> None:
        """One second of one series was measured."""
        ...

    def step_ends(self, step: Step) -> None:
        """The step is in the record."""
        ...


class Silent:
    """Listens to nothing."""

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Nothing."""

    def left_out(self, what: LeftOut) -> None:
        """Nothing."""

    def step_begins(self, number: int, key: StepKey) -> None:
        """Nothing."""

    def phase(self, text: str) -> None:
        """Nothing."""

    def window(self, window: Window) -> None:
        """Nothing."""

    def step_ends(self, step: Step) -> None:
        """Nothing."""
