# SPDX-License-Identifier: MIT
"""The summary that is printed by default: short at any size, and what it has is right."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rtgauge.record.model import ExplainCost, ExplainReport, LeftOut, Mark, Result, Severity, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.record.summary import summarise_step
from rtgauge.report.brief_terminal import MOST_LINES, _each
from rtgauge.report.terminal import print_conclusion, print_summary
from tests.support.records import Shape, write_record
from tests.unit.records import step as one_step
from tests.unit.windows import info, row, windows_of

if TYPE_CHECKING:
    from pathlib import Path

FIVE = ("idle", "cpu", "memory", "network", "scheduler")


def brief(record: Record, width: int = 160) -> str:
    out = io.StringIO()
    print_summary(record, Console(file=out, width=width))
    return out.getvalue()


def after_the_answer(record: Record, width: int) -> list[str]:
    """The lines below the conclusion and the blank line behind it."""
    out = io.StringIO()
    print_conclusion(record, Console(file=out, width=width))
    text = brief(record, width)
    assert text.startswith(out.getvalue() + "\n")
    return text.removeprefix(out.getvalue() + "\n").splitlines()


SIZES = {
    "2 CPUs": Shape(verdict=None),
    "64 CPUs, 5 loads": Shape(cpus=tuple(range(64)), loads=FIVE, seconds=2, missed_under=FIVE, verdict=None),
    "3 repeats": Shape(loads=FIVE, repeats=3, seconds=2),
    "40 loads": Shape(loads=tuple(f"load{at}" for at in range(40)), seconds=1),
    "1 CPU": Shape(cpus=(3,), loads=("idle",)),
}


@pytest.fixture(scope="module", name="records")
def the_records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    return {
        name: Record.open(write_record(tmp_path_factory.mktemp("records"), shape))
        for name, shape in SIZES.items()
    }


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_is_short_at_any_size(records: dict[str, Record], size: str, width: int) -> None:
    assert len(after_the_answer(records[size], width)) <= MOST_LINES == 25


@pytest.mark.parametrize("width", [80, 160])
def test_many_doubts_left_out_loads_and_machines_are_counted(records: dict[str, Record], width: int) -> None:
    record = records["64 CPUs, 5 loads"]
    marks = [
        Mark(name=f"doubt-{at}", severity=Severity.DOUBTFUL, detail="something long that is not so sure " * 9)
        for at in range(30)
    ]
    left_out = [LeftOut(what=f"load x{at}", reason="not installed", remedy="install it") for at in range(20)]
    steps = [record.steps[0].model_copy(update={"marks": marks}), *record.steps[1:]]
    systems = {f"ssh://board{at}": record.system("local") for at in range(9)}
    large = replace(
        record,
        steps=steps,
        systems=systems,
        run=record.run.model_copy(update={"left_out": left_out, "state": "interrupted"}),
    )
    lines = after_the_answer(large, width)
    assert len(lines) <= MOST_LINES
    text = "\n".join(lines)
    assert "28 doubts more" in text
    assert "left out: 18 more" in text
    assert "and 8 more machines" in text
    assert "interrupted" in text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_load_is_one_row_with_its_maximum_whole_and_its_worst_cpu(
    records: dict[str, Record], width: int
) -> None:
    record = records["64 CPUs, 5 loads"]
    lines = brief(record, width).splitlines()
    for step in record.steps:
        (row,) = [
            line.split()
            for line in lines
            if line.startswith(step.key.load) and line[len(step.key.load)] in "* "
        ]
        worst = max(step.series, key=lambda series: series.max_ns or 0)
        assert step.total is not None
        assert step.total.max_ns is not None
        assert row[-3:] == [f"{step.total.max_ns / 1000:,.1f}", "CPU", str(worst.labels["cpu"])]
        assert row[1:3] == [f"{step.total.count:,}", f"{step.total.missed:,}"]
    assert not [line for line in lines if line.startswith(("  CPU", "    filled"))]


def test_filled_in_values_are_there_only_with_missed_activations_and_explained(
    records: dict[str, Record],
) -> None:
    record = records["2 CPUs"]
    text = brief(record).replace("x longer", "x-longer")
    rows = {
        line.split()[0].rstrip("*"): line.split()
        for line in text.splitlines()
        if line.startswith(("idle", "cpu", "memory"))
    }
    filled = record.steps[2].total
    assert filled is not None
    assert filled.filled.p99_9_ns is not None
    assert f"{filled.filled.p99_9_ns / 1000:,.1f}" in rows["memory"]
    assert len(rows["memory"]) == len(rows["idle"]) + 1
    assert text.count("filled: each missed activation counts with the latency it would have had") == 1
    assert "filled" not in brief(records["1 CPU"])


def test_marks_that_come_with_every_run_are_a_word(records: dict[str, Record]) -> None:
    text = brief(records["2 CPUs"])
    assert "\n* steal\n" in text
    assert "the hypervisor" not in text
    assert (
        "* doubtful: throttled under cpu, CPU 1: the measuring thread on CPU 1 was preempted 41 times" in text
    )


def test_it_says_how_to_see_the_rest(records: dict[str, Record]) -> None:
    record = records["2 CPUs"]
    text = brief(record)
    assert f"details rtgauge show {record.path} --details" in text
    out = io.StringIO()
    print_summary(record, Console(file=out, width=160), kept=False)
    assert "--details" in out.getvalue()
    out = io.StringIO()
    print_summary(record, Console(file=out, width=160), details=True)
    assert out.getvalue().count("CPU 0") >= 3
    assert "--details" not in out.getvalue()


def test_parts_and_other_metrics_are_a_row_each_by_their_worst(records: dict[str, Record]) -> None:
    """As of a program that is watched: four quantities of each of its threads."""
    record = records["1 CPU"]
    step = record.steps[0]
    series = [
        step.series[0].model_copy(
            update={
                "series": at * 2 + n,
                "metric": metric,
                "labels": {"task": task},
                "max_ns": 1_000_000 * (at + 1) + n,
                "missed": 0,
                "filled": step.series[0],
            }
        )
        for n, task in enumerate(("control", "io"))
        for at, metric in enumerate(("latency", "response", "period"))
    ]
    threads = [
        Result(
            name="thread",
            labels={"task": f"worker {at}"},
            values={"policy": "fifo", "priority": 1, "activations": 1000 - at},
        )
        for at in range(64)
    ]
    watched = step.model_copy(
        update={"series": series, "results": threads, "key": step.key.model_copy(update={"probe": "watch"})}
    )
    changed = replace(record, steps=[watched])
    for width in (80, 160):
        lines = after_the_answer(changed, width)
        assert len(lines) <= MOST_LINES
        assert [line.split()[-1] for line in lines if line.strip().startswith(("response", "period"))] == [
            "io",
            "io",
        ]
        assert [line.split()[-1] for line in lines if line.startswith(("idle*", "idle  "))] == [
            "io",
            "control",
        ]
        assert any("more lines" in line for line in lines)


def cost(low_ns: float, median_ns: float) -> ExplainReport:
    figures = {
        "pairs": 9,
        "without_ns": 6e3,
        "with_ns": 6e3 + median_ns,
        "median_ns": median_ns,
        "low_ns": low_ns,
        "high_ns": 2 * median_ns - low_ns,
    }
    return ExplainReport(
        events=["sched/sched_switch"],
        moments=0,
        not_captured={},
        copy_max_ns=1,
        buffer_kb=1,
        cost=ExplainCost(**figures, bound_ns=2_000),
    )


def test_each_load_is_there_before_what_explaining_cost_which_is_one_line(records: dict[str, Record]) -> None:
    record = records["64 CPUs, 5 loads"]
    costs = [cost(-1_000, 2_000), cost(300, 1_000), cost(400, 1_200), cost(-1, 5), cost(-1, 5)]
    steps = [
        step.model_copy(update={"explain": report}) for step, report in zip(record.steps, costs, strict=True)
    ]
    notes = [LeftOut(what=f"load x{at}", reason="not installed", remedy="install it") for at in range(3)]
    lines = after_the_answer(
        replace(record, steps=steps, run=record.run.model_copy(update={"left_out": notes})), 80
    )
    assert len(lines) <= MOST_LINES
    assert [
        line.split()[0].rstrip("*") for line in lines if line.split() and line.split()[0].rstrip("*") in FIVE
    ] == [step.key.load for step in record.steps]
    assert [line for line in lines if line.startswith("filled: ")]
    (said,) = [line for line in lines if "recording" in line]
    assert said.startswith("recording the kernel's events costs 1.20 us at the median (0.40 to 2.00)")
    none = [step.model_copy(update={"explain": cost(-9, 2)}) for step in record.steps]
    assert "recording the kernel's events has an unknown cost in all 5 steps" in brief(
        replace(record, steps=none)
    )


def test_a_verdict_does_not_change_the_size(tmp_path: Path) -> None:
    for word in VerdictWord:
        record = Record.open(write_record(tmp_path / word.name, Shape(loads=FIVE, seconds=1, verdict=word)))
        assert len(after_the_answer(record, 80)) <= MOST_LINES


def test_series_of_one_cpu_are_told_apart_by_their_other_labels() -> None:
    """inversion measures four kinds of lock on one CPU."""
    locks = ("mutex", "inherit-mutex")
    summary = summarise_step(
        windows_of(*(row([5_000 + at], series=at) for at in range(2))),
        [info(at, "wait", cpu=1, lock=lock) for at, lock in enumerate(locks)],
    )
    measured, _ = one_step([[1_000]])
    rows = _each(measured.model_copy(update={"series": summary.series, "total": summary.total}), "idle")
    assert [row.name for row in rows] == ["idle, inherit mutex", "idle, mutex"]
