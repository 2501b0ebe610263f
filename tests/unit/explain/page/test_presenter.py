# SPDX-License-Identifier: MIT
"""What the terminal and the page show of explained steps."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from rtgauge.analysis.spikes import step_words
from rtgauge.cli.record_argument import open_record
from rtgauge.cli.show_command import show_explained
from rtgauge.errors import RecordError
from rtgauge.explain.analysis import culprits
from rtgauge.explain.analysis.attribution import explain as explain_moment
from rtgauge.explain.analysis.culprits import ExplainedStep, blame_of, explained_steps
from rtgauge.explain.analysis.explanation import Kind
from rtgauge.explain.page.explained_document import explained_document
from rtgauge.explain.page.presenter import print_latencies
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.record.model import Mark, Outlier, Result, Severity, Step
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.report.figure_data import Source
from rtgauge.report.record_page import figures, html
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal_summary import print_summary
from rtgauge.system.deployment.extension_auditor import AuditRule
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from tests.support.explained import add_moments, moment_document, real_formats, real_moment
from tests.support.published import check_published
from tests.support.records import Shape, write_record
from tests.unit.explain.made_events import LOWER, MEASURED, RELEASE, Story

if TYPE_CHECKING:
    from rtgauge.explain.trace.moment import Moment


def by_irq(latency: float) -> Moment:
    """A handler keeps the timer of CPU 1; its bottom half runs before it."""
    story = (
        Story()
        .switch(-500, 1, MEASURED, LOWER, state=1)
        .at(-1, 1, "irq_handler_entry", irq=31, name="virtio-net")
    )
    story.at(latency - 25, 1, "irq_handler_exit", irq=31).at(latency - 24, 1, "softirq_entry", vec=3).at(
        latency - 14, 1, "softirq_exit", vec=3
    )
    return story.timer(latency - 13, 1).switch(latency - 5, 1, LOWER, MEASURED).moment(latency)


def by_hog_of(latency: float) -> Moment:
    """A task has CPU 1 for almost all of it."""
    hog = ("hog", 300, 9)
    story = Story().switch(-500, 1, MEASURED, hog, state=1).timer(0, 1)
    return story.switch(latency - 5, 1, hog, MEASURED).moment(latency)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record of two steps: of the first a real moment was frozen, of the second three drawn ones."""
    record = write_record(tmp_path, Shape(loads=("idle", "cpu"), seconds=2, marks=False))
    first, second = json.loads((record / "run.json").read_text())["steps"]
    add_moments(record, first, real_formats(), [{"type": "moment", **real_moment()}])
    add_moments(
        record,
        second,
        real_formats(),
        [moment_document(by_irq(latency), real_formats()) for latency in (80.5, 212.125, 120.25)],
    )
    return record


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = AuditRule("No interrupt on isolated CPUs", "write /proc/irq/N/smp_affinity_list")
    monkeypatch.setattr(culprits, "audit_rules", lambda: {"irqs-on-isolated": rule})


LOADS = (("idle", "1 latency"), ("cpu", "3 latencies"))


def shown(record: Record, width: int = 1000) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_summary(record, console, details=True)
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_a_moment_longer_than_its_ring_begins_unknown() -> None:
    story = Story().switch(300, 1, LOWER, MEASURED).switch(400, 1, MEASURED, LOWER, state=1)
    formats = TraceFormats.read(real_formats())
    explanation = explain_moment(
        read_moment(formats, moment_document(story.moment(350), real_formats())), formats.symbols
    )
    assert {part.culprit.kind: part.ns for part in explanation.parts} == {
        Kind.UNATTRIBUTED: 300_000,
        Kind.OWN: 50_000,
    }
    assert explanation.doubts == ["events were lost during this latency"]


