# SPDX-License-Identifier: MIT
"""A recorder dies at each of its writes: nothing that was kept is lost."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ext.recorder.tests.driven import (
    MIB,
    SECOND,
    DrivenClock,
    begin,
    figures_of,
    folder_of,
    moment,
    recording_of,
    window,
)
from rtgauge_ext.recorder.entries import SessionEnd
from rtgauge_ext.recorder.folder import RecorderFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

ROUNDS, PER_ROUND = 9, 10
CALLS = ("write", "fsync", "fdatasync", "rename", "unlink", "ftruncate")


class Died(BaseException):
    """Nothing catches it, as nothing survives a power cut."""


@dataclass
class Death:
    """The process dies at its call number `at`. A write leaves half of its bytes; what follows does nothing."""

    at: int
    calls: int = 0
    seen: Counter[str] = field(default_factory=Counter[str])

    def patch(self, patched: pytest.MonkeyPatch) -> None:
        for name in CALLS:
            patched.setattr(os, name, self._dying(name, getattr(os, name)))

    def _dying(self, name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self.seen[name] += 1
            if self.calls == self.at and name == "write":
                usual(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if self.calls >= self.at:
                raise Died
            return None if name.endswith("sync") else usual(*arguments, **options)

        return call


@dataclass
class Kept:
    """What the recorder had written down before it died, and what it was writing."""

    rounds: int = 0
    moments: dict[int, int] = field(default_factory=dict[int, int])
    new: int = 0


def record(path: Path, kept: Kept) -> None:
    """Record rounds of 10 minutes, with a folded hour, and moments that push out smaller ones."""
    clock = DrivenClock()
    folder = folder_of(path, keep=2 * MIB)
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    for number in range(1, ROUNDS + 1):
        clock.pass_ns(600 * SECOND)
        taker.take(window(clock, 600 * SECOND, figures_of(np.full(PER_ROUND, 5_000))))
        kept.moments = {each.number: each.latency_ns for each in folder.keeping.moments.values()}
        kept.new = 10_000 + number
        taker.take(moment(clock, "cause", kept.new, size=240_000))
        kept.moments = {each.number: each.latency_ns for each in folder.keeping.moments.values()}
        kept.new = 0
        recording.tick("watched")
        kept.rounds = number
    folder.add_end(SessionEnd(source=taker.source, results=[], marks=[], symbols={}))


def check(path: Path, kept: Kept) -> None:
    """Reopen the folder as the next recorder does: it has all that was kept, and goes on."""
    again = folder_of(path, keep=2 * MIB)
    stretches = [*again.stretches, *again.minutes]
    rounds = sum(each.count for stretch in stretches for each in stretch.figures) // PER_ROUND
    assert kept.rounds <= rounds <= kept.rounds + 1
    actual = {each.number: each.latency_ns for each in again.keeping.moments.values()}
    assert kept.moments.items() <= actual.items() or kept.new in actual.values()
    assert set(actual.values()) - {kept.new} <= set(kept.moments.values())
    assert again.damaged <= 1 and again.bytes <= 2 * MIB
    clock = DrivenClock()
    recording = recording_of(again, clock)
    clock.pass_ns(61 * SECOND)
    recording.tick("watched")
    again.close()
    assert RecorderFolder.open(path).damaged == 0


def test_a_death_at_any_call_loses_nothing_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 0
    while True:
        at += 1
        kept, death, path = Kept(), Death(at), tmp_path / str(at)
        try:
            with monkeypatch.context() as patched:
                death.patch(patched)
                record(path, kept)
        except Died:
            if (path / "recorder.json").exists():
                check(shutil.copytree(path, tmp_path / "next"), kept)  # this process still holds the first
                shutil.rmtree(tmp_path / "next")
            continue
        break
    assert kept.rounds == ROUNDS and len(kept.moments) < ROUNDS, "small moments were pushed out"
    assert at > 50 and all(death.seen[name] for name in CALLS)
