# SPDX-License-Identifier: MIT
"""A study is found by its name, or the record's; one that is unknown is refused."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides
from rtgauge.study.study_registry import adaptive_study, studies

STUDY = object()


@pytest.fixture(autouse=True)
def single_study(monkeypatch: pytest.MonkeyPatch) -> None:
    known = MappingProxyType({"longest": f"{__name__}:STUDY"})
    monkeypatch.setattr(extension, "registered", lambda kind: known if kind == "studies" else {})


def test_a_study_is_imported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "imported", lambda _: STUDY)
    assert studies() == ["longest"]
    assert adaptive_study("longest", Overrides()).study is STUDY


def test_an_unknown_study_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'longer' is not a study.*did you mean 'longest'"):
        adaptive_study("longer", Overrides())


def test_a_missing_extensions_study_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rtgauge.known_extensions.known", lambda: {"faraway": {"plans": ["orbit"]}})
    with pytest.raises(InputError, match="needs the extension faraway, which is not installed"):
        adaptive_study("orbit", Overrides())
