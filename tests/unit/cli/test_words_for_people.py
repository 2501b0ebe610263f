# SPDX-License-Identifier: MIT
"""Numbers in sentences have the digits that people read."""

from __future__ import annotations

import pytest

from rtgauge.units import format_multiple


@pytest.mark.parametrize(
    ("factor", "text"), [(1.0, "1"), (7.854, "7.85"), (99.96, "100"), (999.4, "999"), (4_923.0, "4,923")]
)
def test_a_factor_has_no_power_of_ten(factor: float, text: str) -> None:
    assert format_multiple(factor) == text
