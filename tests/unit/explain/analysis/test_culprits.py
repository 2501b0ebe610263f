# SPDX-License-Identifier: MIT
"""The ranking of culprits, and spikes joined on their time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtgauge.analysis.spikes import Spike, joint_events, joint_words
from rtgauge.explain.analysis import culprits
from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import (
    host_may_have_run,
    remedy_of,
    with_names,
)
from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, Part
from rtgauge.explain.analysis.machine_stall import with_joint_stalls
from rtgauge.explain.analysis.mechanisms import WORDS, cause_words, mechanisms
from rtgauge.explain.analysis.ranking import MENDS, general, ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.record.facts import Facts
from rtgauge.record.model import Severity
from rtgauge.system.deployment.extension_auditor import AuditRule
from tests.unit.explain.made_events import HIGHER, IDLE, LOWER, MEASURED, Story
from tests.unit.records import mark, step

LOGGER = ("logger", 31, 10)


def explained(story: Story, latency_us: float) -> Explanation:
    return explain(story.moment(latency_us), Symbols((), ()))


def by_hog(latency: float) -> Explanation:
    story = (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .timer(0, 1)
        .switch(latency, 1, HIGHER, MEASURED, state=1)
    )
    return explained(story, latency)


def by_irq(latency: float) -> Explanation:
    story = (
        Story().switch(-500, 1, MEASURED, LOWER, state=1).at(-1, 1, "irq_handler_entry", irq=31, name="disk")
    )
    return explained(
        story.at(latency - 5, 1, "irq_handler_exit", irq=31)
        .timer(latency - 5, 1)
        .switch(latency, 1, LOWER, MEASURED),
        latency,
    )


def test_culprits_are_ranked_by_time_with_share_and_worst() -> None:
    first, second, *_ = ranked_culprits([by_hog(100), by_irq(1000), by_hog(300)])
    assert (first.culprit, first.outliers, first.ns, first.worst_ns) == (
        Culprit(Kind.IRQ, "disk", 31),
        1,
        995_000,
        995_000,
    )
    assert (second.culprit, second.outliers, second.worst_ns) == (Culprit(Kind.TASK, "hog"), 2, 296_000)
    assert abs(first.outlier_share - 1 / 3) < 1e-9
    assert abs(first.time_share - 995 / 1400) < 1e-9
    assert first.rules[0] == "irqs-on-isolated"


def test_instances_of_a_kernel_thread_are_one_culprit() -> None:
    workers = [("kworker/0:1", 31, 0), ("kworker/1:2", 32, 0)]
    stories = [
        Story()
        .switch(-500, 1, MEASURED, worker, state=1)
        .timer(0, 1)
        .switch(100, 1, worker, MEASURED, state=1)
        for worker in workers
    ]
    first, *_ = ranked_culprits([explained(story, 100) for story in stories])
    assert (first.culprit, first.outliers) == (Culprit(Kind.TASK, "kworker"), 2)


@pytest.mark.parametrize(
    ("culprit", "name"),
    [
        (Culprit(Kind.EITHER, "kworker/0:1 or the thread itself"), "kworker or the thread itself"),
        (Culprit(Kind.IRQ, "mmc/0", 31), "mmc/0"),
        (Culprit(Kind.TASK, "/usr"), "/usr"),
    ],
)
def test_only_a_kernel_threads_instance_leaves_its_name(culprit: Culprit, name: str) -> None:
    assert general(culprit).name == name


def test_a_programs_task_gets_a_lower_priority() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, LOGGER, state=1)
        .timer(0, 1)
        .switch(300, 1, LOGGER, MEASURED, state=1)
    )
    (first, *_) = ranked_culprits([explained(story, 300)])
    remedy = remedy_of(first, Facts())
    assert remedy is not None
    assert (remedy.rule, remedy.what) == (None, "run chrt -f -p 79 31, or give logger another CPU")
    again = remedy_of(first, Facts(), {"logger"})  # a thread of the program has another number next time
    assert again is not None
    assert again.what.startswith("give logger a lower real-time priority")


def test_no_setting_removes_the_timer_that_wakes_the_thread() -> None:
    story = (
        Story().switch(-500, 1, MEASURED, HIGHER, state=1).timer(0, 1).switch(5, 1, HIGHER, MEASURED, state=1)
    )
    by_name = {ranked.culprit.name: ranked for ranked in ranked_culprits([explained(story, 5)])}
    own = remedy_of(by_name["local timer"], Facts())
    assert own is not None
    assert (own.rule, "no setting removes this interrupt" in own.what) == (None, True)


@pytest.mark.parametrize("host", [True, False])
def test_a_quiet_interrupt_of_a_guest_may_be_the_hosts(host: bool) -> None:
    (doubt,) = with_names(by_irq(1000), Facts(), host=host).doubts or [""]
    assert ("995.000 us in interrupts are unexplained" in doubt) is host
    assert not with_names(by_irq(80), Facts(), host=host).doubts


@pytest.mark.parametrize(
    ("counted_us", "excluded", "open_us"),
    [(995, True, None), (983, True, "12.000"), (600, True, "395.000"), (995, False, "995.000")],
)
def test_time_counted_for_the_interrupted_is_not_the_hosts(
    counted_us: int, excluded: bool, open_us: str | None
) -> None:
    story = (
        Story().switch(-500, 1, MEASURED, LOWER, state=1).at(0, 1, "sched_stat_runtime", pid=200, runtime=0)
    )
    story.at(0, 1, "irq_handler_entry", irq=31, name="disk").at(995, 1, "irq_handler_exit", irq=31)
    story.at(995, 1, "sched_stat_runtime", pid=200, runtime=counted_us * 1000)
    parts_ns = explained(story.timer(995, 1).switch(1000, 1, LOWER, MEASURED), 1000)
    facts = Facts.model_validate({"kernel": {"steal_excluded": excluded}})
    doubts = with_names(parts_ns, facts, host=True).doubts
    assert [doubt.partition(" us")[0] for doubt in doubts] == ([] if open_us is None else [open_us])


def test_uncounted_time_of_the_interrupted_is_all_in_doubt() -> None:
    story = Story().switch(-500, 1, MEASURED, LOWER, state=1)
    story.at(0, 1, "irq_handler_entry", irq=31, name="disk").at(995, 1, "irq_handler_exit", irq=31)
    story.at(995, 1, "sched_stat_runtime", pid=300, runtime=995_000)
    parts_ns = explained(story.timer(995, 1).switch(1000, 1, LOWER, MEASURED), 1000)
    facts = Facts.model_validate({"kernel": {"steal_excluded": True}})
    (doubt,) = with_names(parts_ns, facts, host=True).doubts
    assert doubt.startswith("995.000 us in interrupts")


@pytest.mark.parametrize(
    ("virtual", "before_ns", "marked", "may"),
    [(True, 5, True, True), (True, 5, False, False), (True, 0, False, True), (False, 0, False, False)],
)
def test_a_host_that_counts_steal_did_not_run_without_it(
    virtual: bool, before_ns: int, marked: bool, may: bool
) -> None:
    facts = Facts.model_validate({"machine": {"virtual": virtual}, "steal_ns_since_boot": before_ns})
    recorded, _ = step([5], marks=[mark("steal", Severity.NOTE)] if marked else [])
    assert host_may_have_run(recorded, facts) is may


@pytest.mark.parametrize(
    ("instruction_ns", "cpus", "may"), [(4, 1, False), (4, 2, True), (0, 1, True), (None, 1, True)]
)
def test_a_host_takes_no_time_of_an_instruction_clock(
    instruction_ns: int | None, cpus: int, may: bool
) -> None:
    machine = {"virtual": True, "instruction_ns": instruction_ns}
    facts = Facts.model_validate({"machine": machine, "cpu": {"online_count": cpus}})
    assert host_may_have_run(step([5])[0], facts) is may


def test_counted_steal_is_steal_in_an_interrupt_too() -> None:
    story = (
        Story().switch(-500, 1, MEASURED, LOWER, state=1).at(-1, 1, "irq_handler_entry", irq=31, name="disk")
    )
    story.at(20_000, 1, "irq_handler_exit", irq=31).timer(20_001, 1).switch(20_005, 1, LOWER, MEASURED)
    moment = replace(story.moment(20_006), stolen_ns={1: 20_000_000})
    assert explain(moment, Symbols((), ())).main.culprit.kind is Kind.STEAL


def by_itself(own: float, hog: float) -> Explanation:
    story = (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .timer(0, 1)
        .switch(hog, 1, HIGHER, MEASURED, state=1)
    )
    return explained(story, hog + own)


def test_the_threads_own_work_comes_after_what_made_it_late() -> None:
    assert [ranked.culprit.kind for ranked in ranked_culprits([by_itself(900, 100)])][:2] == [
        Kind.TASK,
        Kind.OWN,
    ]
    assert [ranked.culprit.kind for ranked in ranked_culprits([by_itself(9900, 100)])][:2] == [
        Kind.OWN,
        Kind.TASK,
    ]


def test_page_faults_longer_than_the_work_come_first() -> None:
    for among_us, first in ((200, Kind.PAGE_FAULT), (400, Kind.OWN)):
        actual = by_itself(700, 300)
        parts = [
            replace(part, among_faults_ns=among_us * 1000)
            if part.culprit.kind is Kind.OWN
            else replace(part, culprit=Culprit(Kind.PAGE_FAULT))
            for part in actual.parts
        ]
        assert ranked_culprits([replace(actual, parts=parts)])[0].culprit.kind is first


def test_what_may_be_own_work_is_ranked_as_own_work() -> None:
    actual = by_itself(700, 300)
    parts = [
        replace(part, culprit=Culprit(Kind.FAULT_OR_OWN)) if part.culprit.kind is Kind.OWN else part
        for part in actual.parts
    ]
    assert [ranked.culprit.kind for ranked in ranked_culprits([replace(actual, parts=parts)])][:2] == [
        Kind.TASK,
        Kind.FAULT_OR_OWN,
    ]


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {name: AuditRule(name, name) for names in MENDS.values() for name in names}
    monkeypatch.setattr(culprits, "audit_rules", lambda: rules)


def advice(culprit: Culprit, *, inherits: bool = False, ns: int = 100_000) -> str:
    actual = replace(by_hog(100), lock_inherits=inherits)
    (ranked,) = ranked_culprits([replace(actual, parts=[Part(culprit, ns)])])
    remedy = remedy_of(ranked, Facts())
    return "" if remedy is None else remedy.words


def test_the_advice_fits_the_cause(audited: None) -> None:
    assert "real-time priority" in advice(Culprit(Kind.TASK, "hackbench", priority=120, pid=200))
    assert "isolated-cpus" in advice(Culprit(Kind.TASK, "migration/1", priority=0, pid=20))
    before_owner = Culprit(Kind.TASK, "hog", owner="logger", priority=60, pid=300)
    assert "(PTHREAD_PRIO_INHERIT)" in advice(before_owner)
    assert "PTHREAD_PRIO_INHERIT" not in advice(replace(before_owner, priority=9))  # above the waiter
    assert "give hog a lower real-time priority" in advice(before_owner, inherits=True)
    assert "PTHREAD_PRIO_INHERIT" not in advice(before_owner, inherits=True)
    assert (
        advice(Culprit(Kind.OWNER_ASLEEP, "logger", call="fdatasync"))
        == "release the lock before logger calls fdatasync"
    )
    assert "let logger hold the lock for a shorter time" in advice(Culprit(Kind.LOCK_OWNER, "logger"))
    assert "let logger hold the lock for a shorter time" in advice(Culprit(Kind.LOCK_SPIN, "logger"))
    assert "mlockall" in advice(Culprit(Kind.PAGE_FAULT))
    assert "posix_spawn" in advice(Culprit(Kind.PAGE_FAULT, "copy on write"))
    assert "mlockall" not in advice(Culprit(Kind.PAGE_FAULT, "copy on write"))
    assert (
        advice(Culprit(Kind.BLOCKED, "fdatasync", until="jbd2/vda-8")) == "call fdatasync in another thread"
    )
    assert advice(Culprit(Kind.BLOCKED, "futex", until="worker")).startswith("shorten what worker does")
    assert "-XX:+UseZGC" in advice(Culprit(Kind.BLOCKED, "futex", until="VM Thread"))
    python = Culprit(Kind.BLOCKED, "futex", until="python3")
    assert "setswitchinterval" in advice(python, ns=9_900_000)
    assert "find the long call" in advice(python, ns=10_000_000)
    assert "freezer" in advice(Culprit(Kind.BLOCKED, until="freezer"))
    assert "preemptible-kernel" in advice(Culprit(Kind.PREEMPTION_OFF, "cat", pid=7))


@pytest.mark.parametrize("kind", ["maximum", "blocked"])
@pytest.mark.parametrize(
    ("mine", "owner", "needs"),
    [(120, "", "the thread"), (120, "logger", "the thread"), (19, "", "feeder"), (19, "logger", None)],
)
def test_a_thread_without_a_real_time_priority_gets_one_first(
    kind: str, mine: int, owner: str, needs: str | None
) -> None:
    actual = by_hog(100)
    ordinary = Part(Culprit(Kind.TASK, "python", owner=owner, priority=120, pid=7), 90_000)
    actual = replace(
        actual,
        moment=replace(actual.moment, kind=kind),
        path=replace(actual.path, priority=mine),
        parts=[ordinary, Part(Culprit(Kind.WAKER, "feeder"), 10_000)],
    )
    remedy = remedy_of(ranked_culprits([actual])[0], Facts())
    assert remedy is not None
    if needs is None:
        assert "PTHREAD_PRIO_INHERIT" in remedy.what
    else:
        who = needs if kind == "blocked" else "the thread"
        assert remedy.what == f"give {who} a real-time priority (chrt -f)"


def test_spikes_of_all_cpus_that_overlap_are_one_event() -> None:
    spikes = [Spike(cpu, 1_000 + cpu, 900_000 + cpu) for cpu in range(16)] + [
        Spike(cpu, 5_000_000, 5_100_000) for cpu in range(3)
    ]
    events = joint_events(spikes)
    assert [len(event.spikes) for event in events] == [16, 3]
    assert joint_words(events) == "19 outliers on 16 CPUs are 2 events"


def test_spikes_at_different_times_are_not_joined() -> None:
    assert joint_words(joint_events([Spike(0, 0, 10), Spike(1, 20, 30)])) is None
    assert joint_words(joint_events([Spike(0, 0, 10), Spike(0, 5, 30)])) is None
    assert joint_words([]) is None


def test_uncertain_times_join_what_may_be_one() -> None:
    assert len(joint_events([Spike(0, 0, 10, 8), Spike(1, 20, 30, 8)])) == 1


def late_on(cpu: int, latency: float, before: tuple[str, int, int]) -> Explanation:
    """A timer of one CPU that came late while `before` had it."""
    story = (
        Story()
        .switch(-500, cpu, MEASURED, before, state=1)
        .timer(latency - 10, cpu)
        .switch(latency - 3, cpu, before, MEASURED)
    )
    return explain(story.moment(latency, cpu=cpu), Symbols((), ()))


def test_timers_late_together_on_two_cpus_are_one_stall() -> None:
    first, second, third = with_joint_stalls([late_on(0, 812, LOWER), late_on(1, 700, LOWER), by_irq(300)])
    for explanation, length in ((first, 690), (second, 690)):
        assert explanation.main.culprit == Culprit(Kind.NO_SOFTWARE)
        assert explanation.main.cpus == {0, 1}
        assert explanation.main.ns == length * 1000
    assert third.main.culprit.kind is Kind.IRQ
    for explanation in (first, second, third):
        assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
        assert all(part.ns == sum(end - start for start, end, _ in part.spans) for part in explanation.parts)


def test_two_idle_exits_are_no_stall_unless_too_long() -> None:
    short = with_joint_stalls([late_on(0, 300, IDLE), late_on(1, 310, IDLE)])
    assert {explanation.main.culprit.kind for explanation in short} == {Kind.IDLE_EXIT}
    long = with_joint_stalls([late_on(0, 3000, IDLE), late_on(1, 3100, IDLE)])
    assert {explanation.main.culprit.kind for explanation in long} == {Kind.NO_SOFTWARE}


def test_a_stall_in_one_cpus_trace_names_the_other_cpus() -> None:
    alone = late_on(2, 3000, IDLE)
    known = replace(
        alone,
        parts=[
            replace(part, culprit=Culprit(Kind.NO_SOFTWARE), cpus={2}) if part is alone.main else part
            for part in alone.parts
        ],
    )
    first, second, third = with_joint_stalls([known, late_on(0, 3100, IDLE), by_irq(300)])
    assert first.main.cpus == {0, 2}
    assert second.main.cpus == {0, 2}
    assert [part.ns for part in first.parts] == [part.ns for part in known.parts]
    assert third.main.culprit.kind is Kind.IRQ
    far = replace(
        known,
        parts=[
            replace(part, spans=[(s + 10**8, e + 10**8, cpu) for s, e, cpu in part.spans])
            for part in known.parts
        ],
    )
    (apart,) = (e for e in with_joint_stalls([far, late_on(0, 3100, IDLE)]) if e.main.cpus == {2})
    assert apart.main.ns == known.main.ns


def test_culprits_of_one_kind_are_one_mechanism_with_their_names() -> None:
    stories = [
        Story()
        .switch(-500, 1, MEASURED, (name, pid, 10), state=1)
        .timer(0, 1)
        .switch(latency, 1, (name, pid, 10), MEASURED, state=1)
        for name, pid, latency in (("logger", 31, 300), ("mixer", 32, 100))
    ]
    ranked = ranked_culprits(
        [explained(story, latency) for story, latency in zip(stories, (300, 100), strict=True)]
    )
    (tasks,) = [known for known in mechanisms(ranked, virtual=False) if known.words == WORDS[Kind.TASK]]
    assert tasks.names == "logger, mixer"
    assert tasks.time_share == pytest.approx(sum(known.ns for known in tasks.culprits) / 400_000)
    assert cause_words(ranked, virtual=False) == "other tasks ran instead (98 %)"


def test_a_task_that_ran_nearly_all_of_the_time_is_the_cause() -> None:
    stories = [
        Story()
        .switch(-500, 1, MEASURED, (name, pid, 10), state=1)
        .timer(0, 1)
        .switch(latency, 1, (name, pid, 10), MEASURED, state=1)
        for name, pid, latency in (("hog", 31, 3000), ("migration", 32, 30))
    ]
    ranked = ranked_culprits(
        [explained(story, latency) for story, latency in zip(stories, (3000, 30), strict=True)]
    )
    words = cause_words(ranked, virtual=False)
    assert words is not None
    assert words.startswith("hog (pid 31")


def test_tasks_that_delayed_a_lock_owner_name_the_lock() -> None:
    known = by_hog(300)
    parts = [
        replace(part, culprit=replace(part.culprit, owner="logger"))
        if part.culprit.kind is Kind.TASK
        else part
        for part in known.parts
    ]
    words = cause_words(ranked_culprits([replace(known, parts=parts)]), virtual=False)
    assert words is not None
    assert words.startswith("other tasks kept logger from running while it held a lock (")


def test_the_cause_names_who_held_a_lock() -> None:
    known = by_hog(300)
    for culprit in (Culprit(Kind.LOCK_OWNER, "logger"), Culprit(Kind.OWNER_ASLEEP, "logger", until="write")):
        parts = [
            replace(part, culprit=culprit) if part.culprit.kind is Kind.TASK else part for part in known.parts
        ]
        words = cause_words(ranked_culprits([replace(known, parts=parts)]), virtual=False)
        assert words is not None
        assert words.startswith("a lock was taken by logger (")


def test_the_advice_names_who_stopped_the_thread() -> None:
    by_task = Culprit(Kind.STOPPED, "SIGSTOP from bash", until="bash")
    assert advice(by_task) == "find out why bash sends SIGSTOP to the program"
    assert advice(Culprit(Kind.STOPPED, "a debugger", until="gdb")) == "detach the debugger gdb"
    unseen = Culprit(Kind.STOPPED, "a signal", until="bash")
    assert advice(unseen) == "find out why bash stops the thread"
    assert "such as a shell" in advice(replace(unseen, until=""))
    actual = replace(by_hog(100), parts=[Part(by_task, 100_000)])
    assert cause_words(ranked_culprits([actual]), virtual=False) == (
        "it was stopped by SIGSTOP from bash (100 %)"
    )


def test_the_cause_names_a_single_task() -> None:
    words = cause_words(ranked_culprits([by_hog(300)]), virtual=False)
    assert words is not None
    assert words.startswith("hog (")
    assert words.endswith("% of the late time")


def test_every_kind_has_words() -> None:
    assert set(WORDS) == set(Kind)
