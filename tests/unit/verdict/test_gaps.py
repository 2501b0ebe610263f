# SPDX-License-Identifier: MIT
"""A bound on gaps, for the probe noise; threads without an activation and cut steps."""

from __future__ import annotations

import math

import pytest

from rtgauge.errors import InputError
from rtgauge.record.model import Result, VerdictWord
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from tests.support.messages import missing
from tests.unit.records import step

GAP = parse_requirement("gap<=20us")
HARD = parse_requirement("latency<=200us")


def of_gaps(gaps, *, observed_s=60.0, threshold_ns=1_000):
    recorded, windows = step(gaps, metric="gap", parameters={"threshold_ns": threshold_ns}, interval_ns=None)
    recorded.results = [
        Result(name="noise", labels={"cpu": 0}, values={"observed_ns": int(observed_s * 1e9)})
    ]
    return judge(GAP, recorded, windows)


def test_no_gap_at_all_is_the_best_result():
    verdict = of_gaps([])
    assert verdict.word == VerdictWord.HOLDS
    assert verdict.evidence["per_hour_at_most"] == pytest.approx(-math.log(0.05) * 60)
    assert "at most 180 longer gaps" in verdict.reason


@pytest.mark.parametrize(
    ("gaps", "word"),
    [
        ([5_000] * 100, VerdictWord.HOLDS),
        ([5_000, 17_000], VerdictWord.MARGINAL),
        ([5_000, 21_000], VerdictWord.FAILS),
    ],
)
def test_the_longest_gap_decides(gaps, word):
    assert of_gaps(gaps).word == word


def test_unrecorded_gaps_and_a_short_look_prove_nothing():
    assert of_gaps([], threshold_ns=50_000).word == VerdictWord.CANNOT_TELL
    assert "threshold=20us" in of_gaps([], threshold_ns=50_000).next
    assert of_gaps([], observed_s=2).word == VerdictWord.CANNOT_TELL
    assert of_gaps([90_000], observed_s=2).word == VerdictWord.FAILS


def test_a_share_of_gaps_is_refused():
    with pytest.raises(InputError, match="leave out hardness"):
        parse_requirement("gap<=20us hardness=99%")


def test_a_thread_without_an_activation_never_holds():
    recorded, windows = step([[50_000] * 20_000, []])
    verdict = judge(HARD, recorded, windows)
    assert verdict.word == VerdictWord.CANNOT_TELL
    cause, _, rest = verdict.reason.partition(";")
    assert not missing(cause, "CPU 1", "missing")
    assert not missing(rest, "20,000 activations")
    recorded, windows = step([[500_000] * 20_000, []])
    assert judge(HARD, recorded, windows).word == VerdictWord.FAILS


@pytest.mark.parametrize("reason", ["stopped", "died", "instrument-died"])
def test_a_step_that_was_cut_short_never_holds(reason):
    recorded, windows = step([50_000] * 20_000)
    assert judge(HARD, recorded, windows).word == VerdictWord.HOLDS
    verdict = judge(HARD, recorded.model_copy(update={"end_reason": reason}), windows)
    assert verdict.word == VerdictWord.CANNOT_TELL
    assert "cut short" in verdict.reason
