# SPDX-License-Identifier: MIT
"""The fall of the tire in pictures: each a state that the engine wrote at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.record.model import Step
from rtgauge.tire.analysis.runs import is_tire
from rtgauge.tire.state_file import STATE_FILE, read_state

if TYPE_CHECKING:
    from rtgauge.record.reader import Record
    from rtgauge.tire.state_file import TireState

LEAST_FRAMES = 4
MOST_NODES = 2000
STEP_S = 0.01
DIGITS = 4
"""Of a metre: a tenth of a millimetre is far less than a pixel."""
WIDTH = 320
MARGIN = 0.08
"""m around what is drawn."""


@dataclass(frozen=True)
class Drop:
    """Pictures in order.

    `frames`: for each its steps and the nodes' places as x0, y0, x1, y1, ... (m); lowest, highest, left and
    right of all of them (m).
    """

    nodes: int
    solver: str
    frames: list[tuple[int, list[float]]]
    left: float
    right: float
    lowest: float
    highest: float

    @property
    def view(self) -> tuple[float, float, float, float]:
        """The SVG's view: x, y (downwards), width, height (m)."""
        return (
            self.left - MARGIN,
            -self.highest - MARGIN,
            self.right - self.left + 2 * MARGIN,
            self.highest - self.lowest + 2 * MARGIN,
        )

    @property
    def end_s(self) -> float:
        """Simulated time of the last picture."""
        return self.frames[-1][0] * STEP_S

    def as_data(self) -> dict[str, object]:
        """For the page's script."""
        return {"step_s": STEP_S, "frames": [{"steps": steps, "at": at} for steps, at in self.frames]}


def _family(step: Step) -> str:
    """Equal for the pictures of one fall: every parameter but the number of steps."""
    return step.key.id_without("repeat", "steps")


def drop_of(record: Record) -> Drop | None:
    """The fall with the most pictures; None if there are not enough for a film.

    Raises RecordError for a damaged state.
    """
    families: dict[str, dict[int, Step]] = {}
    for step in record.steps:
        steps = step.key.parameters.get("steps")
        if (
            is_tire(step)
            and isinstance(steps, int)
            and step.key.parameters.get("state")
            and record.has(step, STATE_FILE)
        ):
            families.setdefault(_family(step), {})[steps] = step
    most = max(families.values(), key=len, default=dict[int, Step]())
    states: list[tuple[Step, TireState]] = [
        (step, read_state(record.file(step, STATE_FILE))) for _, step in sorted(most.items())
    ]
    drawable = [(step, state) for step, state in states if len(state.nodes) <= MOST_NODES]
    if len(drawable) < LEAST_FRAMES:
        return None
    frames = [
        (state.steps, [round(float(value), DIGITS) for value in state.nodes[:, :2].ravel()])
        for _, state in sorted(drawable, key=lambda pair: pair[1].steps)
    ]
    x, y = [value for _, at in frames for value in at[::2]], [value for _, at in frames for value in at[1::2]]
    first = drawable[0][0]
    return Drop(
        len(frames[0][1]) // 2,
        str(first.key.parameters.get("solver")),
        frames,
        min(x),
        max(x),
        min(0.0, *y),
        max(y),
    )