def test_the_terminal_ranks_culprits_and_sums_the_worst(path: Path, audited: None) -> None:
    text = shown(Record.open(path))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert any(re.fullmatch(r"1\. task hog .*100 % 97\.9 % 2,392\.7 us", line) for line in lines)
    first = lines.index("worst explained latency: 2,444.631 us on CPU 0")
    parts = [line for line in lines[first + 1 :] if re.match(r"[\d,.]+ us ", line)][:4]
    sizes = [round(1000 * float(line.split()[0].replace(",", ""))) for line in parts]
    assert sizes == [24_787, 16_094, 2_392_723, 11_027]
    assert sum(sizes) == 2_444_631
    assert "task hog (real-time priority 90, pid 28716) ran" in parts[2]
    assert "1. interrupts ran (irq 31 (virtio-net)" in text
    assert "/proc/irq/31/smp_affinity_list" in text
    assert "(rtgauge audit: irqs-on-isolated)" in " ".join(text.split())


def test_the_deciding_steps_largest_finding_comes_first(path: Path) -> None:
    record = Record.open(path)
    whole, *_ = judge_run(parse_requirement("latency<=1us"), record, blame_of=blame_of)
    for number, decisive in enumerate(record.steps):
        evidence = {**whole.evidence, "decided_by": decisive.id}
        record.run.verdicts = [whole.model_copy(update={"evidence": evidence})]
        text = shown(record)
        names = [text.index(f"{load}: {count} explained") for load, count in LOADS]
        assert names.index(min(names)) == number
        first = text[min(names) :].splitlines()[1]
        assert first.strip().startswith(f"worst explained latency: {('2,444.631', '212.125')[number]} us")


def test_one_activations_latency_and_response_are_one(path: Path) -> None:
    record = Record.open(path)
    (step, *_) = record.steps
    latency, response = by_irq(80.5), replace(by_irq(212.125), series=1)
    step.series.append(step.series[0].model_copy(update={"series": 1, "metric": "response"}))
    both = ExplainedStep(
        step, [explain_moment(moment, Symbols((), ())) for moment in (latency, response)], Symbols((), ())
    )
    (shown_one,) = both.activations
    assert (shown_one.latency_ns, both.metric(shown_one)) == (212_125, "response")
    assert sum(ranked.ns for ranked in both.culprits) == 212_125


def test_the_page_has_the_ranking_the_parts_and_the_figure(path: Path) -> None:
    record = Record.open(path)
    page = html(record)
    assert page.count('id="explained"') == 1
    assert "handler of irq 31 (virtio-net)" in page
    drawn = figures(Source.of(RecordView(record)))
    assert [name for name in drawn if name.startswith("explained-")] == [
        f"explained-{step.id}" for step in record.steps
    ]
    (spec,) = drawn[f"explained-{record.steps[1].id}"].specs
    text = json.dumps(spec)
    assert all(
        name in text for name in ("CPU 0", "CPU 1", "release", "wake-up", "clock read", "irq 31 (virtio-net)")
    )
    assert re.search(r"^The worst explained latency, .*[0-9] us.*irq 31", spec["description"])


def test_every_latency_is_explained_in_words_and_json(path: Path) -> None:
    record = Record.open(path)
    steps = explained_steps(record)
    document = json.loads(explained_document(str(path), steps).model_dump_json())
    assert [len(step["latencies"]) for step in document["steps"]] == [1, 3]
    for step in document["steps"]:
        for latency in step["latencies"]:
            assert sum(part["ns"] for part in latency["parts"]) == latency["latency_ns"]
    first = document["steps"][1]["culprits"][0]
    assert (first["kind"], first["name"], first["number"], first["rules"][0]) == (
        "irq",
        "virtio-net",
        31,
        "irqs-on-isolated",
    )
    console = Console(file=io.StringIO(), width=200)
    print_latencies(RecordView(record), steps, console)
    text = console.file
    assert isinstance(text, io.StringIO)
    lines = [line.strip() for line in text.getvalue().splitlines()]
    assert [line.split()[0] for line in lines if " us on CPU " in line] == [
        "2,444.631",
        "212.125",
        "120.250",
        "80.500",
    ]


