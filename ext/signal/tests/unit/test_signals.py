# SPDX-License-Identifier: MIT
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.support.messages import missing

from rtgauge.record.model import PeerReport, Result
from rtgauge.report.record_view import example_requirement
from rtgauge_ext.signal.page.signal_path import _counts, signal_lines


def step(*results: Result, peer: PeerReport | None = None, metric: str = "response") -> Any:
    key = SimpleNamespace(targets={"self": "ssh://board"}, probe="response")
    return cast(
        "Any",
        SimpleNamespace(
            results=list(results), peer=peer, instrument=None, key=key, total=SimpleNamespace(metric=metric)
        ),
    )


def test_zero_counts_are_shown_only_if_they_matter() -> None:
    master = Result(
        name="signal",
        labels={"role": "master"},
        values={"stimuli": 20, "answers": 20, "lost": 0, "skipped": 0, "early-answer": 3, "double-edge": 0},
    )
    parts = Result(name="parts", values={"interrupt": "irq 36", "split": 19, "not_split": 1})
    counts, split = signal_lines(step(master, parts))
    assert not missing(counts, "master:", "20 stimuli", "20 answers", "0 lost", "3 before")
    assert not missing(split, "irq 36", "19 split", "1 not split")


def test_other_probes_have_none() -> None:
    assert (
        signal_lines(
            step(
                Result(name="inversion", labels={"lock": "mutex"}, values={"answer": "starved", "trials": 3})
            )
        )
        == []
    )


def test_two_machines_are_distinguished() -> None:
    peer = PeerReport(
        target="local",
        role="master",
        parameters={},
        cpus=[0],
        series=[0],
        clock_offset_ns=-5,
        clock_uncertainty_ns=2,
    )
    (line,) = signal_lines(step(peer=peer))
    assert not missing(line, "slave ran on ssh://board", "load", "deployment", "master ran on local", "clock")


def test_the_example_is_of_what_was_measured() -> None:
    assert "latency<=" in (example_requirement([]) or "")
    assert "response<=" in (example_requirement([step()]) or "")
    assert example_requirement([step(metric="hand-over")]) is None


def test_the_lateness_of_a_master_is_a_time() -> None:
    result = Result(name="counts", labels={}, values={"stimuli": 9, "late-by-max-ns": 33_585_411})
    assert not missing(_counts(result), "9 stimuli", "master", "33.6 ms")
