# SPDX-License-Identifier: MIT
"""noise: what it says adds up, and it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.stream import (
    CPUS,
    FIFO,
    adds_up,
    duration_adds_up,
    measured,
    refused,
    shell_runs_meanwhile,
    stop_ends_in_order,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("policy", [FIFO, "other"])
def test_a_duration_is_measured_and_adds_up(engine: Path, policy: str) -> None:
    duration_adds_up(engine, "noise", "gap", policy)


def test_noise_counts_gaps_up_to_the_count(engine: Path) -> None:
    stream = measured(engine, "noise", "--count=20", f"--cpu={CPUS[0]}", "--threshold-ns=1000")
    assert stream.reason == "count"
    assert sum(summary["count"] for summary in stream.all("summary")) >= 20
    adds_up(stream)


@pytest.mark.real_time
@pytest.mark.parametrize(("warm_up", "duration"), [(10, 60), (0, 40), (130, 250)])
def test_noise_observes_what_it_measures(engine: Path, warm_up: int, duration: int) -> None:
    """Gaps and the time in which they could be seen are of the same phase, wherever in a round the phases
    begin and end.
    """
    stream = measured(engine, "noise", f"--warm-up-ns={warm_up * 10**6}", f"--duration-ns={duration * 10**6}")
    for result in stream.all("result"):
        values = result["values"]
        mine = [
            line["series"]
            for line in stream.all("series")
            if line["labels"]["cpu"] == result["labels"]["cpu"]
        ]
        assert values["taken_ns"] == sum(
            line["sum_ns"] for line in stream.all("summary") if line["series"] in mine
        )
        longest = max([line["max_ns"] or 0 for line in stream.all("summary")])
        assert values["taken_ns"] <= values["observed_ns"] <= duration * 10**6 + longest
        assert values["observed_ns"] > 0


def test_a_stop_ends_in_order(engine: Path) -> None:
    stop_ends_in_order(engine, "noise")


@pytest.mark.real_time
def test_an_ordinary_process_runs_with_the_highest_priority(engine: Path) -> None:
    shell_runs_meanwhile(engine, "noise", "--duration-ns=1500000000", "--policy=fifo")


@pytest.mark.real_time
def test_one_cpu_is_enough(engine: Path) -> None:
    """The thread that drains and the measuring one share a CPU."""
    stream = measured(engine, "noise", "--count=20", prefix=["taskset", "-c", str(CPUS[0])])
    assert stream.reason == "count"
    assert stream.one("hello")["cpus"] == [CPUS[0]]
    assert sum(summary["count"] for summary in stream.all("summary")) >= 20


@pytest.mark.parametrize("words", ["--busy-ns=90000000", "--threshold-ns=1", "--duration-ns=1 --count=1"])
def test_wrong_input(engine: Path, words: str) -> None:
    refused(engine, "usage", 2, "noise", *words.split())
