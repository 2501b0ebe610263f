# SPDX-License-Identifier: MIT
"""Advice: the walk over the chart with what was measured, what is open, and what comes next."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.support.explained import add_moments, real_formats, real_moment
from tests.support.messages import missing
from tests.support.records import Shape, write_record
from tests.support.timing import Drawn, Series, facts, record

from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK, InputError
from rtgauge.explain.analysis.culprits import blame_of
from rtgauge.record.model import Mark, Severity, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.verdict.decision import judge
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from rtgauge_ext.papers.advise.advice_report import print_advice
from rtgauge_ext.papers.advise.flowchart import Advice, advise, machines_of
from rtgauge_ext.papers.advise.flowchart_file import Thresholds, load_flowchart
from rtgauge_ext.papers.advise.margin import Margin

if TYPE_CHECKING:
    from pathlib import Path

HARD = "period=1ms latency<=200us hardness=100%"
SOFT = "period=1ms latency<=200us hardness=95%"
RT = facts("PREEMPT_RT")


def advice_on(text: str, *records: Record, chart: str = "today", **limits: float) -> Advice:
    flowchart, chosen = load_flowchart(chart)
    thresholds = Thresholds(**{**flowchart.thresholds.model_dump(), **limits})
    flowchart = flowchart.model_copy(update={"thresholds": thresholds})
    return advise(parse_requirement(text), records, flowchart, chosen)


def wakeups(
    folder: Path,
    largest_us: int,
    *,
    system: dict | None = None,
    loads=("idle", "cpu"),
    count: int = 20_000,
    late: int = 1,
    **more,
) -> Record:
    """A record in which `late` of `count` wake-ups, under the last load, are as late as `largest_us`."""
    steps = [
        Drawn(
            [Series([10_000] * (count - late) + [(largest_us if load == loads[-1] else 20) * 1_000] * late)],
            load=load,
            **more,
        )
        for load in loads
    ]
    return record(folder, steps, system)


def test_without_records_the_chart_says_what_to_measure():
    soft, hard = advice_on(SOFT), advice_on(HARD)
    assert (soft.use, soft.measured, soft.status) == ("user-stock", False, EXIT_CANNOT_TELL)
    assert soft.next == f'rtgauge run quick --require "{SOFT}"'
    assert hard.use == "user-rt"
    assert hard.next.startswith("boot a PREEMPT_RT kernel")
    assert advice_on(HARD, chart="brown2010").use == "xenomai-user"


@pytest.mark.parametrize(
    ("largest_us", "margin", "leads"),
    [
        (150, Margin.BLACK, None),
        (170, Margin.MARGINAL, "user-rt"),
        (390, Margin.MARGINAL, "user-rt"),
        (410, Margin.TROUBLE, "xenomai-user"),
        (3_900, Margin.TROUBLE, "xenomai-user"),
        (4_100, Margin.OFF, "dedicated"),
    ],
)
def test_the_stock_kernels_margin_leads_where_the_paper_says(
    tmp_path: Path, largest_us: int, margin: Margin, leads: str | None
):
    advice = advice_on(SOFT, wakeups(tmp_path / "r", largest_us, late=2_000), chart="brown2010")
    assert (advice.walk[0].way, advice.walk[0].margin, advice.walk[0].leads_to) == (
        "user-stock",
        margin,
        leads,
    )
    assert advice.walk[0].evidence[0].record == str(tmp_path / "r")
    assert advice.use == (leads or "user-stock")


def test_in_the_black_under_load_is_an_answer(tmp_path: Path):
    advice = advice_on(SOFT, wakeups(tmp_path / "r", 100))
    assert (advice.use, advice.measured, advice.status) == ("user-stock", True, EXIT_OK)
    assert "clearly in the black" in advice.answer
    assert advice.costs
    assert any("input to an output" in missing.what for missing in advice.not_measured)


def test_idle_alone_is_an_answer_with_a_condition(tmp_path: Path):
    advice = advice_on(SOFT, wakeups(tmp_path / "r", 100, loads=("idle",)))
    assert (advice.measured, advice.status) == (False, EXIT_CANNOT_TELL)
    assert not missing(advice.answer, "if", "under load")
    assert not missing(advice.not_measured[0].what, "under load", "idle")
    assert "rtgauge run --load idle,cpu,memory,network" in advice.next


def test_the_worst_step_decides_and_the_other_stays_visible(tmp_path: Path):
    stage = advice_on(SOFT, wakeups(tmp_path / "r", 900, late=2_000)).walk[0]
    assert stage.margin is Margin.TROUBLE
    assert "02-wakeup-cpu decides, 4.5 times the bound" in stage.why
    assert [entry.margin for entry in stage.evidence] == [Margin.BLACK, Margin.TROUBLE]


def test_two_kernels_lead_to_the_one_that_is_enough(tmp_path: Path):
    stock, rt = wakeups(tmp_path / "stock", 900), wakeups(tmp_path / "rt", 90, system=RT)
    hard = advice_on(HARD, stock, rt)
    assert [(stage.way, stage.margin) for stage in hard.walk] == [("user-rt", Margin.BLACK)]
    assert (hard.use, hard.status) == ("user-rt", EXIT_OK)
    assert [(stage.way, stage.margin) for stage in hard.also_measured] == [("user-stock", Margin.TROUBLE)]
    assert advice_on(HARD, stock, rt, chart="brown2010").use == "xenomai-user"
    assert "mainline" in hard.today[0]
    assert hard.differs is not None


def test_two_machines_have_an_answer_each(tmp_path: Path):
    slow = wakeups(tmp_path / "slow", 900, late=2_000, system=facts(host="slow"))
    fast = wakeups(tmp_path / "fast", 100, system=facts(host="fast"))
    machines = machines_of([slow, fast])
    assert sorted(machines.values()) == ["fast", "slow"]
    flowchart, chosen = load_flowchart("today")
    actual = {
        host: advise(parse_requirement(SOFT), [slow, fast], flowchart, chosen, machine=machine)
        for machine, host in machines.items()
    }
    assert actual["fast"].walk[0].margin is Margin.BLACK
    assert actual["slow"].walk[0].margin is not Margin.BLACK
    assert {entry.record for entry in actual["fast"].walk[0].evidence} == {str(tmp_path / "fast")}


def test_failing_ways_are_passed_and_unmeasured_ones_end_it(tmp_path: Path):
    advice = advice_on(
        SOFT,
        wakeups(tmp_path / "stock", 300, late=2_000),
        wakeups(tmp_path / "rt", 250, late=2_000, system=RT),
    )
    assert [stage.way for stage in advice.walk] == ["user-stock", "user-rt", "xenomai-user"]
    assert (advice.use, advice.walk[-1].margin, advice.status) == ("xenomai-user", None, EXIT_CANNOT_TELL)
    assert "latency -t 0" in advice.not_measured[0].command
    assert "rtgauge run --deployment MI" in advice.next  # as the verdict on the last measured way says
    assert "not from a measurement" in advice.answer
    assert advice.published["response"] == [26, 59, 90]
    assert any("CPU of its own" in missing.what for missing in advice.not_measured)


def test_off_the_map_ends_at_dedicated_hardware(tmp_path: Path):
    advice = advice_on(
        "latency<=1us hardness=95%", wakeups(tmp_path / "r", 500, late=2_000, count=20_000), trouble=5
    )
    assert (advice.use, advice.status) == ("dedicated", EXIT_FAILS)
    assert "no software" in advice.answer


def test_a_short_run_cannot_tell_and_names_the_duration(tmp_path: Path):
    advice = advice_on(HARD, wakeups(tmp_path / "r", 20, count=500, system=RT))
    assert (advice.use, advice.status) == (None, EXIT_CANNOT_TELL)
    assert "unknown so far" in advice.answer
    assert "--duration" in advice.next


def test_thresholds_are_those_of_the_file(tmp_path: Path):
    recorded = wakeups(tmp_path / "r", 300, late=2_000)
    assert advice_on(SOFT, recorded).walk[0].margin is Margin.MARGINAL
    assert advice_on(SOFT, recorded, marginal=1.2).walk[0].margin is Margin.TROUBLE
    assert advice_on(SOFT, recorded, marginal=1.1, trouble=1.2).walk[0].margin is Margin.OFF
    held = wakeups(tmp_path / "held", 100, late=2_000)
    assert advice_on(SOFT, held).walk[0].margin is Margin.BLACK
    assert advice_on(SOFT, held, black=0.4).walk[0].margin is Margin.MARGINAL


def test_a_missed_activation_is_marginal_at_the_least(tmp_path: Path):
    drawn = Drawn([Series([10_000] * 20_000, missed=[5_000])], load="cpu")
    stage = advice_on(HARD, record(tmp_path / "r", [drawn], RT)).walk[0]
    assert stage.margin is Margin.MARGINAL
    assert "1 was missed" in stage.why


def test_an_answer_that_never_came_is_off_the_map(tmp_path: Path):
    drawn = Drawn(
        [Series([10_000] * 20_000, "response", {"role": "master"}, lost=3)],
        "response",
        {"path": "loop:udp"},
        load="cpu",
    )
    advice = advice_on("response<=200us hardness=100%", record(tmp_path / "r", [drawn], RT))
    assert [stage.way for stage in advice.walk] == ["user-rt", "dedicated"]
    assert advice.walk[0].margin is Margin.OFF


def test_what_is_no_evidence_is_named_with_its_reason(tmp_path: Path):
    steps = [
        Drawn([Series([10] * 50, "jitter", {"role": "self"})], "periodic", {"period_ns": 10**6}),
        Drawn([Series([10] * 50)], parameters={"interval_ns": 10**6, "policy": "other"}),
    ]
    unknown = record(tmp_path / "unknown", [Drawn([Series([10] * 50)])], {"host": "x"})
    advice = advice_on(SOFT, record(tmp_path / "r", steps), unknown)
    other, policy, system = (entry.why for entry in advice.aside)
    assert "latency" in other
    assert "priority" in policy
    assert "kernel" in system
    assert advice.walk[0].margin is None


def test_emulated_and_invalid_steps_decide_nothing(tmp_path: Path):
    emulated = wakeups(tmp_path / "e", 100, system=facts(machine={"virtual": True, "emulated": True}))
    assert advice_on(SOFT, emulated).walk[0].margin is Margin.CANNOT_TELL
    invalid = wakeups(
        tmp_path / "i", 100, marks=[Mark(name="load-died", severity=Severity.INVALID, detail="why")]
    )
    assert advice_on(SOFT, invalid).walk[0].margin is Margin.CANNOT_TELL


def test_a_shorter_period_than_measured_is_an_open_question(tmp_path: Path):
    advice = advice_on("period=100us latency<=200us hardness=95%", wakeups(tmp_path / "r", 50))
    slower = next(missing for missing in advice.not_measured if "required period" in missing.what)
    assert "--set interval=100us" in slower.command


@pytest.mark.parametrize("word", ["life-safety", "Life-Safety", "safety-critical"])
def test_life_safety_is_refused_by_name(word: str):
    with pytest.raises(InputError, match="life-safety is refused"):
        parse_requirement(f"latency<=200us hardness={word}")


def test_jitter_is_two_sided_and_lateness_is_judged_too(tmp_path: Path):
    steps = [
        Drawn(
            [
                Series([300_000] * 20_000, "latency", {"role": "self"}),
                Series([0] * 10_000 + [-60_000] + [0] * 9_999, "jitter", {"role": "self"}),
            ],
            "periodic",
            {},
        ),
        Drawn(
            [
                Series([300_000] * 20_000, "latency", {"role": "self"}),
                Series([5] * 20_000, "jitter", {"role": "self"}),
            ],
            "periodic",
            {},
            load="cpu",
        ),
    ]
    recorded = record(tmp_path / "r", steps)
    early, late = (
        judge(
            parse_requirement("jitter<=50us hardness=100%"),
            step,
            recorded.windows(step),
            recorded.system("local"),
        )
        for step in recorded.steps
    )
    assert early.word == VerdictWord.FAILS
    assert "largest jitter of 20,000" in early.reason
    assert late.word == VerdictWord.HOLDS
    assert "largest 300 us" in late.reason
    assert late.evidence["lateness"]["word"] == "fails"


def test_parts_of_a_response_and_a_second_view_are_not_counted(tmp_path: Path):
    series = [
        Series([100_000] * 20_000, "response", {"role": "master"}),
        Series([900_000] * 20_000, "response", {"segment": "service-time"}),
        Series([900_000] * 20_000, "response", {"role": "slave"}),
    ]
    recorded = record(tmp_path / "r", [Drawn(series, "response", {})])
    verdict = judge(
        parse_requirement("response<=200us hardness=100%"),
        recorded.steps[0],
        recorded.windows(recorded.steps[0]),
        recorded.system("local"),
    )
    assert (verdict.word, verdict.evidence["activations"]) == (VerdictWord.HOLDS, 20_000)


def test_a_margin_of_ones_own(tmp_path: Path):
    recorded = wakeups(tmp_path / "r", 100)
    step = recorded.steps[-1]
    words = [
        judge(
            parse_requirement(HARD),
            step,
            recorded.windows(step),
            recorded.system("local"),
            margin=Fraction(share),
        ).word
        for share in ("0.5", "0.49")
    ]
    assert words == [VerdictWord.HOLDS, VerdictWord.MARGINAL]


@pytest.mark.parametrize("width", [80, 160])
def test_the_terminal_says_answer_walk_costs_and_next(tmp_path: Path, width: int):
    console = Console(width=width, record=True, force_terminal=False, file=(tmp_path / "out").open("w"))
    print_advice(advice_on(SOFT, wakeups(tmp_path / "r", 300, late=2_000)), console)
    text = " ".join(console.export_text().split())
    for words in (
        "Try user space on PREEMPT_RT next",
        "The walk",
        "marginal",
        "custom kernel",
        "What today's kernels changed",
        "Missing measurements",
        "next boot a PREEMPT_RT",
    ):
        assert words in text
    assert max(len(line) for line in (tmp_path / "out").read_text().splitlines()) <= width


def test_a_step_on_cobalt_is_evidence_for_xenomai(tmp_path: Path):
    late = wakeups(tmp_path / "linux", 2_500, late=2_000, system=facts())
    assert advice_on(HARD, late, chart="brown2010").walk[-1].margin is None
    good = wakeups(tmp_path / "cobalt", 60, system=facts(), parameters={"rt": "cobalt"})
    advice = advice_on(HARD, late, good, chart="brown2010")
    assert (advice.use, advice.walk[-1].way, advice.walk[-1].margin) == (
        "xenomai-user",
        "xenomai-user",
        Margin.BLACK,
    )


def test_the_advice_is_what_the_explanation_proposes(tmp_path: Path) -> None:
    path = write_record(tmp_path, Shape(loads=("idle",), seconds=2, marks=False))
    (step,) = json.loads((path / "run.json").read_text())["steps"]
    add_moments(path, step, real_formats(), [{"type": "moment", **real_moment()}])
    explained = Record.open(path)
    requirement = parse_requirement("latency<=1us")
    flowchart, chosen = load_flowchart("today")
    actual = advise(requirement, [explained], flowchart, chosen, blame_of=blame_of)
    assert actual.next in {verdict.next for verdict in judge_run(requirement, explained, blame_of=blame_of)}
    assert "or give hog another CPU" in actual.next  # which only an explanation knows
