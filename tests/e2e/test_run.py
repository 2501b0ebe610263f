# SPDX-License-Identifier: MIT
"""`rtgauge run`: what it leaves behind, what it says, and with which status it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rtgauge.record.marks import mark_kinds
from rtgauge.record.model import RunDocument
from tests.support.cli import SHORT, error_line, good, invoke, nothing_missed, rtgauge
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]

FIGURES = (
    "count",
    "missed",
    "min_ns",
    "mean_ns",
    "std_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "p99_999_ns",
    "max_ns",
)
SCHEMA = Path(__file__).parents[2] / "docs" / "formats" / "record.schema.json"
QUICK = ("--load", "idle", "--duration", "500ms", *SHORT)


def check_schema(actual: dict[str, Any]) -> None:
    jsonschema.validate(actual, RunDocument.model_json_schema())
    if SCHEMA.exists():
        jsonschema.validate(actual, json.loads(SCHEMA.read_text()))


def test_the_json_is_one_document_with_every_figure(tmp_path: Path) -> None:
    completed = good(invoke("run", *QUICK, "--json", "--out", tmp_path))
    content = document(completed.stdout)
    check_schema(content)
    (step,) = content["steps"]
    assert (step["key"]["probe"], step["key"]["load"], step["key"]["deployment"]) == (
        "wakeup",
        "idle",
        "as-is",
    )
    assert step["parameters"]["interval_ns"] == 1_000_000
    assert (
        [series["labels"]["cpu"] for series in step["series"]]
        == step["cpus"]
        == sorted(os.sched_getaffinity(0))
    )
    for item in [*step["series"], step["total"]]:
        assert all(figure in item for figure in FIGURES)
        assert item["min_ns"] <= item["p50_ns"] <= item["p99_ns"] <= item["p99_99_ns"] <= item["max_ns"]
    for item in step["series"]:
        assert item["count"] + item["missed"] == 500
        assert item["warm_up"]["count"] + item["warm_up"]["missed"] == 100
    assert step["total"]["count"] == sum(series["count"] for series in step["series"])
    assert step["calibrations"]
    assert Path(content["record"]).is_dir()


def test_the_record_and_the_page_are_where_it_says(tmp_path: Path) -> None:
    completed = good(invoke("run", *QUICK, "--out", tmp_path))
    (record,) = tmp_path.iterdir()
    assert completed.stdout.count(str(record)) == 1
    assert completed.stdout.endswith(f"page    {record}/report.html\n")
    assert (record / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert {"SHA256SUMS", "run.json", "steps", "targets", "report.html"} == {
        entry.name for entry in record.iterdir()
    }
    assert {"step.json", "stream.ndjson", "windows.parquet"} == {
        entry.name for entry in (record / "steps" / "01-wakeup-idle").iterdir()
    }
    assert document((record / "run.json").read_text())["state"] == "complete"


def test_progress_goes_to_standard_error_and_says_what_is_left(tmp_path: Path) -> None:
    completed = good(invoke("run", *QUICK, "--repeats", 2, "--json", "--out", tmp_path))
    document(completed.stdout)
    assert "2 steps, about " in completed.stderr
    assert "[1/2] wakeup idle" in completed.stderr
    assert "[2/2] wakeup idle" in completed.stderr
    assert "\x1b" not in completed.stderr


@pytest.mark.parametrize(
    ("require", "status", "word"),
    [
        ("latency<=1h hardness=50%", 0, "holds"),
        ("latency<=1ns", 1, "fails"),
        ("latency<=1h hardness=99.999%", 4, "cannot tell"),
    ],
)
def test_a_requirement_ends_in_its_status(tmp_path: Path, require: str, status: int, word: str) -> None:
    completed, actual = nothing_missed(
        "run", *QUICK, "--set", "interval=50ms", "--require", require, "--json", "--out", tmp_path
    )
    doubts = [mark["name"] for mark in actual["steps"][0]["marks"] if mark["severity"] == "doubtful"]
    if word == "holds" and not all(mark_kinds()[name].value.only_delays for name in doubts):
        word, status = "marginal", 4
    assert {verdict["word"] for verdict in actual["run"]["verdicts"]} == {word}
    assert all(verdict["reason"] and verdict["next"] for verdict in actual["run"]["verdicts"])
    good(completed, status)
    shown = good(invoke("show", actual["record"])).stdout
    assert word.upper() in shown


def test_the_random_order_of_repeats_follows_the_seed(tmp_path: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(
        '[matrix]\ninterval = ["1ms", "2ms", "3ms"]\nduration = "100ms"\nwarm-up = "0"\ncpu = 0\n'
    )
    orders: list[list[tuple[int, int]]] = []
    seeds: list[int] = []
    for number in range(2):
        seed = seeds[0] if seeds else None
        out = tmp_path / str(number)
        content = document(
            good(
                invoke(
                    "run",
                    plan,
                    "--repeats",
                    3,
                    "--json",
                    "--out",
                    out,
                    *(("--seed", seed) if seed is not None else ()),
                )
            ).stdout
        )
        seeds.append(content["run"]["seed"])
        orders.append(
            [(step["key"]["repeat"], step["key"]["parameters"]["interval_ns"]) for step in content["steps"]]
        )
        assert [repeat for repeat, _ in orders[-1]] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert len(set(orders[-1])) == 9
        assert content["run"]["steps"] == [step["id"] for step in content["steps"]]
    assert orders[0] == orders[1]
    assert seeds[0] == seeds[1]


@pytest.mark.load
def test_a_load_runs_during_its_step_and_reports_its_rate(tmp_path: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(
        'load-warm-up = "200ms"\n[defaults]\nduration = "1s"\nwarm-up = "100ms"\n[[step]]\nload = "cpu"\n'
    )
    content = document(invoke("run", plan, "--json", "--out", tmp_path / "out").stdout)
    (step,) = content["steps"]
    (part,) = step["load"]["parts"]
    assert part["program"] == "stress-ng"
    assert part["reached"]["cpu_share"] > 0.1
    assert (
        step["load"]["started_ns"]
        < step["load"]["warm_ns"]
        <= step["start_ns"]
        < step["end_ns"]
        <= step["load"]["ended_ns"]
    )
    assert (Path(content["record"]) / "steps" / step["id"] / "load.log").stat().st_size > 0


def test_a_load_without_its_program_is_left_out_everywhere(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    words = ("run", "--load", "idle,nowhere", "--duration", "500ms", *SHORT)
    assert "unknown load 'nowhere'" in error_line(invoke(*words), 2)
    hide = (
        "unshare",
        "--mount",
        "sh",
        "-c",
        (
            "for p in /usr/bin /usr/local/bin /bin; do [ -e $p/iperf3 ] && mount --bind /dev/null "
            '$p/iperf3; done; exec "$@"'
        ),
        "sh",
    )
    completed = good(
        rtgauge(
            "run",
            "--load",
            "idle,network",
            "--duration",
            "500ms",
            *SHORT,
            "--out",
            tmp_path / "out",
            before=hide,
        )
    )
    (record,) = (tmp_path / "out").iterdir()
    run = document((record / "run.json").read_text())
    assert [item["what"] for item in run["left_out"]] == ["load network"]
    assert [key["load"] for key in run["planned"]] == ["idle"]
    for text in (completed.stderr, (record / "report.html").read_text()):
        assert "iperf3" in text
        assert "left out" in text.lower()
    assert "missing load network: iperf3" in completed.stdout
    alone = rtgauge(
        "run", "--load", "network", "--duration", "500ms", *SHORT, "--out", tmp_path / "alone", before=hide
    )
    assert "apt-get install iperf3" in error_line(alone, 3)
    assert not (tmp_path / "alone").exists()


def test_it_needs_neither_home_nor_a_writable_working_folder(tmp_path: Path) -> None:
    good(
        invoke(
            "run",
            *QUICK,
            "--out",
            tmp_path / "out",
            env={"HOME": None, "LANG": "C", "LC_ALL": "C", "XDG_CONFIG_HOME": None},
            cwd="/proc",
        )
    )
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("columns", ["60", "200"])
def test_the_summary_keeps_to_the_terminals_width(real_record: Path, columns: str) -> None:
    completed = good(invoke("show", real_record, env={"COLUMNS": columns, "NO_COLOR": "1"}))
    table = [line for line in completed.stdout.splitlines() if "/" not in line]
    assert max(map(len, table)) <= int(columns)
    assert "CPU " in completed.stdout
    assert "\x1b" not in completed.stdout


def test_a_command_line_of_any_length_and_with_any_bytes(tmp_path: Path) -> None:
    out = tmp_path / ("o" * 200) / "new\nline" / "'\"$(x) é"
    content = document(good(invoke("run", *QUICK, "--json", "--out", out)).stdout)
    check_schema(content)
    assert len(list(out.iterdir())) == 1
    assert "is not UTF-8" in error_line(
        invoke("run", *QUICK, "--out", tmp_path / os.fsdecode(b"\xff\xfe")), 2
    )
