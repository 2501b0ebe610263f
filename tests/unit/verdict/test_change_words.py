# SPDX-License-Identifier: MIT
"""compare and gate answer with one set of words."""

from __future__ import annotations

import pytest

from rtgauge.analysis import change_words
from rtgauge.analysis.comparison_document import ComparisonFinding
from rtgauge.verdict.gate_result import GateOutcome

WORDS = {value for name, value in vars(change_words).items() if name.isupper()}


@pytest.mark.parametrize("words", [set(GateOutcome), set(ComparisonFinding)])
def test_each_answer_is_one_of_the_common_words(words: set[str]) -> None:
    assert words <= WORDS
