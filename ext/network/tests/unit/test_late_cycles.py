# SPDX-License-Identifier: MIT
"""Whose late cycles are, against cycles whose parts the test knows."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.support.messages import missing

from rtgauge.explain.analysis.explanation import SELF
from rtgauge.record.histogram import bin_of
from rtgauge.record.model import Result
from rtgauge.record.windows import Windows
from rtgauge.verdict.requirement import parse_requirement
from rtgauge_ext.network.late_cycles import blame, late_cycles

MS = 1_000_000
PARTS = ("wake-up", "send", "wire-and-device", "receive")
Cycle = tuple[float, float, float, float]
GOOD: Cycle = (0.02, 0.01, 0.1, 0.02)


def row(series: int, values: Sequence[int], missed: int = 0) -> dict[str, Any]:
    """A window with these values (ns), as the engine would write it."""
    numbers = np.asarray(values, dtype=np.int64)
    bins, counts = np.unique(bin_of(numbers), return_counts=True)
    return {
        "series": series, "phase": "measure", "index": 0, "start_ns": 0, "end_ns": 10**9,
        "count": len(values), "missed": missed, "min_ns": min(values), "max_ns": max(values),
        "sum_ns": sum(values), "m2_ns2": float(((numbers - numbers.mean()) ** 2).sum()),
        "bins": bins.tolist(), "counts": counts.tolist(), "missed_bins": [], "missed_counts": [],
    }  # fmt: skip


def measured(cycles: Sequence[Cycle], **counts: int) -> tuple[Any, Windows]:
    """A step with these parts (ms) of its cycles, and its windows. `counts`: lost and not_sent."""
    whole = [round(sum(cycle) * MS) for cycle in cycles]
    rows = [row(0, whole, sum(counts.values()))]
    series: list[Any] = [
        SimpleNamespace(metric="response", labels={}, series=0, count=len(whole), max_ns=max(whole))
    ]
    for number, name in enumerate(PARTS, 1):
        values = [round(cycle[number - 1] * MS) for cycle in cycles]
        rows.append(row(number, values))
        labels = {"segment": name}
        part = SimpleNamespace(
            metric="response", labels=labels, series=number, count=len(values), max_ns=max(values)
        )
        series.append(part)
    figures: dict[str, Any] = {name.replace("_", "-"): count for name, count in counts.items()}
    result = Result(name="path", labels={}, values=figures | {"interface": "eth1"})
    return cast("Any", SimpleNamespace(results=[result], series=series)), Windows.of_rows(rows)


def test_every_late_cycle_has_a_side() -> None:
    cycles = [GOOD] * 90 + [(0.02, 0.01, 4.0, 0.02)] * 5 + [(3.0, 0.01, 0.1, 0.02)] * 2
    step, windows = measured([*cycles, (0.5, 0.4, 0.3, 0.1)], lost=4, not_sent=3)
    actual = late_cycles(step, windows, MS)
    assert actual is not None
    outside, own, together = actual.words.split("; ")
    assert not missing(outside, "card, wire or device: 9 of 15", "5 with wire and device", "4 lost")
    assert not missing(own, "this machine", "(self): 5", "3 not sent", "2 with wake-up", "above 1 ms")
    assert not missing(together, "several parts", "1")


def test_a_cycle_that_is_late_on_two_sides_counts_once() -> None:
    step, windows = measured([GOOD] * 90 + [(3.0, 0.01, 4.0, 0.02)] * 8, lost=2)
    found = late_cycles(step, windows, MS)
    assert found is not None
    outside, own = found.words.split("; ")
    assert not missing(outside, "card, wire or device: at most 10 of 10", "8 with wire and device", "2 lost")
    assert not missing(own, "this machine", "(self): at most 8", "8 with wake-up")
    blamed = blame(step, windows, parse_requirement("response<=1ms"))
    assert blamed is not None
    assert blamed.remedy is None, "most of these cycles are late by the machine, too"


def test_two_late_parts_of_one_side_count_no_more_than_all_cycles() -> None:
    step, windows = measured([GOOD] * 90 + [(3.0, 2.0, 0.1, 4.0)] * 8)
    found = late_cycles(step, windows, MS)
    assert found is not None
    assert found.sides == {SELF: 8}
    assert not missing(found.words, "(self):", "at most 8 of 8 late cycles")


def test_nothing_is_late() -> None:
    assert late_cycles(*measured([GOOD] * 10), MS) is None


def test_a_step_without_counts() -> None:
    step, windows = measured([(2.0, 0, 0, 0)])
    step.results = []
    assert late_cycles(step, windows, MS) is None


@pytest.mark.parametrize(
    ("late", "remedy"),
    [
        ((0.02, 0.01, 4.0, 0.02), "rule out the card (rtgauge audit --interface eth1)"),
        ((4.0, 0.01, 0.1, 0.02), None),
        ((0.5, 0.1, 0.5, 0.1), None),
    ],
)
def test_only_what_is_outside_has_a_remedy(late: Cycle, remedy: str | None) -> None:
    step, windows = measured([GOOD] * 9 + [late])
    actual = blame(step, windows, parse_requirement("response<=1ms"))
    assert actual is not None
    assert (actual.remedy or "").startswith(remedy or "")
    assert (actual.remedy is None) == (remedy is None)
    assert actual.time_share == 1


def test_a_requirement_on_another_metric() -> None:
    step, windows = measured([(2.0, 0, 0, 0)])
    assert blame(step, windows, parse_requirement("jitter<=1us")) is None
