# SPDX-License-Identifier: MIT
"""What can be found wrong with a plan while another run holds the machine: the engine checks it, and measures
nothing.
"""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, make_plan
from rtgauge.record.model import StepKey
from rtgauge.runner.choice import refuse_wrong_input
from rtgauge.target.engine_path import engine_path
from rtgauge.target.local import read_local


class Held:
    """A machine that another run holds: files can be read, and the engine asked."""

    name = "local"
    read = staticmethod(read_local)

    def __init__(self, answer: bytes | None = None) -> None:
        self._answer = answer

    def try_engine(self, *arguments: str) -> bytes:
        if self._answer is not None:
            return self._answer
        return subprocess.run(
            [engine_path(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
        ).stdout


def steps(**keys: Any) -> list[StepKey]:
    return make_plan({"name": "test", "step": [keys]}, "test", Overrides()).steps


@pytest.mark.parametrize(
    ("keys", "reported"),
    [
        ({"probe": "wakeup", "cpu": "8191"}, "there is no CPU 8191"),
        ({"probe": "noise", "cpu": "8191"}, "there is no CPU 8191"),
        ({"probe": "wakeup", "interval": "500ns"}, "shorter than a wake-up"),
        ({"probe": "watch", "pid": 4194303}, "there is no process"),
        ({"probe": "watch", "program": "no-such-thing"}, "did not find a program named no-such-thing"),
    ],
)
def test_wrong_input_is_refused_without_the_machine(keys: dict[str, Any], reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        refuse_wrong_input(steps(**keys), Held())


@pytest.mark.parametrize(
    "keys",
    [
        {"probe": "wakeup"},
        {"probe": "calibrate"},
    ],
)
def test_what_may_be_right_is_not(keys: dict[str, Any]) -> None:
    refuse_wrong_input(steps(**keys), Held())


def test_a_program_that_is_started_later_need_not_run_yet() -> None:
    refuse_wrong_input(steps(probe="watch", program="no-such-thing"), Held(), program_comes=True)


def test_what_the_other_run_has_set_is_no_wrong_input() -> None:
    offline = b'{"type":"error","code":"cpu-offline","message":"CPU 1 is offline","detail":{},"status":2}\n'
    refuse_wrong_input(steps(probe="wakeup", cpu="1"), Held(offline))
