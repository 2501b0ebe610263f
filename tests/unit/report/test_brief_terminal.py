# SPDX-License-Identifier: MIT
"""The summary that is printed by default: short at any size, and what it has is right."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rtgauge.record.model import ExplainCost, ExplainReport, LeftOut, Mark, Result, Severity, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.record.summary import summarise_step
from rtgauge.report.answer_table import _each
from rtgauge.report.brief_terminal import MOST_LINES
from rtgauge.report.terminal_summary import print_conclusion, print_summary
from rtgauge.units import format_time
from tests.support.messages import missing
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
def test_many_doubts_and_left_out_loads_are_counted(records: dict[str, Record], width: int) -> None:
    record = records["64 CPUs, 5 loads"]
    marks = [
        Mark(name=f"doubt-{at}", severity=Severity.DOUBTFUL, detail="something long that is not so sure " * 9)
        for at in range(30)
    ]
    left_out = [LeftOut(what=f"load x{at}", reason="not installed", remedy="install it") for at in range(20)]
    steps = [record.steps[0].model_copy(update={"marks": marks}), *record.steps[1:]]
    run = record.run.model_copy(update={"left_out": left_out, "state": "interrupted"})
    lines = after_the_answer(replace(record, steps=steps, run=run), width)
    assert len(lines) <= MOST_LINES
    text = " ".join(" ".join(lines).split())
    assert re.search(r"doubt-\d+ under idle and \d+ more", text)
    assert "missing 18 more" in text
    assert "interrupted" in text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_load_is_one_row_with_maximum_and_worst_cpu(records: dict[str, Record], width: int) -> None:
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
        assert " ".join(row).endswith(f"{format_time(step.total.max_ns)} CPU {worst.labels['cpu']}") or (
            " ".join(row).endswith(format_time(step.total.max_ns)) and width < 80
        )
    assert not [line for line in lines if line.startswith(("  CPU", "    filled"))]


def test_quantiles_count_missed_activations_and_say_so(records: dict[str, Record]) -> None:
    record = records["2 CPUs"]
    text = brief(record)
    (row,) = [line for line in text.splitlines() if line.startswith("memory")]
    filled = record.steps[2].total
    assert filled is not None
    assert filled.filled.p99_ns is not None
    assert format_time(filled.filled.p99_ns) in row
    assert text.count("each missed activation counts") == 1
    assert "each missed" not in brief(records["1 CPU"])


def test_doubts_are_one_line_and_notes_are_names(records: dict[str, Record]) -> None:
    text = " ".join(brief(records["2 CPUs"]).split())
    assert text.count("doubt throttled under cpu, CPU 1: ") == 1
    assert not missing(text, "noted: steal", "rtgauge marks throttled", "missing load network")
    assert "the hypervisor" not in text


def test_the_last_line_is_the_page_or_the_record(records: dict[str, Record]) -> None:
    record = records["2 CPUs"]
    assert brief(record).splitlines()[-1] == f"record  {record.path}"
    out = io.StringIO()
    print_summary(record, Console(file=out, width=160), kept=False)
    assert str(record.path) not in out.getvalue()
    out = io.StringIO()
    print_summary(record, Console(file=out, width=160), details=True)
    assert out.getvalue().count("CPU 0") >= 3


def test_only_a_kept_record_can_be_resumed(records: dict[str, Record]) -> None:
    record = records["2 CPUs"]
    stopped = replace(
        record,
        run=record.run.model_copy(update={"state": "interrupted", "verdicts": [], "requirement": None}),
    )
    assert f"rtgauge resume {record.path}" in brief(stopped)
    out = io.StringIO()
    print_summary(stopped, Console(file=out, width=160), kept=False)
    assert "give --save to be able to resume" in out.getvalue()
    assert "rtgauge resume" not in out.getvalue()


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
    run = record.run.model_copy(update={"verdicts": [], "requirement": None})
    changed = replace(record, steps=[watched], run=run)
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
        assert sum("more lines: --details shows all" in line for line in lines) == 1


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


def details(record: Record) -> str:
    out = io.StringIO()
    print_summary(record, Console(file=out, width=160), details=True)
    return out.getvalue()


def test_each_load_has_its_row_and_the_cost_is_a_detail(
    records: dict[str, Record],
) -> None:
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
    assert not [line for line in lines if "recording" in line]
    reported = details(replace(record, steps=steps))
    assert reported.count("the median 1.20 us longer (0.40 to 2.00)") == 1
    none = [step.model_copy(update={"explain": cost(-9, 2)}) for step in record.steps]
    assert "in any of the 5 steps" in details(replace(record, steps=none))


def test_a_verdict_does_not_change_the_size(tmp_path: Path) -> None:
    for word in VerdictWord:
        record = Record.open(write_record(tmp_path / word.name, Shape(loads=FIVE, seconds=1, verdict=word)))
        assert len(after_the_answer(record, 80)) <= MOST_LINES


def test_series_of_one_cpu_are_named_by_their_other_labels() -> None:
    """inversion measures four kinds of lock on one CPU."""
    locks = ("mutex", "inherit-mutex")
    summary = summarise_step(
        windows_of(*(row([5_000 + at], series=at) for at in range(2))),
        [info(at, "wait", cpu=1, lock=lock) for at, lock in enumerate(locks)],
    )
    measured, _ = one_step([[1_000]])
    rows = _each(measured.model_copy(update={"series": summary.series, "total": summary.total}), "idle")
    assert [row.name for row in rows] == ["idle, inherit mutex", "idle, mutex"]


def test_a_record_without_windows_has_its_rows_without_shares(tmp_path: Path) -> None:
    """As of a probe without --save."""
    record = Record.open(write_record(tmp_path, Shape(verdict=None)))
    assert "latency within" in brief(record)
    for file in record.path.glob("steps/*/windows.parquet"):
        file.unlink()
    text = brief(record)
    assert "latency within" not in text
    rows = {line.split()[0].rstrip("*") for line in text.splitlines() if line.split()}
    assert {"idle", "cpu", "memory"} <= rows
