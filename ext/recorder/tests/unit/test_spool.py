# SPDX-License-Identifier: MIT
"""A folder into which an engine recorded alone becomes a recorder's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.messages import missing

from ext.recorder.tests.driven import HELLO, METRICS, SECOND, START, DrivenClock, figures_of, moment, window
from rtgauge.errors import InputError
from rtgauge.record.histogram import ALPHABET
from rtgauge.record.marks import MarkKind
from rtgauge.record.merged_windows import merge
from rtgauge.record.reader import Record
from rtgauge.record.stream import Window
from rtgauge.record.windows import Windows
from rtgauge.target.file_batch import Files
from rtgauge_ext.recorder import spool as spool_module
from rtgauge_ext.recorder.folder import Settings
from rtgauge_ext.recorder.record import make_record
from rtgauge_ext.recorder.recorder_report import lines
from rtgauge_ext.recorder.session_fold import window_of
from rtgauge_ext.recorder.spool import ROOM, Spool, is_spool, played

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from rtgauge_ext.recorder.clocks import Times
    from rtgauge_ext.recorder.folder import RecorderFolder

SETTINGS: dict[str, Any] = {
    "version": 1, "program": "--program control", "require": "latency<=1ms", "keep_bytes": 50 << 20,
    "command": ["rtgauge"], "parameters": {},
}  # fmt: skip
COUNTS = (
    "moments_removed",
    "sessions_removed",
    "formats_removed",
    "moments_not_written",
    "lines_not_written",
)
FORMATS = b'{"type":"trace_formats","clock":"mono","events":{},"header_page":"","header_event":"","page_bytes":4096,"cpus":1}'


def clocks(times: Times) -> dict[str, int]:
    return {"monotonic_ns": times.monotonic_ns, "boottime_ns": times.boot_ns, "realtime_ns": times.wall_ns}


class Writer:
    """Writes a spool as the engine does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.session, self.moments = folder, DrivenClock(), 0, 0
        for name in ("sessions", "moments", "formats"):
            (folder / name).mkdir(parents=True)
        (folder / "spool.json").write_text(json.dumps(SETTINGS))
        (folder / "formats/00000001.ndjson").write_bytes(FORMATS + b"\n")

    def event(self, what: str, detail: str = "", session: int = 0, boot: str = "b", **counts: int) -> None:
        line = {
            "what": what, "detail": detail, "session": session, "boot_id": boot,
            **clocks(self.clock()), "cpu_ns": 0, **dict.fromkeys(COUNTS, 0), **counts,
        }  # fmt: skip
        with (self.folder / "log.ndjson").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def line(self, line: dict[str, Any] | bytes) -> None:
        text = line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode()
        with (self.folder / f"sessions/{self.session:08d}.ndjson").open("ab") as file:
            file.write(text + b"\n")

    def clocks(self) -> None:
        self.line({"type": "clocks", **clocks(self.clock())})

    def begin(self, boot: str = "b", arming_ns: int = 2 * SECOND) -> None:
        self.session += 1
        self.clocks()
        self.event("session begins", session=self.session, boot=boot)
        self.line({**HELLO, "boot_id": boot})
        for n, metric in enumerate(METRICS):
            self.line(
                {"type": "series", "series": n, "metric": metric, "unit": "ns", "labels": {"task": "control"}}
            )
        self.line({"type": "formats", "number": 1})
        self.line({"type": "started", "series": 0, "start_ns": self.clock().monotonic_ns + arming_ns})

    def windows(self, values: np.ndarray[Any, Any], length_ns: int) -> None:
        self.clock.pass_ns(length_ns)
        self.line(window(self.clock, length_ns - 2 * SECOND, figures_of(values)))
        self.clocks()

    def late_window(self, values: np.ndarray[Any, Any], length_ns: int) -> None:
        """A window of which the last value is late, and has a moment."""
        self.clock.pass_ns(length_ns - SECOND)
        self.moment(int(values[-1]))
        self.clock.pass_ns(SECOND)
        self.line(window(self.clock, length_ns, figures_of(values)))
        self.clocks()

    def moment(self, latency_ns: int) -> None:
        self.moments += 1
        head = {"type": "kept", "session": self.session, "formats": 1, **clocks(self.clock())}
        name = f"{self.moments:08d}.{self.session}.1.{latency_ns}"
        (self.folder / "moments" / name).write_bytes(
            json.dumps(head).encode() + b"\n" + moment(self.clock, "x", latency_ns) + b"\n"
        )

    def end(self, reason: str) -> None:
        result = {"type": "result", "name": "watched", "labels": {}, "values": {"signal": 9}}
        self.line(result)
        self.line({"type": "end", "reason": reason, "status": 0})
        self.clocks()
        self.event("session ends", reason if reason == "program-ended" else "", self.session)


