# SPDX-License-Identifier: MIT
"""Sends the runner's progress to the terminal and to the live page."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.record.model import StepKey
    from rtgauge.record.windows import Windows
    from rtgauge.runner.context import Progress
    from rtgauge_ext.live.live_state import LiveState, Moving, Required


class Both:
    """Passes each call of `Progress` on to the display and to the live page, which alone shows frames."""

    def __init__(self, display: Display, state: LiveState) -> None:
        self._listeners = (display, state)
        self.watched, self.frame = state.watched, state.frame

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return the method of `Progress` with this name."""
        methods = [getattr(listener, name) for listener in self._listeners]

        def pass_on(*words: object) -> None:
            for method in methods:
                method(*words)

        return pass_on


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
        yield cast("Progress", Both(display, state))
