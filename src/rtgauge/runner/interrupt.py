# SPDX-License-Identifier: MIT
"""How Ctrl-C and other signals end a run: after the first one in order, after the second at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from rtgauge.errors import EXIT_INTERRUPTED, RtgaugeError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt:
    """Catches SIGINT, SIGTERM and SIGHUP in its `with` block; under nohup, SIGHUP stays ignored.

    The first signal ends the run in order and keeps all results. The second ends it immediately: it raises
    KeyboardInterrupt, which leaves the block as an RtgaugeError.
    """

    def __init__(self, on_request: Callable[[], object] | None = None) -> None:
        """`on_request` is called at the first signal. It informs the user."""
        self.requested = False
        self._on_request = on_request
        self._stop: Callable[[], object] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is KeyboardInterrupt:
            raise RtgaugeError("stopped at once", EXIT_INTERRUPTED) from None

    def stop_by(self, stop: Callable[[], object] | None) -> None:
        """Call `stop` when a signal comes, or now if it has already come; None: call nothing.

        The caller must wait with poll() or select(), which any signal ends, because polars' handler of Ctrl-C
        restarts a blocking read.
        """
        self._stop = stop
        if self.requested and stop is not None:
            stop()

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if self._on_request is not None:
            # If the signal came while another line was being printed, this line cannot be printed.
            with suppress(RuntimeError, OSError):
                self._on_request()
        if self._stop is not None:
            self._stop()


class Abandoned(Exception):  # noqa: N818 - no error: the user said so
    """The user ended the run before this step measured anything."""


def abandon() -> None:
    """Interrupt long preparations (for `Interrupt.stop_by`). Raises Abandoned."""
    raise Abandoned
