# SPDX-License-Identifier: MIT
"""What a gate decides from a record, what it refuses to decide, and how it says so."""

from __future__ import annotations

import sys
from datetime import date
from html import escape
from typing import TYPE_CHECKING, Any

import junitparser
import numpy as np
import pytest
from scipy.stats import binomtest

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.cli.main import main
from rtgauge.errors import InputError
from rtgauge.explain.analysis.new_culprits import new_culprits
from rtgauge.exporters.junit import gate_junit
from rtgauge.plan.make_plan import Overrides
from rtgauge.record.alternation import Alternation, pair_of
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Changes, LeftOut
from rtgauge.record.reader import Record
from rtgauge.report.gate_report import markdown, page, pairs_table
from rtgauge.study.gate_study import gate_plan, next_pairs, with_more_pairs
from rtgauge.system.step_changes import NS_PER_TICK
from rtgauge.verdict.gate_pairs import STEAL_LEVEL, taken_alike
from rtgauge.verdict.gate_result import GateOutcome, GateResult
from rtgauge.verdict.known_changes import KnownChanges
from tests.support.explained import add_moments, real_formats, real_moment
from tests.support.messages import missing
from tests.support.messages import missing as facts_missing
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.model import Step

IDLE = "wakeup/latency/idle"


def measured(
    folder: Path, change: float = 0.0, *, pairs: int = 6, spread: float = 0.01, **options: Any
) -> Record:
    """The record of a gate of M against MI, of so many pairs: p50 of runs that differ by `spread`."""
    noise = np.random.default_rng(5).normal(0, spread, 2 * pairs)
    factors = np.exp(noise - noise.mean())
    factors[1::2] *= 1 + change
    shape = Shape(
        seconds=2, cpus=(0,), loads=("idle", "cpu"), repeats=2 * pairs, alternate=("M", "MI"), marks=False,
        factors=tuple(factors), sigma=0.1, missed_under=(), verdict=None, left_out=False,
    )  # fmt: skip
    record = Record.open(write_record(folder, shape))
    requested = GateOptions(**{"series": IDLE, "quantile": "p50", "max_pairs": max(12, pairs), **options})
    record.run.plan["gate"] = requested.model_dump(mode="json")
    return record


def step_of(record: Record, repeat: int, load: str = "idle") -> Step:
    return next(step for step in record.steps if (step.key.repeat, step.key.load) == (repeat, load))


@pytest.mark.parametrize(
    ("change", "pairs", "outcome", "status"),
    [
        (0.3, 6, GateOutcome.WORSE, 1),
        (0.0, 12, GateOutcome.NOT_WORSE, 0),
        (-0.3, 12, GateOutcome.NOT_WORSE, 0),
    ],
)
def test_a_decision_with_its_figures(
    tmp_path: Path, change: float, pairs: int, outcome: GateOutcome, status: int
) -> None:
    result = GateResult.of(measured(tmp_path, change, pairs=pairs))
    assert (result.outcome, result.status) == (outcome, status)
    assert result.primary is not None
    assert result.primary.change == pytest.approx(change, abs=0.03)
    assert (result.series, [other.series for other in result.others]) == (IDLE, ["wakeup/latency/cpu"])
    assert [pair.pair for pair in result.pairs] == list(range(1, pairs + 1))
    assert result.found is not None
    assert result.pairs_needed == 6
    assert not next_pairs(measured(tmp_path / "again", change, pairs=pairs))


def test_the_values_of_both_sides_stand_next_to_the_change(tmp_path: Path) -> None:
    result = GateResult.of(measured(tmp_path, 17.0))
    reported = "MI: p50 under idle 18 times as large (95 %: 18 to 18 times), in 6 of 6 pairs"
    assert (result.conclusion, result.values) == (reported, "M 6.01 us -> MI 108 us")
    row = next(line for line in markdown(result).splitlines() if line.startswith(f"| {IDLE} |"))
    assert row.split(" | ")[1:4] == ["6.01 us", "108 us", "18 times"]
    largest = next(line for line in markdown(result).splitlines() if line.startswith("| largest p50"))
    assert largest.endswith("not judged |")
    assert "18 times" in largest


