# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from tests.support.messages import missing

TEXT = "rtgauge: --max-pairs 112 is less than\nthe record's 12.5 us; give more with: rtgauge resume quick-1"


@pytest.mark.parametrize(
    "fact", ["112", "--max-pairs 112", "less than the record's", "12.5 us", "rtgauge resume quick-1"]
)
def test_what_stands_in_the_message_is_not_missing(fact: str) -> None:
    assert missing(TEXT, fact) == []


@pytest.mark.parametrize("fact", ["12", "max", "5 us", "11", "rtgauge resume quick", "--max-pairs 13"])
def test_parts_of_words_and_numbers_are_missing(fact: str) -> None:
    assert missing(TEXT, "112", fact, "12.5 us") == [fact]
