# SPDX-License-Identifier: MIT
"""Records with and without --explain, and of versions that had none, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.analysis.sides import sides_of
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from tests.support.timing import Drawn, Series, record

if TYPE_CHECKING:
    from pathlib import Path


def drawn(**written: object) -> Drawn:
    return Drawn([Series([20_000] * 2_000)], parameters=normalise(PROBES["wakeup"], written, "x").values)


def test_what_is_not_explained_is_as_in_earlier_versions(tmp_path: Path) -> None:
    new = drawn()
    old = Drawn(
        new.series,
        parameters={name: value for name, value in new.parameters.items() if not name.startswith("explain")},
    )
    sides = sides_of([record(tmp_path / "old", [old]), record(tmp_path / "new", [new])])
    assert {side.traits["parameters"] for side in sides} == {"default parameters"}


def test_explained_is_named_and_events_only_if_they_differ(tmp_path: Path) -> None:
    explained = {"explain": True, "explain-above": "100us", "explain-buffer": 64}
    steps = [drawn(), drawn(**explained), drawn(**explained, **{"explain-events": "sched"})]
    sides = sides_of([record(tmp_path / str(number), [step]) for number, step in enumerate(steps)])
    assert [side.traits["parameters"] for side in sides] == [
        "no explain default explain-events",
        "explain default explain-events",
        "explain explain-events sched",
    ]