def test_a_pass_says_which_states_so_many_runs_cannot_show(tmp_path: Path) -> None:
    expected_text = "With {} pairs, the gate may have missed a state of the machine that occurs in fewer than 1 in {} runs (or boots)"
    six = measured(tmp_path / "6", max_pairs=6)
    assert expected_text.format(6, 2) + "; --rare 10%" in markdown(GateResult.of(six))
    twelve = measured(tmp_path / "12", pairs=12)
    assert expected_text.format(12, 3) in markdown(GateResult.of(twelve))
    assert expected_text.format(12, 3) in gate_junit(GateResult.of(twelve)).decode()
    assert "may have missed" not in markdown(GateResult.of(measured(tmp_path / "worse", 0.3)))
    requested = measured(tmp_path / "rare", pairs=12, max_pairs=48, rare=0.1)
    assert {pair_of(key.repeat) for key in next_pairs(requested)} == {13, 14, 15, 16, 17, 18}


BOUND = "latency<=1ms"


def test_how_often_a_bound_is_exceeded_decides(tmp_path: Path) -> None:
    record = measured(tmp_path, 300.0, require=BOUND)
    result = GateResult.of(record)
    assert (result.outcome, result.primary and result.primary.change) == (GateOutcome.WORSE, None)
    late = [(pair.baseline_violations, pair.candidate_violations) for pair in result.pairs]
    assert [baseline for baseline, _ in late] == [0] * 6
    assert all(candidate is not None and candidate > 1_000 for _, candidate in late)
    every = sum(candidate or 0 for _, candidate in late)
    assert result.conclusion.startswith(f"MI: {every:,} activations")
    assert not missing(result.conclusion, "under idle", "later than 1 ms", "0 of M")
    baseline, candidate = result.exposure
    assert (baseline.side, candidate.side) == ("M", "MI")
    assert (baseline.bound_ns, baseline.exposure.runs, baseline.exposure.violations) == (1_000_000, 6, 0)
    assert candidate.exposure.share_excluded > 0.1
    html = page(result, record)
    assert "latency&lt;=1ms" in html
    assert "would show that it is worse" not in html, "it is worse"
    assert "| – | ≥ " in markdown(result)


def test_a_candidate_that_keeps_the_bound_passes(tmp_path: Path) -> None:
    share = measured(tmp_path / "a", pairs=12, require=f"{BOUND} hardness=99%")
    reported = (
        "MI: each of 12 runs met latency<=1ms hardness=99%, so at most 31.9 % of further runs would fail it "
        "(99 % confidence); "
    )
    assert GateResult.of(share).conclusion.startswith(reported + "0 activations")
    early = measured(tmp_path / "early", require=f"{BOUND} hardness=99%")
    assert GateResult.of(early).outcome is GateOutcome.UNFINISHED, "six boots say little"
    every = measured(tmp_path / "b", require=BOUND)
    assert GateResult.of(every).outcome is GateOutcome.UNFINISHED
    every.run.plan["gate"]["max_pairs"] = 6
    assert GateResult.of(every).outcome is GateOutcome.NOT_WORSE
    other = measured(tmp_path / "d", pairs=1, require="response<=1ms")
    assert "did not measure response" in refused(other)


@pytest.mark.parametrize(
    ("hardness", "outcome", "status"),
    [
        ("", GateOutcome.FAILS, 1),
        (" hardness=99%", GateOutcome.FAILS, 1),
        (" hardness=20%", GateOutcome.NOT_WORSE, 0),
    ],
)
def test_a_candidate_that_fails_its_own_requirement_never_passes(
    tmp_path: Path, hardness: str, outcome: GateOutcome, status: int
) -> None:
    result = GateResult.of(measured(tmp_path, pairs=12, require=f"latency<=6us{hardness}"))
    assert (result.outcome, result.status) == (outcome, status)
    if outcome is GateOutcome.FAILS:
        assert result.conclusion.startswith("MI fails latency<=6us hardness=")
        (case,) = case_of(gate_junit(result))
        assert [type(each) for each in case.result] == [junitparser.Failure]


