# SPDX-License-Identifier: MIT
"""What ext/selftest/bench/injected_causes.py takes for the truth: an injection is told with all that its clocks know."""

from __future__ import annotations

from pathlib import Path

import pytest

from ext.selftest.bench import injected_causes
from ext.selftest.bench.injected_causes import CAUSES, ThrottlingClock, bounded, is_expected, rows_of
from rtgauge.explain.analysis.explanation import Culprit, Kind

MS = 1_000_000


class Machine:
    """A clock of which each reading takes 1 us, and a group that is throttled now and then."""

    def __init__(self) -> None:
        self.time_ns = self.throttled_ns = 0
        self.gaps: dict[int, int] = {}

    def now_ns(self) -> int:
        self.time_ns += 1_000 + self.gaps.pop(self.time_ns, 0)
        return self.time_ns

    def throttle(self, ns: int) -> None:
        self.time_ns += ns
        self.throttled_ns += ns


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(injected_causes, "now_ns", made.now_ns)
    monkeypatch.setattr(injected_causes, "INJECTIONS", [])
    return made


@pytest.mark.parametrize("is_counted", [True, False], ids=["before it was read", "after it was read"])
def test_throttling_during_a_reading_is_noted(machine: Machine, is_counted: bool):
    readings = 0

    def throttled_ns() -> int:
        nonlocal readings
        readings += 1
        if readings != 2:
            return machine.throttled_ns
        before_ns = machine.throttled_ns
        machine.throttle(27 * MS)
        return machine.throttled_ns if is_counted else before_ns

    machine.gaps = {50_000: 30_000}
    ThrottlingClock(throttled_ns).work(200_000)
    ((begin, end, _, after),) = injected_causes.INJECTIONS
    assert end - begin == 27 * MS
    assert 50_000 < begin <= 82_000
    assert after < 10_000


def test_a_second_throttling_may_begin_during_the_reading(machine: Machine):
    readings = 0

    def throttled_ns() -> int:
        nonlocal readings
        readings += 1
        before_ns = machine.throttled_ns
        if readings == 2:
            machine.throttle(29 * MS)
        return before_ns

    clock = ThrottlingClock(throttled_ns)
    machine.gaps = {50_000: 24 * MS}
    machine.throttled_ns += 23 * MS
    clock.work(30 * MS)
    assert [(begin // MS, end - begin) for begin, end, _, _ in injected_causes.INJECTIONS] == [
        (0, 23 * MS),
        (24, 29 * MS),
    ]


def test_a_throttling_may_have_begun_before_the_sleep(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    """The program had computed for how long to sleep, and was throttled before it slept."""
    clock = ThrottlingClock(lambda: machine.throttled_ns)
    clock.work(10_000)
    last = machine.time_ns
    monkeypatch.setattr(injected_causes, "SLEPT_UNTIL", last + 2 * MS)
    machine.throttle(27 * MS)
    machine.time_ns += 2 * MS
    clock.work(200_000)
    ((begin, end, before, _),) = injected_causes.INJECTIONS
    assert (begin, end - begin) == (last + 2 * MS, 27 * MS)
    assert begin - before == pytest.approx(last, abs=2_000)


def test_a_gap_in_which_nothing_was_counted_is_undetermined(machine: Machine):
    machine.gaps = {50_000: 30_000}
    ThrottlingClock(lambda: 0).work(200_000)
    assert injected_causes.INJECTIONS == []


def test_a_fair_program_may_run_before_a_throttled_injector():
    throttling = next(cause for cause in CAUSES if cause.name == "real-time throttling")
    ran = [(0, 10 * MS), (61 * MS, 70 * MS)]
    reported = (12 * MS, 60 * MS)
    assert bounded(throttling, *reported, 0, 0, ran) == (*reported, 10 * MS, 61 * MS)


def test_a_timer_that_was_late_while_a_task_ran_is_not_the_task():
    hog = next(cause for cause in CAUSES if cause.name == "task of a higher priority")
    assert is_expected(hog, Culprit(Kind.TASK, "cause-hog"))
    assert not is_expected(hog, Culprit(Kind.TIMER_LATE, "cause-hog"))


def test_a_trial_in_which_nothing_was_injected_has_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As if the kernel lacks what the injector needs."""
    (tmp_path / "records" / "record").mkdir(parents=True)
    (tmp_path / "told-1").write_text('{"told": [], "ran": [[1, 2]]}')
    hog = next(cause for cause in CAUSES if cause.name == "task of a higher priority")
    monkeypatch.setattr(injected_causes, "explained", lambda _record: [])
    assert rows_of(hog, tmp_path) == []
