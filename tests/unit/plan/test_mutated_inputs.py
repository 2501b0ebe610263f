# SPDX-License-Identifier: MIT
"""Plans in which anything was changed are taken, or refused by an InputError."""

from __future__ import annotations

import time
import tomllib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtgauge.plan.make_plan import Overrides, make_plan, preset_texts
from tests.support.mutated_document import EXAMPLES, check_taken_or_refused, mutated_document

OVERRIDES = Overrides()
PLANS = [tomllib.loads(text) for text in preset_texts().values()]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_plan(data: st.DataObject) -> None:
    written = mutated_document(data.draw(st.sampled_from(PLANS)), data)
    check_taken_or_refused(lambda plan: make_plan(plan, "plan", OVERRIDES), written)


def test_a_large_matrix_is_planned_or_refused_soon() -> None:
    started = time.process_time()
    matrix = {
        "interval": [f"{number}us" for number in range(100, 300)],
        "duration": [f"{number}s" for number in range(1, 21)],
    }
    plan = make_plan({"matrix": {"probe": "wakeup", **matrix}}, "plan", OVERRIDES)
    assert len(plan.steps) == 4_000
    assert time.process_time() - started < 10