def test_the_exposure_of_a_quantile_is_of_the_largest_value(tmp_path: Path) -> None:
    record = measured(tmp_path)
    _, candidate = GateResult.of(record).exposure
    largest = max(
        step.total.filled.max_ns
        for step in record.steps
        if step.key.repeat % 2 == 0
        and step.key.load == "idle"
        and step.total is not None
        and step.total.filled.max_ns
    )
    assert (candidate.bound_ns, candidate.exposure.violations) == (largest, 0)
    n = candidate.exposure.activations
    assert candidate.exposure.share_excluded == pytest.approx(3 / n, rel=0.01)
    assert f"at most 1 in {n // 3:,}"[:14] in markdown(GateResult.of(record))


def test_if_no_number_of_pairs_suffices_runs_become_longer(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.05, spread=1.0, pairs=12)
    record.run.planned = [key.with_parameters(duration_ns=2_000_000_000) for key in record.run.planned]
    for step in record.steps:
        step.key = step.key.with_parameters(duration_ns=2_000_000_000)
    record.run.command = ["rtgauge", "gate", "--baseline", "M", "--candidate", "MI", "--duration", "2s"]
    result = GateResult.of(record)
    assert (result.outcome, result.pairs_needed) == (GateOutcome.CANNOT_TELL, None)
    assert "measure longer runs" in markdown(result)
    assert result.next == "rtgauge gate --baseline M --candidate MI --duration 8s"


def test_a_first_pair_that_was_stopped_is_measured_again(tmp_path: Path) -> None:
    record = measured(tmp_path, pairs=1, quantile="p99.99")
    for step in record.steps:
        step.marks.append(MarkKind.STOPPED.mark("after 0.1 s"))
    assert (GateResult.of(record).outcome, GateResult.of(record).status) == (GateOutcome.UNFINISHED, 130)


@pytest.mark.parametrize(
    ("quantile", "duration", "shortest"),
    [("p99.9", "2s", "10s"), ("p99.99", "10s", "100s"), ("p50", "10ms", "100ms")],
)
def test_a_never_sufficient_duration_is_refused_early(quantile: str, duration: str, shortest: str) -> None:
    sides = Alternation(sides=("policy=fifo", "policy=rr"))

    def planned(lasts: str) -> None:
        item = Overrides(parameters={"duration": lasts, "cpu": "0"})
        gate_plan("quick", item, sides, GateOptions(quantile=quantile, max_pairs=12))

    with pytest.raises(InputError, match=f"too short for {quantile}.*give --duration {shortest} or longer"):
        planned(duration)
    planned(shortest)
    gate_plan(
        "quick",
        Overrides(parameters={"duration": duration, "cpu": "0"}),
        sides,
        GateOptions(max_pairs=12, require="latency<=1ms"),
    )


def explained(record: Record, *repeats: int) -> Record:
    """With the same culprit in these runs; the others were explained, and nothing was large."""
    for step in record.steps:
        if step.key.load == "idle":
            moments = [{"type": "moment", **real_moment()}] if step.key.repeat in repeats else []
            add_moments(record.path, step.id, real_formats(), moments)
    return Record.open(record.path)


@pytest.mark.parametrize(
    ("repeats", "named"),
    [((2, 4, 6, 8, 10, 12), True), ((2, 4, 6), False), ((1, 2, 4, 6, 8, 10, 12), False), ((1, 3, 5), False)],
)
def test_a_culprit_that_the_baseline_never_had_is_a_finding(
    tmp_path: Path, repeats: tuple[int, ...], *, named: bool
) -> None:
    record = measured(tmp_path)
    actual = new_culprits(explained(record, *repeats))
    assert [(new.runs, new.explained_runs, new.latencies) for new in actual] == ([(6, 6, 6)] if named else [])
    text = markdown(GateResult.of(record).model_copy(update={"culprits": actual}))
    assert missing(text, "6 large latencies", "6 of 6 runs") == (
        [] if named else ["6 large latencies", "6 of 6 runs"]
    )


