# SPDX-License-Identifier: MIT
"""Verdicts on the threads of a watched program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from rtgauge.analysis.sides import check_comparable
from rtgauge.errors import InputError
from rtgauge.record.facts import Facts, Virtualization
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import LoadReport, Mark, Result, Step, StepKey, Verdict, VerdictWord
from rtgauge.record.summary import summarise_step
from rtgauge.record.windows import Windows
from rtgauge.verdict.decision import judge
from rtgauge.verdict.next_step import Blame, PastRun
from rtgauge.verdict.requirement import parse_requirement
from tests.unit.windows import info, row, windows_of

US = 1000
MS = 1_000_000
HOLDS, FAILS, CANNOT_TELL = VerdictWord.HOLDS, VerdictWord.FAILS, VerdictWord.CANNOT_TELL


@dataclass
class Thread:
    """A watched thread with its figures (ns)."""

    name: str = "loop"
    latencies: list[int] = field(default_factory=lambda: [20 * US] * 20_000)
    responses: list[int] = field(default_factory=lambda: [100 * US] * 20_000)
    overruns: list[int] = field(default_factory=list[int])
    uncertain: list[int] = field(default_factory=list[int])
    least_responses: list[int] = field(default_factory=list[int])
    values: dict[str, bool | int | float | str | None] = field(
        default_factory=dict[str, bool | int | float | str | None]
    )
    marks: list[Mark] = field(default_factory=list[Mark])


def step_of(
    *threads: Thread, marks: tuple[Mark, ...] = (), gaps: list[int] | None = None
) -> tuple[Step, Windows]:
    rows, infos, results, all_marks = [], [], [], list(marks)
    for number, thread in enumerate(threads):
        figures = {
            "latency": thread.latencies,
            "response": thread.responses,
            "overrun": thread.overruns,
            "uncertain": thread.uncertain,
            "least-response": thread.least_responses,
        }
        for offset, (metric, values) in enumerate(figures.items()):
            series = number * len(figures) + offset
            rows.append(row(values, series=series))
            infos.append(info(series, metric, task=thread.name))
        values = {
            "definitions": 2,
            "kind": "periodic",
            "call": "clock_nanosleep",
            "period_ns": MS,
            "activations": len(thread.latencies),
            "overruns": len(thread.overruns),
        }
        results.append(Result(name="thread", labels={"task": thread.name}, values=values | thread.values))
        all_marks += [mark.model_copy(update={"series": number * len(figures)}) for mark in thread.marks]
    if gaps is not None:
        rows.append(row(gaps, series=len(rows)))
        infos.append(info(len(infos), "gap", task=threads[0].name))
    windows = windows_of(*rows)
    step = Step(
        id="01-watch-idle",
        key=StepKey(
            probe="watch", parameters={"pid": 1}, load="idle", deployment="as-is",
            targets={"self": "local"}, repeat=0,
        ),
        tool="rtgauge-engine 0.1.0", started="2026-11-21T10:03:22Z", ended="2026-11-21T10:03:32Z",
        start_ns=0, end_ns=10**10, end_reason="duration", parameters={"pid": 1}, cpus=[],
        load=LoadReport(name="idle"), series=summarise_step(windows, infos).series, total=None,
        outliers=[], marks=all_marks, results=results,
    )  # fmt: skip
    return step, windows


def watched(*threads: Thread, marks: tuple[Mark, ...] = (), text: str) -> Verdict:
    return judge(parse_requirement(text), *step_of(*threads, marks=marks))


def test_a_thread_that_keeps_its_bound_holds() -> None:
    assert watched(Thread(), text="period=1ms latency<=200us hardness=99%").word == HOLDS


@pytest.mark.parametrize(("at_least_us", "word"), [(900, FAILS), (0, CANNOT_TELL)])
def test_an_unwaited_release_is_late_only_without_the_cpu(at_least_us: int, word: VerdictWord) -> None:
    thread = Thread(overruns=[at_least_us * US] * 1000)
    judged = watched(thread, text="period=1ms latency<=200us hardness=99%")
    assert judged.word == word
    if word == CANNOT_TELL:
        assert "1,000 releases came" in judged.reason
        assert "clock_nanosleep with TIMER_ABSTIME" in judged.next


@pytest.mark.parametrize(("worst_ns", "first"), [(9 * MS, True), (200 * US, False)])
def test_the_main_cause_is_mended_before_the_waiting(worst_ns: int, first: bool) -> None:
    step, windows = step_of(Thread(overruns=[0] * 1000))
    blame = Blame("-", 0.7, worst_ns, is_own_work=True, remedy=None)
    past_run = replace(PastRun.of_step(step), blame_of=lambda _: blame)
    requirement = parse_requirement("period=1ms latency<=200us hardness=99%")
    judged = judge(requirement, step, windows, past_run=past_run)
    assert judged.word == CANNOT_TELL
    assert judged.next.startswith("shorten the thread's own work") is first


def test_few_undecided_releases_need_no_other_loop() -> None:
    thread = Thread(latencies=[20 * US] * 2_000, overruns=[0] * 15)
    judged = watched(thread, text="period=1ms latency<=200us hardness=99%")
    assert judged.word == CANNOT_TELL
    assert judged.next.startswith("measure longer")


def test_the_cause_comes_first_if_more_were_late_than_allowed() -> None:
    thread = Thread(responses=[100 * US] * 1_000 + [9 * MS] * 15, overruns=[0] * 30)
    step, windows = step_of(thread)
    blame = Blame("-", 1.0, 9 * MS, is_own_work=False, remedy="release the lock")
    past_run = replace(PastRun.of_step(step), blame_of=lambda _: blame)
    judged = judge(
        parse_requirement("period=1ms response<=2ms hardness=99%"), step, windows, past_run=past_run
    )
    assert judged.word == CANNOT_TELL
    assert judged.next.startswith("release the lock,")


def test_a_few_undecided_releases_are_not_the_reason() -> None:
    thread = Thread(latencies=[20 * US] * 300, overruns=[9 * MS] * 9 + [0])
    judged = watched(thread, text="period=1ms latency<=200us hardness=97%")
    assert judged.word == CANNOT_TELL
    assert "nothing shows" not in judged.reason


def test_a_response_that_may_have_run_more_is_uncertain() -> None:
    long = [3 * MS] * 1000
    thread = Thread(responses=[100 * US] * 19_000 + long, uncertain=long)
    text = "period=1ms response<=1ms hardness=99%"
    assert watched(thread, text=text).word == CANNOT_TELL
    assert watched(Thread(responses=thread.responses), text=text).word == FAILS


def test_a_response_surely_beyond_the_bound_is_certain() -> None:
    """Had it ended before the next release, the thread would have waited for that one."""
    long = [3 * MS] * 300
    thread = Thread(
        responses=[100 * US] * 19_000 + long,
        uncertain=long,
        overruns=[0] * 600,
        least_responses=[950 * US] * 900,
    )
    assert watched(thread, text="period=1ms response<=900us hardness=99%").word == FAILS
    assert watched(thread, text="period=1ms response<=1ms hardness=99%").word == CANNOT_TELL
    assert watched(thread, text="period=1ms latency<=900us hardness=99%").word == CANNOT_TELL


def test_each_thread_is_judged_by_itself() -> None:
    late = Thread("late", latencies=[5 * MS] * 190, responses=[6 * MS] * 190)
    judged = watched(Thread("good"), late, text="latency<=1ms hardness=97%")
    assert judged.word == FAILS
    assert judged.evidence["task"] == "late"


def test_the_advice_is_for_the_thread_that_decides() -> None:
    late = Thread("bad", responses=[9 * MS] * 20_000)
    step, windows = step_of(Thread("good"), late, Thread("last"))

    def blame_of(task: str | None) -> Blame:
        return Blame("-", 1.0, 9 * MS, is_own_work=False, remedy=f"mend {task}")

    past_run = replace(PastRun.of_step(step), blame_of=blame_of)
    verdict = judge(parse_requirement("response<=1ms"), step, windows, past_run=past_run)
    assert verdict.word is FAILS
    assert verdict.next.startswith("mend bad,")


def test_a_doubt_about_another_thread_is_no_doubt() -> None:
    doubt = MarkKind.ACTIVATIONS_UNKNOWN.mark("-")
    other = Thread("other", marks=[doubt], values={"period_ns": 9 * MS})
    assert watched(Thread("good"), other, text="period=1ms latency<=1ms").word is HOLDS
    assert watched(Thread("good"), other, text="period=9ms latency<=1ms").word is not HOLDS


def test_a_thread_with_few_activations_does_not_hide_the_others() -> None:
    few = Thread("watchdog", latencies=[10 * US] * 10, responses=[10 * US] * 10)
    judged = watched(few, Thread(), text="latency<=200us hardness=99%")
    assert judged.word == HOLDS
    assert "watchdog: 10 activations" in judged.reason
    assert watched(few, text="latency<=200us hardness=99%").word == CANNOT_TELL


def test_no_thread_with_the_period_is_the_answer() -> None:
    relative = Thread(values={"kind": "relative", "period_ns": 1240 * US, "sleep_ns": MS})
    judged = watched(relative, text="period=1ms latency<=5ms hardness=99%")
    assert judged.word == CANNOT_TELL
    assert "period of 1ms" in judged.reason
    assert "absolute time" in judged.next


def test_a_short_sleep_makes_no_period() -> None:
    """It may be a pause in the cycle of a loop that is always late."""
    short = Thread(values={"kind": "relative", "period_ns": MS, "sleep_ns": 250 * US})
    judged = watched(short, text="period=1ms latency<=5ms hardness=99%")
    assert judged.word == CANNOT_TELL
    assert "sleeps for 250 us after its work" in judged.reason


@pytest.mark.parametrize("latency", [20 * US, 9 * MS])
def test_a_loop_without_a_grid_is_not_judged_by_a_period(latency: int) -> None:
    thread = Thread(latencies=[latency] * 20_000, values={"kind": "own-schedule"})
    judged = watched(thread, text="period=1ms latency<=5ms hardness=99%")
    assert judged.word == CANNOT_TELL
    assert "are not evenly spaced" in judged.reason
    assert watched(thread, text="latency<=5ms hardness=99%").word == (HOLDS if latency < MS else FAILS)


def test_a_drift_is_named() -> None:
    relative = Thread(values={"kind": "relative", "period_ns": 1050 * US, "sleep_ns": MS})
    judged = watched(relative, text="period=1ms latency<=5ms hardness=99%")
    assert "sleeps for" in judged.reason


@pytest.mark.parametrize(
    ("late_us", "own_us", "doubtful"), [(0, 10_000, False), (1000, 999, False), (1000, 1001, True)]
)
def test_rtgauges_own_time_is_compared_with_the_excess(late_us: int, own_us: int, doubtful: bool) -> None:
    """100 of 20,000 are late; the sum of all latencies is much larger. The values lie on edges of bins."""
    bound = 1024 * US
    latencies = [512 * US] * 19_900 + [bound + late_us * US] * 100
    thread = Thread(latencies=latencies, values={"preempted_by_rtgauge_ns": own_us * US})
    marks = (MarkKind.DELAYED_BY_RTGAUGE.mark("of all latencies"),)
    judged = watched(thread, marks=marks, text="latency<=1024us hardness=99.9%")
    assert ("delayed-by-rtgauge" in judged.reason) is doubtful
    assert (judged.word == FAILS) is (late_us > 0)
    # It only made the thread later, so what holds in spite of it is in no doubt.
    assert watched(thread, marks=marks, text="latency<=1024us hardness=99%").word == HOLDS


def test_a_thread_that_hangs_is_named_first() -> None:
    hung = Thread(overruns=[3 * 10**9] * 7500, values={"stuck": True, "stuck_in": "futex"})
    judged = watched(hung, text="period=1ms response<=100ms hardness=99%")
    assert judged.word == FAILS
    assert judged.reason.startswith("loop is stuck in futex")


@pytest.mark.parametrize("kind", [MarkKind.THREADS_LEFT_OUT, MarkKind.THREADS_UNWATCHED])
def test_threads_that_nobody_watched_never_hold(kind: MarkKind) -> None:
    assert watched(Thread(), marks=(kind.mark("four"),), text="latency<=1ms hardness=99%").word == CANNOT_TELL


def test_a_program_that_crashed_never_holds_and_says_so_first() -> None:
    killed = MarkKind.PROGRAM_KILLED.mark("the program was ended by SIGSEGV 0.310 s after it began")
    judged = watched(Thread(), marks=(killed,), text="latency<=1ms hardness=99%")
    assert judged.word == CANNOT_TELL
    assert judged.reason.startswith("the program was ended by SIGSEGV")
    assert "why" in judged.next
    late = Thread(latencies=[5 * MS] * 20_000)
    assert watched(late, marks=(killed,), text="latency<=1ms hardness=99%").word == FAILS


@pytest.mark.parametrize("kind", [MarkKind.CYCLE_UNCLEAR, MarkKind.WALL_CLOCK_SET])
def test_a_doubt_about_the_releases_never_holds(kind: MarkKind) -> None:
    doubtful = Thread(marks=[kind.mark("why")])
    assert watched(doubtful, text="latency<=1ms hardness=99%").word == CANNOT_TELL


def test_both_bounds_are_judged() -> None:
    thread = Thread(responses=[3 * MS] * 20_000)
    judged = watched(thread, text="period=1ms latency<=1ms response<=2ms hardness=99%")
    assert judged.word == FAILS
    assert judged.reason.startswith("response:")
    assert judged.requirement == "period=1ms latency<=1ms response<=2ms hardness=99%"


def test_what_the_end_cut_counts_if_it_is_older_than_the_bound() -> None:
    for age_ns, word in ((500 * US, HOLDS), (30 * MS, FAILS)):
        thread = Thread(values={"cut_response_ns": age_ns})
        text = "period=1ms response<=1ms hardness=100%"
        assert watched(thread, text=text).word == word


def test_a_poller_is_judged_by_its_gaps() -> None:
    poller = Thread(latencies=[], responses=[], values={"kind": "poller", "activations": 0})
    judged = watched(poller, text="latency<=1ms hardness=99%")
    assert judged.word == CANNOT_TELL
    assert "gap<=" in judged.next


def gaps_of_a_poller(gap_us: int, *, virtual: bool | None = False, **actual: bool | int | None) -> Verdict:
    """Judge gap<=20us. `actual`: what the engine counted; None: nothing counts it."""
    observed = {"interrupts_traced": True, "observed_ns": 10**10, "unknown_stops": 0, "smis": 0} | actual
    smis = observed.pop("smis")
    poller = Thread(latencies=[], responses=[], values={"kind": "poller", "activations": 0, **observed})
    step, windows = step_of(poller, gaps=[gap_us * US])
    results = [
        *step.results,
        Result(name="watched", labels={}, values={} if smis is None else {"smis": smis}),
    ]
    facts = Facts(machine=Virtualization(virtual=virtual))
    return judge(parse_requirement("gap<=20us"), step.model_copy(update={"results": results}), windows, facts)


@pytest.mark.parametrize(("gap_us", "word"), [(10, HOLDS), (19, VerdictWord.MARGINAL), (50_000, FAILS)])
def test_a_poller_is_judged_by_its_gaps_if_all_stops_have_events(gap_us: int, word: VerdictWord) -> None:
    assert gaps_of_a_poller(gap_us).word == word


@pytest.mark.parametrize(
    ("virtual", "actual", "reason"),
    [
        (True, {}, "the host may have stopped"),
        (None, {}, "if this is a virtual machine, its host"),
        (False, {"interrupts_traced": False}, "but not when interrupts did"),
        (False, {"smis": None}, "neither an event nor a counter"),
        (False, {"smis": 2}, "2 times"),
        (False, {"unknown_stops": 1}, "do not show all times at which the thread was stopped"),
    ],
)
def test_a_pollers_gaps_need_an_event_for_every_stop(
    virtual: bool | None, actual: dict[str, bool | int | None], reason: str
) -> None:
    judged = gaps_of_a_poller(10, virtual=virtual, **actual)
    assert judged.word == CANNOT_TELL
    assert reason in judged.reason
    assert judged.next.endswith('rtgauge probe noise --cpu CPU --require "gap<=20us"')
    assert gaps_of_a_poller(50, virtual=virtual, **actual).word == FAILS


def test_steps_with_other_definitions_are_not_compared() -> None:
    now, before = (step_of(Thread(values={"definitions": version}))[0] for version in (2, 1))
    with pytest.raises(InputError, match="the definition of a release"):
        check_comparable([("now", now), ("before", before)])


def test_undecided_releases_are_the_only_reason() -> None:
    thread = Thread(latencies=[20 * US] * 300, overruns=[0] * 299 + [12 * MS])
    judged = watched(thread, text="period=1ms response<=2ms hardness=99%")
    assert "nothing shows" in judged.reason
    assert "coarse" not in judged.reason
