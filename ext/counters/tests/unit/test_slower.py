# SPDX-License-Identifier: MIT
"""Why activations work longer. No machine with these counters was here; the numbers are drawn."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import dataclass, replace
from io import StringIO
from itertools import chain, repeat
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rtgauge.errors import MeasureError
from rtgauge_ext.counters.activation import WorkCounts, parse_work, typical
from rtgauge_ext.counters.slower import Why, causes
from rtgauge_ext.counters.work_report import ThreadWork, WorkReport, print_report, report, sentence


@dataclass(frozen=True)
class Machine:
    """A model of a CPU: each instruction takes cycles, each last-level miss a time, and during an SMI, the
    counters stand still.
    """

    instructions: int = 200_000
    ghz: float = 2.6
    cycles_each: float = 0.8
    misses_per_1000: float = 0.5
    miss_ns: float = 80.0
    smis: int = 0
    smi_ns: float = 150_000.0

    def run(self) -> WorkCounts:
        """Return what one activation needed."""
        misses = self.instructions * self.misses_per_1000 / 1000
        time_ns = self.instructions * self.cycles_each / self.ghz + misses * self.miss_ns
        return WorkCounts(
            cpu_ns=round(time_ns + self.smis * self.smi_ns),
            cycles=round(time_ns * self.ghz),
            instructions=self.instructions,
            llc_misses=round(misses),
            smi=self.smis,
        )


USUAL = Machine()


@pytest.mark.parametrize(
    ("machine", "actual"),
    [
        (USUAL, []),
        (Machine(ghz=2.5), []),
        (Machine(ghz=1.3), [Why.FREQUENCY]),
        (Machine(misses_per_1000=8), [Why.MEMORY]),
        (Machine(cycles_each=1.6), [Why.STALLS]),
        (Machine(instructions=600_000), [Why.MORE_WORK]),
        (Machine(smis=1), [Why.FIRMWARE]),
        (Machine(instructions=400_000, ghz=1.0), [Why.FREQUENCY, Why.MORE_WORK]),
        (Machine(instructions=800_000, misses_per_1000=8), [Why.MORE_WORK, Why.MEMORY]),
        (Machine(smis=1, misses_per_1000=8), [Why.MEMORY, Why.FIRMWARE]),
        (Machine(smis=1, smi_ns=5_000, instructions=2_000_000), [Why.MORE_WORK, Why.FIRMWARE]),
    ],
)
def test_each_cause_is_distinguished_from_the_others(machine: Machine, actual: list[Why]) -> None:
    judged = causes(machine.run(), USUAL.run())
    assert judged is not None
    assert [cause.why for cause in judged] == actual


@given(more=st.floats(1.2, 20), slower=st.floats(1.2, 20), stalls=st.floats(1.2, 20))
def test_the_factors_make_up_the_whole_time(more: float, slower: float, stalls: float) -> None:
    usual = replace(USUAL, misses_per_1000=0)
    now = replace(
        usual,
        instructions=round(usual.instructions * more),
        ghz=usual.ghz / slower,
        cycles_each=usual.cycles_each * stalls,
    )
    judged = causes(now.run(), usual.run())
    assert judged is not None
    factor = 1.0
    for cause in judged:
        factor *= cause.factor
    assert factor == pytest.approx(now.run().cpu_ns / usual.run().cpu_ns, rel=1e-3)
    assert len(judged) == 3


@pytest.mark.parametrize("name", ["cycles", "instructions", "llc_misses"])
def test_without_a_counter_there_is_no_cause(name: str) -> None:
    slow = Machine(ghz=1.0).run()
    assert causes(slow.model_copy(update={name: None}), USUAL.run()) is None


def lines(slow: Machine, missing: tuple[str, ...] = (), count: int = 400) -> list[bytes]:
    """What the engine prints if every 50th activation runs on the machine `slow`."""
    first: dict[str, Any] = {"type": "work", "version": 1, "left_out": 0, "missing": missing}
    actual = [first | {"threads": [{"tid": 7, "name": "control"}]}]
    for number in range(count):
        counts = (slow if number % 50 == 49 else USUAL).run().model_dump()
        kept = {name: value for name, value in counts.items() if name not in missing}
        about: dict[str, Any] = {
            "type": "activation",
            "tid": 7,
            "end_ns": number * 10**6,
            "whole": True,
            "switches": 1,
        }
        actual.append(about | kept)
    actual.append({"type": "ended", "activations": count, "lost": 0, "full": False})
    return [json.dumps(line).encode() for line in actual]


def reported(slow: Machine, missing: tuple[str, ...] = (), count: int = 400) -> WorkReport:
    return report(parse_work(lines(slow, missing, count)))


def test_the_slowest_hundredth_is_compared_with_the_usual() -> None:
    actual = reported(Machine(instructions=600_000))
    assert actual.can_tell
    reported_text = sentence(actual.threads[0])
    assert reported_text.startswith(
        "control: the slowest 1 % of 400 activations worked 3.0 times as long as usual"
    )
    assert reported_text.endswith("because it executed 3.0 times as many instructions")


def test_a_machine_without_counters_cannot_tell() -> None:
    actual = reported(Machine(instructions=600_000), ("cycles", "instructions", "llc_misses", "smi"))
    assert not actual.can_tell
    assert "because" not in sentence(actual.threads[0])
    assert reported(USUAL, ("cycles", "instructions", "llc_misses", "smi")).can_tell


def printed(found: WorkReport) -> str:
    console = Console(file=StringIO(), width=200)
    print_report(found, console)
    return cast("StringIO", console.file).getvalue()


def test_without_threads_nothing_can_be_told() -> None:
    begin, *_, end = map(json.loads, lines(USUAL))
    found = report(parse_work(json.dumps(line).encode() for line in (begin | {"threads": []}, end)))
    assert not found.can_tell
    assert printed(found).startswith("all threads of the program ended before rtgauge could count them")


def test_what_is_not_counted_is_said() -> None:
    begin, *counted, end = map(json.loads, lines(USUAL))
    changed = [begin | {"left_out": 3}, *counted, end | {"full": True, "lost": 1}]
    changed[1]["whole"] = False
    found = report(parse_work(json.dumps(line).encode() for line in changed))
    assert (found.threads_left_out, found.full) == (3, True)
    text = printed(found)
    assert "the count ended early, because there were too many activations" in text
    assert "threads not counted, because there are too many: 3" in text
    assert "activations left out, because a counter did not count all the time: 1" in text
    assert "samples lost: 1" in text
    assert "not counted" not in printed(reported(USUAL))


def test_the_slowest_of_few_activations_is_one() -> None:
    said = sentence(reported(Machine(instructions=600_000), count=100).threads[0])
    assert said.startswith("control: the slowest one of 100 activations worked 3.0 times as long")


def test_no_work_is_not_slower() -> None:
    idle = WorkCounts(cpu_ns=0)
    assert not ThreadWork(
        thread="control", tid=7, activations=20, left_out=0, usual=idle, slowest=idle, causes=None
    ).is_slower


def test_the_median_of_the_largest_counts() -> None:
    begin, one, two, *_, end = map(json.loads, lines(USUAL))
    most = {"cpu_ns": 2**63 - 1, "cycles": 2**63 - 1}
    work = parse_work(json.dumps(line).encode() for line in (begin, one | most, two | most, end))
    assert typical(work.activations).model_dump(include={*most}) == most


def test_an_activation_takes_little_memory() -> None:
    """The engine counts up to a million of them."""
    begin, one, *_, end = lines(USUAL)
    number = 20_000
    tracemalloc.start()
    try:
        work = parse_work(chain([begin], repeat(one, number), [end]))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert work.activations.height == number
    assert most < 150 * number


def test_few_activations_are_too_few() -> None:
    actual = reported(USUAL, count=19)
    assert not actual.can_tell
    assert sentence(actual.threads[0]) == "control: 19 activations, too few to tell"


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"type":"activation"}', b"\xff"])
def test_damaged_lines_are_refused(damage: bytes) -> None:
    whole = lines(USUAL)
    with pytest.raises(MeasureError, match="damaged; measure again"):
        parse_work([*whole[:3], damage, *whole[3:]])
    with pytest.raises(MeasureError, match="incomplete"):
        parse_work(whole[:-1])


def test_the_engines_refusal_is_the_reason() -> None:
    refusal = b'{"type":"error","code":"no-program","message":"there is no process 9","status":2}'
    with pytest.raises(MeasureError, match="there is no process 9"):
        parse_work([refusal])


@pytest.mark.parametrize(
    ("faults", "more_ns", "actual"),
    [(300, 583_000, [Why.PAGE_FAULTS]), (100, 583_000, None), (0, 583_000, None), (-5, 583_000, None)],
)
def test_page_faults_are_named_without_counters(faults: int, more_ns: int, actual: list[Why] | None) -> None:
    usual = WorkCounts(cpu_ns=210_000, page_faults=5)
    slow = WorkCounts(cpu_ns=210_000 + more_ns, page_faults=5 + faults)
    named = causes(slow, usual)
    assert (None if named is None else [cause.why for cause in named]) == actual


def test_page_faults_execute_instructions() -> None:
    """A lower frequency is not taken for page faults, even if they could take that long."""
    usual = USUAL.run()
    for machine, why in ((Machine(ghz=1.3), Why.FREQUENCY), (Machine(instructions=600_000), Why.PAGE_FAULTS)):
        (cause,) = causes(machine.run().model_copy(update={"page_faults": 300}), usual) or []
        assert cause.why is why
