# SPDX-License-Identifier: MIT
"""Names with values in a narrow terminal: no word is broken."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rtgauge_ext.audit.audit_terminal import print_pairs

PATH = "/sys/kernel/debug/sched/fair_server/cpu[0-9]*/runtime=0"
WORDS = st.lists(st.text("abc-/=", min_size=1, max_size=70), max_size=12)


def printed(name: str, value: str, width: int) -> str:
    out = io.StringIO()
    print_pairs([(name, value)], Console(file=out, width=width), 8)
    return out.getvalue()


@given(WORDS, st.sampled_from([60, 80, 120]))
def test_no_word_is_broken_and_short_words_fit(words: list[str], width: int) -> None:
    shown = printed("wanted", " ".join(words), width)
    assert shown.split() == ["wanted", *words]
    assert all(len(line) <= width or len(line.split()) == 1 for line in shown.splitlines())


@pytest.mark.parametrize(("width", "first"), [(60, "  wanted"), (80, f"  wanted    off ({PATH})")])
def test_a_value_with_a_word_too_long_begins_below_its_name(width: int, first: str) -> None:
    assert printed("wanted", f"off ({PATH})", width).splitlines()[0].rstrip() == first
