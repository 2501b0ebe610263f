# SPDX-License-Identifier: MIT
"""A fleet answers with the words of `rtgauge gate`."""

from __future__ import annotations

from rtgauge.verdict.gate_result import STATUS
from rtgauge_ext.fleet.fleet import GATE_WORDS


def test_a_fleet_calls_a_gate_by_the_word_of_its_status() -> None:
    words = {status: {word.value for word, of in STATUS.items() if of == status} for status in GATE_WORDS}
    assert all(GATE_WORDS[status] in words[status] for status in GATE_WORDS)
