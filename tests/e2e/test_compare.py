# SPDX-License-Identifier: MIT
"""`rtgauge compare` from records to tables, figures and the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.sides import sides_of
from rtgauge.cli.main import main
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge.record.windows_file import write_windows
from tests.support.messages import missing
from tests.support.records import Shape, write_record
from tests.unit.windows import row, windows_of

NEWER = {"kernel": {"release": "6.12.0-rt", "preemption": {"model": "PREEMPT_RT"}, "hz": 250}}


@pytest.fixture(name="old", scope="module")
def an_old(tmp_path_factory) -> Path:
    return write_record(tmp_path_factory.mktemp("runs"), Shape(seconds=25))


@pytest.fixture(name="new", scope="module")
def a_new(tmp_path_factory) -> Path:
    return write_record(
        tmp_path_factory.mktemp("runs"),
        Shape(seconds=25, seed=2, system=NEWER, median_ns={"idle": 12_000, "cpu": 9_000, "memory": 14_000}),
    )


def change_step(record: Path, change, number: int = 0) -> None:
    """Change what is in one step.json."""
    file = sorted(record.glob("steps/*/step.json"))[number]
    step = json.loads(file.read_text(encoding="utf-8"))
    change(step)
    file.write_text(json.dumps(step), encoding="utf-8")


def replace_windows(record: Path, number: int, rows: list[dict]) -> None:
    sorted(record.glob("steps/*"))[number].joinpath("windows.parquet").unlink()
    windows = windows_of(*rows)
    with (sorted(record.glob("steps/*"))[number] / "windows.parquet").open("wb") as file:
        write_windows(windows, file)

    def count(step) -> None:
        for series in step["series"]:
            own = windows.chosen(windows.series == series["series"])
            series.update(count=int(own.count.sum()), missed=int(own.missed.sum()))

    change_step(record, count, number)


def deployments(record: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        change_step(record, lambda step, name=name: step["key"].update(load="idle", deployment=name), number)
    return record


def compared(*records: Path, baseline: str | None = None, **options) -> Comparison:
    sides = sides_of([Record.open(record) for record in records])
    return compare(sides, pairs(sides, baseline), ComparisonOptions(**options))


def run(monkeypatch, capsys, *arguments: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["rtgauge", "compare", *map(str, arguments)])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def baselines(result: Comparison) -> dict[str, str]:
    """Each side that is compared, and its baseline."""
    return {side.label: side.baseline for side in result.sides if side.baseline is not None}


def test_two_records_are_paired_by_load_and_labelled(old, new):
    result = compared(old, new)
    assert [side.label for side in result.sides] == [
        f"{kernel}, {load}"
        for kernel in ("6.1.0-18-amd64", "6.12.0-rt")
        for load in ("idle", "cpu", "memory")
    ]
    assert list(baselines(result).items()) == [
        (f"6.12.0-rt, {load}", f"6.1.0-18-amd64, {load}") for load in ("idle", "cpu", "memory")
    ]
    assert result.settings["kernel.preemption.model"] == ["dynamic"] * 3 + ["PREEMPT_RT"] * 3
    assert "host" not in result.settings


def test_a_shift_is_found_with_its_size_and_equals_are_equal(old, new):
    result = compared(old, new)
    medians = {row.side: row for row in result.quantiles if row.quantile == "p50"}
    assert medians["6.12.0-rt, idle"].difference_ns == pytest.approx(6_000, abs=200)
    assert not missing(medians["6.12.0-rt, idle"].says, "differs", "2 us", "p50")
    assert not missing(medians["6.12.0-rt, cpu"].says, "the same within 2 us", "p50")
    for median in medians.values():
        assert median.low_ns is not None
        assert median.high_ns is not None
        assert median.low_ns <= median.difference_ns <= median.high_ns
    rare = [quantile for quantile in result.quantiles if quantile.quantile == "p99.99"]
    assert all("samples lie beyond this quantile" in (mark.no_interval or "") for mark in rare)


def test_figures_are_the_records_own(old, new):
    result = compared(old, new, intervals=False)
    for side, step in zip(result.sides, [*Record.open(old).steps, *Record.open(new).steps], strict=True):
        assert step.total is not None
        assert (side.measured.count, side.measured.min_ns, side.measured.max_ns) == (
            step.total.count,
            step.total.min_ns,
            step.total.max_ns,
        )
        assert side.measured.mean_ns == pytest.approx(step.total.mean_ns)
        assert side.measured.std_ns == pytest.approx(step.total.std_ns)
        assert side.missed == step.total.missed
        assert side.filled.count == step.total.count + step.total.missed
    assert all(row.no_interval == "intervals were switched off" for row in result.quantiles)


def test_deployments_of_one_record_are_compared_with_single(tmp_path):
    record = deployments(write_record(tmp_path, Shape(seconds=3)), ["HM", "MI", "Single"])
    result = compared(record, intervals=False)
    assert {side.label for side in result.sides} == {"HM", "MI", "Single"}
    assert baselines(result) == {"HM": "Single", "MI": "Single"}
    assert baselines(compared(record, baseline="MI", intervals=False)) == {"HM": "MI", "Single": "MI"}


def test_loads_of_one_record_are_compared_with_idle(tmp_path):
    record = write_record(tmp_path, Shape(seconds=3, repeats=2, loads=("cpu", "idle")))
    result = compared(record, intervals=False)
    assert [(side.label, len(side.steps)) for side in result.sides] == [("idle", 2), ("cpu", 2)]
    assert list(baselines(result).items()) == [("cpu", "idle")]
    assert result.sides[0].measured.count == sum(
        step.total.count for step in Record.open(record).steps if step.total and step.key.load == "idle"
    )


@pytest.mark.parametrize("baseline", ["6.1.0-18-amd64", "path"])
def test_a_baseline_by_kernel_or_record(old, new, baseline):
    named = str(new) if baseline == "path" else baseline
    first = next(iter(baselines(compared(old, new, baseline=named, intervals=False)).values()))
    assert first == ("6.12.0-rt, idle" if baseline == "path" else "6.1.0-18-amd64, idle")


def test_a_baseline_that_is_none_or_everything_is_refused(old, new):
    with pytest.raises(InputError, match="did you mean"):
        compared(old, new, baseline="6.12.0-rt, idel")
    with pytest.raises(InputError, match="matches every side"):
        compared(old, new, baseline="as-is")


@pytest.mark.parametrize(
    ("change", "expected_text"),
    [
        (
            lambda s: (
                s["parameters"].update(interval_ns=100_000),
                s["key"]["parameters"].update(interval_ns=100_000),
            ),
            "interval is 1ms in .* but 100us in",
        ),
        (lambda s: s["key"].update(probe="noise"), "probe is wakeup in .* but noise in"),
        (lambda s: s["total"].update(unit="count"), "unit is ns in .* but count in"),
        (lambda s: s["total"].update(metric="jitter"), "quantity is latency in .* but jitter in"),
        (
            lambda s: (s["parameters"].pop("interval_ns"), s["key"]["parameters"].pop("interval_ns")),
            "interval is 1ms in .* but unknown in",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_and_named(tmp_path, old, change, expected_text):
    other = write_record(tmp_path, Shape(seconds=2, loads=("idle",), seed=5))
    change_step(other, change)
    with pytest.raises(InputError, match=expected_text):
        compared(old, other)


def test_one_side_and_the_same_record_twice_are_refused(tmp_path, old):
    alone = write_record(tmp_path, Shape(seconds=2, loads=("idle",)))
    with pytest.raises(InputError, match="only one side"):
        compared(alone)
    with pytest.raises(InputError, match="named twice"):
        compared(old, old)


def test_empty_equal_and_one_bin_sides_are_explained(tmp_path, monkeypatch, capsys):
    record = deployments(write_record(tmp_path, Shape(seconds=3, marks=False)), ["HM", "MI", "Single"])
    replace_windows(record, 0, [row([], index=0)])
    replace_windows(record, 2, [row([5_000] * 1_000, index=i) for i in range(60)])
    status, out, _ = run(monkeypatch, capsys, record, "--details")
    assert status == 0
    assert "HM has no samples, so it cannot" in out
    assert "All latencies of Single are equal (5.00 us)" in out
    assert "HM: the sample is empty" in out
    assert "one bin, 5 us" in out
    assert not missing(out, "cannot estimate rarer values", "maxima of all windows", "only 1")
    assert "no side" not in out
    status, out, _ = run(monkeypatch, capsys, record, "--no-intervals", "--details", "--baseline", "HM")
    assert status == 0
    assert "the baseline is empty" in out


def test_the_command_prints_tables_and_writes_figures_and_a_page(old, new, monkeypatch, capsys, tmp_path):
    page, figures = tmp_path / "compare.html", tmp_path / "figures"
    status, out, err = run(
        monkeypatch, capsys, old, new, "--details", "--no-tails", "--page", page, "--figures", figures
    )
    assert (status, err) == (0, "")
    for heading in (
        "average",
        "maximum",
        "minimum",
        "std",
        "Settings that differ",
        "chi-square",
    ):
        assert heading in out
    assert {file.name for file in figures.iterdir()} == {
        f"{name}.{form}"
        for name in (
            "exceedances",
            "factors",
            "timing-wakeup-latency-log",
        )
        for form in ("png", "svg", "pdf")
    }
    text = page.read_text(encoding="utf-8")
    assert text.count('class="chart"') == 2 + 1  # factors, all sides together; how often
    assert "chi-square" not in text.split("<script")[0]
    assert "6.12.0-rt, memory" in text
    assert "http://" not in text.split("<script")[0]


def test_json_is_the_document_and_nothing_else(old, new, monkeypatch, capsys):
    status, out, _ = run(monkeypatch, capsys, old, new, "--json", "--within", "5us", "--alpha", "0.01")
    assert status == 0
    result = Comparison.model_validate_json(out)
    assert (result.within_ns, result.alpha) == (5_000, 0.01)
    papers = json.loads(out)["extensions"]["papers"]
    assert papers["pairs"][0]["paper"]["degrees_of_freedom"] == papers["pairs"][0]["paper"]["bins"]
    assert len(papers["tails"]) == 6
    assert all("25 windows" in (tail["cannot"] or "") for tail in papers["tails"])


def test_of_what_both_ends_saw_the_document_has_all(tmp_path, monkeypatch, capsys):
    record = write_record(tmp_path, Shape(seconds=25))
    for number in range(3):
        change_step(
            record,
            lambda step: [
                series["labels"].update(role=("master", "slave")[at % 2])
                for at, series in enumerate(step["series"])
            ],
            number,
        )
    status, out, _ = run(monkeypatch, capsys, record, "--json", "--no-tails")
    assert status == 0
    results = TypeAdapter(list[Comparison]).validate_json(out)
    assert [result.title for result in results] == [
        "Wakeup, as the slave saw it",
        "Wakeup, as the master saw it",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["--within", "2"], "--within: '2' has no unit"),
        (["--within", "-2us"], "negative"),
        (["--alpha", "5"], "not between 0 and 1"),
        (["--baseline", "nonsense"], "does not name a side"),
        (["nowhere"], "there is no such folder"),
    ],
)
def test_wrong_words_are_one_line_and_status_2(old, new, monkeypatch, capsys, arguments, expected_text):
    status, out, err = run(monkeypatch, capsys, old, new, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("rtgauge: ")
    assert expected_text in err
    assert err.count("\n") == 1


def test_names_from_a_record_cannot_command_terminal_or_page(tmp_path, old, monkeypatch, capsys):
    evil = write_record(tmp_path, Shape(seconds=2, seed=3, host="x\x1b[31m<script>alert(1)</script>"))
    page = tmp_path / "page.html"
    status, out, _ = run(monkeypatch, capsys, old, evil, "--no-intervals", "--no-tails", "--page", page)
    assert status == 0
    assert "\x1b[31m" not in out
    assert "<script>alert(1)" not in page.read_text(encoding="utf-8")
