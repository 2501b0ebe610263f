# SPDX-License-Identifier: MIT
"""Opens the targets of one run: waits for a machine that another run holds, and tells where two names are one machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError, LockedError
from rtgauge.target.factory import open_target

if TYPE_CHECKING:
    from rtgauge.target.target import AtHeld, Target

RETRY_S = 1.0


def _say_nothing(_reason: str) -> None:
    """For who need not know that it waits."""


@dataclass
class TargetOpener:
    """`wait_s`: how long to wait for each machine; `waits`: told once why. `check`: called once with a held machine before that, may raise."""

    wait_s: float = 0.0
    waits: Callable[[str], None] = _say_nothing
    check: AtHeld | None = None
    _opened: list[str] = field(default_factory=list[str])

    def open(self, name: str, run_id: str, label: str, lease_ns: int, session: Any = None) -> Target:
        """As `open_target`. Raises LockedError where the machine is still held when the time is over, InputError where this run holds it by another name."""
        deadline = time.monotonic() + self.wait_s
        told = False
        while True:
            try:
                target = open_target(name, run_id, label, lease_ns=lease_ns, session=session, at_held=None if told else self.check)
            except LockedError as error:
                if error.run == run_id and self._opened:
                    raise InputError(f"{name} and {' or '.join(self._opened)} are the same machine: name it once") from None
                if time.monotonic() >= deadline:
                    hint = "" if told else " (--wait TIME waits for it)"
                    raise LockedError(f"{error}{hint}") from None
                if not told:
                    self.waits(str(error))
                told = True
                time.sleep(min(RETRY_S, max(0.0, deadline - time.monotonic())))
                continue
            self._opened.append(name)
            return target
