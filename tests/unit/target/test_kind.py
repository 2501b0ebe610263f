# SPDX-License-Identifier: MIT
"""Targets of a scheme that an extension adds, and what holds if its package cannot be used."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError
from rtgauge.target import kind
from rtgauge.target.address import is_target, parse_address, target_name
from rtgauge.target.kind import TargetKind, forms, guest_kind, kind_of
from rtgauge.target.ssh_address import SshAddress


class Boards(TargetKind):
    """Boards of a farm."""

    form = "farm:BOARD"

    def check(self, name: str, shown: str) -> None:
        if not name.isalnum():
            raise InputError(f"target '{shown}' is not a board")


BOARDS = Boards()


@pytest.fixture(autouse=True)
def farm(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = {"farm": f"{__name__}:BOARDS", "old": "rtgauge_ext.gone:KIND"}
    monkeypatch.setattr(kind, "registered", lambda _: targets)
    actual = {"farm": BOARDS}

    def load(_kind: str, scheme: str, _form: type) -> TargetKind:
        if scheme not in actual:
            raise InputError(f"the package of {scheme} cannot be used")
        return actual[scheme]

    monkeypatch.setattr(kind, "load", load)


def test_the_extension_says_which_names_are_right() -> None:
    assert parse_address("farm:b1") == SshAddress("", scheme="farm", own_name="b1")
    assert target_name("farm:b1") == "farm:b1"
    assert is_target("farm:b1")
    assert not is_target("farmer")
    with pytest.raises(InputError, match="'farm:b/1' is not a board"):
        parse_address("farm:b/1")


def test_an_unknown_target_names_the_forms_that_can_be_used() -> None:
    assert forms() == ["farm:BOARD"]
    with pytest.raises(InputError, match=r"unknown target 'box'; give local, farm:BOARD, or ssh://"):
        parse_address("box")


def test_an_unusable_package_is_named_when_a_target_needs_it() -> None:
    with pytest.raises(InputError, match="the package of old cannot be used"):
        parse_address("old:x")


def test_only_guests_are_booted() -> None:
    assert guest_kind("farm:b1") is None
    assert guest_kind("local") is None
    assert kind_of(None).login(SshAddress("board", "root", 22)) == "ssh -p 22 root@board"
