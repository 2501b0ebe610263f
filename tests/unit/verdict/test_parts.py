# SPDX-License-Identifier: MIT
"""The parts of a watched program: each is judged by itself, and the worst decides."""

from __future__ import annotations

from rtgauge.record.model import Verdict, VerdictWord
from rtgauge.verdict.loops import worst_part


def verdict(word: VerdictWord, reason: str) -> Verdict:
    return Verdict(word=word, requirement="part<=100us", reason=reason, next="")


def test_the_worst_part_decides_and_is_named() -> None:
    judged = worst_part(
        [
            ("read", verdict(VerdictWord.HOLDS, "none of 4,000")),
            ("update", verdict(VerdictWord.FAILS, "12 of 4,000")),
            ("write", verdict(VerdictWord.CANNOT_TELL, "too few")),
        ]
    )
    assert (judged.word, judged.reason) == (VerdictWord.FAILS, "part update: 12 of 4,000")


def test_a_part_that_is_unknown_keeps_the_others_from_holding() -> None:
    parts = [
        ("read", verdict(VerdictWord.HOLDS, "none of 4,000")),
        ("write", verdict(VerdictWord.CANNOT_TELL, "too few")),
    ]
    assert worst_part(parts).reason == "part write: too few"
