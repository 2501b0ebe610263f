# SPDX-License-Identifier: MIT
"""Opens a run's targets: waits for held machines, and finds two names of one machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError, LockedError
from rtgauge.target.address import LOCAL
from rtgauge.target.factory import open_target
from rtgauge.target.guard_error import held_text

if TYPE_CHECKING:
    from rtgauge.target.target import Target


def _say_nothing(_reason: str) -> None:
    """For who need not know that it waits."""


@dataclass
class TargetOpener:
    """`wait_s`: how long to wait for each machine; `waits`: told why, and again when another run holds it.

    `check`: called once with a held machine before that, may raise."""

    wait_s: float = 0.0
    waits: Callable[[str], None] = _say_nothing
    check: Callable[[Target], None] | None = None
    _opened: list[str] = field(default_factory=list[str])

    def open(self, name: str, run_id: str, label: str, lease_ns: int, session: Any = None) -> Target:
        """As `open_target`.

        Raises LockedError if the machine is still held when the time is over, InputError where this run holds
        it by another name.
        """
        told = False

        def at_held(target: Target, holder: Mapping[str, Any]) -> None:
            nonlocal told
            if holder.get("run") == run_id and self._opened:
                raise InputError(f"{name} and {' or '.join(self._opened)} are the same machine: name it once")
            if not told and self.check is not None:
                self.check(target)
            told = True
            if self.wait_s:
                self.waits(held_text(holder, None if name == LOCAL else name))

        try:
            target = open_target(
                name, run_id, label, lease_ns=lease_ns, session=session, wait_s=self.wait_s, at_held=at_held
            )
        except LockedError as error:
            raise LockedError(str(error) if self.wait_s else f"{error} (--wait TIME waits for it)") from None
        self._opened.append(name)
        return target
