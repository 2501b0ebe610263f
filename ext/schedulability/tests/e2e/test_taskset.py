# SPDX-License-Identifier: MIT
"""`rtgauge probe taskset`, and the paper's experiment as a plan, as a user runs them."""

from __future__ import annotations

import json

import pytest
from tests.support.cli import error_line, good, invoke

SET = """
[[task]]
name = "high"
period = "10ms"
execution = "1ms"
[[task]]
name = "low"
period = "20ms"
execution = "4ms"
"""
OVERLOAD = '[[task]]\nname = "a"\nperiod = "10ms"\nexecution = "9800us"\n'


@pytest.fixture(name="file")
def a_file(tmp_path):
    def write(text):
        path = tmp_path / "set.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.root
def test_a_probe_of_a_file(file):
    completed = good(
        invoke(
            "probe",
            "taskset",
            file(SET),
            "--duration",
            "400ms",
            "--warm-up",
            "100ms",
            "--details",
            env={"PYTHONUTF8": "1", "COLUMNS": "140"},
        )
    )
    for text in (
        "high",
        "low",
        "R calc.",
        "release latency",
        "CPU 0, measured",
        "The busy loops counted wall time",
    ):
        assert text in completed.stdout, (text, completed.stdout)


@pytest.mark.root
def test_json_has_the_counts_and_the_segments(file):
    completed = good(
        invoke(
            "probe",
            "taskset",
            file(SET),
            "--duration",
            "400ms",
            "--warm-up",
            "100ms",
            "--execution",
            "cpu",
            "--json",
        )
    )
    (step,) = json.loads(completed.stdout)["steps"]
    assert [(task["task"], task["activations"]) for task in step["tasks"]] == [("high", 40), ("low", 20)]
    assert {(segment["task"], segment["activation"]) for segment in step["segments"]} == {
        ("high", n) for n in range(1, 5)
    } | {("low", 1), ("low", 2)}
    assert step["parameters"]["execution"] == "cpu"
    assert step["clock"]["busy_loop"][0]["task"] == "high"


@pytest.mark.root
def test_the_papers_experiment(tmp_path):
    finished = good(
        invoke(
            "run",
            "delgado2020-tasks",
            "--duration",
            "400ms",
            "--load",
            "idle,cpu",
            "--set",
            "warm-up=100ms",
            "-o",
            tmp_path,
        )
    )
    assert "τ3" in finished.stdout
    assert "29 ms" in finished.stdout
    (record,) = tmp_path.iterdir()
    page = (record / "report.html").read_text(encoding="utf-8")
    for text in (
        "table 6",
        "table 7 (idle)",
        "table 8 (loaded)",
        "timeline-01-taskset-idle",
        "timeline-02-taskset-cpu",
    ):
        assert text in page, text
    shown = good(invoke("show", record, "--details"))
    assert "τ1" in shown.stdout
    assert shown.stdout.index("CPU 0, measured") < shown.stdout.index("calculated without jitter")
    comparison, figures = tmp_path / "c.html", tmp_path / "figures"
    compared = good(
        invoke(
            "compare",
            record,
            "--json",
            "--no-intervals",
            "--no-tails",
            "--page",
            comparison,
            "--figures",
            figures,
        )
    )
    documents = json.loads(compared.stdout)
    assert [(document["task"], document["quantity"]) for document in documents] == [
        (f"τ{n}", "response") for n in (1, 2, 3)
    ]
    assert [side["measured"]["count"] for document in documents for side in document["sides"]] == [
        40,
        40,
        20,
        20,
        10,
        10,
    ]
    assert (
        documents[0]["sides"][0]["measured"]["min_ns"] < documents[2]["sides"][0]["measured"]["min_ns"]
    )  # tasks are not pooled
    assert "deadline misses" in comparison.read_text(encoding="utf-8")
    assert (figures / "task-τ3-exceedances.svg").exists()
    assert "--metric foo" in error_line(invoke("compare", record, "--metric", "foo"), 2)
    exported = invoke("export", record, "-o", tmp_path / "x.csv")
    assert exported.returncode in {0, 2}
    assert "Traceback" not in exported.stderr
    set_file = tmp_path / "six.toml"
    tasks = "".join(
        f'[[task]]\nname = "τ{n}"\nperiod = "{p}ms"\nexecution = "{c}ms"\n'
        for n, p, c in ((1, 10, 3), (2, 20, 5), (3, 40, 10))
    )
    set_file.write_text(tasks, encoding="utf-8")
    completed = invoke("sched", set_file, "--execution-from", record, "--json")
    assert completed.returncode in {0, 1, 4}, completed.stderr
    assert any("execution of τ1" in note for note in json.loads(completed.stdout)["notes"])


def test_errors_are_one_line(file, tmp_path):
    assert "more than 95%" in error_line(invoke("probe", "taskset", file(OVERLOAD)), 2)
    assert "at most 10s" in error_line(invoke("probe", "taskset", file(OVERLOAD), "--force"), 2)
    assert "does not exist" in error_line(invoke("probe", "taskset", tmp_path / "none.toml"), 2)
    assert "can never meet its deadline" in error_line(
        invoke("probe", "taskset", file(SET.replace("4ms", "40ms"))), 2
    )
    assert "period" in error_line(invoke("probe", "taskset", file(SET.replace('"20ms"', '"0s"'))), 2)
    assert "there is no CPU 4000" in error_line(invoke("probe", "taskset", file(SET), "--cpu", "4000"), 2)
    assert "policy deadline" in error_line(invoke("probe", "taskset", file(SET), "--pin", "off"), 2)


@pytest.mark.root
def test_an_overload_runs_when_forced_and_ends(file):
    completed = invoke("probe", "taskset", file(OVERLOAD), "--force", "--duration", "1s", "--warm-up", "0s")
    assert completed.returncode in {0, 3, 4}, completed.stderr
    assert "Traceback" not in completed.stderr
