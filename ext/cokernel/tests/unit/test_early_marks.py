# SPDX-License-Identifier: MIT
"""Latencies below zero show that the timer of a co-kernel is not calibrated."""

from __future__ import annotations

import re

import pytest
from tests.unit.runner.test_marks_of_a_step import series, step

from rtgauge.record.marks import MarkKind
from rtgauge.runner.put_together import _early_marks


@pytest.mark.parametrize(
    ("rt", "p99_ns", "max_ns", "reported"),
    [
        ("rtai", -40_000, -12, "every latency is negative, .* calibrate with rtai-latency"),
        ("cobalt", -3, 200, "nearly every latency is negative, .* with autotune"),
    ],
)
def test_latencies_below_zero_are_marked(rt: str, p99_ns: int, max_ns: int, reported: str) -> None:
    (mark,) = _early_marks(step(rt, series(p99_ns=p99_ns, max_ns=max_ns)))
    assert mark.kind is MarkKind.EARLY
    assert re.search(reported, mark.detail)