def read(paths: Iterable[str]) -> Files:
    """Read files as the engine does."""
    files: dict[str, dict[str, Any]] = {}
    for path in map(Path, paths):
        if path.is_dir():
            files[str(path)] = {"directory": [entry.name for entry in path.iterdir()]}
        elif path.exists():
            files[str(path)] = {"text": path.read_text(errors="replace")}
        else:
            files[str(path)] = {"error": "ENOENT"}
    return Files(files)


def play(folder: Path) -> AbstractContextManager[RecorderFolder]:
    return played(Spool.read(read, str(folder)), folder.name)


def test_everything_in_a_spool_is_in_the_folder(tmp_path: Path) -> None:
    values = (20_000 + np.random.default_rng(3).gamma(2.0, 4_000, 900)).astype(np.int64)
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    spool.begin()
    spool.windows(values, 900 * SECOND)
    spool.moment(2_000_000)
    spool.clock.pass_ns(SECOND)
    spool.moment(300_000)
    spool.end("program-ended")
    spool.clock.pass_ns(60 * SECOND)
    spool.begin()
    spool.windows(values, 900 * SECOND)
    spool.line(b'{"type":"window","ser')  # a kill
    spool.clock.pass_ns(100 * SECOND)
    spool.event("recorder started", moments_removed=7)
    spool.clock.pass_ns(50 * SECOND, asleep_ns=30 * SECOND)
    spool.event("engine failed", "no memory")
    spool.clock.pass_ns(10 * SECOND)
    spool.event("recorder stopped")
    assert is_spool(spool.folder)
    with play(spool.folder) as folder:
        counts = folder.counts
        assert sum(f.count for s in (*folder.stretches, *folder.minutes) for f in s.figures) == 1800
        assert counts["watched_ns"] == (2 * 898 + 1) * SECOND
        assert counts["unseen_ns"] == (2 * 2 + 10) * SECOND
        assert counts["absent_ns"] == (60 + 50) * SECOND
        assert counts["between_ns"] == 100 * SECOND
        assert (counts["suspends"], counts["suspended_ns"]) == (1, 30 * SECOND)
        assert (counts["kills"], counts["program_ends"], counts["damaged"]) == (1, 1, 1)
        assert counts["moments_removed"] == 7
        assert counts["trigger_late"] == 1
        assert sorted(kept.latency_ns for kept in folder.keeping.moments.values()) == [300_000, 2_000_000]
        assert {folder.moment(number).head.wall_ns for number in folder.keeping.moments} == {
            START.wall_ns + 900 * SECOND,
            START.wall_ns + 901 * SECOND,
        }
        ended = [event for event in folder.events if event.what == "engine failed"]
        assert [event.detail for event in ended] == ["no memory"]
        step = Record.open(make_record(folder, tmp_path / "runs", ["rtgauge"])).run
    assert step.requirement == "latency<=1ms"


