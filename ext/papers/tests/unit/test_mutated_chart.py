# SPDX-License-Identifier: MIT
"""A flowchart in which anything was changed is taken, or refused by an InputError."""

from __future__ import annotations

import os
import time
from importlib import resources

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.mutated_text import mutated

from rtgauge.errors import InputError
from rtgauge_ext.papers.advise.flowchart_file import parse_flowchart

EXAMPLES = 3_000 if os.environ.get("RTGAUGE_NIGHTLY") else 150
CHART = (resources.files("rtgauge_ext.papers.advise") / "flowchart.toml").read_text(encoding="utf-8")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_chart(data: st.DataObject) -> None:
    text = mutated(CHART, data)
    started = time.process_time()
    try:
        parse_flowchart(text, "chart")
    except InputError as error:
        assert "\n" not in str(error)
    assert time.process_time() - started < 10