def test_six_undecided_pairs_lead_to_six_more_and_then_advice(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.05, spread=0.1)
    assert GateResult.of(record).outcome is GateOutcome.UNFINISHED
    assert {pair_of(key.repeat) for key in next_pairs(record)} == {7, 8, 9, 10, 11, 12}
    record = measured(tmp_path / "all", 0.05, spread=0.1, pairs=12)
    record.run.command = ["rtgauge", "gate", "--baseline", "M", "--max-pairs=12", "--candidate", "MI"]
    result = GateResult.of(record)
    assert (result.outcome, result.status) == (GateOutcome.CANNOT_TELL, 4)
    assert result.pairs_needed is not None
    assert result.next == f"rtgauge resume {record.path} --max-pairs {result.pairs_needed}"


def test_a_gate_that_cannot_tell_can_be_given_more_pairs(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.05, spread=0.1, pairs=12)
    assert with_more_pairs(record, None) == with_more_pairs(record, 12) == {}
    with pytest.raises(InputError, match="--max-pairs 10 is less than the record's 12"):
        with_more_pairs(record, 10)
    with pytest.raises(InputError, match="6 to 198 pairs"):
        with_more_pairs(record, 500)
    assert with_more_pairs(record, 20)["gate"]
    assert GateResult.of(record).outcome is GateOutcome.UNFINISHED
    assert {pair_of(key.repeat) for key in next_pairs(record)} == {13, 14, 15, 16, 17, 18}
    with_more_pairs(record, 24)
    options = GateOptions.model_validate(record.run.plan["gate"])
    assert (options.max_pairs, options.extended_from) == (24, (12, 20))


