# SPDX-License-Identifier: MIT
"""A thread whose control group used up its CPU quota: the kernel counts the time, and does not trace it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import remedy_of
from rtgauge.explain.analysis.explanation import Explanation, Kind, culprit_name, sentence
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge.explain.trace.formats import Symbols
from rtgauge.record.facts import Facts
from rtgauge.record.stream import ThrottledGroup
from tests.unit.explain.made_events import IDLE, MINE, THREAD, Story

GROUP = "/sys/fs/cgroup/app"
FAIR_ME = ("measured", THREAD, 120)
OTHER = ("other", 300, 120)


def response(*waits_us: float, other: tuple[str, int, int], priority: int = 120) -> tuple[Story, float]:
    """A response in which the thread runs 100 us, waits while `other` has its CPU, and so on; and how long
    it is.
    """
    me = ("measured", THREAD, priority)
    story = Story().switch(-500, 1, me, IDLE, state=1).timer(2, 1).switch(8, 1, IDLE, me)
    now = 108.0
    for wait_us in waits_us:
        story.switch(now, 1, me, other).switch(now + wait_us, 1, other, me)
        now += wait_us + 100
    return story, now


TIMER, OTHER_TIMER = 4096, 8192
"""Addresses of the timer that ends throttling, and of another one."""


def explained(
    story: Story, latency_us: float, *counts: tuple[float, float, int, float], timers: bool = False
) -> Explanation:
    """`counts`: for each reading of the counters when it was, and when the one before, after the release in
    us; in how many periods, and how long. `timers`: whether those that end throttling were recorded.
    """
    moment = story.moment(latency_us)
    throttled = tuple(
        ThrottledGroup(
            group=GROUP,
            times=times,
            ns=round(throttled_us * 1000),
            after_ns=moment.release_ns + round(after_us * 1000),
            until_ns=moment.release_ns + round(until_us * 1000),
        )
        for after_us, until_us, times, throttled_us in counts
    )
    symbols = Symbols((TIMER, OTHER_TIMER), ("sched_cfs_period_timer", "hrtimer_wakeup"))
    explanation = explain(replace(moment, throttled=throttled, has_quota_timers=timers), symbols)
    assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    return explanation


def of_kind(explanation: Explanation, kind: Kind) -> float:
    """In us."""
    return sum(part.ns for part in explanation.parts if part.culprit.kind is kind) / 1000


@pytest.mark.parametrize("other", [OTHER, IDLE])
def test_one_throttling_is_named_instead_of_what_ran_meanwhile(other: tuple[str, int, int]) -> None:
    explanation = explained(*response(900, 30_000, other=other), (0, 40_000, 1, 25_000))
    assert culprit_name(explanation.main.culprit) == f"CPU quota of {GROUP}"
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(25_000)
    assert not explanation.doubts
    assert f"25,000.000 us the CPU quota of its control group {GROUP} was used up" in sentence(explanation)
    remedy = remedy_of(ranked_culprits([explanation])[0], Facts())
    assert remedy is not None
    assert "raise the CPU quota" in remedy.what


def test_waits_that_may_be_throttled_leave_a_sized_doubt() -> None:
    explanation = explained(*response(900, 1_000, 30_000, other=OTHER), (0, 40_000, 2, 30_500))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(30_500)
    (doubt,) = explanation.doubts
    assert doubt.startswith(f"{GROUP} was throttled for 30,500.000 us, but the kernel does not report when")


def test_time_that_is_as_long_as_all_waits_is_certain() -> None:
    explanation = explained(*response(10_000, 30_000, other=OTHER), (0, 50_000, 2, 39_998))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(39_998)
    assert not explanation.doubts


def test_a_throttling_longer_than_every_wait_leaves_a_doubt() -> None:
    explanation = explained(*response(900, other=OTHER), (0, 10_000, 1, 25_000))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(900)
    assert explanation.doubts


def test_a_throttling_before_the_release_is_not_in_a_wait() -> None:
    """What both readings count together is as long as all waits: only one of them is."""
    story, latency_us = response(21_600, 3_600, other=OTHER)
    explanation = explained(story, latency_us, (-12_000, 20, 1, 3_600), (8_000, 28_000, 1, 21_598))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(21_598, abs=5)
    assert not explanation.doubts


def test_a_throttling_perhaps_before_the_release_is_a_doubt() -> None:
    story, latency_us = response(30_000, other=OTHER)
    explanation = explained(story, latency_us, (-5_000, 15_000, 1, 10_000))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(10_000)
    assert explanation.doubts
    surely = explained(story, latency_us, (-5_000, 15_000, 1, 29_998), (15_000, 35_000, 1, 29_998))
    assert of_kind(surely, Kind.QUOTA) == pytest.approx(29_998, abs=5)


def test_the_clock_reading_decides_between_two_waits() -> None:
    story, latency_us = response(25_000, 25_000, other=OTHER)
    explanation = explained(story, latency_us, (30_000, 60_000, 1, 20_000))
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(20_000)
    assert not explanation.doubts
    doubtful = explained(story, latency_us, (10_000, 60_000, 1, 20_000))
    assert doubtful.doubts


def with_timers(story: Story, *times_us: float) -> Story:
    """Timers that end throttling, on another CPU."""
    for time_us in times_us:
        story.at(time_us, 0, "hrtimer_expire_entry", hrtimer=9, function=TIMER, now=0)
    return story


def test_a_wait_without_the_ending_timer_was_not_throttled() -> None:
    """The throttling that the kernel counted had ended before the release."""
    story, latency_us = response(600, other=OTHER)
    story.at(400, 0, "hrtimer_expire_entry", hrtimer=8, function=OTHER_TIMER, now=0)
    before = explained(story, latency_us, (-19_900, 900, 1, 22_000))
    assert of_kind(before, Kind.QUOTA) == pytest.approx(600)
    assert before.doubts
    after = explained(story, latency_us, (-19_900, 900, 1, 22_000), timers=True)
    assert of_kind(after, Kind.QUOTA) == 0
    assert after.main.culprit.name == "other"
    assert not after.doubts


def test_a_wait_of_the_counted_length_was_throttled() -> None:
    """It could have been before the release. Afterwards, the thread waited for its turn."""
    story, latency_us = response(900, 15_000, other=OTHER)
    with_timers(story, 1_108 + 10_000, 1_108 + 14_000)
    counts = (-5_000, 15_000, 1, 10_007)
    assert explained(story, latency_us, counts).doubts
    explanation = explained(story, latency_us, counts, timers=True)
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(10_007)
    assert of_kind(explanation, Kind.TASK) == pytest.approx(900 + 4_993, abs=5)
    assert not explanation.doubts


def test_waits_of_other_lengths_leave_the_doubt() -> None:
    story, latency_us = response(15_000, other=OTHER)
    explanation = explained(with_timers(story, 10_108), latency_us, (-5_000, 15_000, 1, 9_000), timers=True)
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(9_000)
    assert explanation.doubts


def test_two_waits_that_fit_leave_the_doubt() -> None:
    story, latency_us = response(10_000, 10_000, other=OTHER)
    with_timers(story, 10_100, 20_200)
    explanation = explained(story, latency_us, (-5_000, 25_000, 1, 9_992), timers=True)
    assert explanation.doubts


@pytest.mark.parametrize(("times", "priority"), [(0, 120), (1, MINE)])
def test_no_quota_without_throttling_or_for_real_time(times: int, priority: int) -> None:
    story, latency_us = response(30_000, other=OTHER, priority=priority)
    explanation = explained(story, latency_us, *[(0, 40_000, times, 25_000)] * times)
    assert of_kind(explanation, Kind.QUOTA) == 0
    assert not explanation.doubts


def test_a_wait_for_an_idle_cpu_was_throttled_although_two_cpus_are_counted() -> None:
    """The kernel counts the time of all CPUs, so no wait is as long as it."""
    story, latency_us = response(25_000, other=IDLE)
    with_timers(story, 25_070)
    explanation = explained(story, latency_us, (-5_000, 40_000, 1, 48_000), timers=True)
    assert of_kind(explanation, Kind.QUOTA) == pytest.approx(25_070 - 108)
    assert not explanation.doubts


def test_a_wait_behind_another_task_keeps_its_doubt() -> None:
    story, latency_us = response(25_000, other=OTHER)
    with_timers(story, 25_070)
    assert explained(story, latency_us, (-5_000, 40_000, 1, 48_000), timers=True).doubts


def test_a_wait_for_an_idle_cpu_that_is_longer_than_counted_keeps_its_doubt() -> None:
    story, latency_us = response(25_000, other=IDLE)
    with_timers(story, 25_070)
    assert explained(story, latency_us, (-5_000, 40_000, 1, 9_000), timers=True).doubts
