# SPDX-License-Identifier: MIT
"""The terminal's summary and list."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rtgauge import extension
from rtgauge.plan.make_plan import presets
from rtgauge.record.facts import Facts
from rtgauge.record.model import Mark, Result, Severity
from rtgauge.record.reader import Record
from rtgauge.report import terminal_summary
from rtgauge.report.presenter import presenters_of
from rtgauge.report.record_page import html
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Column, Table, numbers, texts
from rtgauge.report.terminal_summary import print_list, print_summary
from rtgauge.report.terminal_table import print_tables
from rtgauge.study import study_registry
from rtgauge.units import format_time
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from tests.support.messages import missing
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def summary(record: Record, width: int, *, terminal: bool = False, details: bool = True) -> str:
    out = io.StringIO()
    print_summary(record, Console(file=out, width=width, force_terminal=terminal), details=details)
    return out.getvalue()


def on_cobalt(record: Record, counts: list[int | None]) -> Record:
    """The record with its first steps on Cobalt, which handed threads to Linux so often."""
    results = [
        Result(name="cokernel", values={"name": "cobalt", "threads": 1, "mode_switches": count})
        for count in counts
    ]
    steps = [
        step.model_copy(
            update={
                "key": step.key.with_parameters(rt="cobalt"),
                "results": [result],
            }
        )
        for step, result in zip(record.steps, results, strict=False)
    ]
    return replace(record, steps=[*steps, *record.steps[len(steps) :]])


def test_what_measured_nothing_is_mended_before_it_is_judged(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",), seconds=2, marks=False)))
    record.run.verdicts = []
    assert 'for a verdict, add --require "' in summary(record, 200)
    record.steps[0].marks.append(Mark(name="load-died", severity=Severity.INVALID, detail="stress-ng ended"))
    text = summary(record, 200)
    assert "for a verdict" not in text
    (following,) = [line for line in text.splitlines() if line.startswith("next ")]
    assert not missing(following, "load.log", "why the load ended")


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ([0, 0], "measured on Cobalt: it handed no thread to Linux"),
        ([0, 3], "measured on Cobalt: it handed threads 3 times to Linux"),
        ([None], "measured on Cobalt: rtgauge did not count how often it handed threads to Linux"),
        ([1, None], "measured on Cobalt: it handed threads 1 time to Linux (1 of 2 steps not counted)"),
    ],
)
def test_the_summary_names_cokernel_and_switches_to_linux(
    record: Record, counts: list[int | None], line: str
) -> None:
    assert line in summary(on_cobalt(record, counts), 200).splitlines()
    assert "Cobalt" not in summary(record, 200)


@pytest.fixture
def _core_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    core = tuple(each for each in extension.extensions() if each.name == "core")
    with monkeypatch.context() as patched:
        patched.setattr(extension, "extensions", lambda: core)
        extension.registered.cache_clear()
        presenters_of.cache_clear()
        yield
    extension.registered.cache_clear()
    presenters_of.cache_clear()


@pytest.mark.usefixtures("_core_alone")
def test_a_record_on_a_cokernel_needs_no_extension(record: Record) -> None:
    shown = on_cobalt(record, [0, 3])
    (line,) = [line for line in summary(shown, 200).splitlines() if "on Cobalt: " in line]
    assert not missing(line, "3 times", "Linux")
    assert "Cobalt" in html(shown)


@pytest.fixture(name="record")
def a_record(tmp_path: Path) -> Record:
    return Record.open(write_record(tmp_path))


def lines(text: str, name: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip().startswith(name)]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_every_load_and_cpu_with_its_numbers(record: Record, width: int):
    text = summary(record, width).partition("Warm-up, losses and threads")[0]
    for step in record.steps:
        assert step.total is not None
        assert step.total.max_ns is not None
        (row,) = [row for row in lines(text, step.key.load) if len(row) > 4 and row[1][0].isdigit()]
        assert row[1:3] == [f"{step.total.count:,}", f"{step.total.missed:,}"]
        assert row[-1] == f"{step.total.max_ns / 1000:,.1f}"
    assert len(lines(text, "CPU 0")) == 3
    assert len(lines(text, "missed filled in")) == 4  # three rows and what it means
    assert "…" not in text


@pytest.mark.parametrize("width", [60, 160])
def test_no_line_of_the_table_is_wider_than_the_terminal(record: Record, width: int):
    text = summary(record, width)
    assert all(len(line) <= width for line in text.splitlines() if not line.startswith(("record", "page")))
    assert ("p99.99" in text) == (width == 160)


def judged(record: Record, requirement: str) -> Record:
    record.run.verdicts = judge_run(parse_requirement(requirement), record, RecordView(record).labels)
    return record


@pytest.mark.parametrize("width", [80, 160])
def test_the_first_line_is_the_answer(record: Record, width: int):
    text = summary(judged(record, "period=1ms latency<=200us hardness=100%"), width)
    words = " ".join(text.split())
    answer, _, following = words.partition(" next ")
    assert answer.startswith("FAILS memory: 8 of 10,000 later than 200 us")
    assert not missing(answer, "none allowed", "worst 3.79 ms on CPU 0")
    assert not missing(following, "what caused the largest latency")
    assert "required period=1ms latency<=200us hardness=100%" in words


def test_marks_and_what_was_left_out_are_printed(record: Record):
    text = summary(record, 160)
    assert "doubtful: throttled under cpu, CPU 1: " in text
    assert "apt-get install iperf3" in text
    assert str(record.path) in text.replace("\n", "")


def test_a_probe_that_no_extension_has_is_named(tmp_path: Path):
    folder = write_record(tmp_path, Shape(loads=("idle",), verdict=None))
    (file,) = folder.glob("steps/*/step.json")
    step = json.loads(file.read_text())
    step["key"]["probe"] = "toy"
    file.write_text(json.dumps(step))
    for details in (False, True):
        text = " ".join(summary(Record.open(folder), 160, details=details).split())
        assert "missing probe toy" in text
        assert "Worst latency" in text
    assert "results of the probe toy" in html(Record.open(folder))


def test_a_mark_of_several_steps_is_printed_once(tmp_path: Path):
    text = summary(Record.open(write_record(tmp_path, Shape(repeats=3))), 160)
    assert text.count("steal") == 1
    assert "note: steal on 3 of 9 steps" in text


def test_a_mark_of_two_severities_is_printed_as_the_worse(record: Record):
    steal = Mark(name="steal", severity=Severity.DOUBTFUL, detail="the hypervisor took 5 % of the time")
    steps = [record.steps[0].model_copy(update={"marks": [steal]}), *record.steps[1:]]
    text = summary(replace(record, steps=steps), 160)
    (steal_line,) = [line for line in text.splitlines() if "* doubtful: steal" in line]
    assert not missing(steal_line, "on 2 of 3 steps", "doubtful under idle")
    assert [row[1] for row in lines(text, "steal")] == ["doubtful", "note"]


def test_the_details_say_how_it_was_measured(record: Record):
    text = summary(record, 300)
    threads = text.partition("Warm-up, losses and threads")[2]
    for step in record.steps:
        for each in step.series:
            rows = lines(threads, f"{step.key.load}, CPU {each.labels['cpu']} ")
            assert [row[3:5] for row in rows] == [[f"{each.warm_up.count:,}", f"{each.warm_up.missed:,}"]]
    assert len(lines(text, "Clock resolution")) == 1
    assert "CLOCK_TAI" in text
    assert "Warm-up" not in summary(record, 300, details=False)


def test_repeats_have_their_median_and_spread(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(repeats=3)))
    largest = sorted(
        step.total.max_ns
        for step in record.steps
        if step.key.load == "idle" and step.total is not None and step.total.max_ns is not None
    )
    low, middle, high = map(format_time, largest)
    assert f"idle: largest latency of 3 repeats: median {middle}, {low} to {high}" in summary(record, 160)


def test_a_cross_check_has_its_ratio(record: Record):
    idle = record.steps[0]
    assert idle.total is not None
    mean, largest = idle.total.mean_ns, idle.total.max_ns
    assert mean is not None
    assert largest is not None
    total = idle.total.model_copy(update={"mean_ns": mean * 1.1, "max_ns": largest * 2})
    other = idle.model_copy(
        update={
            "id": "04-cyclictest",
            "key": idle.key.model_copy(update={"tool": "cyclictest"}),
            "total": total,
        }
    )
    assert "idle: cyclictest / rtgauge: mean 1.10, largest 2.00" in summary(
        replace(record, steps=[*record.steps, other]), 160
    )


@pytest.mark.parametrize("width", [80, 140])
def test_without_a_requirement_the_first_line_is_the_largest(tmp_path: Path, width: int):
    text = " ".join(summary(Record.open(write_record(tmp_path, Shape(verdict=None))), width).split())
    answer, _, following = text.partition(" next ")
    assert answer.startswith("Worst latency 3.79 ms under memory on CPU 0")
    assert not missing(answer, "29,994 activations", "3 loads", "6 missed")
    assert not missing(following, "verdict", "--require")


def test_the_first_line_is_rtgauges_despite_a_cross_check(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(verdict=None)))
    idle = record.steps[0]
    assert idle.total is not None
    total = idle.total.model_copy(update={"max_ns": 900_000_000})
    other = idle.model_copy(
        update={
            "id": "04-cyclictest",
            "key": idle.key.model_copy(update={"tool": "cyclictest"}),
            "total": total,
        }
    )
    assert summary(replace(record, steps=[*record.steps, other]), 160).startswith(
        "Worst latency 3.79 ms under memory"
    )


def test_without_a_requirement_it_says_how_to_ask(tmp_path: Path):
    assert "--require" in summary(Record.open(write_record(tmp_path, Shape(verdict=None))), 160)


def test_the_page_is_named_where_there_is_one(record: Record):
    assert "report.html" not in summary(record, 160)
    (record.path / "report.html").write_text("", encoding="utf-8")
    assert "report.html" in summary(record, 160).replace("\n", "")


def test_plain_where_there_is_no_terminal(record: Record):
    assert "\x1b" not in summary(record, 100)
    assert "\x1b[" in summary(record, 100, terminal=True)


def test_a_name_cannot_command_the_terminal(record: Record):
    hostile = replace(record, systems={"local": Facts(host="\x1b]0;owned\x07[bold red]x[/nope]")})
    text = summary(hostile, 160)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]x[/nope]" in text


def test_a_cpu_not_measured_is_named_with_any_requirement(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(verdict=None)))
    record.steps[1].cpus_not_measured = [{"cpu": 3, "reason": "cpuset"}]
    assert "not measured: CPU 3 (a cpuset forbids it)" in " ".join(
        summary(record, 160, details=False).split()
    )
    judged(record, "period=1ms latency<=200us hardness=100%")
    assert "not measured: CPU 3 (a cpuset forbids it)" in " ".join(summary(record, 160).split())


def test_a_single_cpu_is_named(tmp_path: Path):
    assert "idle, CPU 3" in summary(
        Record.open(write_record(tmp_path, Shape(cpus=(3,), loads=("idle",)))), 60
    )


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_list_is_a_table_of_every_record(tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch):
    records = [
        Record.open(write_record(tmp_path, Shape(seed=seed, loads=("idle", "cpu")))) for seed in (1, 2)
    ]
    monkeypatch.setattr(terminal_summary, "RECORDS", tmp_path)
    out = io.StringIO()
    print_list(records, Console(file=out, width=width))
    heading, *rows = out.getvalue().splitlines()
    assert heading.split()[0] == "record"
    assert max(map(len, rows)) <= width
    for record in records:
        (row,) = [line for line in rows if line.startswith(f"{record.run.id} ")]
        largest = max(step.total.max_ns for step in record.steps if step.total and step.total.max_ns)
        assert row.endswith(f"{largest / 1000:,.1f}")
    assert ("2026-11-21 10:03" in out.getvalue()) == (width == 160)


def test_a_long_path_stands_on_a_line_of_its_own(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    out = io.StringIO()
    print_list([record], Console(file=out, width=len(str(record.path)) + 10))
    assert out.getvalue().splitlines()[0] == str(record.path)
    assert "2026-11-21 10:03" in out.getvalue()
    assert "complete" in out.getvalue()


@pytest.mark.parametrize("width", range(40, 90))
def test_a_table_is_never_wider_than_the_terminal(width: int):
    cells = ["vm, 6.18.44", "user space", "loop:eventfd", "275", "400.1"]
    table = Table("", [*texts("system", "space", "path"), *numbers("samples", "max")], [cells])
    out = io.StringIO()
    print_tables([table], Console(file=out, width=width))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "400.1" in out.getvalue()


def test_an_empty_list_says_so():
    out = io.StringIO()
    print_list([], Console(file=out, width=80))
    assert out.getvalue() == "There are no records here.\n"


def test_the_table_names_what_was_measured(record: Record):
    assert "latency, us" in summary(record, 120)


def test_every_preset_is_named_by_help():
    for words in (["run"],):
        code = "from rtgauge.cli.main import main; main()"
        ran = subprocess.run(
            [sys.executable, "-c", code, *words, "--help"], capture_output=True, text=True, check=True
        )
        assert len(presets()) >= 4
        for name in [*presets(), *study_registry.studies()]:
            assert name in ran.stdout, (words, name)


def test_the_terminal_needs_nothing_heavy():
    code = (
        "import sys, rtgauge.report.terminal_summary; print(sorted({'altair', 'polars', 'vl_convert', 'numpy', "
        "'jinja2'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_table_of_one_number_is_a_line():
    out = io.StringIO()
    print_tables(
        [
            Table(
                "Cost (ns)",
                [*texts(""), *numbers("task switch")],
                [["board, fifo", "1,234"]],
                ["One reading of the clock is in it."],
            )
        ],
        Console(file=out, width=80),
    )
    figure, note = out.getvalue().splitlines()
    assert not missing(figure, "Cost (ns)", "board, fifo", "task switch", "1,234")
    assert note == "One reading of the clock is in it."


@pytest.mark.parametrize(
    ("width", "shown"), [(40, ["gain", "pairs"]), (26, ["gain"]), (12, ["gain", "pairs"])]
)
def test_columns_are_dropped_only_if_a_table_of_the_others_fits(width: int, shown: list[str]):
    out = io.StringIO()
    columns = [*texts("name"), Column("gain", "number"), Column("pairs", "number", drop_rank=1)]
    table = Table("", columns, [["timer-migration", "12345678", "1234567"]])
    print_tables([table], Console(file=out, width=width))
    assert [title for title in ("gain", "pairs") if title in out.getvalue()] == shown


def test_a_table_names_the_columns_that_do_not_fit():
    out = io.StringIO()
    columns = [*texts("name"), *numbers("side", "baseline", "max", "p"), *texts("what it shows")]
    row = ["policy=other", "1,234.5", "1,234.5", "9,999.9", "0.001", "worse"]
    print_tables([Table("", columns, [row, row])], Console(file=out, width=40))
    heading, first, _, *note = out.getvalue().splitlines()
    assert heading.split() == ["name", "side", "baseline", "max"]
    assert first.split() == row[:4]
    assert " ".join(" ".join(note).split()) == "A wider terminal also shows: p, what it shows."