@pytest.mark.parametrize(
    "words",
    [
        "--baseline M",
        "--quantile p50",
        "--load idle",
        "--larger-than 5%",
        "--duration 10s",
        "--rare 10%",
        "plan",
    ],
)
def test_resume_refuses_what_changes_the_question(tmp_path: Path, words: str, monkeypatch, capsys) -> None:
    record = measured(tmp_path, 0.3)
    (record.path / "run.json").write_text(record.run.model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", f"rtgauge resume {record.path} {words}".split())
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    option = words.split(maxsplit=1)[0]
    assert (option if option.startswith("--") else "unexpected") in capsys.readouterr().err


def test_without_a_series_the_load_with_largest_values_decides(tmp_path: Path) -> None:
    assert GateResult.of(measured(tmp_path, series=None)).series == "wakeup/latency/cpu"


def test_a_doubtful_runs_pair_is_measured_again(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.3)
    step_of(record, 3).marks.append(MarkKind.SWAPPING.mark("it swapped"))
    result = GateResult.of(record)
    assert result.outcome is GateOutcome.UNFINISHED
    assert "swapping (doubtful)" in (result.pairs[1].why_not or "")
    assert {pair_of(key.repeat) for key in next_pairs(record)} == {7}
    record.run.plan["gate"]["allowed_marks"] = ["swapping"]
    assert GateResult.of(record).outcome is GateOutcome.WORSE


def stolen(record: Record, ticks: dict[int, int]) -> Record:
    """The record, in which the host took so many ticks of 10 ms from these runs."""
    for repeat, number in ticks.items():
        step = step_of(record, repeat)
        step.changes = Changes(cpu_time_ns={"0": {"steal": number * 10_000_000}})
        if number > 2:
            step.marks.append(MarkKind.STEAL.mark("the hypervisor took it"))
    return record


def test_pairs_count_if_the_host_takes_alike_from_both_runs(tmp_path: Path) -> None:
    ticks = {repeat: 3 + repeat % 3 for repeat in range(1, 13)}
    record = stolen(measured(tmp_path / "alike", 0.3), ticks | {1: 0, 2: 7})
    result = GateResult.of(record)
    assert result.outcome is GateOutcome.WORSE
    assert [pair.why_not for pair in result.pairs] == [None] * 6
    assert result.pairs[0].stolen_ns == (0, 70_000_000)
    assert "from both sides alike (steal)" in markdown(result)
    assert "| 0 ns / 70.0 ms |" in markdown(result)

    unlike = GateResult.of(stolen(measured(tmp_path / "unlike", 0.3), ticks | {1: 0, 2: 8}))
    assert unlike.outcome is GateOutcome.UNFINISHED
    first = unlike.pairs[0].why_not
    assert not facts_missing(first or "", "steal", "0 ms of the baseline's", "80 ms of the candidate's")

    also = stolen(measured(tmp_path / "also", 0.3), ticks)
    step_of(also, 1).marks.append(MarkKind.SWAPPING.mark("it swapped"))
    assert GateResult.of(also).pairs[0].why_not is not None, "another mark keeps it from counting"


def test_ticks_are_alike_as_a_binomial_test_says() -> None:
    for every in range(1, 40):
        for of_first in range(every + 1):
            alike = binomtest(of_first, every).pvalue >= STEAL_LEVEL
            assert taken_alike(of_first * NS_PER_TICK, (every - of_first) * NS_PER_TICK) == alike
    assert taken_alike(0, 0)


def test_steal_from_always_the_same_run_is_counted_by_next(tmp_path: Path) -> None:
    record = stolen(measured(tmp_path, pairs=3), {1: 0, 2: 90, 3: 0, 4: 90, 5: 90, 6: 0})
    record.run.command = ["rtgauge", "gate", "--baseline", "M", "--candidate", "MI"]
    result = GateResult.of(record)
    assert result.status == 3
    assert result.next == "rtgauge gate --baseline M --candidate MI --allow-mark steal"


def test_too_many_doubtful_pairs_decide_nothing(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.3, pairs=8, max_pairs=6)
    for repeat in (2, 4, 6):
        step_of(record, repeat).marks.append(MarkKind.CLOCK_CHANGED.mark("it was suspended"))
    result = GateResult.of(record)
    assert (result.outcome, result.status) == (GateOutcome.NOT_MEASURED, 3)
    assert "3 pairs of 8 do not count" in result.conclusion
    assert not next_pairs(record)


def test_a_reason_that_all_runs_share_is_given_once(tmp_path: Path) -> None:
    record = measured(tmp_path, pairs=3)
    for step in record.steps:
        step.marks.append(MarkKind.SWAPPING.mark("it swapped"))
    result = GateResult.of(record)
    assert [pair.why_not for pair in result.pairs] == ["both runs: swapping (doubtful): it swapped"] * 3
    assert [row[-1] for row in pairs_table(result).rows[1:]] == ["as pair 1"] * 2
    assert result.conclusion.count("it swapped") == 1


def test_if_none_of_the_first_pairs_counts_no_more_are_measured(tmp_path: Path) -> None:
    planned = []
    for pairs in (1, 3):
        record = measured(tmp_path / str(pairs), pairs=pairs)
        for step in record.steps:
            step.marks.append(MarkKind.SWAPPING.mark("it swapped"))
        planned.append(sorted({pair_of(key.repeat) for key in next_pairs(record)}))
    assert planned == [[2, 3], []]
    record.run.command = ["rtgauge", "gate", "--baseline", "M", "--candidate", "MI"]
    result = GateResult.of(record)
    assert result.status == 3
    assert "count such runs (--allow-mark swapping)" in result.conclusion
    assert result.next == "rtgauge gate --baseline M --candidate MI --allow-mark swapping"
    step_of(record, 1).marks.append(MarkKind.CLOCK_CHANGED.mark("it was suspended"))
    assert GateResult.of(record).next is None, "an invalid run never counts"


def refused(record: Record) -> str:
    result = GateResult.of(record)
    assert (result.outcome, result.status) == (GateOutcome.NOT_MEASURED, 3)
    assert not next_pairs(record)
    return result.conclusion


def test_the_first_pair_shows_what_no_pair_can_decide(tmp_path: Path) -> None:
    few = measured(tmp_path / "few", pairs=1, quantile="p99.99")
    assert "give a longer --duration" in refused(few)
    other = measured(tmp_path / "kernel", pairs=1, kernels=(None, "-rt"))
    assert "6.1.0-18-amd64 instead of -rt" in refused(other)
    unlike = measured(tmp_path / "unlike", pairs=1)
    step_of(unlike, 2).marks.append(MarkKind.DEPLOYMENT_INCOMPLETE.mark("smt was refused"))
    assert "not measured as requested (smt was refused" in refused(unlike)
    changed = measured(tmp_path / "changed", pairs=1)
    changed.run.marks.append(MarkKind.KERNEL_CHANGED.mark("local ran the kernel 1, now 2"))
    assert "local ran the kernel 1" in refused(changed)
    alone = measured(tmp_path / "alone", pairs=1)
    alone.run.planned = [key for key in alone.run.planned if key.repeat != 2]
    alone.run.left_out = [LeftOut(what="deployment MI", reason="no second core", remedy="use another")]
    assert not facts_missing(
        refused(alone), "MI", "wakeup/latency/cpu, wakeup/latency/idle", "no second core"
    )
    missing = measured(tmp_path / "missing", pairs=1, series="wakeup/latency/network")
    assert "was not measured" in refused(missing)
    zero = measured(tmp_path / "zero", pairs=1)
    total = step_of(zero, 1).total
    assert total is not None
    total.filled.p50_ns = 0
    assert "a ratio needs values above 0" in refused(zero)


def test_a_step_that_was_left_out_is_no_pair(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.3)
    record.steps.remove(step_of(record, 4))
    assert GateResult.of(record).pairs[1].why_not == "not measured"


def test_a_record_that_is_of_no_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rtgauge gate did not make"):
        GateResult.of(Record.open(write_record(tmp_path, Shape(seconds=1))))


def test_a_gate_begins_with_one_pair_of_a_series_that_there_is() -> None:
    alternation, idle = Alternation(sides=("M", "MI")), Overrides(loads=["idle", "cpu"])
    plan = gate_plan("quick", idle, alternation, GateOptions(series="*/cpu", max_pairs=6))
    assert {key.repeat for key in plan.steps} == {1, 2}
    assert plan.written["gate"]["series"] == "wakeup/latency/cpu"
    for options, expected_text in (
        (GateOptions(series="wakeup/latency/cpus", max_pairs=6), "not in the plan.*did you mean"),
        (GateOptions(series="wakeup*", max_pairs=6), "matches several series"),
        (GateOptions(max_pairs=5), "a gate must have 6 to 198 pairs"),
    ):
        with pytest.raises(InputError, match=expected_text):
            gate_plan("quick", idle, alternation, options)


KNOWN = """
[[accept]]
series = "wakeup/latency/idle"
up-to = "40%"
reason = "the driver polls"

[[mute]]
series = "*"
until = 2026-12-01
reason = "a new switch"
"""


def test_known_changes_pass_with_their_reason(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(KNOWN, encoding="utf-8")
    known, day = KnownChanges.read(file), date(2026, 12, 1)
    accepted = known.applied(GateResult.of(measured(tmp_path / "a", 0.3)), day)
    assert (accepted.status, accepted.outcome) == (0, GateOutcome.WORSE)
    assert accepted.accepted == "accepted up to +40.0 %: the driver polls"
    more = GateResult.of(measured(tmp_path / "b", 0.6))
    assert known.applied(more, day).accepted == "muted until 2026-12-01: a new switch"
    assert known.applied(more, date(2026, 12, 2)).status == 1
    fine = GateResult.of(measured(tmp_path / "c"))
    assert known.applied(fine, day) == fine


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ('[[accept]]\nseries = "x"\nup-to = "much"\nreason = "y"', "not a change in percent"),
        ('[[accept]]\nseries = "x"\nup-to = "5%"', "reason"),
        ('[[mute]]\nseries = "x"\nreason = "y"\nuntil = "soon"', "until"),
        ('[[mutte]]\nseries = "x"', "unknown key 'mutte'.*mute"),
    ],
)
def test_a_wrong_file_of_known_changes_is_refused(tmp_path: Path, text: str, expected_text: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=expected_text):
        KnownChanges.read(file)


