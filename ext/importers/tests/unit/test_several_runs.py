# SPDX-License-Identifier: MIT
"""Two runs in one file are two steps, or the file is refused. They are never one measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from ext.importers.tests.foreign_files import FILES
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge_ext.importers.imported_record import import_file

REFUSED = {
    "jitterdebugger-csv.csv", "jitterdebugger-raw.raw", "rteval.xml", "latmus-gnuplot.txt",
    "xenomai-gnuplot.txt", "rtai.txt",
}  # fmt: skip
"""Formats whose second run is refused."""
TOP = {"rtla+top.txt", "rtla+osnoise.txt", "rtla+hwnoise.txt"}


def steps(content: str | bytes, tmp_path: Path):
    (tmp_path / "file").write_bytes(content if isinstance(content, bytes) else content.encode())
    return Record.open(import_file(tmp_path / "file", tmp_path / "runs")).steps


def figures(measured) -> list[list[tuple[object, ...]]]:
    return [
        [(series.labels, series.metric, series.count, series.min_ns, series.max_ns) for series in step.series]
        + [(result.name, result.labels, result.values) for result in step.results]
        for step in measured
    ]


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_same_file_twice(name, tmp_path):
    data = FILES[name]
    twice = data + data if isinstance(data, bytes) else f"{data.rstrip()}\n{data}"
    if name in REFUSED:
        with pytest.raises(InputError) as refused:
            steps(twice, tmp_path)
        assert "\n" not in str(refused.value)
    elif name in TOP:  # which repeats equal tables
        assert figures(steps(twice, tmp_path)) == figures(steps(data, tmp_path))
    else:
        assert figures(steps(twice, tmp_path)) == 2 * figures(steps(data, tmp_path))


def line(task: int, cycles: int, low: int, high: int, thread: int = 0) -> str:
    return (
        f"T: {thread} ({task:5d}) P:80 I:1000 C:{cycles:7d} Min:{low:7d} Act:   11 Avg:   12 Max:{high:8d}\n"
    )


def largest(content: str, tmp_path: Path) -> list[list[int | None]]:
    return [[series.max_ns for series in step.series] for step in steps(content, tmp_path)]


@pytest.mark.parametrize(
    "second",
    [line(512, 30_000, 5, 70), line(511, 20, 5, 8000), line(511, 30_000, 5, 70), line(511, 30_000, 9, 8000)],
    ids=["another thread", "fewer cycles", "a smaller maximum", "a larger minimum"],
)
def test_screens_of_cyclictest(second, tmp_path):
    actual = largest(line(511, 10, 6, 900) + line(511, 30_000, 5, 8000) + second, tmp_path)
    assert actual[0] == [8_000_000]
    assert len(actual) == 2


def test_screens_of_one_run_are_one_step(tmp_path):
    screens = "".join(
        line(511 if cycles else 0, cycles, 10 - at if cycles else 1_000_000, 50 * at)
        + line(512, cycles, 9, 40, 1)
        for at, cycles in enumerate((0, 10, 10, 25))
    )
    assert largest(screens, tmp_path) == [[150_000, 40_000]]


def test_two_cyclictests_at_a_time_are_refused(tmp_path):
    mixed = "".join(line(511, 10 * at, 5, 90) + line(777, 10 * at, 5, 70) for at in range(1, 9))
    with pytest.raises(InputError, match="mixed"):
        steps(mixed, tmp_path)


def test_a_histogram_below_the_screen_of_another_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="two measurements"):
        steps(line(511, 30_000, 5, 8000) + str(FILES["cyclictest.txt"]).split("\n", 1)[1], tmp_path)


def test_samples_of_v(tmp_path):
    runs = [(31, 7), (33, 8), (64, 6)], [(12, 9), (15, 5)]
    text = "".join(
        f"{thread:8d}:{cycle:8d}:{row[thread]:8d}\n"
        for run in runs
        for cycle, row in enumerate(run)
        for thread in (0, 1)
    )
    assert largest(text, tmp_path) == [[64_000, 8_000], [15_000, 9_000]]
    assert [step.total.count for step in steps(text, tmp_path) if step.total] == [6, 4]


def test_samples_of_v_after_a_screen(tmp_path):
    text = line(511, 30_000, 5, 8000) + "       0:       0:      21\n       0:       1:      17\n"
    assert largest(text, tmp_path) == [[8_000_000], [21_000]]


def xenomai(period_us: int, *worst: float, elapsed: str = "00:00:01") -> str:
    rows = "".join(
        f"RTD|      1.100|      2.000|{value:11.3f}|       0|     0|      1.100|{max(worst[: at + 1]):11.3f}\n"
        for at, value in enumerate(worst)
    )
    return f"RTT|  {elapsed}  (periodic user-mode task, {period_us} us period, priority 99)\n{rows}"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (xenomai(100, 44.0, 12.0, elapsed="00:00:09"), [[7000], [44_000]]),
        (xenomai(1000, 44.0), [[7000], [44_000]]),
        (xenomai(1000, 44.0, elapsed="00:00:09"), [[44_000]]),
    ],
    ids=["another period", "the time begins again", "the same table goes on"],
)
def test_tables_of_xenomai(second, expected, tmp_path):
    assert largest(xenomai(1000, 6.0, 7.0) + second, tmp_path) == expected


def test_a_smaller_worst_begins_a_table_whose_period_is_missing(tmp_path):
    rows = xenomai(1000, 3.0).partition("\n")[2]
    with pytest.raises(InputError, match="an RTT line is missing"):
        steps(xenomai(1000, 6.0, 7.0) + rows, tmp_path)


def top(seconds: int, count: int, low: int, high: int) -> str:
    return (
        "                                     Timer Latency\n"
        f"    0 00:00:{seconds:02d}   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\n"
        "  CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n"
        f"    1 #{count}     |        0         0         1        15 |       10{low:10d}         9{high:10d}\n"
    )


@pytest.mark.parametrize(
    ("later", "runs"),
    [
        (top(6, 6000, 3, 80), 1),
        (top(5, 5000, 4, 60), 1),
        (top(4, 6000, 3, 80), 2),
        (top(6, 4000, 3, 80), 2),
        (top(6, 6000, 5, 80), 2),
        (top(6, 6000, 3, 50), 2),
        (top(5, 5000, 3, 80), 2),
    ],
    ids=["later", "the same", "earlier", "fewer", "a larger minimum", "a smaller maximum", "other figures"],
)
def test_tables_of_top(later, runs, tmp_path):
    assert len(steps(top(5, 5000, 4, 60) + later, tmp_path)) == runs


def test_a_row_that_is_cut_off_the_last_table_of_top_is_kept(tmp_path):
    two = top(5, 5000, 4, 60) + top(5, 5000, 4, 60).splitlines()[-1].replace("1 #", "7 #", 1) + "\n"
    (step,) = steps(two + top(6, 6000, 4, 60), tmp_path)
    assert {series.labels["cpu"] for series in step.series} == {1, 7}


HWLAT = "hwlatdetect:  test duration {} seconds\nMax Latency: {}\nSamples recorded: {}\n{}"


def test_reports_of_hwlatdetect(tmp_path):
    first = HWLAT.format(20, "41us", 1, "ts: 1787950654.173419278, inner:0, outer:41, cpu:2\n")
    second = HWLAT.format(700, "Below threshold", 0, "")
    item, two = steps(first + second, tmp_path)
    assert [[series.max_ns for series in each.series] for each in (item, two)] == [[41_000], [None]]
    assert (item.parameters["duration_ns"], two.parameters["duration_ns"]) == (20 * 10**9, 700 * 10**9)
    item, two = steps(second + first, tmp_path)
    assert [[series.max_ns for series in each.series] for each in (item, two)] == [[None], [41_000]]


def test_a_report_of_hwlatdetect_without_a_result_is_refused(tmp_path):
    with pytest.raises(InputError, match="cut short"):
        steps("hwlatdetect:  test duration 20 seconds\n   detector: tracer\n", tmp_path)


def test_documents_of_different_machines_are_refused(tmp_path):
    document = str(FILES["rt-tests.json"])
    with pytest.raises(InputError, match="different machines"):
        steps(document + "\n" + document.replace('"board"', '"bench"'), tmp_path)
