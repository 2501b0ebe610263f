# SPDX-License-Identifier: MIT
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from rtgauge.record.model import Result
from rtgauge.report.signals import signal_lines


def step(*results: Result) -> Any:
    return cast("Any", SimpleNamespace(results=list(results)))


def test_zeros_are_told_only_where_they_say_something() -> None:
    master = Result(
        name="signal", labels={"role": "master"}, values={"stimuli": 20, "answers": 20, "lost": 0, "skipped": 0, "early-answer": 3, "double-edge": 0}
    )
    parts = Result(name="parts", values={"interrupt": "irq 36", "told_apart": 19, "not_told_apart": 1})
    assert signal_lines(step(master, parts)) == [
        "master: 20 stimuli, 20 answers, 0 lost, 3 before their stimulus",
        "parts, interrupt: irq 36: 19 taken apart, 1 not taken apart",
    ]


def test_other_probes_have_none() -> None:
    assert signal_lines(step(Result(name="inversion", labels={"lock": "mutex"}, values={"answer": "starved", "trials": 3}))) == []