def case_of(document: bytes) -> list[junitparser.TestCase]:
    (suite,) = junitparser.JUnitXml.fromstring(document)
    return list(suite)


@pytest.mark.parametrize(("change", "kind"), [(0.3, junitparser.Failure), (0.0, None)])
def test_junit_has_one_case(tmp_path: Path, change: float, kind: type | None) -> None:
    (case,) = case_of(gate_junit(GateResult.of(measured(tmp_path, change, pairs=12))))
    assert case.name == f"MI against M: {IDLE}"
    assert [type(result) for result in case.result] == ([kind] if kind else [])


def test_junit_of_what_could_not_be_measured_is_an_error(tmp_path: Path) -> None:
    (case,) = case_of(gate_junit(GateResult.of(measured(tmp_path, pairs=1, quantile="p99.99"))))
    assert [type(result) for result in case.result] == [junitparser.Error]


def test_markdown_and_page_show_each_pair(tmp_path: Path) -> None:
    record = measured(tmp_path, 0.3)
    record.run.plan["alternate"]["sides"] = ["M <b>|", "MI"]
    result = GateResult.of(record)
    text = markdown(result)
    answer, side = text.splitlines()[:2]
    assert answer.startswith("**WORSE**: MI: p50 under idle 29.3 % larger")
    assert not missing(answer, "95 %: +27.7 % to +30.9 %", "6 of 6 pairs")
    assert side.startswith("- M &lt;b>\\|")
    assert text.count("\n| 3 |") == 1
    html = page(result, record)
    box = html[html.index('<div class="verdict fails">') :].partition("</div>")[0]
    assert '<p class="word">Worse</p>' in box
    assert escape(result.conclusion, quote=False) in box
    assert result.values is not None
    assert escape(result.values, quote=False) in box
    assert "M &lt;b&gt;|" in html
    assert "M <b>|" not in html