def test_a_late_cycle_with_a_moment_counts_once_however_long_arming_took(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    spool.begin(arming_ns=30 * SECOND)
    spool.clock.pass_ns(30 * SECOND)
    spool.late_window(np.array([20_000, 2_000_000]), 900 * SECOND)
    spool.end("stopped")
    with play(spool.folder) as folder:
        assert folder.counts["trigger_late"] == 1
        assert (folder.counts["unseen_ns"], folder.counts["watched_ns"]) == (30 * SECOND, 900 * SECOND)


def elias_gamma(histogram: dict[int, int]) -> str:
    """The bins of a line `folded`, from the code's definition."""
    bits, before = "", -12_101
    for at, number in sorted(histogram.items()):
        bits += "".join("0" * (n.bit_length() - 1) + f"{n:b}" for n in (at - before, number))
        before = at
    bits += "0" * (-len(bits) % 6)
    return "".join(chr(ALPHABET[int(bits[at : at + 6], 2)]) for at in range(0, len(bits), 6))


def folded_line(bins: str, count: int, missed_bins: str = "", missed: int = 0) -> dict[str, Any]:
    return {
        "type": "folded", "series": 0, "start_ns": 5, "end_ns": 9, "count": count, "missed": missed,
        "min_ns": 1, "max_ns": 2, "sum_ns": 3, "m2_ns2": 0.5, "bins": bins, "missed_bins": missed_bins,
    }  # fmt: skip


HISTOGRAM = st.dictionaries(st.integers(-12_100, 12_100), st.integers(1, 2**40), min_size=1, max_size=50)


@given(plain=HISTOGRAM, missed=HISTOGRAM)
def test_a_folded_line_is_the_window_of_its_histogram(plain: dict[int, int], missed: dict[int, int]) -> None:
    counts = sum(plain.values()), sum(missed.values())
    text = window_of(folded_line(elias_gamma(plain), counts[0], elias_gamma(missed), counts[1]))
    windows = Windows.of([Window.model_validate_json(text)])
    merged = merge(windows)
    assert dict(zip(merged.bins.tolist(), merged.counts.tolist(), strict=True)) == plain
    assert dict(zip(merged.missed_bins.tolist(), merged.missed_counts.tolist(), strict=True)) == missed
    assert (merged.count, merged.missed) == counts


def test_damaged_folded_lines_are_counted(tmp_path: Path) -> None:
    good = elias_gamma({7: 3})
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    spool.begin()
    for bins in ("?", "AAAAAAAAAAAAAAAB", good + good[:1] + "//", good[:-1], "//"):
        spool.line(folded_line(bins, 3))
    spool.line(folded_line(good, 3) | {"count": "x"})
    spool.line({"type": "folded", "series": 0})
    spool.line(folded_line(good, 3))
    spool.clock.pass_ns(900 * SECOND)
    spool.end("stopped")
    with play(spool.folder) as folder:
        assert folder.counts["damaged"] == 7
        assert [f.count for s in (*folder.stretches, *folder.minutes) for f in s.figures] == [3]


def test_a_session_whose_beginning_the_log_lost_is_played(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "control")
    spool.begin()
    spool.windows(np.full(100, 20_000), 900 * SECOND)
    spool.end("stopped")
    (spool.folder / "log.ndjson").unlink()
    spool.event("recorder stopped")
    with play(spool.folder) as folder:
        assert sum(f.count for s in (*folder.stretches, *folder.minutes) for f in s.figures) == 100


def test_each_boot_is_a_step(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "control")
    for boot in ("b", "c"):
        spool.clock.now = START
        spool.event("recorder started", boot=boot)
        spool.begin(boot)
        spool.windows(np.full(100, 20_000), 900 * SECOND)
    with play(spool.folder) as folder:
        record = Record.open(make_record(folder, tmp_path / "runs", ["rtgauge"]))
        assert len(record.steps) == 2


@pytest.mark.parametrize("text", ["", "[]", '{"version":"x"}', "\0"])
def test_a_folder_that_is_no_spool_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "spool.json").write_text(text)
    with pytest.raises(InputError, match=r"spool\.json"), play(tmp_path):
        pass


