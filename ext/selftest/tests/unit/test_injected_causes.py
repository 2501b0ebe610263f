# SPDX-License-Identifier: MIT
"""What ext/selftest/bench/injected_causes.py takes for the truth: an injection is told with all that its clocks know."""

from __future__ import annotations

from pathlib import Path

import pytest

from ext.selftest.bench import injected_causes
from ext.selftest.bench.injected_causes import CAUSES, bounded, is_expected, rows_of, throttlings
from rtgauge.explain.analysis.explanation import Culprit, Kind

MS = 1_000_000


def test_a_throttling_is_the_last_gap_that_is_long_enough():
    log = [(0, 30 * MS, 30 * MS, 0, 0), (31 * MS, 59 * MS, 59 * MS, 27 * MS, 0)]
    assert throttlings(log) == [(31 * MS, 58 * MS, 0, 50_000)]


def test_a_throttling_may_have_begun_during_the_reading():
    """It is counted only by the next reading of the counter, but the gap before it is too short."""
    log = [(0, 30_000, 28 * MS, 27 * MS, 0), (30_000, 28 * MS + 10, 28 * MS + 20, 27 * MS, 0)]
    assert throttlings(log) == [(30_000, 30_000 + 27 * MS, 0, 50_000)]


def test_a_second_throttling_may_begin_during_the_reading():
    log = [(0, 24 * MS, 54 * MS, 23 * MS, 0), (24 * MS, 54 * MS, 54 * MS, 52 * MS, 0)]
    assert [(begin // MS, end - begin) for begin, end, *_ in throttlings(log)] == [
        (0, 23 * MS),
        (24, 29 * MS),
    ]


def test_a_throttling_may_have_begun_before_the_sleep():
    """The program had computed for how long to sleep, and was throttled before it slept."""
    log = [(2 * MS, 30 * MS, 30 * MS, 27 * MS, 1_950_000)]
    assert throttlings(log) == [(2 * MS, 29 * MS, 1_950_000, 50_000)]


def test_a_throttling_longer_than_all_gaps_is_not_told():
    """It began while the program slept."""
    assert throttlings([(0, 5 * MS, 5 * MS, 27 * MS, 0), (6 * MS, 40 * MS, 40 * MS, 27 * MS, 0)]) == []


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
