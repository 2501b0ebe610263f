# SPDX-License-Identifier: MIT
"""Waiting for a machine that another run holds, and two names of one machine."""

from __future__ import annotations

from typing import Any

import pytest

from rtgauge.errors import InputError, LockedError
from rtgauge.target import opener
from rtgauge.target.guard_error import guard_error
from rtgauge.target.opener import TargetOpener

HELD = {"type": "error", "code": "locked", "message": "this machine is held by run quick-1 (pid 7)", "run": "quick-1"}


@pytest.fixture(name="machine")
def a_machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How often it still refuses, and what time it is."""
    machine = {"refusals": 0, "now": 0.0}

    def open_target(name: str, *_: object, at_held: Any = None, **__: object) -> str:
        if machine["refusals"]:
            machine["refusals"] -= 1
            if at_held is not None:
                at_held(name)
            raise guard_error(HELD)
        return name

    def sleep(seconds: float) -> None:
        machine["now"] += seconds

    monkeypatch.setattr(opener, "open_target", open_target)
    monkeypatch.setattr(opener.time, "monotonic", lambda: machine["now"])
    monkeypatch.setattr(opener.time, "sleep", sleep)
    return machine


def test_without_wait_it_is_refused_at_once_and_says_how_to_wait(machine: dict[str, Any]) -> None:
    machine["refusals"] = 1
    with pytest.raises(LockedError, match=r"held by run quick-1 \(pid 7\) \(--wait TIME waits for it\)"):
        TargetOpener().open("local", "mine", "label", 1)
    assert machine["now"] == 0


def test_it_waits_and_says_once_why(machine: dict[str, Any]) -> None:
    machine["refusals"] = 3
    reasons: list[str] = []
    assert TargetOpener(10.0, reasons.append).open("local", "mine", "label", 1) == "local"
    assert reasons == [HELD["message"]]
    assert machine["now"] == 3


def test_wrong_input_is_refused_before_it_waits(machine: dict[str, Any]) -> None:
    def check(target: object) -> None:
        raise InputError(f"{target} has no CPU 7")

    machine["refusals"] = 3
    with pytest.raises(InputError, match="local has no CPU 7"):
        TargetOpener(60.0, check=check).open("local", "mine", "label", 1)
    assert machine["now"] == 0


def test_what_is_right_is_checked_once(machine: dict[str, Any]) -> None:
    machine["refusals"] = 3
    checked: list[object] = []
    TargetOpener(60.0, check=checked.append).open("local", "mine", "label", 1)
    assert checked == ["local"]


def test_the_wait_has_an_end(machine: dict[str, Any]) -> None:
    machine["refusals"] = 99
    with pytest.raises(LockedError, match=r"\(pid 7\)$"):
        TargetOpener(2.5).open("local", "mine", "label", 1)
    assert machine["now"] == 2.5


def test_two_names_of_one_machine_are_told(machine: dict[str, Any]) -> None:
    targets = TargetOpener(60.0)
    targets.open("local", "quick-1", "label", 1)
    machine["refusals"] = 1
    with pytest.raises(InputError, match="ssh://localhost and local are the same machine"):
        targets.open("ssh://localhost", "quick-1", "label", 1)
    assert machine["now"] == 0
