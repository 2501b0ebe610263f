# SPDX-License-Identifier: MIT
"""How fast CPUs ran, by their counters. No machine with these counters was here; the numbers are drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.record.model import Result
from rtgauge.system.cpu_frequency import cpu_frequencies, frequency_marks

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
    (found,) = cpu_frequencies([counted(3, hz, busy)]).values()
    assert found.mean_khz == pytest.approx(hz / 1000, rel=1e-6, abs=1)
    assert found.nominal_khz == NOMINAL_HZ // 1000


def test_cpus_below_nine_tenths_of_their_nominal_frequency_have_a_mark() -> None:
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
