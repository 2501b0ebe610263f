# SPDX-License-Identifier: MIT
"""A program that its load starts need not run before."""

from __future__ import annotations

from tests.unit.cli.test_wrong_input import Held, steps

from rtgauge.runner.choice import refuse_wrong_input


def test_a_program_that_its_load_starts_need_not_run_yet() -> None:
    refuse_wrong_input(steps(probe="watch", program="no-such-thing", load="stall:fault:0"), Held())
