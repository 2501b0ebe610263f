# SPDX-License-Identifier: MIT
"""How much CPU time naming culprits may take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rtgauge_ext.recorder import naming
from rtgauge_ext.recorder.folder import EntrySource
from rtgauge_ext.recorder.naming import FIRST_S, MOST_S, TURN_S, UNKNOWN, Namer

if TYPE_CHECKING:
    import pytest

COST_S = 0.0625
SOURCE = EntrySource(b"boot", b"", b"", b"")


def test_naming_takes_its_share_of_cpu_and_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"cpu": 0.0, "wall": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["wall"])
    monkeypatch.setattr(time, "process_time", lambda: now["cpu"])

    def takes_a_while(*_: object) -> str:
        now["cpu"] += COST_S
        return "irq 31"

    monkeypatch.setattr(naming, "culprit_of", takes_a_while)
    namer = Namer(0.01)

    def turns(number: int) -> float:
        """Name as much as allowed in so many turns; return the CPU time that it took."""
        before = now["cpu"]
        for _ in range(number):
            namer.turn()
            while namer.may():
                assert namer.name(SOURCE, {}) == "irq 31"
        return now["cpu"] - before

    assert TURN_S <= turns(1) <= TURN_S + COST_S, "then the engine's output is read"
    assert FIRST_S - TURN_S - COST_S <= turns(1000) <= FIRST_S - TURN_S + COST_S, "then nothing is left"
    now["wall"] += 300.0
    assert 3 - COST_S <= turns(1000) <= 3 + COST_S, "the share of 300 s"
    now["wall"] += 30_000.0
    assert MOST_S - COST_S <= turns(1000) <= MOST_S + COST_S, "not the share of hours at once"


def test_a_damaged_moment_has_no_culprit() -> None:
    assert naming.culprit_of(SOURCE._replace(formats=b"{"), {}) == UNKNOWN
