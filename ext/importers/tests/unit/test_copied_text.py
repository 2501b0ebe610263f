# SPDX-License-Identifier: MIT
"""Outputs that went through a serial console, a journal, a mail or an editor import as the originals do."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from ext.importers.tests.foreign_files import FILES, rt_tests
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge_ext.importers.foreign_file import lines
from rtgauge_ext.importers.imported_record import import_file
from rtgauge_ext.importers.registry import importer_of

SCREEN = """T: 0 ( 3110) P:80 I:250 C: 880001 Min:      5 Act:   17 Avg:   14 Max:     207
T: 1 ( 3111) P:80 I:250 C: 879990 Min:      4 Act:   12 Avg:   13 Max:     341
"""
TEXTS: dict[str, str] = {
    **{name: text for name, text in FILES.items() if isinstance(text, str) and name.endswith(".txt")},
    "cyclictest+screen.txt": SCREEN,
}
PREFIXES = [
    "[   91.224553] ",
    "[   91.224553][    T1] ",
    "<6>[   91.224553] ",
    "May 01 12:00:01 board cyclictest[1234]: ",
    "May  1 12:00:01 ",
    "2026-05-01T12:00:01+0200 board sh[7]: ",
    "2026-05-01T12:00:01.123456Z ",
    "[2026-05-01 12:00:01.123] ",
    "[12:00:01.123] ",
    "I0501 12:00:01.123456       1 node.go:37] ",
    "> ",
    ">> ",
    "> > [   12.000001] ",
]


def figures(path: Path, out: Path) -> list[tuple[object, ...]]:
    record = Record.open(import_file(path, out))
    return [
        (step.tool, step.key.parameters.values, series.labels, series.metric, series.count, series.min_ns,
         series.p50_ns, series.max_ns)
        for step in record.steps
        for series in step.series
    ] + [(result.name, result.labels, result.values) for step in record.steps for result in step.results]  # fmt: skip


def same(changed: str | bytes, original: str, tmp_path: Path) -> None:
    (tmp_path / "original").write_text(original)
    (tmp_path / "changed").write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    assert figures(tmp_path / "changed", tmp_path / "b") == figures(tmp_path / "original", tmp_path / "a")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", TEXTS)
def test_what_a_log_puts_before_each_line_is_left_out(name, prefix, tmp_path):
    same("".join(f"{prefix}{line}\n" for line in TEXTS[name].splitlines()), TEXTS[name], tmp_path)


def test_a_syslog_without_the_number_of_the_process(tmp_path):
    prefixed = "".join(f"May 01 12:00:01 board cyclictest: {line}\n" for line in SCREEN.splitlines())
    same(prefixed, SCREEN, tmp_path)


@pytest.mark.parametrize("number", ["{}  ", "{:3}: ", "{}\t", "12  "])
@pytest.mark.parametrize("name", ["cyclictest+screen.txt", "cyclictest.txt", "xenomai.txt"])
def test_the_numbers_of_an_editor_are_left_out(name, number, tmp_path):
    numbered = "".join(f"{number.format(at)}{line}\n" for at, line in enumerate(TEXTS[name].splitlines(), 1))
    same(numbered, TEXTS[name], tmp_path)


@pytest.mark.parametrize("name", [*TEXTS, "jitterdebugger.json", "rt-tests.json", "rt-tests+oslat.json"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_encodings_of_windows(name, encoding, tmp_path):
    original = TEXTS.get(name) or FILES[name]
    assert isinstance(original, str)
    same(original.replace("\n", "\r\n").encode(encoding), original, tmp_path)


def test_utf_16_of_the_other_byte_order_has_a_mark(tmp_path):
    same(codecs.BOM_UTF16_BE + SCREEN.encode("utf-16-be"), SCREEN, tmp_path)


def test_a_damaged_utf_16_is_one_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(SCREEN.encode("utf-16") + b"\x00\xd8A")
    with pytest.raises(InputError, match=r"line 3 is not UTF-16"):
        list(lines(path))


@pytest.mark.parametrize("name", TEXTS)
def test_colours_within_a_line_do_not_end_it(name, tmp_path):
    coloured = "".join(
        f"\x1b[1;32m{line[:12]}\x1b[0m{line[12:]}\x1b[K\n" for line in TEXTS[name].splitlines()
    )
    same(coloured, TEXTS[name], tmp_path)


def test_json_behind_the_lines_of_a_screen(tmp_path):
    document = FILES["rt-tests.json"]
    assert isinstance(document, str)
    same(
        "# /dev/cpu_dma_latency set to 0us\npolicy: fifo ${x}: loadavg: 1.0\n" + document, document, tmp_path
    )


def test_json_on_a_serial_console(tmp_path):
    document = FILES["rt-tests.json"]
    assert isinstance(document, str)
    same("".join(f"[   91.224553] {line}\n" for line in document.splitlines()), document, tmp_path)


def test_a_line_of_a_log_that_begins_with_a_digit(tmp_path):
    same(f"4 CPUs are online\n2 threads\n{SCREEN}17 done\n", SCREEN, tmp_path)


def test_a_long_log_before_the_output(tmp_path):
    same("[    0.000000] Booting Linux on physical CPU 0x0\n" * 8_000 + SCREEN, SCREEN, tmp_path)


@pytest.mark.parametrize("word", ["-nan", "nan"])
def test_a_thread_without_a_cycle(word, tmp_path):
    """cyclictest divides 0 by 0 for the average of a thread that has not run."""
    path = tmp_path / "zero.json"
    idle = {"histogram": {}, "cycles": 0, "min": 1_000_000, "max": 0, "avg": "AVERAGE", "cpu": 1}
    busy = {"histogram": {"29": 2, "31": 1}, "cycles": 3, "min": 29, "max": 31, "avg": 29.67, "cpu": 0}
    text = rt_tests("cyclictest -q -p 90 -t 2 -a -i 3000000 -D 4 -h 100 --json=x", resolution_in_ns=0,
                    num_threads=2, thread={"0": busy, "1": idle})  # fmt: skip
    path.write_text(text.replace('"AVERAGE"', word))
    (step,) = Record.open(import_file(path, tmp_path / "runs")).steps
    assert [
        (series.labels["cpu"], series.count, series.max_ns, series.mean_ns) for series in step.series
    ] == [
        (0, 3, 31_000, pytest.approx(29_670, abs=10)),
        (1, 0, None, None),
    ]


@pytest.mark.parametrize(
    ("name", "tool"),
    [("rtai.txt", "rtai latency"), ("xenomai+2.txt", "xenomai latency 2"), ("oslat.txt", "oslat 2.30")],
)
def test_the_name_and_the_version_of_the_tool_are_kept(name, tool, tmp_path):
    (tmp_path / name).write_text(TEXTS[name])
    (step,) = Record.open(import_file(tmp_path / name, tmp_path / "runs")).steps
    assert step.tool == tool


def test_figures_of_the_new_formats(tmp_path):
    for name in ("oslat.txt", "rtai.txt", "xenomai+2.txt", "rtla+hwnoise.txt"):
        (tmp_path / name).write_text(TEXTS[name])
    steps = {
        name: Record.open(import_file(tmp_path / name, tmp_path / "runs")).steps[0]
        for name in ("oslat.txt", "rtai.txt", "xenomai+2.txt", "rtla+hwnoise.txt")
    }
    oslat = steps["oslat.txt"]
    assert [
        (series.labels["cpu"], series.count, series.min_ns, series.max_ns) for series in oslat.series
    ] == [
        (2, 700_034, 1000, 4000),
        (3, 690_029, 1000, 88_000),
    ]
    assert oslat.parameters["command"] == "oslat -D 20 --rtprio 1 --cpu-list 2,3 --cpu-main-thread 0"
    assert {"loop-in-first-bin", "last-bin-clipped"} <= {mark.name for mark in oslat.marks}
    (rtai,) = steps["rtai.txt"].series
    assert (rtai.count, rtai.min_ns, rtai.max_ns) == (10_000, -1203, 9301)
    (xenomai,) = steps["xenomai+2.txt"].series
    assert (xenomai.count, xenomai.min_ns, xenomai.max_ns) == (8000, 1210, 14_020)
    assert [(result.name, result.labels["cpu"], result.values["max_single_us"], result.values["nmi"])
            for result in steps["rtla+hwnoise.txt"].results] == [("hwnoise", 2, 7, 68), ("hwnoise", 5, 4, 71)]  # fmt: skip


def test_signaltest_is_not_cyclictest(tmp_path):
    path = tmp_path / "signal.txt"
    path.write_text("T: 0 ( 4100) P:85 C:    700 Min:     17 Act:   25 Avg:   33 Max:     204\n")
    assert importer_of(path).name == "cyclictest"
    (step,) = Record.open(import_file(path, tmp_path / "runs")).steps
    (series,) = step.series
    assert (step.key.probe, step.key.tool, series.count, series.max_ns) == (
        "signaltest", "signaltest", 700, 204_000,
    )  # fmt: skip
    assert "missed-derived" not in {mark.name for mark in step.marks}


def test_an_untitled_table_of_rtla_says_that_its_unit_is_assumed(tmp_path):
    (tmp_path / "rtla").write_text(TEXTS["rtla+untitled.txt"])
    (step,) = Record.open(import_file(tmp_path / "rtla", tmp_path / "runs")).steps
    largest = {(series.metric, series.labels["cpu"]): series.max_ns for series in step.series}
    assert largest == {
        ("irq-latency", 2): 3000, ("latency", 2): 31_000, ("user-latency", 2): 44_000,
        ("irq-latency", 5): 31_000, ("latency", 5): 61_000, ("user-latency", 5): None,
    }  # fmt: skip
    assert {"unit-assumed", "stopped-at-threshold"} <= {mark.name for mark in step.marks}


UNTITLED_TOP = """  CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
    1 #900       |        0         0         1        15 |       10         3         9        31
"""
UNTITLED_NOISE = """CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread
  0 #61         54900000       300000    99.45355        7000           55         540            0        53000         1600           14
"""


@pytest.mark.parametrize(
    ("text", "tool"), [(UNTITLED_TOP, "rtla timerlat top"), (UNTITLED_NOISE, "rtla osnoise top")]
)
def test_tables_of_top_without_a_title(text, tool, tmp_path):
    (tmp_path / "rtla").write_text(text)
    (step,) = Record.open(import_file(tmp_path / "rtla", tmp_path / "runs")).steps
    assert step.tool == tool
