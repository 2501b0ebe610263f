# SPDX-License-Identifier: MIT
"""The judgement of a self test on drawn stalls: found, sized, named, confused."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.support.explained import add_moments, moment_document, real_formats
from tests.support.messages import missing
from tests.support.published import check_published
from tests.support.records import Shape, write_record
from tests.unit.explain.made_events import LOWER, MEASURED, RELEASE, Story

from rtgauge.errors import InputError
from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Explanation, Kind
from rtgauge.explain.trace.formats import Symbols
from rtgauge.load import load_registry
from rtgauge.load.load import LoadContext
from rtgauge.record.model import ExplainReport, Mark, Severity
from rtgauge.record.reader import Record
from rtgauge.record.record_folder import checksum
from rtgauge.report.record_page import html
from rtgauge.target.file_batch import Files
from rtgauge_ext.selftest.judge import (
    Injected,
    KindResult,
    SelfTest,
    end_known,
    injected_stalls,
    judge_stall,
    self_test,
    verdict_words,
)
from rtgauge_ext.selftest.selftest_presenter import print_self_test, selftest_document
from rtgauge_ext.selftest.stall import BY_MODULE, KINDS, MODULE, SHELL

HOG = ("rtgauge-hog", 300, 4)


def story(latency: float, kind: str = "hog") -> Story:
    """A latency by a stall of a kind, which ends 5 us before it."""
    if kind == "hog":
        return (
            Story()
            .switch(-500, 1, MEASURED, HOG, state=1)
            .timer(1, 1)
            .switch(latency - 5, 1, HOG, MEASURED, state=1)
        )
    drawn = Story().switch(-500, 1, MEASURED, LOWER, state=1).at(-10, 1, "softirq_entry", vec=3).timer(1, 1)
    return drawn.at(latency - 5, 1, "softirq_exit", vec=3).switch(latency - 3, 1, LOWER, MEASURED)


def explained(latency: float, kind: str = "hog") -> Explanation:
    return explain(story(latency, kind).moment(latency), Symbols((), ()))


def stall(kind: str, start_us: float, end_us: float) -> Injected:
    return Injected(kind, 1, RELEASE + round(start_us * 1000), RELEASE + round(end_us * 1000))


def test_a_stall_is_found_sized_and_named() -> None:
    judged = judge_stall(stall("hog", -100, 495), [explained(500), explained(30)], 200_000)
    assert judged.named
    assert judged.answer is not None
    assert judged.answer.kind is Kind.TASK
    assert judged.expected_ns == 495_000
    assert judged.found_ns == 495_000
    assert judged.size_right


def test_a_page_fault_before_the_stall_is_not_part_of_it() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(1, 1).switch(7, 1, LOWER, MEASURED)
    for begin in (10, *range(100, 500, 2)):
        story.at(begin, 1, "page_fault_user", address=4096 * begin, ip=1, error_code=6)
        story.at(begin + 1, 1, "rss_stat", member=1)
    known = explain(story.switch(510, 1, MEASURED, LOWER, state=1).moment(510), Symbols((), ()))
    judged = judge_stall(stall("fault", 99, 500), [known], 200_000)
    assert judged.named
    assert judged.size_right


def test_a_later_stall_in_the_same_latency_is_not_part_of_it() -> None:
    """The fair program ran twice while the thread was throttled, and another program ran in between."""
    times = Story().switch(-500, 1, MEASURED, HOG, state=1).timer(0, 1)
    other = ("other", 77, HOG[2])
    times.switch(300, 1, HOG, other).switch(600, 1, other, HOG).switch(1_100, 1, HOG, MEASURED, state=1)
    known = explain(times.moment(1_110), Symbols((), ()))
    assert judge_stall(stall("hog", -100, 299), [known], 200_000).size_right
    assert judge_stall(stall("hog", 601, 1_099), [known], 200_000).size_right


def test_a_stall_that_is_given_to_another_is_not_named() -> None:
    judged = judge_stall(stall("hog", -100, 495), [explained(500, "softirq")], 200_000)
    assert judged.answer is not None
    assert not judged.named
    assert judge_stall(stall("softirq", -100, 495), [explained(500, "softirq")], 200_000).named


def test_the_gap_of_timers_contains_the_measured_wakeup() -> None:
    late = Story().switch(-500, 1, MEASURED, LOWER, state=1).at(-10, 1, "softirq_entry", vec=3).timer(1, 1)
    late.at(475, 1, "softirq_exit", vec=3).switch(485, 1, LOWER, MEASURED)
    known = explain(late.moment(500), Symbols((), ()))
    assert not judge_stall(stall("timers", -10, 520), [known], 200_000).size_right
    assert judge_stall(stall("timers", -10, 520), [known], 200_000, 27_000).size_right
    assert not judge_stall(stall("timers", -10, 499), [known], 200_000, 27_000).size_right


def test_a_stall_without_a_latency_of_its_own_is_not_found() -> None:
    assert judge_stall(stall("hog", 10_000, 11_000), [explained(500)], 200_000).answer is None
    assert judge_stall(stall("hog", 400, 1_000), [explained(500)], 200_000).answer is None
    assert judge_stall(stall("hog", 0, 1_000), [], 200_000).answer is None


def record_of(tmp_path: Path, load: str, log: list[Injected], moments: list[Story]) -> Record:
    """A record of one step under stalls, whose windows are about the time of the drawn moments."""
    path = write_record(tmp_path, Shape(loads=("idle",), seconds=2))
    (step,) = json.loads((path / "run.json").read_text())["steps"]
    add_moments(
        path,
        step,
        real_formats(),
        [
            moment_document(drawn.moment(latency), real_formats())
            for drawn, latency in zip(moments, (500, 700), strict=False)
        ],
    )
    folder = path / "steps" / step
    (folder / "load.log").write_text(
        "== 'python3'\n" + "".join(json.dumps(asdict(stall)) + "\n" for stall in log) + "{\n[1]\n"
    )
    about = json.loads((folder / "step.json").read_text())
    about["key"] |= {"load": load, "parameters": {"interval_ns": 200_000, "explain_above_ns": 200_000}}
    about["checksums"]["load.log"] = checksum(folder / "load.log")
    (folder / "step.json").write_text(json.dumps(about))
    return Record.open(path)


def test_the_matrix_over_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [stall("hog", -100, 495), stall("hog", 20_000, 20_900), stall("hog", 40_000, 40_050)]
    record = record_of(tmp_path, "stall:hog:1", log, [story(500)])
    monkeypatch.setattr("rtgauge_ext.selftest.judge._measured", lambda _record, _step: (0, RELEASE * 2))
    result = self_test(record)
    assert result is not None
    # the third is too short to be sure of a latency above the threshold
    assert [result.total(name) for name in ("injected", "found", "named")] == [2, 1, 1]
    assert (result.others, result.passed) == (0, False)
    assert result.kinds[0].answers == {"task rtgauge-hog": 1, "not found": 1}
    console = Console(file=io.StringIO(), width=160)
    print_self_test(result, console)
    text = console.file
    assert isinstance(text, io.StringIO)
    (answer, *_) = text.getvalue().split("\n\n")
    assert not missing(answer, "not right", "hog", "2 injected", "1 was found", "50 %", "right size")
    assert "Self test" in html(record)
    document = selftest_document(str(record.path), result)
    assert text.getvalue().startswith(document.conclusion)
    check_published(document.model_dump_json(), "selftest")
    check_published(selftest_document(str(record.path), None).model_dump_json(), "selftest")


def kind_of(*, injected: int = 73, named: int = 73, sizes_right: int = 73, busy: str = "") -> KindResult:
    """A kind of which every stall was found."""
    answers = {"task rtgauge-hog": named}
    return KindResult("hog", injected, injected, named, sizes_right, 6_500, 9_000, 0, answers, busy)


def test_each_kind_must_come_be_named_and_be_sized() -> None:
    right = kind_of()
    assert SelfTest([right], 0).passed
    for wrong in (
        kind_of(injected=0, named=0, sizes_right=0),
        kind_of(named=0),
        kind_of(sizes_right=36),
        replace(right, ends=100, ends_right=3),
    ):
        result = SelfTest([right, wrong], 0)
        assert (result.passed, result.too_busy) == (False, False)
    never = SelfTest([right, replace(kind_of(injected=0, named=0, sizes_right=0), kind="throttle")], 0)
    assert verdict_words(never).startswith(
        "The explanations are not right, and the self test did not cause stalls of these kinds: throttle: "
    )
    assert verdict_words(SelfTest([right], 0)).startswith("The explanations are right: ")
    assert "73 named correctly (100 %), 36 of them" in verdict_words(SelfTest([kind_of(sizes_right=36)], 0))


def test_a_busy_machine_is_not_a_wrong_explanation() -> None:
    busy = SelfTest([kind_of(), kind_of(named=60, busy="9 latencies were not kept")], 0)
    assert (busy.passed, busy.too_busy) == (False, True)
    words = (
        "The machine was too busy to tell whether the explanations are right (hog: 9 latencies were not kept)"
    )
    assert verdict_words(busy).startswith(words)
    assert not SelfTest([kind_of(named=60, busy="busy"), kind_of(named=60)], 0).too_busy


def test_a_changed_clock_makes_a_right_result_invalid() -> None:
    result = SelfTest([kind_of()], 0, {}, {"hog": "clock-changed: tsc to hpet"})
    assert (result.passed, result.too_busy) == (False, False)
    assert verdict_words(result).startswith("The self test is invalid (hog: clock-changed: tsc to hpet)")


def test_invalid_steps_and_lost_moments_are_in_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(tmp_path, "stall:hog:1", [stall("hog", -100, 495)], [story(500)])
    monkeypatch.setattr("rtgauge_ext.selftest.judge._measured", lambda _record, _step: (0, RELEASE * 2))
    (step,) = record.steps
    step.marks.append(Mark(name="clock-changed", severity=Severity.INVALID, detail="tsc to hpet"))
    step.explain = ExplainReport(
        events=[], moments=1, not_captured={"over_budget": 3}, copy_max_ns=1, buffer_kb=1
    )
    result = self_test(record)
    assert result is not None
    assert result.invalid == {"hog": "clock-changed: tsc to hpet"}
    assert result.kinds[0].busy == "3 latencies were not kept"


def test_the_end_of_a_watched_cycle_must_be_known() -> None:
    wake = Story().switch(-500, 1, MEASURED, LOWER, state=1).timer(1, 1)
    unseen = explain(wake.moment(40), Symbols((), ()))  # no switch to the thread that was measured
    assert not end_known(unseen, [])
    assert end_known(explained(500), [])
    own = replace(stall("catch-up", 10, 440), after_ns=20_000)
    assert not end_known(explained(500), [own])
    assert end_known(explained(500), [replace(own, after_ns=60_000)])


@pytest.mark.parametrize(("off_us", "right"), [(0, True), (25, True), (40, False), (-4, True)])
def test_a_size_may_err_by_the_programs_clock(off_us: int, right: bool) -> None:
    """The program may have had the CPU for 30 us after its last reading."""
    known = replace(stall("hog", -100, 495 - off_us), after_ns=30_000)
    assert judge_stall(known, [explained(500)], 200_000).size_right is right


def test_stalls_from_outside_are_in_a_file_of_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(tmp_path, "idle", [], [story(500)])
    (record.path / "stalls.ndjson").write_text(
        json.dumps(asdict(Injected("stopped", -1, RELEASE - 40_000, RELEASE + 450_000))) + "\n"
    )
    monkeypatch.setattr("rtgauge_ext.selftest.judge._measured", lambda _record, _step: (0, RELEASE * 2))
    result = self_test(record)
    assert result is not None
    (row,) = result.kinds
    # a hog is not what it was; the length is what is known, whatever the clocks say
    assert (row.kind, row.injected, row.found, row.named, row.answers) == (
        "stopped",
        1,
        1,
        0,
        {"task rtgauge-hog": 1},
    )


def test_a_record_without_stalls_has_no_matrix(tmp_path: Path) -> None:
    assert self_test(Record.open(write_record(tmp_path, Shape(loads=("idle",), seconds=2)))) is None
    assert not SelfTest([], 0).passed
    assert verdict_words(SelfTest([], 0)).startswith("The explanations are not right")


@given(
    st.text(max_size=200)
    | st.lists(
        st.dictionaries(
            st.sampled_from(["kind", "cpu", "start_ns", "end_ns"]),
            st.none() | st.integers() | st.text(max_size=5),
        )
    ).map(lambda lines: "\n".join(map(json.dumps, lines)))
)
def test_any_log_is_read(text: str) -> None:
    assert all(known.start_ns < known.end_ns for known in injected_stalls(text))


@pytest.mark.parametrize(
    "name", ["stall:hgo", "stall:hog:x", "stall:hog:-1", "stall:hog:1:2:3", "stall:hog:1:20001", "stall:"]
)
def test_wrong_stalls_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="load"):
        load_registry.get(name)


class Machine:
    """What a load asks of a target: some files, and every program."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def which(self, program: str) -> str:
        return program

    def read(self, paths: list[str]) -> Files:
        return Files(
            {
                path: {"text": text}
                for path, text in self.files.items()
                if any(fnmatch(path, pattern) for pattern in paths)
            }
        )

    def monotonic_ns(self) -> int:
        return 0


