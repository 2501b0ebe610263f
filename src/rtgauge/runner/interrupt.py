# SPDX-License-Identifier: MIT
"""Ctrl-C once: end in order and keep everything. Twice: end now."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from rtgauge.errors import EXIT_INTERRUPTED, RtgaugeError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt:
    """Catches SIGINT, SIGTERM and SIGHUP while it is entered. The second one raises KeyboardInterrupt, which leaves it as an RtgaugeError."""

    def __init__(self, told: Callable[[], object] | None = None) -> None:
        """`told` is called at the first signal, for a word to the user."""
        self.asked = False
        self._told = told
        self._stop: Callable[[], object] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is KeyboardInterrupt:
            raise RtgaugeError("stopped at once", EXIT_INTERRUPTED) from None

    def stop_by(self, stop: Callable[[], object] | None) -> None:
        """What ends the work at hand in order; None: nothing does."""
        self._stop = stop
        if self.asked and stop is not None:
            stop()

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._told is not None:
            # The signal may have come in the middle of another word to the user: then this one is not said.
            with contextlib.suppress(RuntimeError, OSError):
                self._told()
        if self._stop is not None:
            self._stop()
