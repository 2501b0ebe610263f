# SPDX-License-Identifier: MIT
"""garre2014 as a user runs it, as small as it can be: stopped in the middle, gone on with, and read."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real_time
SET = ("solver=halo", "threads=one,cores", "nodes=400,800,1600", "policy=fifo", "period=1ms")
SMALL = ("--duration", "100ms", "--repeats", "1", *(word for setting in SET for word in ("--set", setting)))


@pytest.fixture(scope="module")
def stopped_and_finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """The steps that were there when it was stopped in its second part, and the finished record."""
    out = tmp_path_factory.mktemp("study")
    log = out / "log"
    process = start("run", "garre2014", "-o", out, *SMALL, log=log)
    try:
        # Each part of the study says how many steps it has: the third has the maps and the search.
        wait_until(
            lambda: log.read_text().count("steps, about") > 1 or process.poll() is not None, "the later parts"
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130, log.read_text()
    (partial,) = out.glob("*.partial")
    before = json.loads((partial / "run.json").read_text())["steps"]
    good(invoke("resume", "garre2014", "-o", out))
    (record,) = out.glob("*garre2014*")
    return before, record


def test_it_goes_on_where_it_was_stopped(stopped_and_finished: tuple[list[str], Path]) -> None:
    before, record = stopped_and_finished
    run = json.loads((record / "run.json").read_text())
    assert run["state"] == "complete"
    assert len(before) >= 5  # all steps of the first part
    assert run["steps"][: len(before) - 1] == before[:-1]  # the one that was cut off is measured again
    assert len(run["steps"]) == len(run["planned"]) > len(before)


def test_it_has_found_a_frontier_and_drawn_the_page(stopped_and_finished: tuple[list[str], Path]) -> None:
    _, record = stopped_and_finished
    page = (record / "report.html").read_text()
    for words in (
        'data-figure="tire-time"',
        'data-figure="tire-map"',
        'data-figure="tire-frontier"',
        "bisection",
    ):
        assert words in page
    shown = good(invoke("show", record, "--details")).stdout
    assert "The real-time frontier" in shown
    rows = [line for line in shown.split("The real-time frontier")[1].splitlines() if line.startswith("halo")]
    assert rows


def test_figures_are_saved_as_files(stopped_and_finished: tuple[list[str], Path], tmp_path: Path) -> None:
    _, record = stopped_and_finished
    good(invoke("show", record, "--page", tmp_path / "page.html", "--figures", tmp_path / "figures"))
    assert {"tire-time.svg", "tire-map.png", "tire-frontier.pdf", "tire-model.svg"} <= {
        file.name for file in (tmp_path / "figures").iterdir()
    }


def test_a_search_by_itself(tmp_path: Path) -> None:
    words = [word for setting in ("solver=halo", "threads=1", "period=1ms") for word in ("--set", setting)]
    searched = invoke(
        "run", "tire-search", "-o", tmp_path, *words, "--duration", "100ms", "--repeats", "1", "--json"
    )
    document: dict[str, Any] = json.loads(good(searched).stdout)
    keys = [key["parameters"] for key in document["run"]["planned"]]
    assert {key["solver"] for key in keys} == {"halo"}
    paced = [key["nodes"] for key in keys if key["period_ns"] == 1_000_000]
    assert len(paced) > 1
    assert all(nodes % 4 == 0 for nodes in paced)


def test_what_a_search_cannot_take_is_refused() -> None:
    assert "leave nodes out" in error_line(invoke("run", "tire-search", "--set", "nodes=400"), 2)
    assert "did you mean 'halo'" in error_line(invoke("run", "garre2014", "--set", "solver=hallo"), 2)
