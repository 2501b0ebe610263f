# SPDX-License-Identifier: MIT
"""compare and gate answer with one set of words."""

from __future__ import annotations

import pytest

from rtgauge.analysis import change_words
from rtgauge.analysis.comparison_document import ComparisonFinding
from rtgauge.verdict.gate_result import STATUS, GateOutcome
from rtgauge_ext.fleet.fleet import GATE_WORDS

WORDS = {value for name, value in vars(change_words).items() if name.isupper()}


@pytest.mark.parametrize("words", [set(GateOutcome), set(ComparisonFinding), set(GATE_WORDS.values())])
def test_each_answer_is_one_of_the_common_words(words: set[str]) -> None:
    assert words <= WORDS


def test_a_fleet_calls_a_gate_by_the_word_of_its_status() -> None:
    words = {status: {word.value for word, of in STATUS.items() if of == status} for status in GATE_WORDS}
    assert all(GATE_WORDS[status] in words[status] for status in GATE_WORDS)
