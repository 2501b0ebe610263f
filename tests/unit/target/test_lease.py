# SPDX-License-Identifier: MIT
"""How long a target goes on without a word from its host: by the length of the steps, so that a short run
that is dead does not keep it for long.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rtgauge.plan.make_plan import Overrides, make_plan
from rtgauge.runner.measure_run import RunOptions, lease_of
from rtgauge.target.guard import LEASE_NS

S, MIN = 10**9, 60 * 10**9


def lease_ns(duration: str, *, kept: bool = True, hold_ns: int | None = None) -> int:
    plan = make_plan(
        {"name": "test", "step": [{"probe": "wakeup", "duration": duration}]}, "test", Overrides()
    )
    return lease_of(plan.steps, 0, RunOptions(Path("out"), ["rtgauge"], kept=kept, hold_ns=hold_ns))


@pytest.mark.parametrize(
    ("duration", "least", "most"),
    [("2s", MIN, 65 * S), ("4min", 8 * MIN, 8 * MIN + 5 * S), ("2h", 135 * MIN, 135 * MIN + 5 * S)],
)
def test_the_lease_is_as_long_as_the_step_and_as_long_again(duration: str, least: int, most: int) -> None:
    assert least <= lease_ns(duration) <= most


def test_a_requested_lease_is_used() -> None:
    assert 5 * S <= lease_ns("2s", hold_ns=3 * S) <= 7 * S


def test_what_cannot_be_resumed_has_the_shortest() -> None:
    assert lease_ns("2h", kept=False) == LEASE_NS
