# SPDX-License-Identifier: MIT
"""Numbers in sentences have the units and the digits that people read, and a mistyped study is proposed."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError
from rtgauge.plan.plan import Overrides, load_plan
from rtgauge.units import format_multiple


@pytest.mark.parametrize(
    ("factor", "text"), [(1.0, "1"), (7.854, "7.85"), (99.96, "100"), (999.4, "999"), (4_923.0, "4,923")]
)
def test_a_factor_has_no_power_of_ten(factor: float, text: str) -> None:
    assert format_multiple(factor) == text


def test_a_study_is_proposed_like_a_preset() -> None:
    with pytest.raises(InputError, match=r"unknown plan 'delgado2002'.*delgado2020"):
        load_plan("delgado2002", Overrides())
