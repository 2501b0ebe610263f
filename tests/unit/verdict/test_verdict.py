# SPDX-License-Identifier: MIT
"""Verdicts: what was measured against what was asked, and never more than the sample supports."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import RecordError
from rtgauge.record.facts import Facts
from rtgauge.record.model import LeftOut, Severity, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.verdict.answer_words import answer_words
from rtgauge.verdict.decision import LEAST_FOR_EVERY, judge
from rtgauge.verdict.exit_status import exit_status, worst
from rtgauge.verdict.next_step import PastRun
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from rtgauge.verdict.violations import count_violations
from tests.support.messages import missing
from tests.unit.records import mark, run, step
from tests.unit.windows import row, windows_of

HARD = "period=1ms latency<=200us hardness=100%"
ENOUGH = LEAST_FOR_EVERY


def verdict(text, latencies, facts=None, **more):
    recorded, windows = step(latencies, **more)
    return judge(parse_requirement(text), recorded, windows, Facts.model_validate(facts or {}))


@settings(max_examples=300)
@given(
    values=st.lists(
        st.one_of(st.integers(0, 3_000), st.integers(0, 400_000), st.integers(0, 12 * 10**9)), max_size=40
    ),
    missed=st.integers(0, 3),
    data=st.data(),
)
def test_violations_lie_between_certain_and_possible(values, missed, data):
    bound = data.draw(
        st.one_of(st.integers(1, 500_000), st.sampled_from([*values, 1]).map(lambda v: max(1, v)))
    )
    half = len(values) // 2
    windows = windows_of(row(values[:half], missed=[5] * missed), row(values[half:], index=1))
    result = count_violations(windows, bound)
    true = sum(value > bound for value in values) + missed
    assert result.certain <= true <= result.possible
    assert result.activations == len(values) + missed
    if true == 0:
        assert result.possible == 0
    if true - missed:
        assert result.certain > missed
    if bound < 200:  # bins are 1 ns wide here: exact
        assert result.certain == true == result.possible


def test_coarse_figures_leave_violations_possible():
    """87 us of a tool that cuts to whole us may be 87.999 us."""
    windows = windows_of(row([12_000] * 5 + [87_000]))
    assert count_violations(windows, 87_000).possible == 0
    coarse = count_violations(windows, 87_000, resolution_ns=1000)
    assert (coarse.certain, coarse.possible) == (0, 1)
    assert count_violations(windows, 87_999, resolution_ns=1000).possible == 0


def test_a_foreign_overflow_is_possible_and_its_maximum_certain():
    windows = windows_of({**row([12_000] * 98), "count": 109, "max_ns": 65_000})
    result = count_violations(windows, 30_000)
    assert (result.certain, result.possible) == (1, 11)
    assert count_violations(windows, 65_000).possible == 0


def test_holds_says_what_the_sample_supports():
    result = verdict(HARD, [50_000] * 100_000)
    assert result.word == VerdictWord.HOLDS
    assert not missing(result.reason, "100,000 activations", "95% confidence", "at most 1 in 33,381")
    assert result.evidence["violation_share_at_most"] == pytest.approx(3 / 100_000, rel=0.01)
    assert "rtgauge run" in result.next


def test_one_late_or_one_missed_activation_fails_100_percent():
    late = verdict(HARD, [50_000] * ENOUGH + [200_001])
    assert late.word == VerdictWord.FAILS
    assert "1 broke the bound" in late.reason
    assert verdict(HARD, [50_000] * ENOUGH + [200_000]).word == VerdictWord.MARGINAL
    missed = verdict(HARD, [50_000] * ENOUGH, missed=[1000])
    assert missed.word == VerdictWord.FAILS
    assert "1 was missed" in missed.reason


def test_a_watched_loops_period_gives_the_time_to_measure():
    result = verdict("period=5ms latency<=200us hardness=99.9%", [50_000] * 100, interval_ns=None)
    assert result.word == VerdictWord.CANNOT_TELL
    assert result.evidence["duration_needed_ns"] == 2_995 * 5 * 10**6


@pytest.mark.parametrize(("maximum", "word"), [(160_000, VerdictWord.HOLDS), (160_001, VerdictWord.MARGINAL)])
def test_a_small_margin_is_marginal(maximum, word):
    assert verdict(HARD, [50_000] * ENOUGH + [maximum]).word == word


def test_a_short_sample_cannot_show_100_percent_but_fail_it():
    result = verdict(HARD, [[50_000] * 100, [50_000] * 100])
    assert result.word == VerdictWord.CANNOT_TELL
    assert "too few activations to judge 100%" in result.reason
    # 10,000 activations at 1 ms on two CPUs.
    assert result.evidence["duration_needed_ns"] == 5 * 10**9
    assert "--duration 10s" in result.next
    assert verdict(HARD, [300_000]).word == VerdictWord.FAILS


@pytest.mark.parametrize(
    ("good", "late", "word"),
    [
        # 299,572 activations without a violation are what supports 99.999 % at 95 %.
        (299_572, 0, VerdictWord.HOLDS),
        (299_571, 0, VerdictWord.CANNOT_TELL),
        (1_000_000, 4, VerdictWord.HOLDS),  # upper bound 9.15 in a million
        (1_000_000, 6, VerdictWord.CANNOT_TELL),  # upper bound 11.8, below the allowed 10 by itself
        (1_000_000, 12, VerdictWord.CANNOT_TELL),  # lower bound 6.9
        (1_000_000, 30, VerdictWord.FAILS),  # lower bound 21.6
    ],
)
def test_a_share_is_judged_by_exact_bounds(good, late, word):
    """Poisson limits (by chi-square; Garwood, Biometrika 28, 1936), 95 % one-sided: upper 9.154 for 4, 11.842
    for 6; lower 6.924 for 12, 21.594 for 30.
    """
    result = verdict("period=1ms latency<=200us hardness=99.999%", [50_000] * good + [900_000] * late)
    assert result.word == word
    if late == 6:
        assert result.evidence["activations_needed"] > good
        assert "too few activations to judge 99.999%" in result.reason
    if late == 12:
        assert result.evidence["activations_needed"] > 10 * good
        assert "too close to tell apart" in result.reason
    if late == 0 and word == VerdictWord.CANNOT_TELL:
        assert result.evidence["duration_needed_ns"] == 299_572 * 10**6
        assert "--duration 5min" in result.next


def test_the_allowed_share_is_printed_as_it_was_given():
    result = verdict("latency<=200us hardness=99.9999%", [300_000] * 10 + [50_000] * 100_000)
    assert ", 0.0001 % allowed" in answer_words(result)


def test_a_share_is_marginal_if_80_percent_would_not_do():
    assert (
        verdict("latency<=200us hardness=95%", [50_000] * 1000 + [170_000] * 100).word == VerdictWord.MARGINAL
    )
    assert verdict("latency<=200us hardness=95%", [50_000] * 1000 + [150_000] * 100).word == VerdictWord.HOLDS


def test_missed_activations_count_against_a_share():
    assert (
        verdict("latency<=200us hardness=95%", [50_000] * 800, missed=[1000] * 200).word == VerdictWord.FAILS
    )


def test_an_invalid_step_cannot_tell_whatever_it_measured():
    result = verdict(HARD, [900_000] * ENOUGH, marks=[mark("load-died", Severity.INVALID, "stress-ng ended")])
    assert result.word == VerdictWord.CANNOT_TELL
    assert "load-died (stress-ng ended)" in result.reason
    assert "load.log" in result.next


def test_a_doubt_is_named_and_leaves_at_best_marginal():
    doubt = [mark("kernel-changed", Severity.DOUBTFUL, "6.1 to 6.12")]
    held = verdict(HARD, [50_000] * ENOUGH, marks=doubt)
    assert held.word == VerdictWord.MARGINAL
    assert held.reason.endswith("; in doubt: kernel-changed"), "the mark's own line has its detail"
    assert "boot the earlier kernel" in held.next
    failed = verdict(HARD, [900_000] * ENOUGH, marks=doubt)
    assert failed.word == VerdictWord.FAILS
    assert "kernel-changed" in failed.reason
    short = verdict(HARD, [50_000] * 10, marks=doubt)
    assert short.word == VerdictWord.CANNOT_TELL
    assert short.reason.endswith("; in doubt: kernel-changed")
    assert verdict(HARD, [50_000] * ENOUGH, marks=[mark("stopped", Severity.NOTE)]).word == VerdictWord.HOLDS


@pytest.mark.parametrize("name", ["steal", "throttled", "swapping", "smi", "thermal-throttle"])
def test_what_only_delays_does_not_put_in_doubt_what_holds(name: str):
    """Without it, every value would have been as large or smaller."""
    doubt = mark(name, Severity.DOUBTFUL)
    held = verdict(HARD, [50_000] * ENOUGH, marks=[doubt])
    assert held.word == VerdictWord.HOLDS
    assert name not in held.reason
    assert "see whether it holds under load" in held.next
    close = verdict(HARD, [190_000] * ENOUGH, marks=[doubt])
    assert close.word == VerdictWord.MARGINAL
    assert name not in close.reason, "the reason is how close it is"
    failed = verdict(HARD, [900_000] * ENOUGH, marks=[doubt])
    assert failed.word == VerdictWord.FAILS
    assert failed.reason.endswith(f"; in doubt: {name}"), "it may be the reason"
    both = verdict(HARD, [50_000] * ENOUGH, marks=[doubt, mark("samples-lost", Severity.DOUBTFUL)])
    assert both.word == VerdictWord.MARGINAL
    assert both.reason.endswith("; in doubt: samples-lost")


def test_a_series_without_1_percent_of_activations_never_holds():
    unknown = [
        mark(
            "activations-unknown",
            Severity.DOUBTFUL,
            "of 200 of 10,000 activations the kernel did not trace when they began to run",
        ).model_copy(update={"series": 0})
    ]
    result = verdict(HARD, [50_000] * ENOUGH, marks=unknown)
    assert result.word == VerdictWord.CANNOT_TELL
    assert "of 200 of 10,000 activations" in result.reason
    assert verdict(HARD, [900_000] * ENOUGH, marks=unknown).word == VerdictWord.FAILS
    other = [
        mark("activations-unknown", Severity.DOUBTFUL, "of another series").model_copy(update={"series": 7})
    ]
    assert verdict(HARD, [50_000] * ENOUGH, marks=other).word == VerdictWord.MARGINAL


def test_a_series_without_any_of_its_activations_says_why():
    detail = "for 40 of 40 activations the kernel did not trace when they began to run"
    unknown = mark("activations-unknown", Severity.DOUBTFUL, detail).model_copy(update={"series": 0})
    result = verdict(HARD, [], marks=[unknown])
    assert result.word == VerdictWord.CANNOT_TELL
    assert result.reason == f"no latency was measured: {detail}"
    assert result.next == unknown.remedy
    nothing = verdict(HARD, [])
    assert nothing.reason == "the step has no activations"


def test_a_doubt_on_a_series_of_another_metric_leaves_this_one():
    """Responses of a watched program are complete although its latencies are not."""
    missing = mark("switches-missing", Severity.DOUBTFUL, "of 3 of 10,000").model_copy(update={"series": 7})
    measured, windows = step([50_000] * ENOUGH, marks=[missing])
    latency = measured.series[0]
    response = latency.model_copy(update={"metric": "response", "series": 7})
    measured = measured.model_copy(update={"series": [latency, response]})
    assert judge(parse_requirement(HARD), measured, windows, Facts()).word == VerdictWord.HOLDS
    missing = missing.model_copy(update={"series": latency.series})
    measured = measured.model_copy(update={"marks": [missing]})
    result = judge(parse_requirement(HARD), measured, windows, Facts())
    assert result.word == VerdictWord.MARGINAL
    assert "switches-missing" in result.reason


def test_an_emulated_machine_cannot_tell():
    result = verdict(HARD, [50_000] * ENOUGH, facts={"machine": {"virtual": True, "emulated": True}})
    assert result.word == VerdictWord.CANNOT_TELL
    assert "emulated" in result.reason
    assert (
        verdict(HARD, [50_000] * ENOUGH, facts={"machine": {"virtual": True, "emulated": "unknown"}}).word
        == VerdictWord.HOLDS
    )


def test_another_interval_is_reported():
    reason = verdict(HARD, [50_000] * ENOUGH, interval_ns=10**7).reason
    assert not missing(reason, "measured every 10ms", "1ms is required")
    assert "measured every" not in verdict(HARD, [50_000] * ENOUGH).reason


def test_an_unmeasured_metric_gives_cannot_tell():
    result = verdict("response<=5us", [1] * ENOUGH)
    assert result.word == VerdictWord.CANNOT_TELL
    assert "did not measure response" in result.reason
    assert verdict("response<=5us", [1] * ENOUGH, metric="response").word == VerdictWord.HOLDS
    assert verdict(HARD, []).word == VerdictWord.CANNOT_TELL


def test_lost_samples_give_cannot_tell():
    recorded, windows = step([50_000] * ENOUGH)
    recorded.series[0].lost = 3
    assert "3 samples were lost" in judge(parse_requirement(HARD), recorded, windows).reason


@pytest.mark.parametrize(
    ("parameters", "facts", "words"),
    [
        ({"policy": "other"}, {}, "--policy fifo"),
        ({"policy": "fifo", "dma_latency_us": -1}, {}, "--set dma-latency=0"),
        ({}, {"kernel": {"preemption": {"model": "voluntary"}}}, "PREEMPT_RT kernel"),
        (
            {},
            {"kernel": {"preemption": {"model": "none", "sources": {"version": "PREEMPT_DYNAMIC"}}}},
            "boot with preempt=full",
        ),
        (
            {},
            {"kernel": {"preemption": {"model": "full", "sources": {"version": "PREEMPT_DYNAMIC"}}}},
            "PREEMPT_RT kernel",
        ),
        (
            {},
            {"kernel": {"preemption": {"model": "PREEMPT_RT"}}, "machine": {"virtual": True}},
            "bare machine",
        ),
        (
            {"policy": "fifo", "dma_latency_us": 0},
            {"kernel": {"preemption": {"model": "PREEMPT_RT"}}},
            "isolate a CPU",
        ),
    ],
)
def test_a_failure_says_what_to_try_next(parameters, facts, words):
    assert words in verdict(HARD, [900_000], facts, parameters=parameters).next


def test_one_huge_event_is_explained_before_the_kernel_changes():
    actual = verdict(
        HARD,
        [50_000] * 1000 + [90_000_000],
        {"kernel": {"preemption": {"model": "voluntary"}}},
        parameters={},
    )
    assert "--explain" in actual.next
    assert "PREEMPT_RT" not in actual.next


def make(tmp_path, *steps, systems=None) -> Record:
    writer = RecordWriter.create(tmp_path, host="h", name="n")
    writer.write_run(run(writer.id))
    for item, windows in steps:
        writer.commit_step(item, windows)
    for name, facts in (systems or {}).items():
        writer.write_system(name, Facts.model_validate(facts))
    return Record.open(writer.finish("complete"))


def test_a_run_is_as_good_as_its_worst_step(tmp_path):
    good, bad = step([50_000] * ENOUGH), step([50_000] * ENOUGH + [900_000], name="02-wakeup-cpu", load="cpu")
    record = make(tmp_path, good, bad)
    whole, *each = judge_run(parse_requirement(HARD), record)
    assert (whole.step, whole.word) == (None, VerdictWord.FAILS)
    assert not missing(whole.reason, "02-wakeup-cpu", "1 of 10,001", "200 us", "worst 900 us on CPU 0")
    assert [(v.step, v.word) for v in each] == [
        ("01-wakeup-idle", VerdictWord.HOLDS),
        ("02-wakeup-cpu", VerdictWord.FAILS),
    ]
    assert exit_status([whole, *each], record.steps) == 1
    assert worst([]) is None


def steps_of(*largest_ns: int):
    """A step a load, each with one latency of that size."""
    loads = ("idle", "cpu", "memory", "network", "scheduler")
    return [
        step([50_000] * ENOUGH + [ns], name=f"{at:02d}-wakeup-{loads[at]}", load=loads[at])
        for at, ns in enumerate(largest_ns)
    ]


def test_the_worst_step_decides_whatever_its_place(tmp_path):
    record = make(tmp_path, *steps_of(300_000, 50_000, 38_000_000, 50_000, 170_000))
    whole = judge_run(parse_requirement(HARD), record, {"02-wakeup-memory": "memory"})[0]
    assert whole.reason.startswith("memory: 1 of 10,001 later than 200 us")
    assert not missing(whole.reason, "none allowed", "worst 38.0 ms on CPU 0")
    assert whole.evidence["decided_by"] == "02-wakeup-memory"


def test_a_share_is_worst_where_most_are_late(tmp_path):
    often = step([50_000] * ENOUGH + [300_000] * 2_000, name="01-wakeup-cpu", load="cpu")
    rare = step([50_000] * ENOUGH + [9_000_000] * 1_000, name="02-wakeup-memory", load="memory")
    whole = judge_run(parse_requirement("latency<=200us hardness=99%"), make(tmp_path, rare, often))[0]
    assert whole.reason.startswith("01-wakeup-cpu: 16.7 % later than 200 us")
    assert not missing(whole.reason, "1 % allowed", "worst 300 us on CPU 0")


def test_the_worst_repeat_of_a_load_decides(tmp_path):
    made = []
    for repeat, ns in ((1, 50_000), (2, 900_000), (3, 800_000)):
        for load in ("idle", "cpu"):
            recorded, windows = step(
                [50_000] * ENOUGH + [ns if load == "cpu" else 50_000],
                name=f"{len(made):02d}-wakeup-{load}-r{repeat}",
                load=load,
            )
            made.append(
                (
                    recorded.model_copy(update={"key": recorded.key.model_copy(update={"repeat": repeat})}),
                    windows,
                )
            )
    whole = judge_run(parse_requirement(HARD), make(tmp_path, *made))[0]
    assert whole.reason.startswith("03-wakeup-cpu-r2: 1 of 10,001 later than 200 us")
    assert not missing(whole.reason, "none allowed", "worst 900 us on CPU 0")


def test_a_run_that_holds_names_the_step_nearest_to_the_bound(tmp_path):
    whole = judge_run(parse_requirement(HARD), make(tmp_path, *steps_of(60_000, 120_000, 90_000)))[0]
    expected = (
        "01-wakeup-cpu, the closest of 3 loads: none of 10,001 later than 200 us, none allowed; at most "
        "1 in 3,338 break the bound (95 % confidence, if violations are independent); worst 120 us on CPU 0"
    )
    assert whole.reason == expected


def test_a_cpu_that_no_step_could_measure_is_named(tmp_path):
    recorded, windows = step([50_000] * ENOUGH)
    recorded.cpus_not_measured = [
        {"cpu": cpu, "reason": reason}
        for cpu, reason in enumerate(["offline", "not-asked", "cpuset", "affinity", "cpuset"])
    ]
    whole = judge_run(parse_requirement(HARD), make(tmp_path, (recorded, windows)))[0]
    _, _, omitted = whole.reason.partition("; not measured: ")
    by_affinity, by_cpuset = omitted.split("; ")
    assert not missing(by_affinity, "CPU 3", "taskset")
    assert not missing(by_cpuset, "CPU 2,4", "cpuset")


NETWORK = LeftOut(what="load network", reason="iperf3 is not installed", remedy="apt-get install iperf3")


def test_a_run_without_a_load_cannot_tell_if_the_rest_holds(tmp_path):
    record = make(tmp_path, *steps_of(60_000, 120_000))
    record.run.left_out = [NETWORK]
    verdicts = judge_run(parse_requirement(HARD), record)
    assert verdicts[0].word == VerdictWord.CANNOT_TELL
    omitted, _, rest = verdicts[0].reason.partition("; without it: ")
    assert not missing(omitted, "load network", "iperf3 is not installed")
    assert not missing(rest, "01-wakeup-cpu", "closest of 2 loads")
    assert not missing(verdicts[0].next, "apt-get install iperf3", "--allow-left-out")
    assert exit_status(verdicts, record.steps) == 4
    marginal = make(tmp_path / "marginal", *steps_of(60_000, 190_000))
    marginal.run.left_out = [NETWORK]
    assert judge_run(parse_requirement(HARD), marginal)[0].word == VerdictWord.CANNOT_TELL


def test_omissions_may_be_allowed_and_are_still_named(tmp_path):
    record = make(tmp_path, *steps_of(60_000, 120_000))
    record.run.left_out, record.run.allow_left_out = [NETWORK], True
    verdicts = judge_run(parse_requirement(HARD), record)
    assert verdicts[0].word == VerdictWord.HOLDS
    omitted = verdicts[0].reason.rpartition("; ")[2]
    assert not missing(omitted, "load network", "iperf3 is not installed")
    assert exit_status(verdicts, record.steps) == 0


def test_what_fails_fails_whatever_was_left_out(tmp_path):
    record = make(tmp_path, *steps_of(60_000, 300_000))
    record.run.left_out = [NETWORK]
    whole = judge_run(parse_requirement(HARD), record)[0]
    assert whole.word == VerdictWord.FAILS
    (omitted,) = whole.evidence["left_out"]
    assert not missing(omitted, "load network", "iperf3 is not installed")


def test_an_unfinished_run_cannot_tell_if_its_steps_hold(tmp_path):
    record = make(tmp_path, *steps_of(60_000, 120_000))
    record.run.state = "interrupted"
    record.run.planned = [
        *(known.key for known in record.steps),
        record.steps[0].key.model_copy(update={"load": "memory"}),
    ]
    whole = judge_run(parse_requirement(HARD), record)[0]
    assert whole.word == VerdictWord.CANNOT_TELL
    assert not missing(whole.reason, "interrupted", "2 of 3 planned steps", "without it:")


def test_advice_does_not_repeat_what_the_run_did(tmp_path):
    idle = judge_run(parse_requirement(HARD), make(tmp_path / "a", *steps_of(60_000)))[0]
    assert "--load idle,cpu,memory,network" in idle.next
    loaded = judge_run(parse_requirement(HARD), make(tmp_path / "b", *steps_of(60_000, 50_000)))[0]
    assert "--load" not in loaded.next
    assert "--duration 10min" in loaded.next


def test_the_targets_facts_are_found(tmp_path):
    record = make(tmp_path, step([50_000] * ENOUGH), systems={"local": {"machine": {"emulated": True}}})
    assert judge_run(parse_requirement(HARD), record)[0].word == VerdictWord.CANNOT_TELL


def test_a_run_without_the_metric_cannot_tell(tmp_path):
    record = make(tmp_path, step([5], metric="switch"))
    verdicts = judge_run(parse_requirement(HARD), record)
    assert [v.word for v in verdicts] == [VerdictWord.CANNOT_TELL]
    assert exit_status(verdicts, record.steps) == 4


def test_damaged_windows_are_a_record_error(tmp_path):
    record = make(tmp_path, step([50_000]))
    (record.path / "steps" / "01-wakeup-idle" / "windows.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match="damaged"):
        judge_run(parse_requirement(HARD), record)


def test_exit_statuses():
    fine, _ = step([5])
    broken, _ = step([5], marks=[mark()])
    holds = verdict(HARD, [50_000] * ENOUGH)
    assert exit_status([], [fine]) == 0
    assert exit_status([], [broken]) == 3
    assert exit_status([holds], [fine]) == 0
    assert exit_status([holds, verdict(HARD, [190_000] * ENOUGH)], [fine]) == 4
    assert exit_status([holds, verdict(HARD, [190_000])], [fine, broken]) == 3
    assert exit_status([holds, verdict(HARD, [900_000])], [fine, broken]) == 1


@pytest.mark.parametrize(
    ("probe", "target", "reported"),
    [
        ("wakeup", "local", 'measure longer: rtgauge run --duration 10s --require "period'),
        (
            "wakeup",
            "ssh://board",
            'measure longer: rtgauge run --target ssh://board --duration 10s --require "period',
        ),
        (
            "noise",
            "ssh://board",
            'measure longer: rtgauge probe noise --target ssh://board --duration 10s --require "period',
        ),
    ],
)
def test_the_next_command_keeps_probe_and_target(probe, target, reported):
    recorded, windows = step([1_000] * 1_000)
    recorded = recorded.model_copy(
        update={"key": recorded.key.model_copy(update={"probe": probe, "targets": {"self": target}})}
    )
    assert judge(parse_requirement(HARD), recorded, windows).next.startswith(reported)


@pytest.mark.parametrize(
    ("given", "advised"),
    [
        (
            ["run", "standard", "--cpu", "1", "--duration", "1s"],
            "rtgauge run standard --cpu 1 --duration 10s",
        ),
        (
            ["run", "--set", "duration=1s", "--require", "latency<=1us", "--json"],
            "rtgauge run --json --duration 10s",
        ),
        (
            ["probe", "wakeup", "--count", "200", "--load=cpu"],
            "rtgauge probe wakeup --load=cpu --duration 10s",
        ),
        (["run", "--deadline", "400us", "--json"], "rtgauge run --json --duration 10s"),
        (["run", "--deadline=400us", "--json"], "rtgauge run --json --duration 10s"),
        (["import", "cyclictest", "old.txt"], "rtgauge run --duration 10s"),
    ],
)
def test_advice_repeats_the_command_that_was_given(given, advised):
    recorded, windows = step([1_000] * 1_000)
    probe = given[1] if given[0] == "probe" else "wakeup"
    recorded = recorded.model_copy(update={"key": recorded.key.model_copy(update={"probe": probe})})
    past_run = PastRun.of_run(
        run().model_copy(update={"command": ["/usr/bin/rtgauge", *given]}), [recorded], recorded
    )
    assert (
        judge(parse_requirement(HARD), recorded, windows, past_run=past_run).next
        == f'measure longer: {advised} --require "{HARD}"'
    )


@pytest.mark.parametrize(("late", "word"), [(10, VerdictWord.HOLDS), (200, VerdictWord.FAILS)])
def test_one_window_assumes_independent_violations(late, word):
    result = verdict("latency<=200us hardness=99%", [50_000] * 10_000 + [900_000] * late)
    assert result.word == word
    assert "violations are independent" in result.reason
    assert result.evidence["assumes"] == "independent violations"
