# SPDX-License-Identifier: MIT
"""The chain from the instrument to the page: `rtgauge` with an emulated instrument.

Real: rtgauge, its engine as slave or master on this machine, the firmware, the protocol on its serial line,
the record and the page. Not real: the board,
which is emulated and slower than one, so that no time that it measures means anything; the wire, which is a
datagram of the path udp: the bridge makes one
of each stimulus edge, and an edge of each datagram that comes back. So the tests are about what is counted,
marked, kept and shown.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PATIENCE_S, end, error_line, good, only_error, rtgauge, start, wait_until
from tests.support.machine import free_port
from tests.support.real_record import document

from ext.instrument.tests.firmware.bridge import EmulatedBoard
from rtgauge.record.reader import Record

pytestmark = [pytest.mark.engine, pytest.mark.root]


class Wired:
    """A board, wired to a port of this machine; `instrument`: its address, which stays the same when it is
    plugged in again.
    """

    def __init__(self, board: EmulatedBoard, path: str, folder: Path) -> None:
        self.board = board
        self.path = path
        self.link = folder / "instrument"
        self.instrument = f"serial:{self.link}"
        self.point()

    def point(self) -> None:
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self.board.path)

    def unplug(self) -> None:
        self.board.unplug()
        self.link.unlink()

    def plug(self) -> None:
        self.board.plug()
        self.point()

    def plan(self, probe: str, *lines: str) -> Path:
        file = self.link.with_name("plan.toml")
        step = [f'probe = "{probe}"', f'path = "{self.path}"', f'instrument = "{self.instrument}"', *lines]
        file.write_text("\n".join(['name = "outside"', "[[step]]", *step]) + "\n")
        return file


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[Wired]:
    """A slave of this machine answers."""
    port = free_port()
    with EmulatedBoard(slave=["127.0.0.1", port]) as board:
        yield Wired(board, f"udp:127.0.0.1:{port}", tmp_path)


@pytest.fixture
def toggled(tmp_path: Path) -> Iterator[Wired]:
    """A master of this machine toggles the line."""
    with EmulatedBoard(toggled=True) as board:
        yield Wired(board, f"udp:127.0.0.1:{board.wire}", tmp_path)


def the_record(folder: Path) -> Path:
    (record,) = (folder / "out").iterdir()
    return record


def views(step: dict[str, Any], metric: str) -> dict[str, dict[str, Any]]:
    return {series["labels"]["role"]: series for series in step["series"] if series["metric"] == metric}


SHORT_GAPS = ('interval-min = "20us"', 'interval-max = "200us"')


def test_outside_and_inside_responses_share_a_record_and_page(tmp_path: Path, wired: Wired) -> None:
    plan = wired.plan(
        "response", "cycles = 300", 'warm-up = "10ms"', 'wire-offset = "24ns"', "samples = true", *SHORT_GAPS
    )
    completed = good(rtgauge("run", plan, "--out", tmp_path / "out", env={"COLUMNS": "140"}))
    record = Record.open(the_record(tmp_path))
    (step,) = record.steps
    outer, inner = step.series
    assert (outer.labels, outer.count, outer.missed) == ({"role": "instrument"}, 300, 0)
    assert outer.exact_quantiles
    assert inner.labels["role"] == "slave"
    assert inner.count > 0
    assert step.total is not None
    assert (step.total.count, step.total.max_ns) == (300, outer.max_ns)  # what a requirement is about
    report = step.instrument
    assert report is not None
    assert (report.id, report.loopback_ns, report.wire_offset_ns, report.resolution_ns) == (
        "E6605838831F2B27",
        (0, 0),
        24,
        8,
    )
    assert (report.counters["stimuli"], report.counters["answers"], report.counters["missed"]) == (
        300,
        300,
        0,
    )
    assert report.exact is not None
    assert (report.exact.count, report.exact.min_ns, report.exact.max_ns) == (300, outer.min_ns, outer.max_ns)
    assert report.exact.mean_ns == pytest.approx(outer.mean_ns)
    assert report.exact.std_ns == pytest.approx(outer.std_ns)
    # Every edge that the instrument counted was answered by the slave, which also answered those of the
    # warm-up.
    (signal_result,) = [result for result in step.results if result.name == "signal"]
    assert int(signal_result.values["answers"] or 0) > 300
    assert not [mark for mark in step.marks if mark.severity == "invalid"]
    windows = record.windows(step)
    assert windows.count[windows.are_of(outer.series)].sum() == 300
    for text in (completed.stdout, (the_record(tmp_path) / "report.html").read_text()):
        for words in ("from outside", "by the slave", "outside minus inside", "24 ns, as given"):
            assert words in " ".join(text.split())


def test_half_periods_from_outside_and_inside(tmp_path: Path, toggled: Wired) -> None:
    plan = toggled.plan("periodic", 'period = "20ms"', "cycles = 100", 'warm-up = "20ms"')
    good(rtgauge("run", plan, "--out", tmp_path / "out"))
    (step,) = Record.open(the_record(tmp_path)).steps
    assert [(series.metric, series.labels["role"]) for series in step.series] == [
        ("latency", "self"),
        ("jitter", "self"),
        ("jitter", "instrument"),
    ]
    assert step.total is not None
    assert step.total.metric == "latency"
    report = step.instrument
    assert report is not None
    # The emulated board begins to watch some edges later, and measures the distances between those that it
    # saw.
    assert report.counters["edges"] == step.series[2].count + 1
    assert 0 < step.series[2].count < 102
    assert report.configuration["nominal_ns"] == 10_000_000
    assert step.end_reason == "count"


def test_as_a_probe_and_in_json(wired: Wired) -> None:
    words = (
        "--path",
        wired.path,
        "--instrument",
        wired.instrument,
        "--interval",
        "2ms",
        "--timeout",
        "1s",
        "--duration",
        "300ms",
        "--warm-up",
        "0s",
    )
    step = document(good(rtgauge("probe", "response", *words, "--json")).stdout)["steps"][0]
    assert step["end_reason"] == "duration"
    configuration = step["instrument"]["configuration"]
    assert (configuration["timing"], configuration["period_min_ns"]) == ("fixed", 2_000_000)
    assert configuration["limit_ns"] < 2_000_000  # it has to be over before the next stimulus
    outer = views(step, "response")["instrument"]
    counters = step["instrument"]["counters"]
    assert (outer["count"], outer["missed"]) == (counters["answers"], counters["missed"])
    assert outer["count"] + outer["missed"] in (
        counters["stimuli"],
        counters["stimuli"] - 1,
    )  # the last may be under way


LONG = ('duration = "1h"', 'warm-up = "0s"', "samples = true", *SHORT_GAPS)


def begin(tmp_path: Path, wired: Wired, *more: object) -> Any:
    """A long run, of which the instrument has measured something."""
    log = tmp_path / "stderr"
    process = start("run", wired.plan("response", *LONG), "--out", tmp_path / "out", *more, log=log)
    try:
        wait_until(
            lambda: (
                process.poll() is not None
                or any(file.stat().st_size > 64 for file in tmp_path.glob("out/*/steps/.*.tmp/samples-0.i64"))
            ),
            "samples",
        )
        assert process.poll() is None, log.read_text()
    except BaseException:
        end(process)
        raise
    return process


def resume(tmp_path: Path) -> Any:
    """Of a long run, whose step is measured again: it is begun, and then ended as a user does."""
    log = tmp_path / "again"
    process = start("resume", the_record(tmp_path), log=log)
    try:
        wait_until(
            lambda: (
                process.poll() is not None
                or any(file.stat().st_size > 64 for file in tmp_path.glob("out/*/steps/.*.tmp/samples-0.i64"))
            ),
            "samples",
        )
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    return Record.open(the_record(tmp_path))


def test_ctrl_c_keeps_both_views_and_resume_measures_again(tmp_path: Path, wired: Wired) -> None:
    process = begin(tmp_path, wired)
    try:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    (step,) = Record.open(the_record(tmp_path)).steps
    assert step.end_reason == "stopped"
    assert {mark.name for mark in step.marks} >= {"stopped"}
    assert all(series.count > 0 for series in step.series)
    (again,) = resume(tmp_path).steps
    assert again.id == step.id
    assert again.end_ns is not None
    assert step.end_ns is not None
    assert again.end_ns > step.end_ns


def test_after_kill_9_the_instrument_is_stopped_and_used_again(tmp_path: Path, wired: Wired) -> None:
    process = begin(tmp_path, wired)
    os.kill(process.pid, signal.SIGKILL)
    end(process)
    record = resume(tmp_path)
    (step,) = record.steps
    assert step.series[0].count > 0
    assert "resumed" in {mark.name for mark in record.run.marks}


def test_a_pulled_cable_leaves_a_marked_record_to_resume(tmp_path: Path, wired: Wired) -> None:
    process = begin(tmp_path, wired, "--repeats", 2)
    try:
        wired.unplug()
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    error = only_error((tmp_path / "stderr").read_text())
    assert "cannot be opened" in error
    assert "rtgauge resume" in error
    (step,) = Record.open(the_record(tmp_path)).steps
    assert step.end_reason == "instrument-died"
    assert [mark.severity for mark in step.marks if mark.name == "instrument-lost"] == ["invalid"]
    assert all(series.count > 0 for series in step.series)
    wired.plug()
    (again,) = resume(tmp_path).steps
    assert again.id == step.id
    assert again.end_reason == "stopped"


def test_where_nobody_answers_the_wires_are_named(tmp_path: Path) -> None:
    with EmulatedBoard(delays=[None]) as board:
        words = ("--path", f"udp:127.0.0.1:{free_port()}", "--timeout", "1ms", "--duration", "10s")
        error = error_line(rtgauge("probe", "response", "--instrument", f"serial:{board.path}", *words), 3)
    assert "stimuli had an answer" in error
    assert "wires" in error


def test_a_missing_instrument_is_named_before_measuring(tmp_path: Path) -> None:
    error = error_line(
        rtgauge(
            "probe", "response", "--path", "udp:127.0.0.1:7000", "--instrument", f"serial:{tmp_path}/none"
        ),
        3,
    )
    assert "port does not exist" in error
