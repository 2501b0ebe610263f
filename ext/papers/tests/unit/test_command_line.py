# SPDX-License-Identifier: MIT
"""What the command line says about studies, presets and the frequency, before anything is measured."""

from __future__ import annotations

import pytest
from tests.support.command_line import refused, unanswerable

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, load_plan


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["delgado2020"], "delgado2020 is a plan; use rtgauge run delgado2020"),
        (["show", "--frequency", "--confidence", "high"], "--confidence: 'high' is not a number"),
        (["show", "latest", "--frequency", "--confidence", "0.4"], "--confidence 0.4: give at least 0.5"),
        (["show", "latest", "--frequency", "--why"], "exclude each other"),
        (["compare", "latest", "--fraction", "2"], "--fraction 2: give a number above 0"),
    ],
)
def test_wrong_words_lead_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], reported: str
):
    assert reported in refused(monkeypatch, capfd, *words)


@pytest.mark.parametrize(
    ("words", "requirement", "can"),
    [
        (["run", "brown2010"], "irq-latency<=3us", "rtgauge probe wakeup --space kernel --require"),
        (["run", "quick"], "response<=1ms", "rtgauge run brown2010 --require"),
        (["probe", "wakeup"], "jitter<=5us", "rtgauge run brown2010 --require"),
        (["run", "delgado2020"], "response<=1ms", "rtgauge run brown2010 --require"),
    ],
)
def test_an_unanswerable_requirement_names_the_command_that_can(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    requirement: str,
    can: str,
):
    assert can in unanswerable(monkeypatch, capfd, words, requirement)


def test_a_study_is_proposed_like_a_preset() -> None:
    with pytest.raises(InputError, match=r"unknown plan 'delgado2002'.*delgado2020"):
        load_plan("delgado2002", Overrides())
