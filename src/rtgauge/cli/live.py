# SPDX-License-Identifier: MIT
"""`--live`: the runner's progress goes to the terminal and to the live page."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.live.live_state import LiveState, Moving
    from rtgauge.record.model import LeftOut, Step, StepKey
    from rtgauge.record.stream import Frame, SeriesLine, Window
    from rtgauge.runner.context import Progress

ADDRESS = re.compile(r"[0-9]+|[^/]*:[^/]*")
"""What may follow --live: no plan has such a name. It is checked where it is read."""
Live = Annotated[
    bool,
    typer.Option(
        "--live", help="Serve a page that shows the measurement as it goes; ADDRESS:PORT may follow."
    ),
]
LiveAt = Annotated[
    str | None,
    typer.Option(
        "--live-at",
        metavar="ADDRESS:PORT",
        help="Like --live, at this address; one that others can reach, e.g. 0.0.0.0:8377, needs a token.",
    ),
]


class Both:
    """Tells the display and the live page."""

    def __init__(self, display: Display, state: LiveState) -> None:
        self._listeners: tuple[Progress, Progress] = (display, state)
        self._state = state

    def run_begins(self, steps: list[StepKey], expected_s: list[float]) -> None:
        """The steps that will be measured."""
        for listener in self._listeners:
            listener.run_begins(steps, expected_s)

    def left_out(self, what: LeftOut) -> None:
        """A part of the plan that cannot be measured here."""
        for listener in self._listeners:
            listener.left_out(what)

    def step_begins(self, number: int, key: StepKey) -> None:
        """A step begins."""
        for listener in self._listeners:
            listener.step_begins(number, key)

    def waits(self, reason: str) -> None:
        """The run has not begun."""
        for listener in self._listeners:
            listener.waits(reason)

    def phase(self, text: str) -> None:
        """What the step does now."""
        for listener in self._listeners:
            listener.phase(text)

    def series(self, lines: Sequence[SeriesLine]) -> None:
        """What the step measures."""
        for listener in self._listeners:
            listener.series(lines)

    def window(self, window: Window) -> None:
        """One second of one series was measured."""
        for listener in self._listeners:
            listener.window(window)

    def watched(self) -> bool:
        """Whether a browser shows what moves."""
        return self._state.watched()

    def frame(self, frame: Frame) -> None:
        """What the step simulates has moved."""
        self._state.frame(frame)

    def step_ends(self, step: Step) -> None:
        """The step is in the record."""
        for listener in self._listeners:
            listener.step_ends(step)


def where_live(*, live: bool, live_at: str | None) -> str | None:
    """The address of both options together; None: there is no live page."""
    return live_at if live_at is not None else "" if live else None


def with_addresses(arguments: Sequence[str]) -> list[str]:
    """The command line with `--live ADDRESS:PORT` as `--live-at`, since an option takes either a value or
    none: `--live quick` is a plan.
    """
    result: list[str] = []
    for argument in arguments:
        if result and result[-1] == "--live" and ADDRESS.fullmatch(argument):
            result[-1] = "--live-at"
        result += (
            ["--live-at", argument.removeprefix("--live=")] if argument.startswith("--live=") else [argument]
        )
    return result


def _moving(key: StepKey) -> Moving | None:
    """What of a step moves.

    A target over SSH keeps what its engine says in a file, which frames would fill.
    """
    from rtgauge.live.live_state import Moving
    from rtgauge.probe import registry as probes
    from rtgauge.target.address import LOCAL

    motion = probes.get(key.probe).motion
    if motion is None:
        return None
    return Moving(key.probe, motion.message, elsewhere=key.targets.get("self") != LOCAL)


def _views() -> list[str]:
    """The scripts of all probes that simulate something."""
    from rtgauge.probe.registry import PROBES

    places = [probe.motion.script.split("/", 1) for probe in PROBES.values() if probe.motion is not None]
    return [resources.files(package).joinpath(file).read_text("utf-8") for package, file in places]


@contextmanager
def listening(display: Display, live_at: str | None) -> Generator[Progress]:
    """What the runner tells its progress to: the display, and with an address (empty: the default one) the
    live page too, while this is entered.

    Raises InputError if the address is wrong or taken.
    """
    if live_at is None:
        yield display
        return
    from rtgauge.live.live_server import LiveServer, parse_address
    from rtgauge.live.live_state import LiveState

    state = LiveState(display.title, _moving)
    with LiveServer(state, parse_address(live_at), _views()) as server:
        display.say(f"live  {server.url}")
        yield Both(display, state)
