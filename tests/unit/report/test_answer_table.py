# SPDX-License-Identifier: MIT
"""The rows of a record's answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.model import Mark, Severity, Verdict, VerdictWord
from rtgauge.report.answer_table import SIGNS, Row, judged_table, what_is_missing
from rtgauge.verdict.answer_words import answer_words
from tests.unit import records

STEP, _ = records.step([5_000])  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("judged", "reported"),
    [({}, "only just"), ({"in_doubt": []}, "only just"), ({"in_doubt": ["throttled"]}, "in doubt")],
)
def test_a_row_is_in_doubt_if_its_own_verdict_is(judged: dict[str, Any], reported: str) -> None:
    """A mark on the step may concern another thread, or have changed nothing."""
    mark = Mark(name="throttled", severity=Severity.DOUBTFUL, detail="of another thread")
    step, _ = records.step([5_000], marks=[mark])  # pyright: ignore[reportUnknownMemberType]
    shown = Row("loop", step, step.series[0], "", "", word=VerdictWord.MARGINAL, judged=judged)
    assert what_is_missing(shown, short=False) == reported


@given(st.integers(min_value=1, max_value=10**6), st.data())
def test_the_first_line_and_its_row_have_the_same_number(every: int, data: st.DataObject) -> None:
    certain = data.draw(st.integers(min_value=1, max_value=every))
    counts = {"activations": every, "violations_certain": certain, "violations_possible": certain}
    evidence = {"metric": "latency", "bound_ns": 200_000, "hardness": 0.99, "max_ns": 13_100_000, **counts}
    verdict = Verdict(word=VerdictWord.FAILS, requirement="", reason="", next="", step="s", evidence=evidence)
    shown = Row("network", STEP, STEP.series[0], "", "0", word=verdict.word, judged=evidence)
    table = judged_table([shown], SIGNS, 120)
    late = table.rows[0][[column.title for column in table.columns].index("late")]
    assert answer_words(verdict).startswith(f"{late} later than 200 us, 1 % allowed")
