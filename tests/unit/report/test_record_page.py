# SPDX-License-Identifier: MIT
"""What the page says, read as HTML."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError
from rtgauge.probe.watch import WatchParameters
from rtgauge.record.facts import Facts
from rtgauge.record.model import Changes, LeftOut, Mark, Severity, TableLine, TextChange, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.report.record_page import Drawn, html, render
from rtgauge.report.record_view import RecordView
from rtgauge.report.step_tables import load_tables
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from tests.support.messages import missing
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--"


class Reader(HTMLParser):
    """The tags of a page, its text without scripts and style, and the links to elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self.outside: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in {"script", "style"}:
            self._inside = tag
            self.scripts.append("")
        self.outside += [
            value
            for name, value in attrs
            if name in {"src", "href", "action", "data"} and value and not value.startswith(("#", "data:"))
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data
        else:
            self.text += data


def read(folder: Path, shape: Shape | None = None) -> Reader:
    return Reader(html(Record.open(write_record(folder, shape))))


def test_the_verdict_comes_first_and_all_parts_are_there(tmp_path: Path):
    before, _, after = html(Record.open(write_record(tmp_path))).partition("<nav")
    text = Reader(before + after.partition("</nav>")[2]).text
    parts = [
        "Fails",
        "try a kernel with PREEMPT_RT",
        "load network was left out",
        "the hypervisor took",
        "Idle and loaded",
    ]
    parts += ["Exceedance", "Course of maxima", "Latency histogram", "Per CPU", "The largest latencies"]
    parts += [
        "Loads",
        "What changed during each step",
        "The system",
        "How it was measured",
        "Parameters",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_contents_lead_to_every_section(tmp_path: Path):
    for shape in (Shape(), Shape(seed=2, loads=(), state="interrupted")):
        page = html(Record.open(write_record(tmp_path, shape)))
        contents = page[page.index("<nav") : page.index("</nav>")]
        assert re.findall(r'href="#([^"]+)"', contents) == re.findall(r'<section id="([^"]+)"', page)[1:]


@pytest.mark.parametrize(
    ("parameters", "program"),
    [
        (WatchParameters(program="control<b>"), "control&lt;b&gt;"),
        (WatchParameters(pid=7713), "process 7713"),
    ],
)
def test_the_page_of_watch_is_titled_by_its_program(
    tmp_path: Path, parameters: WatchParameters, program: str
):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    (step,) = record.steps
    key = step.key.model_copy(update={"probe": "watch", "parameters": parameters})
    watched = replace(record, steps=[step.model_copy(update={"key": key})])
    page = html(watched)
    assert f"<title>{program} on board-7: quick, " in page
    assert f"<h1>{program} on board-7 " in page


def test_the_page_of_calibrate_has_the_cost_of_the_clocks(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    assert "CLOCK_TAI" not in Reader(html(record)).text
    (step,) = record.steps
    key = step.key.model_copy(update={"probe": "calibrate"})
    page = html(replace(record, steps=[step.model_copy(update={"key": key})]))
    assert "CLOCK_TAI" in Reader(page.partition('id="clocks"')[2].partition("</section>")[0]).text


@pytest.mark.parametrize("word", list(VerdictWord))
def test_every_verdict_is_in_words(tmp_path: Path, word: VerdictWord):
    record = Record.open(write_record(tmp_path, Shape(verdict=word, loads=("idle",))))
    page = html(record)
    assert f'class="verdict {word.value.replace(" ", "-")}"' in page
    assert record.run.verdicts[0].next in Reader(page).text


def test_without_a_requirement_it_says_how_to_ask(tmp_path: Path):
    text = read(tmp_path, Shape(verdict=None)).text
    assert "Worst latency 3.79 ms under memory on CPU 0" in text
    assert "This run has no requirement" in text
    assert 'rtgauge run --require "period=1ms latency<=200us hardness=100%"' in text


def test_the_table_has_the_numbers_of_the_record(tmp_path: Path):
    record = Record.open(write_record(tmp_path))
    text = Reader(html(record)).text
    for step in record.steps:
        assert step.total is not None
        assert step.total.max_ns is not None
        assert f"{step.total.max_ns / 1000:,.1f}" in text
    assert "Latency without the missed activations: 3 lines" in text
    assert "each missed activation" in text
    none = read(tmp_path, Shape(seed=2, missed_under=())).text
    assert "without the missed activations" not in none
    assert "count each missed" not in none


def test_a_load_is_one_row_with_its_missed_activations_filled_in(tmp_path: Path):
    record = Record.open(write_record(tmp_path))
    view = RecordView(record)
    filled, plain = load_tables(view)["latency"]
    assert plain.folded
    assert len(filled.rows) == len(plain.rows) == len(record.steps)
    for step, *rows in zip(record.steps, filled.rows, plain.rows, strict=True):
        assert step.total is not None
        counts = [f"{step.total.count:,}", f"{step.total.missed:,}"]
        for row, figures in zip(rows, (step.total.filled, step.total), strict=True):
            p50 = figures.p50_ns or step.total.p50_ns
            assert p50 is not None
            assert row[:3] == [view.labels[step.id], *counts]
            assert row[6] == f"{p50 / 1000:,.1f}"
    assert filled.rows != plain.rows


def test_lower_bounds_are_shown_as_such(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    step = record.steps[0]
    assert step.total is not None
    total = step.total.model_copy(update={"p99_ns": 10**10, "lower_bounds": ["p99_ns"]})
    changed = replace(record, steps=[step.model_copy(update={"total": total})])
    assert "≥10,000,000.0" in Reader(html(changed)).text
    assert "<td>≥" not in html(record)


def test_a_mark_appears_once_and_points_to_its_numbers(tmp_path: Path):
    page = html(Record.open(write_record(tmp_path, Shape(repeats=2))))
    assert Reader(page).text.count("was preempted 41 times") == 1
    assert "throttled on 2 of 6 steps" in Reader(page).text
    table = page[page.index('id="numbers"') : page.index('id="figures"')]
    assert table.count('<span title="throttled">*</span>') == 2
    assert "throttled" not in read(tmp_path, Shape(seed=2, marks=False)).text


def test_what_was_left_out_is_shown_with_its_remedy(tmp_path: Path):
    text = read(tmp_path).text
    assert "iperf3 is not installed" in text
    assert "apt-get install iperf3" in text


def test_the_system_and_each_caption_are_there_once(tmp_path: Path):
    page = html(Record.open(write_record(tmp_path)))
    line = (
        "board-7 · Linux 6.1.0-18-amd64 · preemption dynamic · 2 CPUs of AMD EPYC 7763 64-Core "
        "Processor · virtual machine (kvm)"
    )
    assert page.count(line) == 1
    assert page.count("Marked: ") == 1
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.DOTALL)
    assert len(captions) == len(set(captions)) >= 3


def test_each_figure_says_its_numbers_in_words(tmp_path: Path):
    record = Record.open(write_record(tmp_path))
    record.run.verdicts = judge_run(parse_requirement("p99.9<=200us"), record, RecordView(record).labels)
    drawn = {name: figure.description for name, figure in Drawn.of(record).figures.items()}
    late = r"memory: of 10,000, 1 in 1,250 later than 200 us, none later than 3\.79 ms.*; 0\.1 % allowed"
    assert re.search(late, drawn["exceedance"]), drawn["exceedance"]
    assert "memory: up to 3.79 ms, 6 missed" in drawn["course"]
    page = html(record)
    assert len(re.findall(r"more than 0\.1 % [^<]*later than 200 us", page)) == 1
    assert all(label for label in re.findall(r'class="chart"[^>]*aria-label="([^"]*)"', page))


def test_the_title_says_which_machine_and_when(tmp_path: Path):
    assert "<title>board-7: quick, 2026-11-21 10:03 UTC</title>" in html(Record.open(write_record(tmp_path)))


def test_passes_and_failures_are_at_the_top_by_load(tmp_path: Path):
    record = Record.open(write_record(tmp_path))
    record.run.verdicts = judge_run(parse_requirement("latency<=200us"), record, RecordView(record).labels)
    top = Reader(html(record).partition('id="numbers"')[0]).text
    assert "memory: 8 of 10,000 later than 200 us" in top
    assert not missing(top, "none allowed", "worst 3.79 ms on CPU 0")
    for load, sign in (("idle", "✗"), ("cpu", "✓"), ("memory", "✗")):
        assert f"{sign} {load}" in top


def test_a_cpu_that_could_not_be_measured_is_named_at_the_top(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(verdict=None)))
    record.steps[1].cpus_not_measured = [{"cpu": 3, "reason": "affinity"}]
    top = Reader(html(record).partition('id="numbers"')[0]).text
    assert not missing(top, "Not measured: CPU 3", "taskset")


def test_a_single_condition_is_not_compared(tmp_path: Path):
    page = html(Record.open(write_record(tmp_path, Shape(loads=("idle",)))))
    assert "Idle and loaded" not in page
    assert 'id="figure-exceedance"' in page


def test_what_the_audit_found_is_there_in_short(tmp_path: Path):
    audit = {
        "purpose": "stock",
        "serious": ["CPUs stay out of deep C-states"],
        "moderate": [],
        "minor": [],
        "unknown": 2,
        "ok": 40,
    }
    text = " ".join(read(tmp_path, Shape(system={"audit": audit})).text.split())
    assert not missing(text, "stock", "1 serious (CPUs stay out of deep C-states)", "0 moderate", "2 unknown")
    assert not missing(text, "40 as wanted")
    assert "Audit for" not in read(tmp_path, Shape(seed=2)).text


def test_unknown_facts_are_shown_as_unknown(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    text = Reader(html(replace(record, systems={"local": Facts()}))).text
    assert "local · nothing else" in text
    assert "does not contain facts" in Reader(html(replace(record, systems={}))).text


def test_hostile_names_stay_text(tmp_path: Path):
    folder = write_record(
        tmp_path, Shape(host=HOSTILE, system={"os": HOSTILE, HOSTILE: HOSTILE}, loads=("idle", "cpu"))
    )
    record = Record.open(folder)
    step = record.steps[1]
    key = step.key.model_copy(update={"load": HOSTILE, "deployment": HOSTILE})
    load = step.load.model_copy(update={"notes": [HOSTILE], "name": HOSTILE})
    marks = [mark.model_copy(update={"name": HOSTILE, "detail": HOSTILE}) for mark in step.marks]
    hostile = step.model_copy(
        update={
            "key": key,
            "load": load,
            "marks": marks,
            "tool": HOSTILE,
            "parameters": {HOSTILE: HOSTILE},
            "changes": Changes(
                interrupts={HOSTILE: TableLine(name=HOSTILE, total=1, per_cpu={HOSTILE: 1})},
                clock_source=TextChange(before=HOSTILE, after="tsc"),
            ),
        }
    )
    verdicts = [
        verdict.model_copy(update={"reason": HOSTILE, "next": HOSTILE, "requirement": HOSTILE})
        for verdict in record.run.verdicts
    ]
    run = record.run.model_copy(
        update={
            "verdicts": verdicts,
            "left_out": [LeftOut(what=HOSTILE, reason=HOSTILE, remedy=HOSTILE)],
            "command": [HOSTILE],
        }
    )
    plain, page = (
        Reader(html(record)),
        Reader(html(replace(record, steps=[record.steps[0], hostile], run=run))),
    )
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert page.text.count(HOSTILE) > 10
    assert not any(script.lstrip().startswith("alert") for script in page.scripts)
    data = json.loads(page.scripts[1])
    assert HOSTILE in json.dumps(data, ensure_ascii=False).replace('\\"', '"')
    assert len(plain.scripts) == len(page.scripts)


def test_the_page_needs_nothing_from_elsewhere_and_is_small(tmp_path: Path):
    page = html(Record.open(write_record(tmp_path)))
    assert Reader(page).outside == []
    assert "default-src 'none'" in page
    assert len(page.encode()) < 1_500_000


def test_the_page_of_a_large_machine_stays_below_its_size(tmp_path: Path):
    shape = Shape(
        cpus=tuple(range(64)),
        loads=("idle", "cpu", "memory", "network", "papers", "scheduler"),
        seconds=2,
        sigma=0.6,
    )
    page = html(Record.open(write_record(tmp_path, shape)))
    assert len(page.encode()) < 2_500_000
    assert '<option value="63">' in page


def test_a_run_without_a_finished_step_has_a_page(tmp_path: Path):
    text = read(tmp_path, Shape(loads=(), state="interrupted")).text
    assert "The run finished none of its steps" in text
    assert "This run is interrupted" in text


def test_render_writes_one_file_or_says_why_not(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",))))
    out = tmp_path / "page.html"
    render(record, out)
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([record.path.name, "page.html"])
    with pytest.raises(InputError, match="cannot be written"):
        render(record, tmp_path / "absent" / "page.html")


def test_what_a_foreign_tool_did_not_count_is_not_called_none(tmp_path: Path):
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",), marks=False, missed_under=())))
    step = record.steps[0]
    unknown = Mark(
        name="missed-unknown",
        severity=Severity.NOTE,
        detail="cyclictest skips activations that it slept through",
    )
    foreign = step.model_copy(
        update={
            "marks": [unknown],
            "tool": "cyclictest 2.40",
            "key": step.key.model_copy(update={"tool": "cyclictest"}),
        }
    )
    text = Reader(
        html(replace(record, run=record.run.model_copy(update={"verdicts": []}), steps=[foreign]))
    ).text
    assert "missed activations is unknown" in text
    assert "?: not known" in text
    assert "cyclictest 2.40" in text
    assert (
        "the number of missed activations"
        not in Reader(html(replace(record, run=record.run.model_copy(update={"verdicts": []})))).text
    )