def test_the_command_shows_a_finished_gate_again(tmp_path: Path, monkeypatch, capsys) -> None:
    record = measured(tmp_path, 0.3)
    (record.path / "run.json").write_text(record.run.model_dump_json(), encoding="utf-8")
    files = tmp_path / "j.xml", tmp_path / "m.md"
    command = f"rtgauge resume {record.path} --junit {files[0]} --markdown {files[1]} --details"
    monkeypatch.setattr(sys, "argv", command.split())
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("WORSE MI: p50 under idle 29.3 % larger")
    assert not missing(out, "95 %: +27.7 % to +30.9 %", "6 of 6 pairs", "M 6.01 us -> MI")
    assert all(file.exists() for file in (*files, record.path / "gate.html"))


QUESTION = "; the record asks: p50 of wakeup latency under idle, 10 % larger, 12 pairs"


def check_not_for_a_gate(folder: Path, monkeypatch, capsys, words: str) -> None:
    """`rtgauge resume` refuses options (words) for the record of a gate."""
    record = measured(folder, 0.3)
    (record.path / "run.json").write_text(record.run.model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", f"rtgauge resume {record.path} {words}".split())
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert f"rtgauge resume does not take {words.split(maxsplit=1)[0]} for a gate; leave out" in line
    assert QUESTION in line


def test_resume_refuses_options_that_are_not_for_a_gate(tmp_path: Path, monkeypatch, capsys) -> None:
    check_not_for_a_gate(tmp_path, monkeypatch, capsys, "--hold 1h")


@pytest.mark.parametrize(
    "words", ["--quantile p99 {}", "{} --load cpu", "{} --duration=5s", "--series a/b/c {}"]
)
def test_resume_names_the_question_an_option_would_change(tmp_path: Path, monkeypatch, capsys, words) -> None:
    record = measured(tmp_path, 0.3)
    (record.path / "run.json").write_text(record.run.model_dump_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["rtgauge", "resume", *words.format(record.path).split()])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert "no such option: --" in line
    assert QUESTION in line


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        ("--baseline M", "name both sides"),
        ("--baseline M --candidate MI --quantile p98", "is not one of p50"),
        ("--baseline M --candidate MI --larger-than 10", "give one such as 10%"),
        ("--baseline M --candidate MI --allow-mark steel", "unknown mark 'steel'; did you mean 'steal'"),
    ],
)
def test_wrong_words_are_refused(arguments: str, expected_text: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["rtgauge", "gate", *arguments.split()])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert expected_text in capsys.readouterr().err
