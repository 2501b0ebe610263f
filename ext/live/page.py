# SPDX-License-Identifier: MIT
"""Sends the runner's progress to the terminal and to the live page."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.record.model import LeftOut, Step, StepKey
    from rtgauge.record.stream import Frame, SeriesLine, Window
    from rtgauge.record.windows import Windows
    from rtgauge.runner.context import Progress
    from rtgauge_ext.live.live_state import LiveState, Moving, Required


class Both:
    """Passes progress on to the display and the live page."""

    def __init__(self, display: Display, state: LiveState) -> None:
        self._listeners: tuple[Progress, Progress] = (display, state)
        self._state = state

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """Show the steps that will be measured."""
        for listener in self._listeners:
            listener.run_begins(steps, expected_s)

    def left_out(self, what: LeftOut) -> None:
        """Show that a part of the plan cannot be measured."""
        for listener in self._listeners:
            listener.left_out(what)

    def step_begins(self, number: int, key: StepKey) -> None:
        """Show the step that begins."""
        for listener in self._listeners:
            listener.step_begins(number, key)

    def waits(self, reason: str) -> None:
        """Show why the run waits."""
        for listener in self._listeners:
            listener.waits(reason)

    def phase(self, text: str) -> None:
        """Show the step's present activity."""
        for listener in self._listeners:
            listener.phase(text)

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """Show the series that the step measures."""
        for listener in self._listeners:
            listener.series(lines)

    def window(self, window: Window) -> None:
        """Show a measured second of a series."""
        for listener in self._listeners:
            listener.window(window)

    def watched(self) -> bool:
        """Return whether a browser shows the simulation."""
        return self._state.watched()

    def frame(self, frame: Frame) -> None:
        """Show a frame of the simulation."""
        self._state.frame(frame)

    def step_ends(self, step: Step) -> None:
        """Show the result of a step that has ended."""
        for listener in self._listeners:
            listener.step_ends(step)


def _moving(key: StepKey) -> Moving | None:
    """Return the simulation that the step runs; None if it has none.

    A remote target keeps the engine's output in a file, which frames would fill.
    """
    from rtgauge.probe import probe_registry as probes
    from rtgauge.target.address import LOCAL
    from rtgauge_ext.live.live_state import Moving

    motion = probes.get(key.probe).motion
    if motion is None:
        return None
    return Moving(key.probe, motion.message, elsewhere=key.targets.get("self") != LOCAL)


def _views() -> list[str]:
    """Return the scripts of all probes that simulate something."""
    from rtgauge.probe.probe_registry import PROBES

    places = [probe.motion.script.split("/", 1) for probe in PROBES.values() if probe.motion is not None]
    return [resources.files(package).joinpath(file).read_text("utf-8") for package, file in places]


def required_of(text: str | None) -> Required | None:
    """Return the requirement of the run for the page; None without one."""
    from rtgauge.verdict.requirement import parse_requirement
    from rtgauge.verdict.violations import count_violations
    from rtgauge_ext.live.live_state import Required

    if text is None:
        return None
    requirement = parse_requirement(text)

    def late(windows: Windows, bound_ns: int) -> tuple[int, int]:
        counted = count_violations(windows, bound_ns)
        return counted.certain, counted.activations

    bounds_ns = {each.metric: each.bound_ns for each in requirement.each}
    return Required(text, bounds_ns, float(requirement.allowed), late)


@contextmanager
def listening(display: Display, address: str, require: str | None) -> Generator[Progress]:
    """Serve the page, and yield what passes progress on to the display and the page. Raises InputError if the
    address is wrong or in use.
    """
    from rtgauge_ext.live.live_server import LiveServer, parse_address
    from rtgauge_ext.live.live_state import LiveState

    state = LiveState(display.title, _moving, required_of(require))
    with LiveServer(state, parse_address(address), _views()) as server:
        display.print_line(f"live  {server.url}")
        yield Both(display, state)
