# SPDX-License-Identifier: MIT
"""The model of loops in engine/probes/watch, against schedules whose truth is known.

tests/support/loop_simulator.py draws the schedules and knows nothing of the model; engine/tests/watch_replay.c
runs the model on their events.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rtgauge.record.watched_loop import LEAST_SLEEP, SAME_PERIOD
from tests.support.loop_simulator import Fate, Late, Schedule, simulate

ENGINE = Path(__file__).parents[3] / "engine"
SOURCES = ("waits", "cycles", "cycle_choice", "grid", "blocking_calls", "clock_offsets")
SCHEDULES = 20_000
BATCH = 500
PERIOD_UNKNOWN = ("relative", "own", "data", "receive")
"""Kinds for which a requirement would give no period."""
QUEUES = ("data, condition variable", "mixed")
"""Kinds that take what came meanwhile from a queue, without a call: no event shows these releases."""

SOCKET = "data, socket"
"""Data that came while the thread was busy wait in the socket: no event shows when they came."""
CANNOT_TELL = 0.05


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("replay") / "watch-replay"
    files = [ENGINE / "tests" / "watch_replay.c", *(ENGINE / f"probes/watch/{name}.c" for name in SOURCES)]
    subprocess.run(
        ["gcc", "-O2", "-D_GNU_SOURCE", f"-I{ENGINE}", *map(str, files), "-lm", "-o", str(program)],
        check=True,
    )
    return program


@dataclass
class Answer:
    """What the model made of a schedule: values (ns) of its measured releases."""

    latencies: list[int] = field(default_factory=list[int])
    responses: list[int] = field(default_factory=list[int])
    uncertain: list[int] = field(default_factory=list[int])
    """Those of the responses after which the thread may have run later releases."""
    overruns: list[int] = field(default_factory=list[int])
    least_responses: list[int] = field(default_factory=list[int])
    """How long the responses of the overruns, and the uncertain ones, are at least."""
    unknown: int = 0
    lost_ends: int = 0
    cut: tuple[str, int] | None = None
    kind: str = ""
    unclear: bool = False
    stuck: bool = False
    period_ns: float = 0
    sleep_ns: float = 0

    def has_period(self, period_ns: int) -> bool:
        """Return whether record/watched_loop.py would say so."""
        pauses = self.kind == "relative" and self.sleep_ns < LEAST_SLEEP * period_ns
        return abs(self.period_ns - period_ns) < SAME_PERIOD * period_ns and not pauses

    @classmethod
    def of(cls, schedule: Schedule, text: str) -> Answer:
        answer = cls()
        starts: list[int] = []
        certain = True
        for line in text.splitlines():
            word, *rest = line.split()
            if word == "M":
                *kind, unclear, stuck, period, sleep = rest
                answer.kind, answer.period_ns, answer.sleep_ns = " ".join(kind), float(period), float(sleep)
                answer.unclear, answer.stuck = unclear == "1", stuck == "1"
                if answer.kind != "periodic" and len(starts) > 1:  # as the engine says it
                    answer.period_ns = (starts[-1] - starts[0]) / (len(starts) - 1)
                continue
            release_ns, value = map(int, rest)
            if not schedule.begin_ns <= release_ns < schedule.end_ns:
                continue
            if word == "A":
                starts.append(value)
                answer.latencies.append(value - release_ns)
            elif word == "D":
                answer.responses.append(value - release_ns)
                if not certain:
                    answer.uncertain.append(value - release_ns)
                certain = True
            elif word in {"C", "R"}:
                answer.least_responses.append(value)
                certain &= word != "C"
            elif word == "O":
                answer.overruns.append(value)
            elif word == "U":
                answer.unknown += 1
            elif word == "L":
                answer.lost_ends += 1
            else:
                answer.cut = (word, value)
        return answer

    def late(self, bound_ns: int, *, response: bool) -> tuple[int, int, int]:
        """Return (certainly late, possibly late, releases), as verdict/loops.py counts them."""
        values = self.responses if response else self.latencies
        late = sum(value > bound_ns for value in values)
        least = self.least_responses if response else self.overruns
        certain = late + sum(value > bound_ns for value in least)
        possible = late + len(self.overruns) + self.unknown
        releases = len(values) + len(self.overruns) + self.unknown
        if response:
            certain -= sum(value > bound_ns for value in self.uncertain)
            possible, releases = possible + self.lost_ends, releases + self.lost_ends
        if self.cut is not None and self.cut[1] > bound_ns and (response or self.cut[0] == "P"):
            certain, possible, releases = certain + 1, possible + 1, releases + 1
        return certain, possible, releases


def answers(replay: Path, schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, Answer]]:
    """Run the model on the schedules; every second one chooses the wait early."""
    text = "".join(
        f"N {schedule.tid} {0 if schedule.kind.startswith(PERIOD_UNKNOWN) else schedule.period_ns} "
        f"{schedule.seed % 2}\n" + "\n".join(schedule.lines) + "\n.\n"
        for schedule in schedules
    )
    stdout = subprocess.run([replay], input=text, capture_output=True, text=True, check=True).stdout
    for schedule, part in zip(schedules, stdout.split("\n.\n"), strict=False):
        yield schedule, Answer.of(schedule, part)


def verdict(schedule: Schedule, answer: Answer, bound_ns: int, allowed: float, *, response: bool) -> str:
    """Return what verdict/loops.py would say of a requirement with this share, if the sample were large."""
    certain, possible, releases = answer.late(bound_ns, response=response)
    if answer.unclear or not releases:
        return "cannot tell"
    if not schedule.kind.startswith(PERIOD_UNKNOWN) and (
        answer.kind in {"own schedule", "unknown"} or not answer.has_period(schedule.period_ns)
    ):
        return "cannot tell"
    if possible / releases <= allowed:
        return "cannot tell" if schedule.must_not_hold else "holds"
    return "fails" if certain / releases > allowed else "cannot tell"


def is_wrong(reported: str, late: Late, allowed: float) -> bool:
    return (reported == "holds" and late.least > allowed) or (reported == "fails" and late.most <= allowed)


def judged(schedule: Schedule, answer: Answer) -> Iterator[tuple[str, Late, float]]:
    """Judge bounds between the largest values, with shares a factor of 2 from the true one."""
    source = 0 if schedule.kind in {"executor", "mixed", "mixed, epoll"} else None
    for response in (False, True):
        if schedule.kind == QUEUES[0] or (schedule.kind in {QUEUES[1], "two periods"} and response):
            continue  # two periods: the second wait is one for a release too, so it ends the response
        for bound_ns in schedule.bounds(response=response)[-6:]:
            late = (
                schedule.late(response_ns=bound_ns, source=source)
                if response
                else schedule.late(latency_ns=bound_ns, source=source)
            )
            if not late.due:
                continue
            for allowed in (late.most * 2 + 1e-9, late.least / 2):
                yield verdict(schedule, answer, bound_ns, allowed, response=response), late, allowed


def events_show_all(schedule: Schedule) -> bool:
    """Return whether the thread waited for each release, and the tracer saw it."""
    return (
        schedule.single_wait
        and not schedule.gaps
        and not schedule.must_not_hold
        and schedule.kind != SOCKET
        and all(release.fate in {Fate.RUN, Fate.PENDING} for release in schedule.releases)
    )


def test_no_verdict_contradicts_the_truth(replay: Path) -> None:
    """In 20,000 schedules with 50 to 400 cycles, the most hostile ones included. If a loop has one wait and
    events show all of its releases, fewer than 5 % of the answers are "cannot tell".
    """
    wrong, reported = Counter[str](), Counter[str]()
    seeds: list[int] = []
    for first in range(0, SCHEDULES, BATCH):
        drawn = [simulate(seed) for seed in range(first, first + BATCH)]
        for schedule, answer in answers(replay, drawn):
            if "wall clock" in schedule.kind and "pause" in schedule.traits:
                continue  # a real pause is on another clock, and so another wait
            shown = events_show_all(schedule)
            for reported_text, late, allowed in judged(schedule, answer):
                reported[reported_text] += shown
                if is_wrong(reported_text, late, allowed):
                    wrong[f"{schedule.kind}: {reported_text}"] += 1
                    seeds.append(schedule.seed)
    assert not wrong, (wrong, seeds[:10])
    assert reported["cannot tell"] < CANNOT_TELL * sum(reported.values()), reported


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        # expiries of the second timer lie within the tolerance of the first one's grid
        (304979, "executor"),
        # the clock is set back, and events are lost while it waits for a time that then comes later
        (600347, "absolute, wall clock"),
        # it is so late that it waits for three releases only, whose sleeps are not equally long
        (1004509, "rate that catches up"),
        # it is late for most of its second waits
        (1014593, "two waits"),
        # many of its second waits seem to be pauses of one length
        (1028000, "two waits"),
        # its thread ends before it has run the points that have come
        (1046282, "executor"),
        # a signal comes to a sleep whose timer is late
        (1053603, "relative, nanosleep"),
        # the measurement ends between the entry into its wait and the start of the wait's timer
        (1084886, "executor"),
    ],
)
def test_no_verdict_contradicts_the_truth_of_a_rare_schedule(replay: Path, seed: int, kind: str) -> None:
    ((schedule, answer),) = answers(replay, [simulate(seed)])
    assert schedule.kind == kind
    for reported, late, allowed in judged(schedule, answer):
        assert not is_wrong(reported, late, allowed)


def test_a_slightly_early_time_is_no_new_grid(replay: Path) -> None:
    """As Python's Event.wait: the program takes longer to ask for the time left if it has just waited."""
    period_ns, tid, futex = 10_000_000, 4006, 211549937666040
    lines = ["O 1 1194940133838111012"]
    due_ns, now_ns = period_ns, 1
    late = 0
    for cycle in range(390):
        until_ns = due_ns + (3_000 if late else 8_000) + 100 * (cycle % 5)
        late = 3 if cycle % 20 == 19 else 0
        lines += [
            f"E {now_ns} 0 {tid} futex {futex} wait",
            f"T {now_ns + 300} 0 {tid} 211549937660000 {until_ns} mono",
            f"S {now_ns + 800} 0 {tid} S 17",
            f"W {until_ns + 1_300} 0 17 1 {tid}",
            f"S {until_ns + 3_400} 0 17 R {tid}",
            f"X {until_ns + 3_800} 0 {tid} -110",
        ]
        now_ns = due_ns + 500_000 + late * period_ns
        due_ns += (1 + late) * period_ns
    begin_ns, end_ns = 100 * period_ns, due_ns - period_ns // 2
    lines.insert(next(i for i, line in enumerate(lines) if int(line.split()[1]) > begin_ns), f"B {begin_ns}")
    lines.append(f"F {end_ns} {end_ns}")
    schedule = replace(
        simulate(0, "computed, catches up"),
        period_ns=period_ns, tid=tid, begin_ns=begin_ns, end_ns=end_ns, lines=lines,
    )  # fmt: skip
    ((_, answer),) = answers(replay, [schedule])
    waits = len(answer.latencies)
    assert answer.kind == "periodic"
    assert waits + len(answer.overruns) == pytest.approx((end_ns - begin_ns) / period_ns, abs=1)


def test_an_event_loops_rounded_times_are_not_its_releases(replay: Path) -> None:
    """A loop that rounds its times to milliseconds runs late releases without a wait, and looks as if it kept
    them all.
    """
    reported = Counter[str]()
    drawn = [simulate(seed, "event loop, whole ms") for seed in range(BATCH)]
    for schedule, answer in answers(replay, drawn):
        for reported_text, late, allowed in judged(schedule, answer):
            reported["wrong" if is_wrong(reported_text, late, allowed) else reported_text] += 1
    assert reported["wrong"] < 0.001 * sum(reported.values()), reported
    assert reported["holds"]
