# SPDX-License-Identifier: MIT
"""How gains are written."""

from __future__ import annotations

import pytest

from rtgauge_ext.tune.gain import format_gain, format_gains


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (0.0, "+0.0 %"),
        (0.123, "+12.3 %"),
        (-0.25, "-25.0 %"),
        (0.999, "+99.9 %"),
        (1.0, "2.0 times lower"),
        (8.96, "10 times lower"),
        (136.929, "138 times lower"),
        (1_234_566.0, "1,234,567 times lower"),
        (-0.499, "-49.9 %"),
        (-0.5, "2.0 times higher"),
        (-0.99, "100 times higher"),
        (-1.0, "-100.0 %"),
        (float("inf"), "inf times lower"),
    ],
)
def test_from_a_factor_of_two_on_a_gain_is_a_factor(gain: float, text: str) -> None:
    assert format_gain(gain) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.05, 0.123, "+5.0 % to +12.3 %"),
        (0.05, 2.1, "+5.0 % to 3.1 times lower"),
        (1.4, 2.1, "2.4 to 3.1 times lower"),
        (-0.9, -0.6, "10 to 2.5 times higher"),
        (-0.9, 1.4, "10 times higher to 2.4 times lower"),
    ],
)
def test_an_interval_of_factors_has_its_unit_once(low: float, high: float, text: str) -> None:
    assert format_gains(low, high) == text
