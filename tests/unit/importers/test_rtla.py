# SPDX-License-Identifier: MIT
"""The histogram of rtla timerlat, in the form that the kernel's documentation shows (tools/rtla, rtla-timerlat-hist)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.importers.rtla import parse_rtla
from rtgauge.plan.plan import Overrides, make_plan
from rtgauge.runner.cross_check import cyclictest_argv, rtla_argv

OUTPUT = """# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:12
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0          8000         0      7000         0
1          3990        10      4990         0
5            10      9000         6     11000
37            0      2989         4       996
over:         0         1         0         4
count:    12000     12000     12000     12000
min:          0         1         0         5
avg:          0        12         0         7
max:          5       431        37       902
"""


def rtla(text: str):
    return parse_rtla(text, "out.txt")


def test_the_columns_of_threads_are_read():
    first, second = rtla(OUTPUT).threads
    assert (first.cpu, first.cycles, first.minimum, first.maximum, first.overflow) == (0, 12000, 1, 431, 1)
    assert first.histogram == {1: 10, 5: 9000, 37: 2989}
    assert (second.cpu, second.cycles, second.maximum, second.overflow, second.limit) == (1, 12000, 902, 4, 38)


def test_a_newer_rtla_adds_a_table_of_all_cpus_and_decimals():
    newer = OUTPUT.replace("avg:          0        12         0         7", "avg:          0.1     12.25      0.2       7.5") + (
        "ALL:          IRQ       Thr\ncount:      24000     24000\nmin:            0         1\n"
    )
    assert [float(thread.average or 0) for thread in rtla(newer).threads] == [12.25, 7.5]
    assert [thread.cycles for thread in rtla(newer).threads] == [12000, 12000]


def test_nanoseconds_are_said():
    assert rtla(OUTPUT.replace("microseconds (us)", "nanoseconds (ns)")).unit_ns == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Index IRQ-000\n0 1\n",
        OUTPUT.replace("count:    12000     12000     12000     12000\n", ""),
        OUTPUT.replace("count:    12000     12000", "count:    12000     11000"),
        OUTPUT.replace("5            10      9000         6     11000", "5            10      9000"),
        OUTPUT.replace("Thr-", "Xyz-"),
    ],
)
def test_a_foreign_or_damaged_text_is_refused_in_one_line(text: str):
    with pytest.raises(InputError) as refused:
        rtla(text)
    assert "\n" not in str(refused.value)


@given(st.text(max_size=300), st.integers(0, len(OUTPUT)))
def test_hostile_text_is_read_or_refused(noise: str, at: int):
    with contextlib.suppress(InputError):
        rtla(OUTPUT[:at] + noise + OUTPUT[at:])


def key(**written: object):
    return make_plan({"step": [{"probe": "wakeup", **written}]}, "plan", Overrides()).steps[0]


def test_the_other_tools_get_the_same_settings(tmp_path: Path):
    step = key(interval="200us", duration="3s", priority=77, policy="rr")
    words = " ".join(cyclictest_argv(step, [0, 2, 3], tmp_path / "x.json"))
    for part in ("-t 3", "-a 0,2-3", "-i 200", "-l 15000", "-p 77", "--policy rr", "-m", "--latency=0", "-d 0"):
        assert part in words
    words = " ".join(rtla_argv(step, [0, 2, 3]))
    for part in ("timerlat hist", "-c 0,2-3", "-p 200", "-P r:77", "-d 3s"):
        assert part in words


def test_cyclictest_leaves_c_states_alone_where_the_step_does(tmp_path: Path):
    words = cyclictest_argv(key(**{"dma-latency": "off", "policy": "other", "memory-lock": "off"}), [0], tmp_path / "x.json")
    assert "--laptop" in words
    assert "-m" not in words
    assert "-p" not in words


def test_an_interval_that_cyclictest_does_not_have_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="whole us"):
        cyclictest_argv(key(interval="1500ns"), [0], tmp_path / "x.json")
