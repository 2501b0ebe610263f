# SPDX-License-Identifier: MIT
"""Runs one role's engine in the background, while a thread reads its stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rtgauge.errors import MeasureError
from rtgauge.record.stream import Armed
from rtgauge.runner.engine import SILENCE_S, EngineStream, as_exception
from rtgauge.runner.interrupt import Abandoned, Interrupt
from rtgauge.target.target_protocol import Guarded, Target

LOOK_EVERY_S = 0.1
END_S = 10.0
"""How long an engine may take to stop (s)."""


class BackgroundEngine:
    """One role's engine, which runs in the background while `stream` reads it."""

    def __init__(self, program: Guarded, target: Target, role: str, stream: EngineStream) -> None:
        self.stream = stream
        self.program = program
        self.ended = threading.Event()
        self._target = target
        self._role = role
        self._armed = threading.Event()
        self._failure: Exception | None = None
        self._gone: Callable[[], object] | None = None
        threading.Thread(target=self._listen, name=role, daemon=True).start()

    def _listen(self) -> None:
        try:
            for line in self.stream.lines(self.program):
                if isinstance(line, Armed):
                    self._armed.set()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._failure = error
        self.ended.set()
        if self._gone is not None and self.died:
            self._gone()

    @property
    def died(self) -> bool:
        """Whether a slave ended by itself while it was needed. A master's message over UDP also ends it, with
        the reason `count`.
        """
        return self.ended.is_set() and (
            self.stream.result.end is None or self.stream.result.end.reason != "count"
        )

    def why(self) -> str:
        """Return why the engine ended."""
        result = self.stream.result
        if result.error is not None:
            return str(as_exception(result.error, self._target))
        return str(self._failure) if self._failure is not None else "its engine was stopped"

    def wait_armed(self, interrupt: Interrupt) -> None:
        """Wait until the engine is armed. Raises the engine's error, MeasureError if it is not armed in time,
        or Abandoned if the user ends the run.
        """
        deadline = time.monotonic() + SILENCE_S
        while not self._armed.wait(LOOK_EVERY_S):
            if time.monotonic() > deadline:
                raise MeasureError(
                    f"the engine of the {self._role} was not ready to measure within {SILENCE_S:g} s"
                )
            if interrupt.requested:
                raise Abandoned
            if self.ended.is_set():
                self.check()
                raise MeasureError(
                    f"the engine of the {self._role} ended before it was ready to measure, and reported no "
                    "error; see the end of dmesg there, then measure again"
                )

    def check(self) -> None:
        """Raise the engine's error, or the error that stopped reading its stream."""
        self.stream.check(self._target)
        if self._failure is not None:
            raise self._failure

    def when_it_dies(self, gone: Callable[[], object]) -> None:
        """Call `gone` when the engine dies, or now if it is dead."""
        self._gone = gone
        if self.died:
            gone()

    def end(self) -> None:
        """Stop the engine, and wait for the end of its stream."""
        self.program.send("stop")
        if not self.ended.wait(END_S):
            self.program.stop()
            self.ended.wait(END_S)