def test_the_document_is_as_published(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_explained(open_record(path), None, json=True)
    text = capsys.readouterr().out
    assert json.loads(text)["steps"][1]["latencies"]
    check_published(text, "explain")


def test_run_and_explain_propose_the_same(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record.open(path)
    requirement = parse_requirement("latency<=100us")
    record.run.verdicts = judge_run(requirement, record, blame_of=blame_of)
    RecordWriter(path, record.run.id).write_run(record.run)
    whole, *_ = record.run.verdicts
    assert whole.next is not None
    show_explained(open_record(path), None, json=False)
    shown = " ".join(capsys.readouterr().out.split())  # lines end at the terminal's width
    assert f"next {whole.next}" in shown
    assert whole.cause is not None
    assert whole.cause.startswith("interrupts ran (")


def test_a_failure_is_mended_at_what_took_most_of_the_time(path: Path, audited: None) -> None:
    record = Record.open(path)
    requirement = parse_requirement("latency<=1us")
    _, hog, irq = judge_run(requirement, record, blame_of=blame_of)
    assert hog.next is not None
    assert irq.next is not None
    assert hog.next == "run chrt -f -p 79 28716, or give hog another CPU, then repeat the measurement"
    assert "/proc/irq/31/smp_affinity_list" in irq.next


def test_what_nothing_changes_is_no_next_step(path: Path) -> None:
    """The interrupt of the thread's own timer took most of the time."""
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(0, 1)
    story.events[-1] = story.events[-1]._replace(time_ns=RELEASE + 900_000)
    late = story.switch(905, 1, LOWER, MEASURED, state=1).moment(910)
    record, step = watched_threads(path, [replace(late, series=0)], control=2_000_000)
    blame = blame_of(record, step, parse_requirement("latency<=50us"))
    assert blame is not None
    assert (blame.name, blame.remedy) == ("local timer interrupt", None)


def watched_threads(path: Path, moments: list[Moment], **periods_ns: int) -> tuple[Record, Step]:
    """A step of `watch` with these moments and threads, each with a latency and a response: series 0 and 1 are
    of the first.
    """
    documents = [moment_document(moment, real_formats()) for moment in moments]
    add_moments(path, Record.open(path).steps[1].id, real_formats(), documents)
    record = Record.open(path)
    step = record.steps[1]
    (series, *_) = step.series
    step.series = [
        series.model_copy(update={"series": 2 * number + offset, "metric": metric, "labels": {"task": task}})
        for number, task in enumerate(periods_ns)
        for offset, metric in enumerate(("latency", "response"))
    ]
    step.results = [
        Result(
            name="thread",
            labels={"task": task},
            values={"definitions": 2, "kind": "periodic", "period_ns": period_ns, "activations": 9},
        )
        for task, period_ns in periods_ns.items()
    ]
    return record, step


def test_only_the_threads_that_a_requirement_is_about_are_blamed(path: Path) -> None:
    moments = [replace(by_irq(100.5), series=1), replace(by_hog_of(9000), series=3)]
    record, step = watched_threads(path, moments, control=2_000_000, planner=40_000_000)
    both = blame_of(record, step, parse_requirement("response<=50us"))
    assert both is not None
    assert both.name == "task hog"
    control = blame_of(record, step, parse_requirement("response<=50us"), "control")
    item = blame_of(record, step, parse_requirement("period=2ms response<=50us"))
    assert item is not None
    assert item.name == "irq 31 (virtio-net)"
    assert item == control
    assert blame_of(record, step, parse_requirement("response<=50us"), "gone") is None


def test_of_two_bounds_the_culprit_is_of_the_one_that_was_broken(path: Path) -> None:
    moments = [replace(by_hog_of(90), series=0), replace(by_irq(100.5), series=1)]
    record, step = watched_threads(path, moments, control=2_000_000)
    blame = blame_of(record, step, parse_requirement("period=2ms latency<=200us response<=95us"))
    assert blame is not None
    assert blame.name == "irq 31 (virtio-net)"


def test_a_mark_of_several_figures_is_one_badge(path: Path) -> None:
    record = Record.open(path)
    marked = [Mark(name="steal", severity=Severity.NOTE, detail=f"of CPU {cpu}") for cpu in range(2)]
    record.steps[0].marks.extend(marked)
    record.steps[1].marks.clear()
    (heading,) = re.findall(r"<h3>.*steal.*</h3>", html(record))
    assert heading.count("note: steal") == 1


def test_what_took_most_of_the_time_comes_before_a_doubt(path: Path) -> None:
    record = Record.open(path)
    record.steps[0].marks.append(
        Mark(name="steal", severity=Severity.DOUBTFUL, detail="the hypervisor took 1.11% of CPU 0")
    )
    _, hog, _ = judge_run(parse_requirement("latency<=1us"), record, blame_of=blame_of)
    assert hog.next is not None
    assert hog.next.startswith("run chrt -f -p 79 28716")


def test_work_of_its_own_is_to_be_shortened(tmp_path: Path) -> None:
    record = write_record(tmp_path, Shape(loads=("idle",), seconds=2, marks=False))
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(2, 1).switch(8, 1, LOWER, MEASURED)
    add_moments(
        record,
        json.loads((record / "run.json").read_text())["steps"][0],
        real_formats(),
        [moment_document(story.moment(900), real_formats())],
    )
    verdict, _ = judge_run(parse_requirement("latency<=1us"), Record.open(record), blame_of=blame_of)
    assert verdict.next is not None
    assert "thread's own work" in verdict.next


def test_page_faults_are_to_be_kept_out_of_the_loop(tmp_path: Path) -> None:
    record = write_record(tmp_path, Shape(loads=("idle",), seconds=2, marks=False))
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(2, 1).switch(8, 1, LOWER, MEASURED)
    story.at(9, 1, "page_fault_user", address=1, ip=2, error_code=6)
    add_moments(
        record,
        json.loads((record / "run.json").read_text())["steps"][0],
        real_formats(),
        [moment_document(story.moment(900), real_formats())],
    )
    verdict, _ = judge_run(parse_requirement("latency<=1us"), Record.open(record), blame_of=blame_of)
    assert verdict.next is not None
    assert "(mlockall)" in verdict.next
    assert verdict.cause is not None
    assert "page faults" in verdict.cause


def test_a_record_without_moments_says_nothing_of_culprits(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",), seconds=2)))
    assert explained_steps(record) == []
    assert "explained" not in shown(record)


def test_a_step_in_which_nothing_was_frozen_says_so(tmp_path: Path) -> None:
    record = write_record(tmp_path, Shape(loads=("idle",), seconds=2))
    add_moments(record, json.loads((record / "run.json").read_text())["steps"][0], real_formats(), [])
    assert "none of the latencies is explained" in shown(Record.open(record))
    assert html(Record.open(record))


@pytest.mark.parametrize("damage", [{"pages": {"0": ["AAAA"]}}, {"thread": None}])
def test_a_damaged_moment_is_an_error_of_the_record(tmp_path: Path, damage: dict[str, Any]) -> None:
    record = write_record(tmp_path, Shape(loads=("idle",), seconds=2))
    add_moments(
        record,
        json.loads((record / "run.json").read_text())["steps"][0],
        real_formats(),
        [{"type": "moment", **real_moment(), **damage}],
    )
    with pytest.raises(RecordError):
        explained_steps(Record.open(record))


def test_outliers_of_all_cpus_at_one_time_are_one_event(tmp_path: Path) -> None:
    step = Record.open(write_record(tmp_path, Shape(loads=("idle",), seconds=2))).steps[0]
    far = [Outlier(series=cpu, time_ns=5_000_000 + cpu, value_ns=900_000, cpu=cpu) for cpu in range(4)]
    assert step_words(step.model_copy(update={"outliers": far})) == "4 outliers on 4 CPUs are 1 event"
    near = [outlier.model_copy(update={"value_ns": 5_000}) for outlier in far]
    assert step_words(step.model_copy(update={"outliers": near})) is None
