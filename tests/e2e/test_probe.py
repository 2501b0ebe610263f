# SPDX-License-Identifier: MIT
"""`rtgauge probe`: one measurement that keeps nothing but what is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from rtgauge.record.samples import read_samples
from tests.support.cli import error_line, good, invoke, nothing_missed, rtgauge
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]

CPU = min(os.sched_getaffinity(0))
SHORT = ("--warm-up", "100ms", "--duration", "500ms")


def test_the_example_of_the_documentation_is_one_document() -> None:
    completed = good(
        invoke(
            "probe",
            "wakeup",
            "--cpu",
            CPU,
            "--interval",
            "200us",
            "--duration",
            "1s",
            "--priority",
            98,
            "--json",
        )
    )
    content = document(completed.stdout)
    (step,) = content["steps"]
    (series,) = step["series"]
    assert series["count"] + series["missed"] == 5000
    assert (
        step["parameters"]["interval_ns"],
        step["parameters"]["priority"],
        step["parameters"]["policy"],
    ) == (200_000, 98, "fifo")
    assert content["record"] is None
    assert content["systems"]["local"]["host"]


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    completed = good(invoke("probe", "wakeup", *SHORT, cwd=here, env={"TMPDIR": str(temporary)}))
    assert list(here.iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert "latency within" in completed.stdout
    assert "record" not in completed.stdout.splitlines()[-1]
    assert "/tmp" not in completed.stdout


@pytest.mark.parametrize("arguments", [("wakeup", "--json"), ("noise", "--json")], ids=" ".join)
def test_what_takes_long_to_import_is_not_imported(arguments: tuple[str, ...]) -> None:
    completed = good(rtgauge("probe", *arguments, *SHORT, env={"PYTHONPROFILEIMPORTTIME": "1"}))
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in completed.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "rtgauge" in imported
    assert not imported & {"polars", "scipy", "altair", "jinja2"}


def test_a_saved_one_is_a_record_like_any_other(tmp_path: Path) -> None:
    good(invoke("probe", "wakeup", "--cpu", CPU, *SHORT, "--save", cwd=tmp_path))
    (record,) = (tmp_path / "rtgauge-runs").iterdir()
    assert record.name in good(invoke("list", cwd=tmp_path)).stdout
    assert good(invoke("show", "latest", "--require", "p50<=1ns", cwd=tmp_path), 1).stdout.startswith(
        "FAILS   idle: "
    )
    assert (
        good(
            invoke("show", record.name, "--require", "p50<=10s", "--page", "page.html", cwd=tmp_path)
        ).stdout.splitlines()[-1]
        == "page     page.html"
    )


@pytest.mark.parametrize(
    ("option", "value", "key"),
    [("policy", "rr", "policy"), ("timer", "timerfd", "timer"), ("phase", "fixed", "phase")],
)
def test_other_ways_to_measure(option: str, value: str, key: str) -> None:
    (step,) = document(good(invoke("probe", "wakeup", *SHORT, f"--{option}", value, "--json")).stdout)[
        "steps"
    ]
    assert step["parameters"][key] == value
    assert all(series["count"] + series["missed"] == 500 for series in step["series"])


def test_a_count_of_activations() -> None:
    (step,) = document(
        good(
            invoke("probe", "wakeup", "--warm-up", "0", "--count", 321, "--interval", "1ms", "--json")
        ).stdout
    )["steps"]
    assert step["end_reason"] == "count"
    assert all(series["count"] + series["missed"] == 321 for series in step["series"])


def test_it_stops_at_a_threshold() -> None:
    (step,) = document(
        good(
            invoke("probe", "wakeup", "--warm-up", "0", "--duration", "20s", "--stop-at", "1ns", "--json")
        ).stdout
    )["steps"]
    assert step["end_reason"] == "threshold"
    assert "threshold" in [mark["name"] for mark in step["marks"]]
    assert sum(series["count"] for series in step["series"]) < 20_000  # of one CPU, it would have been all


def test_raw_samples_agree_with_the_figures_in_every_format(tmp_path: Path) -> None:
    for name in ("s.csv", "s.parquet", "s.raw"):
        completed = good(
            invoke("probe", "wakeup", "--cpu", CPU, *SHORT, "--samples", name, "--json", cwd=tmp_path)
        )
        (series,) = document(completed.stdout)["steps"][0]["series"]
        assert f"samples {name}" in completed.stderr
        file = tmp_path / name
        if name == "s.raw":
            header, latencies = read_samples(file)
            assert (header.cpu, header.interval_ns, header.lost) == (CPU, 1_000_000, 0)
            values = [int(value) for value in latencies]
            assert len(values) == series["count"] + series["warm_up"]["count"]
            assert max(values) >= series["max_ns"]
        else:
            table = pl.read_csv(file) if name == "s.csv" else pl.read_parquet(file)
            assert table.columns == ["cpu", "phase", "release_ns", "latency_ns"]
            assert table["cpu"].unique().to_list() == [CPU]
            measured = table.filter(pl.col("phase") == "measure")
            assert measured.height == series["count"]
            assert (measured["latency_ns"].min(), measured["latency_ns"].max()) == (
                series["min_ns"],
                series["max_ns"],
            )
            assert table.filter(pl.col("phase") == "warm-up").height == series["warm_up"]["count"]
            assert (table["release_ns"].diff().drop_nulls() % 1_000_000 == 0).all()
        assert series["exact_quantiles"] is True
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["s.csv", "s.parquet", "s.raw"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_raw_samples_of_two_cpus_are_two_files(tmp_path: Path) -> None:
    completed = good(invoke("probe", "wakeup", *SHORT, "--samples", tmp_path / "s.raw", "--json"))
    series = document(completed.stdout)["steps"][0]["series"]
    for item in series:
        header, latencies = read_samples(tmp_path / f"s-{item['series']}.raw")
        assert header.cpu == item["labels"]["cpu"]
        assert len(latencies) == item["count"] + item["warm_up"]["count"]


@pytest.mark.parametrize(("require", "status"), [("latency<=1ns", 1), ("latency<=1h hardness=99.999%", 4)])
def test_a_requirement(require: str, status: int) -> None:
    completed, actual = nothing_missed(
        "probe", "wakeup", "--interval", "50ms", *SHORT, "--require", require, "--json"
    )
    assert {verdict["word"] for verdict in actual["run"]["verdicts"]} == {
        "fails" if status == 1 else "cannot tell"
    }
    good(completed, status)


def test_calibrate_prints_the_cost_of_each_clock() -> None:
    content = document(good(invoke("probe", "calibrate", "--count", 5000, "--json")).stdout)
    clocks = {calibration["clock"]: calibration for calibration in content["steps"][0]["calibrations"]}
    assert clocks["CLOCK_MONOTONIC"]["count"] == 5000
    assert (
        clocks["CLOCK_MONOTONIC"]["min_ns"]
        <= clocks["CLOCK_MONOTONIC"]["p50_ns"]
        <= clocks["CLOCK_MONOTONIC"]["max_ns"]
    )
    text = good(invoke("probe", "calibrate", "--count", 5000)).stdout
    assert "CLOCK_MONOTONIC" in text


@pytest.mark.load
def test_a_probe_runs_under_a_load() -> None:
    (step,) = document(invoke("probe", "wakeup", "--load", "cpu", *SHORT, "--json").stdout)["steps"]
    assert step["key"]["load"] == "cpu"
    assert step["load"]["parts"][0]["reached"]["cpu_share"] > 0


def test_its_reader_may_go(tmp_path: Path) -> None:
    for words in (("probe", "wakeup", *SHORT), ("probe", "wakeup", *SHORT, "--json")):
        read, write = os.pipe()
        os.close(read)
        completed = rtgauge(*words, stdout=write)
        os.close(write)
        assert completed.returncode == 0
        assert "Traceback" not in completed.stderr
        assert "Broken" not in completed.stderr
    assert "standard output: No space left on device" in error_line(
        rtgauge("probe", "wakeup", *SHORT, stdout=os.open("/dev/full", os.O_WRONLY)), 3
    )


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_standard_descriptor_may_be_closed(closed: int, tmp_path: Path) -> None:
    out = tmp_path / "s.csv"
    completed = rtgauge(
        "probe", "wakeup", *SHORT, "--samples", out, "--wait", "5min", preexec_fn=lambda: os.close(closed)
    )
    assert completed.returncode == 0
    assert "Traceback" not in (completed.stderr or "")
    assert out.read_text().startswith("cpu,phase,release_ns,latency_ns\n")


def test_a_folder_for_the_record_keeps_it(tmp_path: Path) -> None:
    good(invoke("probe", "wakeup", *SHORT, "--out", tmp_path))
    assert [path.name for path in tmp_path.glob("*/report.html")] == ["report.html"]
