# SPDX-License-Identifier: MIT
"""Waiting for a machine that another run holds, and two names of one machine."""

from __future__ import annotations

from typing import Any

import pytest

import rtgauge.target.open_target
from rtgauge.errors import InputError, LockedError
from rtgauge.target.guard import guard_error, held_text
from rtgauge.target.open_target import TargetOpener
from tests.support.messages import missing

HOLDER: dict[str, Any] = {
    "lock": "/run/rtgauge/lock",
    "run": "quick-1",
    "label": "rtgauge run",
    "pid": 6,
    "uid": 0,
    "host_pid": 7,
    "silent_ns": None,
    "lease_left_ns": 9 * 10**9,
}
HOLDER |= {"left_ns": None, "elsewhere": False}
NEXT = HOLDER | {"run": "quick-2", "pid": 9, "host_pid": 8, "left_ns": 90 * 10**9}


@pytest.fixture(name="holders")
def a_held_machine(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Who holds the machine, one after the other, before it is free."""
    holders: list[dict[str, Any]] = []

    def open_target(name: str, *_: object, at_held: Any, wait_s: float, **__: object) -> str:
        for holder in holders:
            at_held(name, holder)
            if not wait_s:
                raise guard_error({"type": "error", "code": "locked", "detail": holder})
        return name

    monkeypatch.setattr(rtgauge.target.open_target, "open_target", open_target)
    return holders


def test_without_wait_it_is_refused_at_once_and_says_how_to_wait(holders: list[dict[str, Any]]) -> None:
    holders.append(HOLDER)
    reasons: list[str] = []
    with pytest.raises(
        LockedError,
        match=r"held by run quick-1, rtgauge run \(pid 7\); .*\(give --wait TIME to wait for it\)",
    ):
        TargetOpener(waits=reasons.append).open("local", "mine", "label", 1)
    assert not reasons


def test_each_holder_is_named_with_the_time_it_needs(holders: list[dict[str, Any]]) -> None:
    holders += [HOLDER, NEXT]
    reasons: list[str] = []
    assert TargetOpener(10.0, reasons.append).open("ssh://board", "mine", "label", 1) == "ssh://board"
    first, second = reasons
    assert not missing(first, "ssh://board", "run quick-1", "pid 7")
    assert not missing(second, "ssh://board", "run quick-2", "pid 8", "1 min 30 s")


def test_a_run_longer_than_planned_has_no_time_left() -> None:
    assert "(pid 8); wait" in held_text(NEXT | {"left_ns": 0})


def test_wrong_input_is_refused_before_it_waits(holders: list[dict[str, Any]]) -> None:
    def check(target: object) -> None:
        raise InputError(f"{target} has no CPU 7")

    holders.append(HOLDER)
    reasons: list[str] = []
    with pytest.raises(InputError, match="local has no CPU 7"):
        TargetOpener(60.0, reasons.append, check).open("local", "mine", "label", 1)
    assert not reasons


def test_what_is_right_is_checked_once(holders: list[dict[str, Any]]) -> None:
    holders += [HOLDER, NEXT, HOLDER]
    checked: list[object] = []
    TargetOpener(60.0, check=checked.append).open("local", "mine", "label", 1)
    assert checked == ["local"]


def test_two_names_of_one_machine_are_refused(holders: list[dict[str, Any]]) -> None:
    targets = TargetOpener(60.0)
    targets.open("local", "quick-1", "label", 1)
    holders.append(HOLDER)
    with pytest.raises(InputError, match="ssh://localhost and local"):
        targets.open("ssh://localhost", "quick-1", "label", 1)


@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        (
            {"silent_ns": 42 * 10**9, "lease_left_ns": 80 * 10**9},
            (
                "its host has been silent for 42 s, and its lease ends in 1 min 20 s; wait until "
                "then, or end the run with: "
            ),
        ),
        (
            {"silent_ns": 900 * 10**9, "lease_left_ns": 0},
            "its lease has expired, but its guard is stopped or hangs; end the run with: ",
        ),
    ],
)
def test_a_lost_host_names_the_lease_and_the_ending_command(changed: dict[str, Any], reported: str) -> None:
    assert held_text(HOLDER | changed).endswith(f"{reported}rtgauge restore --release")
    assert held_text(HOLDER | changed, "ssh://board").endswith(
        f"{reported}rtgauge restore --release --target ssh://board"
    )


def test_a_holder_that_this_user_may_not_see() -> None:
    unknown = dict.fromkeys(HOLDER) | {"elsewhere": False}
    assert not missing(held_text(unknown), "this machine is held", "may not see", "wait", "Ctrl-C")
    assert "kill" not in held_text(unknown)
    by_hand = unknown | {"pid": 9, "uid": 1000}
    assert not missing(held_text(by_hand), "this machine is held", "process 9 of user 1000", "wait", "kill 9")
    assert "(pid 7 in another PID namespace)" in held_text(HOLDER | {"elsewhere": True})


def test_the_pid_is_of_the_run_and_not_of_its_guard() -> None:
    """Without its guard, a run loses its lease, and with it what it measured."""
    here = held_text(HOLDER)
    assert not missing(here, "pid 7", "wait", "kill -INT 7")
    from_afar = held_text(HOLDER | {"host_pid": None})
    assert not missing(from_afar, "Ctrl-C", "guard", "process 6 of user 0", "lost", "kill 6")
    assert "kill -INT" not in from_afar
