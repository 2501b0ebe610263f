# SPDX-License-Identifier: MIT
"""Base64 VLQ: the numbers that source maps have, back and forth, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import RecordError
from rtgauge.record.histogram import decode, encode

NUMBERS = st.lists(st.integers(-(2**58), 2**58))


def test_the_numbers_are_those_of_source_maps():
    """From the description of source maps, revision 3: "AAgBC" and "6rk2B" are examples that are in use."""
    assert encode([0, 0, 16, 1]) == "AAgBC"
    assert decode(["AAgBC", "", "6rk2B"])[0].tolist() == [0, 0, 16, 1, 886973]
    assert decode(["AAgBC", "", "6rk2B"])[1].tolist() == [4, 0, 1]


@given(st.lists(NUMBERS))
def test_any_numbers_come_back(rows: list[list[int]]):
    values, numbers = decode([encode(row) for row in rows])
    assert values.tolist() == [value for row in rows for value in row]
    assert numbers.tolist() == [len(row) for row in rows]


@pytest.mark.parametrize(
    "texts", [["A", "g"], ["g", "A"], ["A-"], ["A A"], ["ä"], ["A\n"], ["gggggggggggggA"], ["=="]]
)
def test_what_is_no_number_is_refused(texts: list[str]):
    with pytest.raises(RecordError, match="the bins of a window"):
        decode(texts)