def context_of(machine: Machine) -> LoadContext:
    return LoadContext(machine, cpus=4, memory_total=None, memory_available=None, bound_s=60)  # type: ignore[arg-type] - as much of a target as it asks


def test_a_stall_is_one_program_on_its_cpu() -> None:
    context = context_of(Machine({}))
    for kind, process in KINDS.items():
        (part,) = load_registry.get(f"stall:{kind}:2:500").parts(context)
        assert part.ready == (process, 1)
        words = (
            [process, kind, "500", "2", "60", MODULE] if kind in BY_MODULE else [kind, "2", "500", "60", "60"]
        )
        assert part.argv[-len(words) :] == words
    (part,) = load_registry.get("stall").parts(context)
    assert part.wanted["cpu"] == 3


def reason_of(name: str, files: dict[str, str]) -> str | None:
    missing = load_registry.get(name).left_out(Machine(files))  # type: ignore[arg-type] - as much of a target as it asks
    return None if missing is None else f"{missing.what}: {missing.reason}"


def test_what_a_machine_cannot_do_is_left_out_with_a_reason() -> None:
    assert reason_of("stall:hog:1", {}) is None
    assert not missing(str(reason_of("stall:irqs-off:1", {})), "load stall:irqs-off", "rtgauge_stall")
    assert reason_of("stall:preempt-off:1", {MODULE: "0 0"}) is None
    assert reason_of("stall:timers:1", {}) is None
    assert "PREEMPT_RT" in (
        reason_of("stall:timers:1", {"/proc/sys/kernel/version": "#1 SMP PREEMPT_RT Debian 7.3.4\n"}) or ""
    )
    state = "/sys/devices/system/cpu/cpu1/cpuidle/state1/latency"
    assert reason_of("stall:idle:1", {state: "133\n"}) is None
    assert not missing(str(reason_of("stall:idle:1", {state: "1\n"})), "load stall:idle", "CPU 1", "20 us")


def test_the_shell_prints_stalls_as_the_program_does(tmp_path: Path) -> None:
    file = tmp_path / "stall"
    file.write_text("5 9\n")
    script = SHELL.replace('>"$6"', ">/dev/null")
    until = int(float(Path("/proc/uptime").read_text().split()[0])) + 2
    completed = subprocess.run(
        ["sh", "-c", script, "sh", "rtgauge-x", "irqs-off", "1000", "3", str(until), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    stalls = injected_stalls(completed.stdout)
    assert stalls
    assert set(stalls) == {Injected("irqs-off", 3, 5, 9)}