def test_hostile_lines_are_counted(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    spool.begin()
    spool.windows(np.full(100, 20_000), 900 * SECOND)
    for line in (
        b"[]",
        b"1",
        b'{"type":"clocks"}',
        b'{"type":"formats","number":[]}',
        b'{"type":1}',
        b"\xff",
    ):
        spool.line(line)
    (spool.folder / "moments/00000001.1.1.5").write_text("{}\n{}\n")
    with (spool.folder / "log.ndjson").open("a") as log:
        log.write('{"what":"x"}\n[]\n')
    with play(spool.folder) as folder:
        assert folder.counts["damaged"] == 6 + 1 + 2


def two_sessions(tmp_path: Path) -> Writer:
    """A spool of two sessions, each with a window of 100 activations and a moment."""
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    for _ in range(2):
        spool.begin()
        spool.windows(np.full(100, 20_000), 900 * SECOND)
        spool.moment(2_000_000)
        spool.end("program-ended")
    return spool


def test_a_refused_session_costs_no_other_session(tmp_path: Path) -> None:
    spool = two_sessions(tmp_path)
    first = spool.folder / "sessions/00000001.ndjson"
    lines = first.read_text().splitlines(keepends=True)
    assert '"hello"' in lines[1]
    first.write_text("".join(lines[:1] + lines[2:]))
    with play(spool.folder) as folder:
        assert sum(f.count for s in (*folder.stretches, *folder.minutes) for f in s.figures) == 100
        assert len(folder.keeping.moments) == 1
        assert folder.counts["damaged"] == 2, "a window and a moment"
        assert (folder.counts["watched_ns"], folder.counts["unseen_ns"]) == (898 * SECOND, 902 * SECOND)
        make_record(folder, tmp_path / "runs", ["rtgauge"])


def test_a_hello_without_a_process_id_costs_no_other_session(tmp_path: Path) -> None:
    spool = two_sessions(tmp_path)
    settings = SETTINGS | {"program": "--unit control.service"}
    (spool.folder / "spool.json").write_text(json.dumps(settings))
    first = spool.folder / "sessions/00000001.ndjson"
    first.write_text(first.read_text().replace('"pid":7,', ""))
    with play(spool.folder) as folder:
        assert len(folder.keeping.moments) == 1
        assert folder.counts["damaged"] == 3, "a hello, a window and a moment"
        record = Record.open(make_record(folder, tmp_path / "runs", ["rtgauge"]))
    assert [len(step.outliers) for step in record.steps] == [1]


@pytest.mark.parametrize("text", [b"", b"{}", b'{"type":"trace_formats"}', b"\xff", b"[" * 100_000])
def test_damaged_formats_cost_the_explanations_only(tmp_path: Path, text: bytes) -> None:
    spool = two_sessions(tmp_path)
    (spool.folder / "formats/00000001.ndjson").write_bytes(text)
    with play(spool.folder) as folder:
        assert folder.counts["damaged"] == 1 + 2, "the formats, and a line of each session that names them"
        assert f"{folder.counts['damaged']} x damaged entry" in " ".join(lines(folder))
        record = Record.open(make_record(folder, tmp_path / "runs", ["rtgauge"]))
    (step,) = record.steps
    assert step.total is not None and sum(series.count for series in step.series) == 200
    (mark,) = [mark for mark in step.marks if mark.kind is MarkKind.NOT_EXPLAINED]
    assert not missing(mark.detail, "2 kept moments", "formats")


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 100 + "]" * 100, "1" * 5_000, "nan"])
def test_a_moment_nested_or_large_beyond_the_limit_is_counted(tmp_path: Path, value: str) -> None:
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    spool.begin()
    spool.windows(np.full(100, 20_000), 900 * SECOND)
    spool.moment(2_000_000)
    (place,) = (spool.folder / "moments").iterdir()
    head, _, line = place.read_text().partition("\n")
    place.write_text(f'{head}\n{line.rstrip()[:-1]},"x":{value}}}\n')
    with play(spool.folder) as folder:
        assert folder.counts["damaged"] == 1
        assert not folder.keeping.moments


def test_moments_whose_session_or_series_is_gone_are_counted(tmp_path: Path) -> None:
    spool = two_sessions(tmp_path)
    (spool.folder / "sessions/00000001.ndjson").unlink()
    second = spool.folder / "sessions/00000002.ndjson"
    lines = second.read_text().splitlines(keepends=True)
    second.write_text("".join(line for line in lines if '"series","series":0' not in line))
    with play(spool.folder) as folder:
        assert (folder.counts["damaged"], folder.counts["moments_not_written"]) == (1, 1)


@pytest.mark.parametrize("name", ["", ".."])
def test_a_spool_without_a_name_of_its_own_is_played(tmp_path: Path, name: str) -> None:
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    with played(Spool.read(read, str(spool.folder)), name) as folder:
        assert folder.path.name == "spool"


def test_a_spool_does_not_choose_how_much_room_its_import_takes(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    (spool.folder / "spool.json").write_text(json.dumps(SETTINGS | {"keep_bytes": 1 << 62}))
    with play(spool.folder) as folder:
        settings = Settings.model_validate_json((folder.path / "recorder.json").read_text())
        assert settings.keep_bytes == ROOM << 30


def test_a_spool_that_is_too_large_for_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Writer(tmp_path / "control")
    spool.begin()
    for _ in range(100):
        spool.moment(2_000_000)
    files = [path for path in spool.folder.rglob("*") if path.is_file() and path.parent != spool.folder]
    total = sum(len(path.read_text().strip()) for path in files)
    monkeypatch.setattr(spool_module, "MOST_BYTES", total)
    assert Spool.read(read, str(spool.folder)).read_bytes == total
    monkeypatch.setattr(spool_module, "MOST_BYTES", total - 1)
    with pytest.raises(InputError, match="smaller --keep"):
        Spool.read(read, str(spool.folder))
