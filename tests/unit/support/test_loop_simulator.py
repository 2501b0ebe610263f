# SPDX-License-Identifier: MIT
"""The simulator of loops: its events fit together, and its truth agrees with them."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from tests.support.loop_simulator import MS, PROGRAMS, Fate, Release, Schedule, simulate

KINDS = [name for name, _, _ in PROGRAMS]
ON_A_GRID = (
    "absolute",
    "rate that catches up",
    "rate that skips",
    "computed",
    "event loop",
    "condition variable",
    "ppoll",
    "timerfd",
    "POSIX timer",
    "setitimer",
    "two",
    "deadline",
    "executor",
)
COMPUTING_NS = 6000
"""How long a computed release may lie after its point."""


@cache
def schedules(kind: str, count: int = 40) -> list[Schedule]:
    return [simulate(seed, kind) for seed in range(count)]


def complete(kind: str) -> list[Schedule]:
    """Schedules of which the tracer recorded everything."""
    actual = [
        schedule
        for schedule in schedules(kind)
        if not schedule.traits & {"lost events", "missing switches", "clock step"}
    ]
    assert actual
    return actual


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert simulate(7) == simulate(7)
    assert simulate(7).lines != simulate(8).lines


def test_every_kind_and_every_fault_is_drawn() -> None:
    drawn = [simulate(seed) for seed in range(1000)]
    assert {schedule.kind for schedule in drawn} == {name for name, _, weight in PROGRAMS if weight}
    traits = set[str]().union(*(schedule.traits for schedule in drawn))
    assert {"lost events", "missing switches", "signals", "stopped", "lock", "disk", "ends"} < traits
    assert {"hangs: futex", "hangs: fdatasync", "hangs: starved", "hangs: spins", "clock step"} < traits
    fates = {release.fate for schedule in drawn for release in schedule.releases}
    assert fates == set(Fate)


@pytest.mark.parametrize("kind", KINDS)
def test_the_events_of_a_thread_alternate(kind: str) -> None:
    for schedule in complete(kind):
        in_call, state, woken = False, "running", True
        before_ns = 0
        for line in schedule.lines:
            name, time, *words = line.split()
            assert int(time) >= before_ns
            before_ns = int(time)
            numbers = [int(word) if word.lstrip("-").isdigit() else word for word in words]
            if name == "S" and numbers[1] == schedule.tid:
                assert state == "running"
                state, woken = str(numbers[2]), numbers[2] == "R"
                assert state in {"R", "S", "D", "T", "X"}
                assert in_call or state in {"R", "T", "X"}
            elif name == "S":
                assert numbers[3] == schedule.tid
                assert state != "running"
                assert woken
                state = "running"
            elif name == "W" and numbers[3] == schedule.tid:
                if state == "running":
                    assert in_call, "woken on its way to sleep"
                else:
                    assert not woken
                woken = True
            elif name in "EXT":
                assert state == "running", line
                assert numbers[1] == schedule.tid
                if name != "T":
                    assert in_call is (name == "X")
                    in_call = name == "E"


@pytest.mark.parametrize("kind", KINDS)
def test_every_detected_activation_has_its_events(kind: str) -> None:
    observed = 0
    for schedule in complete(kind):
        events = [line.split() for line in schedule.lines]
        offsets_ns = {0, *(int(event[2]) for event in events if event[0] == "O")}
        returns = {int(event[1]) for event in events if event[0] == "X"}
        entries = sorted(int(event[1]) for event in events if event[0] == "E")
        wakings = {int(event[1]) for event in events if event[0] == "W"}
        expiries = {
            int(event[5]) - offset_ns for event in events if event[0] == "T" for offset_ns in offsets_ns
        }
        most_ns = COMPUTING_NS + (MS if "whole ms" in kind else 0)
        handles = kind == "setitimer"  # its activation starts when the handler has run
        for release in schedule.releases:
            if release.fate is not Fate.RUN or release.hidden or release.start_ns is None:
                continue
            observed += 1
            assert handles or release.start_ns in returns
            if release.timed and not kind.startswith(("computed", "event loop", "ppoll")):
                assert release.release_ns in expiries
            elif release.timed:
                assert any(release.release_ns <= at_ns <= release.release_ns + most_ns for at_ns in expiries)
            else:  # the data may come while it goes to sleep
                assert any(
                    release.release_ns <= at_ns <= release.release_ns + COMPUTING_NS for at_ns in wakings
                )
            if release.end_ns is not None and "ends" not in schedule.traits:
                following = next((at_ns for at_ns in entries if at_ns >= release.end_ns), None)
                assert following is None or following - release.end_ns < COMPUTING_NS
    assert observed > 500


@pytest.mark.parametrize("kind", KINDS)
def test_activations_do_not_overlap(kind: str) -> None:
    for schedule in schedules(kind):
        ran = sorted(
            (release for release in schedule.releases if release.start_ns is not None),
            key=lambda release: release.start_ns or 0,
        )
        assert (
            all(release.start_ns is not None and release.start_ns >= release.release_ns for release in ran)
            or schedule.must_not_hold
        )
        for item, following in itertools.pairwise(ran):
            assert item.start_ns is not None
            assert following.start_ns is not None
            assert item.end_ns is not None
            assert item.start_ns <= item.end_ns <= following.start_ns
        assert all((release.start_ns or 0) <= schedule.end_ns for release in ran)
        assert all((release.end_ns or 0) <= schedule.end_ns for release in ran)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith(ON_A_GRID)])
def test_no_point_of_the_grid_is_missing(kind: str) -> None:
    for schedule in schedules(kind):
        if schedule.must_not_hold:
            continue
        for source in {release.source for release in schedule.releases}:
            points = [release.release_ns for release in schedule.releases if release.source == source]
            steps = {following - item for item, following in itertools.pairwise(points)}
            assert len(steps) <= 1
            if not source and steps:
                assert steps == {schedule.period_ns}
                if "ends" not in schedule.traits:
                    assert points[0] - schedule.begin_ns <= schedule.period_ns
                    assert schedule.end_ns - points[-1] <= schedule.period_ns


def test_lost_events_are_in_no_line() -> None:
    lost = [schedule for schedule in map(simulate, range(300)) if schedule.gaps]
    assert lost
    for schedule in lost:
        reported = [int(line.split()[1]) for line in schedule.lines if line[0] == "L"]
        assert reported == [min(to_ns, schedule.end_ns) for _, to_ns in schedule.gaps]
        for line in schedule.lines:
            name, time = line.split()[:2]
            if name not in "OLBF":
                assert not any(from_ns <= int(time) < to_ns for from_ns, to_ns in schedule.gaps)


def test_a_hang_leaves_its_releases_without_a_start() -> None:
    hung = [
        schedule
        for schedule in schedules("absolute", 300)
        if any(trait.startswith("hangs") for trait in schedule.traits) and not schedule.must_not_hold
    ]
    assert hung
    for schedule in hung:
        unfinished = [release for release in schedule.releases if release.end_ns is None]
        assert unfinished
        assert unfinished == schedule.releases[-len(unfinished) :]
        assert all(release.start_ns is None for release in unfinished[1:])


def test_what_counts_as_late() -> None:
    schedule = Schedule(
        seed=0,
        kind="absolute",
        period_ns=100,
        begin_ns=0,
        end_ns=550,
        tid=1,
        deadline=False,
        interval_ns=0,
        lines=[],
        releases=[
            Release(0, 5, 50),
            Release(100, 140, 310),  # late in both
            Release(200, 310, 320, Fate.CAUGHT_UP),
            Release(300, None, None, Fate.SKIPPED),
            Release(400, 405, None),  # has run for 145 so far
            Release(500, None, None, Fate.PENDING),  # has waited for 50
        ],
    )
    assert schedule.overruns == 3

    def counts(latency_ns: int | None = None, response_ns: int | None = None) -> tuple[int, int, int]:
        actual = schedule.late(latency_ns, response_ns)
        return actual.due, actual.late, actual.open

    assert counts(latency_ns=30) == (6, 4, 0)
    assert counts(latency_ns=60) == (6, 2, 1)
    assert counts(response_ns=130) == (6, 3, 1)
    assert counts(response_ns=160) == (6, 2, 2)
    assert counts(latency_ns=30, response_ns=1000) == (6, 4, 1)
    assert schedule.late(latency_ns=60).least == 2 / 6
    assert schedule.late(latency_ns=60).most == 3 / 6


def test_bounds_keep_away_from_every_release() -> None:
    for seed in range(50):
        schedule = simulate(seed)
        for bound_ns in schedule.bounds(response=True):
            assert all(
                release.end_ns is None or abs(release.end_ns - release.release_ns - bound_ns) >= 5000
                for release in schedule.releases
            )
