# SPDX-License-Identifier: MIT
"""The microbenchmarks as a user runs them: one by one, as the paper's plan, and compared."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.cli import error_line, good, invoke, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real_time
LENGTH = ("--count", 50, "--warm-up", "10ms")


def probe(*words: object) -> dict[str, Any]:
    return json.loads(good(invoke("probe", *words, "--json")).stdout)


@pytest.mark.parametrize(
    ("name", "metric"),
    [("noise", "gap"), ("switch", "switch"), ("preempt", "preemption"), ("semaphore", "hand-over")],
)
def test_each_probe_yields_its_metric(name: str, metric: str) -> None:
    document = probe(name, *LENGTH)
    (step,) = document["steps"]
    assert {series["metric"] for series in step["series"]} == {metric}
    assert step["total"]["metric"] == metric
    assert step["total"]["count"] == sum(series["count"] for series in step["series"]) > 0
    assert step["results"]
    assert not [mark for mark in step["marks"] if mark["severity"] == "invalid"]


def test_inversion_is_answered_in_words() -> None:
    completed = good(
        invoke(
            "probe",
            "inversion",
            "--trials",
            1,
            "--section",
            "500us",
            "--limit",
            "20ms",
            env={"COLUMNS": "120"},
        )
    )
    rows = {
        line.split()[0]: line
        for line in completed.stdout.split("Priority inversion")[1].splitlines()
        if line.strip()
    }
    assert "not starved" in rows["pi-mutex"]
    for lock in ("mutex", "semaphore", "futex", "spin"):
        assert "not starved" not in rows[lock]
        assert "starved" in rows[lock]


def test_samples_have_times_and_values(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    document = probe("switch", "--count", 500, "--warm-up", "5ms", "--samples", file)
    with file.open() as text:
        rows = list(csv.DictReader(text))
    measured = [int(row["value_ns"]) for row in rows if row["phase"] == "measure"]
    total = document["steps"][0]["total"]
    assert (len(measured), max(measured), min(measured)) == (500, total["max_ns"], total["min_ns"])
    assert document["steps"][0]["series"][0]["exact_quantiles"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The paper's plan, twice, short."""
    out = tmp_path_factory.mktemp("garre")
    actual: list[Path] = []
    for _ in range(2):
        words = [
            "--duration",
            "400ms",
            "--set",
            "warm-up=10ms",
            "--set",
            "trials=1",
            "--set",
            "limit=20ms",
            "--json",
        ]
        completed = invoke("run", "garre2014-micro", "-o", out, *words)
        document = json.loads(completed.stdout)
        # What disturbs this machine meanwhile may mark a step; what the probes themselves could do wrong may
        # not.
        invalid = {
            mark["name"]
            for step in document["steps"]
            for mark in step["marks"]
            if mark["severity"] == "invalid"
        }
        assert invalid <= {"cpu-lost", "cpu-offline", "steal", "throttled", "clock-changed", "load-died"}, (
            invalid
        )
        good(completed, 3 if invalid else 0)
        assert document["run"]["state"] == "complete"
        actual.append(out / document["run"]["id"])
    return actual


def test_the_plan_has_a_page_with_the_papers_tables(records: list[Path]) -> None:
    run = json.loads((records[0] / "run.json").read_text())
    probes = [key["probe"] for key in run["planned"]]
    assert set(probes) == {"noise", "switch", "preempt", "semaphore", "inversion"}
    # What this machine cannot do, as with one CPU, is named.
    assert len(probes) + len(run["left_out"]) == 12
    page = (records[0] / "report.html").read_text()
    for words in (
        "Worst case (ns)",
        "Average (ns)",
        "task switch",
        "preemption (timer)",
        "semaphore (same-cpu)",
        "Priority inversion",
        "pi-mutex",
    ):
        assert words in page
    shown = good(rtgauge("show", records[0], "--details", env={"COLUMNS": "80"})).stdout
    assert "Cost (ns)" in shown  # 80 columns: a line each, so that no number is cut
    assert "Priority inversion" in shown


def test_compare_makes_the_papers_table_of_any_records(records: list[Path]) -> None:
    shown = good(invoke("compare", *records, env={"COLUMNS": "300"})).stdout
    assert shown.count("Worst case (ns)") == 1
    document = json.loads(good(invoke("compare", *records, "--json")).stdout)
    assert {(system["record"], system["policy"]) for system in document["systems"]} == {
        (str(record), policy) for record in records for policy in ("fifo", "other")
    }
    for system in document["systems"]:
        costs = {cost["operation"]: cost for cost in system["costs"]}
        assert {"task switch", "preemption (timer)", "semaphore (same-cpu)"} <= set(costs)
        assert all(cost["count"] and cost["mean_ns"] <= cost["max_ns"] for cost in costs.values())
    assert {answer["lock"] for answer in document["inversion"]} == {
        "pi-mutex",
        "mutex",
        "ceiling-mutex",
        "semaphore",
        "futex",
        "spin",
    }


def test_compare_draws_each_operation(records: list[Path], tmp_path: Path) -> None:
    page, figures = tmp_path / "c.html", tmp_path / "figures"
    good(invoke("compare", *records, "--page", page, "--figures", figures))
    text = page.read_text()
    for words in (
        "Worst case (ns)",
        "Preemption (timer): exceedance",
        "switch x (us)",
        "preemption x (us)",
    ):
        assert words in text
    assert "latency (us)" not in text
    for name in ("task-switch-exceedances", "preemption-timer-exceedances", "semaphore-same-cpu-exceedances"):
        assert {f.suffix for f in figures.glob(f"{name}.*")} == {".png", ".svg", ".pdf"}


def test_every_figure_names_what_it_shows(records: list[Path]) -> None:
    page = (records[0] / "report.html").read_text()
    for quantity in ("gap", "switch", "preemption", "hand-over"):
        assert f'"{quantity} (us)"' in page
        assert f'"{quantity} x (us)"' in page
    assert '"latency (us)"' not in page
    shown = good(rtgauge("show", records[0], "--details", env={"COLUMNS": "80"})).stdout
    for quantity in ("gap", "switch", "preemption", "hand-over", "wait"):
        assert f"{quantity}, us" in shown


def test_what_noise_took_is_the_sum_of_its_causes(records: list[Path]) -> None:
    document = json.loads(good(invoke("compare", records[0], "--json")).stdout)
    assert document["noise"]
    for answer in document["noise"]:
        assert sum(cause["taken_ns"] for cause in answer["causes"]) == pytest.approx(
            answer["taken_ns"], abs=10
        )
        assert 0 <= answer["taken_ns"] <= answer["observed_ns"]
    assert {effect["what"] for effect in document["happened"]} == {
        "switched",
        "preempted the low task",
        "slept until woken",
    }
    assert all(effect["met"] >= 0 for effect in document["happened"])
    page = (records[0] / "report.html").read_text()
    for words in ("Noise: the time taken from each CPU", "What happened", "slept until woken"):
        assert words in page


def test_records_export(records: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    good(invoke("export", records[0], "-o", file))
    with file.open() as text:
        metrics = {row["metric"] for row in csv.DictReader(text)}
    assert metrics == {"gap", "switch", "preemption", "hand-over", "wait"}


def test_a_key_that_no_step_knows_is_refused() -> None:
    assert "'lokc'" in error_line(invoke("run", "garre2014-micro", "--set", "lokc=spin"), 2)
    assert "give duration or count" in error_line(
        invoke("probe", "switch", "--count", 5, "--duration", "1s"), 2
    )
