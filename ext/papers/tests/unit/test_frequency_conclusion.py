# SPDX-License-Identifier: MIT
"""The sentences with which `frequency` and a search for the sustained frequency begin."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.support.messages import missing

from rtgauge_ext.papers.frequency.frequency import ConditionRow, FrequencyTable, Limit, highest_hz
from rtgauge_ext.papers.frequency.frequency_tables import frequency_sentence, sustained_sentence
from rtgauge_ext.papers.frequency.sustained import RepeatResult, SustainedCurve


def curve(*repeats: tuple[int | None, int | None]) -> SustainedCurve:
    """A search whose repeats found (sustained, failing) periods (us)."""
    actual = [
        RepeatResult(
            repeat=n,
            sustained_ns=None if good is None else good * 1_000,
            failing_ns=None if bad is None else bad * 1_000,
        )
        for n, (good, bad) in enumerate(repeats)
    ]
    periods = [result.sustained_ns for result in actual if result.sustained_ns is not None]
    return SustainedCurve(
        label="response, idle", record="r", probe="response", load="idle", cycles=100, points=[], found=actual,
        sustained_ns=max(periods) if len(periods) == len(actual) else None,
        spread_ns=(min(periods), max(periods)) if periods else None, coverage=0.5,
        loss_at_most=None, no_end=all(result.failing_ns is None for result in actual),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("searched", "sentence"),
    [
        (curve((84, 77)), "response, idle: 11.9 kHz sustained (every 84.0 us); lost cycles at 77.0 us"),
        (
            curve((84, 77), (88, 81), (86, 79)),
            (
                "response, idle: 11.4 kHz sustained (every 88.0 us) in all 3 repeats, 84.0 us to 88.0 "
                "us; lost cycles at 81.0 us"
            ),
        ),
        (
            curve((50, None)),
            (
                "response, idle: at least 20.0 kHz sustained (every 50.0 us); nothing was lost at the "
                "shortest period"
            ),
        ),
        (
            curve((200, 100)),
            (
                "response, idle: 5.00 kHz sustained (every 200 us); lost cycles at 100 us; the search did not finish"
            ),
        ),
        (
            curve((None, 100), (84, 77)),
            (
                "response, idle: cycles were lost at every measured period in 1 of 2 repeats, so the machine "
                "sustains none of these periods"
            ),
        ),
        (
            curve((None, 100)),
            "response, idle: cycles were lost at every measured period, so the machine sustains none of these periods",
        ),
    ],
)
def test_the_answer_of_a_search(searched, sentence):
    assert sustained_sentence(searched) == sentence


def line(label: str, ns95: int, ns100: int | None, samples: int = 20_000) -> ConditionRow:
    limits = [
        Limit(
            hardness=hardness, ns=ns, low_ns=None, high_ns=None, hz=highest_hz(ns), low_hz=0.0, high_hz=None
        )
        for hardness, ns in ((0.95, ns95), (1.0, ns100))
    ]
    return ConditionRow(
        label=label, record="r", steps=[], traits={}, samples=samples, missed=0, median_ns=1, limits=limits,
        interval_ns=None
    )  # fmt: skip


def table(*lines: ConditionRow, title: str = "Wakeup") -> FrequencyTable:
    return FrequencyTable(
        title=title,
        probe="wakeup",
        metric="latency",
        fraction=float(Fraction(1, 2)),
        confidence=0.95,
        lines=list(lines),
    )


def test_the_worst_condition_of_each_quantity_is_named():
    worst = (
        frequency_sentence([table(line("idle", 5_000, 100_000), line("network", 25_000, 3_850_000))]) or ""
    )
    assert not missing(worst, "wakeup", "130 Hz by all 20,000 samples", "20.0 kHz by 95 %", "network")
    assert "idle" not in worst
    none = frequency_sentence([table(line("idle", 5_000, None, samples=9))]) or ""
    assert not missing(none, "wakeup", "no frequency by all 9 samples", "100 kHz by 95 %")
    assert frequency_sentence([]) is None
