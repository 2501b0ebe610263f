# SPDX-License-Identifier: MIT
"""`rtgauge advise`, `frequency`, the preset brown2010 and the studies of the sustained frequency, on this
machine.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.cli import error_line, good, invoke, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.engine, pytest.mark.root]


@pytest.fixture(scope="module", name="wakeups")
def a_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wakeups")
    good(
        invoke(
            "run",
            "quick",
            "--load",
            "idle,cpu" if shutil.which("stress-ng") else "idle",
            "--duration",
            "1s",
            "--set",
            "warm-up=50ms",
            "--out",
            out,
        )
    )
    return next(out.iterdir())


@pytest.fixture(scope="module", name="brown")
def the_preset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("brown")
    good(
        invoke(
            "run",
            "brown2010",
            "--load",
            "idle,swarm:20",
            "--duration",
            "400ms",
            "--set",
            "warm-up=20ms",
            "--out",
            out,
        )
    )
    return next(out.iterdir())


def advice(*words: object, status: int) -> dict[str, Any]:
    return json.loads(good(invoke("advise", *words, "--json"), status).stdout)


def test_an_easy_requirement_walks_the_chart_with_evidence(wakeups: Path):
    completed = invoke("advise", "--require", "latency<=10s hardness=50%", wakeups, "--json")
    document = json.loads(completed.stdout)
    stages = {stage["way"]: stage for stage in document["walk"] + document["also_measured"]}
    measured = stages.get("user-stock") or stages["user-rt"]
    assert measured["margin"] in {
        "clearly in the black",
        "marginal",
    }  # where a mark makes it doubtful, such as steal
    assert {entry["record"] for entry in measured["evidence"]} == {str(wakeups)}
    assert document["not_measured"]
    assert completed.returncode in {0, 4}


def test_an_impossible_requirement_is_off_the_map(wakeups: Path):
    answer = advice("--require", "latency<=1ns hardness=95%", wakeups, "--chart", "brown2010", status=1)
    assert (answer["use"], answer["walk"][0]["margin"]) == ("dedicated", "off the map")


def test_without_records_it_says_where_to_begin():
    answer = advice("--require", "period=1ms hardness=95%", status=4)
    assert answer["use"] == "user-stock"
    assert answer["next"].startswith("rtgauge run quick")


def test_the_terminal_begins_with_the_answer_and_ends_with_next(wakeups: Path):
    words = ("advise", "--require", "latency<=10s hardness=50%", wakeups)
    text = rtgauge(*words, env={"COLUMNS": "80"}).stdout.splitlines()
    assert text[0].startswith(("Use user space", "Try user space"))
    assert any(line.startswith("next     ") for line in text[-5:])
    assert [line for line in text if len(line) > 80 and str(wakeups.parent) not in line] == []


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["--require", "latency<=1ms hardness=life-safety"], "life-safety is refused"),
        (["--require", "latency<=1ms", "--chart", "brwn2010"], "did you mean 'brown2010'"),
        (["--require", "latency<=1ms", "no-such-record"], "no such folder"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], reported: str):
    assert reported in error_line(invoke("advise", *words), 2)


def test_brown2010_carries_the_tables_and_figures_of_the_paper(brown: Path, tmp_path: Path):
    page = (brown / "report.html").read_text(encoding="utf-8")
    for words in (
        "Response",
        "Periodic: jitter",
        "stays within half a period",
        "both jitter and lateness",
        "12 serial bytes at 115200 baud",
    ):
        assert words in page
    good(invoke("show", brown, "--page", tmp_path / "p.html", "--fraction", "25%"))
    marked = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "1/4 of a period" in marked


def test_frequency_prints_and_writes_the_same_tables(brown: Path, tmp_path: Path):
    text = good(
        invoke("show", "--frequency", brown, "--page", tmp_path / "f.html", "--figures", tmp_path / "figures")
    ).stdout
    assert "Response: highest frequency" in " ".join(text.split())
    document = json.loads(good(invoke("show", "--frequency", brown, "--json")).stdout)
    assert [table["metric"] for table in document["tables"]] == ["response", "jitter", "latency"]
    for table in document["tables"]:
        for line in table["lines"]:
            at95, at100 = line["limits"]
            assert at95["hz"] is None or at95["hz"] == pytest.approx(0.5e9 / at95["ns"])
            assert (at100["ns"] or 10**18) >= at95["ns"]
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {
        "timing-response-log.svg",
        "timing-response-log.png",
        "timing-periodic-jitter-log.pdf",
    } <= names
    assert "How often" in (tmp_path / "f.html").read_text(encoding="utf-8")


def test_compare_goes_quantity_by_quantity(brown: Path, tmp_path: Path):
    completed = good(invoke("compare", brown, "--page", tmp_path / "c.html", "--no-intervals"))
    assert "Response" in completed.stdout
    assert "Periodic: jitter" in completed.stdout
    assert "12 serial bytes" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_advice_on_responses_and_on_jitter(brown: Path):
    for requirement in ("response<=10s hardness=50%", "jitter<=10s hardness=50%"):
        completed = invoke("advise", "--require", requirement, brown, "--json")
        document = json.loads(completed.stdout)
        margins = [
            one["margin"]
            for stage in document["walk"] + document["also_measured"]
            for one in stage["evidence"]
        ]
        assert margins
        assert set(margins) <= {"clearly in the black", "marginal"}
        assert any("only a loop" in missing["what"] for missing in document["not_measured"])


@pytest.mark.parametrize("wrong", [["--fraction", "2"], ["--confidence", "1"]])
def test_wrong_options_of_frequency(brown: Path, wrong: list[str]):
    assert wrong[0] in error_line(invoke("show", "--frequency", brown, *wrong), 2)


def test_the_search_for_the_sustained_frequency(tmp_path: Path):
    words = ("--repeats", "1", "--set", "cycles=20", "--set", "warm-up=1ms", "--out", tmp_path)
    good(invoke("run", "sustained", *words))
    folder = next(tmp_path.iterdir())
    (curve,) = json.loads(good(invoke("show", "--frequency", folder, "--json")).stdout)["sustained"]
    assert len(curve["points"]) >= 9
    assert max(point["period_ns"] for point in curve["points"]) == 10_000_000
    (actual,) = curve["found"]
    assert (
        actual["sustained_ns"] is None
        or actual["failing_ns"] is None
        or actual["sustained_ns"] <= 1.1 * actual["failing_ns"]
    )
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Highest sustained frequency" in page
    assert 'data-figure="sustained"' in page


def test_adam2021_leaves_the_paper_s_tables(tmp_path: Path):
    words = (
        "--repeats",
        "1",
        "--load",
        "idle",
        "--set",
        "cycles=20",
        "--set",
        "count=2000",
        "--set",
        "warm-up=1ms",
        "--out",
        tmp_path,
    )
    good(invoke("run", "adam2021", *words))
    page = (next(tmp_path.iterdir()) / "report.html").read_text(encoding="utf-8")
    for words in (
        "Overall response latency",
        "PREEMPT_RT",
        "variance",
        "Highest sustained frequency",
        "Losses and long delays",
    ):
        assert words in page
