# SPDX-License-Identifier: MIT
"""How fast CPUs ran, by their counters. No machine with these counters was here; the numbers are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.model import Result
from rtgauge.system.cpu_counters import (
    CpuFrequency,
    CpuWork,
    cpu_frequencies,
    cpu_work,
    frequency_marks,
    why_slower,
)

NOMINAL_HZ = 2_600_000_000
SPAN_S = 10


def counted(cpu: int, hz: float, busy: float = 0.25) -> Result:
    """A CPU that ran at one frequency for a share of 10 s and was idle otherwise."""
    values = {
        "aperf": round(hz * SPAN_S * busy),
        "mperf": round(NOMINAL_HZ * SPAN_S * busy),
        "tsc": NOMINAL_HZ * SPAN_S,
        "span_ns": SPAN_S * 10**9,
    }
    return Result(name="frequency", labels={"cpu": cpu}, values=dict(values))


@given(hz=st.integers(400_000_000, 6_000_000_000), busy=st.floats(0.001, 1))
def test_the_mean_frequency_does_not_depend_on_idle_time(hz: int, busy: float) -> None:
    (actual,) = cpu_frequencies([counted(3, hz, busy)]).values()
    assert actual.mean_khz == pytest.approx(hz / 1000, rel=1e-6, abs=1)
    assert actual.nominal_khz == NOMINAL_HZ // 1000


def test_cpus_below_90_percent_of_nominal_frequency_are_marked() -> None:
    fast, slow = counted(0, 2_350_000_000), counted(1, 1_300_000_000)
    assert frequency_marks([fast]) == []
    (mark,) = frequency_marks([fast, slow])
    assert mark.name == "slow-cpu"
    assert "CPU 1: 1.30 of 2.60 GHz (50 %)" in mark.detail
    assert "CPU 0" not in mark.detail
    (mark,) = frequency_marks([counted(cpu, 1e9) for cpu in range(6)])
    assert mark.detail.endswith("and 2 more CPUs)")


@pytest.mark.parametrize("name", ["aperf", "mperf", "tsc", "span_ns"])
@pytest.mark.parametrize("value", [0, -1, None, "many"])
def test_a_cpu_without_a_count_has_no_frequency(name: str, value: object) -> None:
    whole = counted(0, 1e9)
    broken = whole.model_copy(update={"values": whole.values | {name: value}})
    assert cpu_frequencies([broken, Result(name="frequency", labels={}, values=whole.values)]) == {}


@dataclass(frozen=True)
class Machine:
    """A model of a CPU: each instruction takes cycles, and each last-level miss takes a time, not cycles."""

    ghz: float = 2.6
    cycles_each: float = 0.8
    misses_per_1000: float = 0.5
    miss_ns: float = 80.0

    def run(self, instructions: int = 10**9) -> tuple[CpuWork, CpuFrequency, float]:
        """Return the counters after so many instructions, and the time in ns."""
        misses = instructions * self.misses_per_1000 / 1000
        time_ns = instructions * self.cycles_each / self.ghz + misses * self.miss_ns
        work = CpuWork(round(time_ns * self.ghz), instructions, round(misses))
        return work, CpuFrequency(round(self.ghz * 10**6), 2_600_000), time_ns


QUIET = Machine()
CACHE, FREQUENCY, OTHER = "cache or memory bandwidth", "instead of", "busy sibling"


@pytest.mark.parametrize(
    ("machine", "causes"),
    [
        (QUIET, ()),
        (Machine(ghz=2.5), ()),
        (Machine(ghz=1.3), (FREQUENCY,)),
        (Machine(misses_per_1000=8), (CACHE,)),
        (Machine(miss_ns=400), (OTHER,)),
        (Machine(cycles_each=1.6), (OTHER,)),
        (Machine(ghz=1.0, misses_per_1000=4), (FREQUENCY, CACHE)),
        (Machine(ghz=2.2, misses_per_1000=20), (CACHE, FREQUENCY)),
    ],
)
def test_causes_of_slow_work_are_distinguished(machine: Machine, causes: tuple[str, ...]) -> None:
    """The larger cause comes first."""
    before, frequency_before, quiet_ns = QUIET.run()
    now, frequency, slow_ns = machine.run(5 * 10**8)
    why = why_slower(now, before, frequency, frequency_before)
    assert (why is None) == (not causes)
    assert [
        word for word in sorted((CACHE, FREQUENCY, OTHER), key=(why or "").find) if word in (why or "")
    ] == [*causes]
    assert not causes or slow_ns * 2 > quiet_ns * 1.1


def test_without_frequencies_only_cycles_count() -> None:
    before, now = QUIET.run()[0], Machine(ghz=1.0).run()[0]
    assert why_slower(now, before, None, None) is None


@pytest.mark.parametrize(
    "broken",
    [{"cycles": 0}, {"instructions": 0}, {"instructions": None}, {"llc_misses": -1}, {"cycles": "x"}],
)
def test_damaged_counters_are_left_out(broken: dict[str, bool | int | float | str | None]) -> None:
    whole = {"cycles": 100, "instructions": 50, "llc_misses": 0, "span_ns": 1}
    assert cpu_work([Result(name="instructions", labels={"cpu": 2}, values=dict(whole))]) == {
        2: CpuWork(100, 50, 0)
    }
    assert cpu_work([Result(name="instructions", labels={"cpu": 2}, values=whole | broken)]) == {}
