# SPDX-License-Identifier: MIT
"""The histogram of rtla timerlat, in the form that the kernel's documentation shows (tools/rtla,
rtla-timerlat-hist).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, make_plan
from rtgauge_ext.importers.other_tool import cyclictest_argv, rtla_argv
from rtgauge_ext.importers.rtla import parse_rtla

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
    (measurement,) = parse_rtla(enumerate(text.splitlines(), start=1), "out.txt")
    return measurement


def threads(text: str):
    """The series of thread latencies."""
    return [series for series in rtla(text).series if series.metric == "latency"]


def test_every_column_is_a_series_and_threads_are_the_whole():
    columns = [(series.metric, series.labels["cpu"]) for series in rtla(OUTPUT).series]
    assert columns == [("irq-latency", 0), ("latency", 0), ("irq-latency", 1), ("latency", 1)]
    assert rtla(OUTPUT).parameters["space"] == "kernel"
    first, second = threads(OUTPUT)
    assert (first.count, first.minimum_ns, first.maximum_ns, first.overflow) == (12000, 1000, 431_000, 1)
    assert first.histogram == {1000: 10, 5000: 9000, 37_000: 2989}
    assert (second.count, second.maximum_ns, second.overflow, second.limit_ns) == (12000, 902_000, 4, 38_000)


def test_a_newer_rtla_adds_a_table_of_all_cpus_and_decimals():
    newer = OUTPUT.replace(
        "avg:          0        12         0         7", "avg:          0.1     12.25      0.2       7.5"
    ) + ("ALL:          IRQ       Thr\ncount:      24000     24000\nmin:            0         1\n")
    assert [float(series.average_ns or 0) for series in threads(newer)] == [12_250, 7_500]
    assert [series.count for series in threads(newer)] == [12000, 12000]


def test_columns_of_the_return_to_user_space():
    text = """# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 01:00:00
Index   IRQ-003   Thr-003   Usr-003
2            70         0         0
7            30        99         0
9             0         1       100
over:         0         0         0
count:      100       100       100
min:          2         7         9
avg:          3         7         9
max:          7         9         9
"""
    measurement = rtla(text)
    assert [series.metric for series in measurement.series] == ["irq-latency", "latency", "user-latency"]
    assert measurement.duration_ns == 3600 * 10**9


def test_wide_bins_are_detected_and_reported():
    text = """# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   CPU-000   CPU-004
0             5         0
10            3         7
40            1         0
over:         0         2
count:        9         9
min:          0        10
avg:          0        10
max:         40        90
"""
    measurement = rtla(text)
    assert (measurement.probe, measurement.resolution_ns, [mark.name for mark in measurement.marks]) == (
        "noise",
        10_000,
        ["bins-assumed"],
    )
    assert [(series.metric, series.overflow, series.limit_ns) for series in measurement.series] == [
        ("gap", 0, None),
        ("gap", 2, 50_000),
    ]


TOP = """                                     Timer Latency
    0 00:00:12   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
  CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
    1 #{count}     |        0         0         1        15 |       10         3         9        31
    7 #12322     |        -         -         -         - |       10         3         9        23
ALL #24644 e0 |             0         1        15 |                    3         9        31
"""


def test_the_last_repeated_table_counts_and_analysis_is_kept():
    text = (
        "\x1bc"
        + TOP.format(count=6000)
        + TOP.format(count=12322)
        + "rtla timerlat hit stop tracing\n## CPU 7 hit stop tracing, analyzing it ##\n  Blocking "
        "thread: 3 us\n"
    )
    measurement = rtla(text)
    assert [
        (series.metric, series.labels["cpu"], series.count, series.minimum_ns, series.maximum_ns)
        for series in measurement.series
    ] == [
        ("irq-latency", 1, 12322, 0, 15_000),
        ("latency", 1, 12322, 3000, 31_000),
        ("latency", 7, 12322, 3000, 23_000),
    ]
    assert "Blocking thread: 3 us" in measurement.results[0].values["text"]
    assert "stopped-at-threshold" in [mark.name for mark in measurement.marks]


def test_osnoise_top_is_results_by_cpu():
    text = """                                          Operating System Noise
duration:   0 00:01:00 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
  0 #61         54900000       300000    99.45355        7000           55         540            0        53000         1600           14
  2 #61         54900000            -    99.36282        8000           24         399            0        53130         1448           31
"""
    measurement = rtla(text)
    longest = [(series.labels["cpu"], series.count, series.maximum_ns) for series in measurement.series]
    assert longest == [(0, 1, 55_000), (2, 1, 24_000)]
    first, second = measurement.results
    assert (
        first.labels,
        first.values["noise_us"],
        first.values["available_percent"],
        first.values["irq"],
    ) == ({"cpu": 0}, 300_000, 99.45355, 53_000)
    assert second.values["noise_us"] is None


def test_without_a_summary_values_above_the_bins_are_unknown():
    text = "\n".join(
        line for line in OUTPUT.splitlines() if not line.startswith(("over", "count", "min", "avg", "max"))
    )
    measurement = rtla(text)
    assert [mark.name for mark in measurement.marks] == ["no-summary"]
    assert [series.overflow for series in measurement.series] == [0] * 4


def test_nanoseconds_are_reported():
    assert rtla(OUTPUT.replace("microseconds (us)", "nanoseconds (ns)")).resolution_ns == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Index XYZ-000\n0 1\n",
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
    for part in (
        "-t 3",
        "-a 0,2-3",
        "-i 200",
        "-l 15000",
        "-p 77",
        "--policy rr",
        "-m",
        "--latency=0",
        "-d 0",
    ):
        assert part in words
    words = " ".join(rtla_argv(step, [0, 2, 3]))
    for part in ("timerlat hist", "-c 0,2-3", "-p 200", "-P r:77", "-d 3s", "--no-irq", "--dma-latency 0"):
        assert part in words
    assert "--no-irq" not in rtla_argv(key(space="kernel"), [0])


def test_kernel_space_is_not_checked_by_cyclictest():
    steps = make_plan(
        {"step": [{"probe": "wakeup", "space": space} for space in ("user", "kernel")]},
        "plan",
        Overrides(cross_check="cyclictest"),
    ).steps
    assert sorted((step.space, step.tool) for step in steps) == [
        ("kernel", "rtgauge"),
        ("user", "cyclictest"),
        ("user", "rtgauge"),
    ]


def test_cyclictest_leaves_c_states_alone_where_the_step_does(tmp_path: Path):
    words = cyclictest_argv(
        key(**{"dma-latency": "off", "policy": "other", "memory-lock": "off"}), [0], tmp_path / "x.json"
    )
    assert "--laptop" in words
    assert "-m" not in words
    assert "-p" not in words


def test_an_interval_that_cyclictest_does_not_have_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="whole us"):
        cyclictest_argv(key(interval="5500ns"), [0], tmp_path / "x.json")
