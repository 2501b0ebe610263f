# SPDX-License-Identifier: MIT
"""The record of a recorder's folder."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ext.recorder.tests.driven import (
    SECOND,
    DrivenClock,
    begin,
    figures_of,
    folder_of,
    moment,
    recording_of,
    window,
)
from rtgauge.cli.command_end import judged
from rtgauge.cli.extension_resumer import resumer_of
from rtgauge.errors import InputError, RecordError
from rtgauge.record.merged_windows import merge
from rtgauge.record.reader import Record
from rtgauge.units import format_time
from rtgauge.verdict.next_step import PastRun
from rtgauge_ext.recorder.append_log import entries, framed
from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.program import ProgramChoice
from rtgauge_ext.recorder.record import make_record
from rtgauge_ext.recorder.recorder_command import what_runs
from rtgauge_ext.recorder.recorder_report import hours_table, late_activations, latest_table, lines

if TYPE_CHECKING:
    from pathlib import Path


def recorded(path: Path, hours: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Let a loop run for some hours, with a boot in the middle; return its latencies."""
    clock = DrivenClock()
    rng = np.random.default_rng(5)
    folder = folder_of(path)
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    drawn: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for minute in range(60 * hours):
        if minute == 30 * hours:
            recording.end(taker)
            taker = begin(recording, clock, boot="another")
        clock.pass_ns(60 * SECOND)
        drawn.append((20_000 + rng.gamma(2.0, 4_000, 100)).astype(np.int64))
        taker.take(window(clock, 60 * SECOND, figures_of(drawn[-1])))
        taker.take(window(clock, 60 * SECOND, figures_of(drawn[-1] + 7_000), 1))
        recording.tick("watched")
    recording.end(taker)
    folder.close()
    return np.concatenate(drawn)


def test_the_record_has_every_activation_and_a_step_a_boot(tmp_path: Path) -> None:
    values = recorded(tmp_path / "folder", hours=10)
    path = make_record(RecorderFolder.open(tmp_path / "folder"), tmp_path / "runs", ["rtgauge"])
    record = Record.open(path)
    assert [step.id for step in record.steps] == ["01-watch", "02-watch"]
    assert [step.boot_id for step in record.steps] == ["b", "another"]
    halves = np.split(values, 2)
    for step, half in zip(record.steps, halves, strict=True):
        latency, response = (
            next(s for s in step.series if s.metric == name) for name in ("latency", "response")
        )
        assert (latency.count, latency.min_ns, latency.max_ns) == (len(half), half.min(), half.max())
        assert latency.mean_ns == pytest.approx(half.mean())
        assert latency.std_ns == pytest.approx(half.std(), rel=1e-3)
        assert response.max_ns == half.max() + 7_000
        windows = record.windows(step)
        assert merge(windows, latency.series).count == len(half)
        assert 5 <= (windows.series == latency.series).sum() <= 6, "a window for each hour"
        assert not [mark for mark in step.marks if mark.name == "windows-disagree"]
    record = judged(record, f"latency<={values.max() + 1000}ns hardness=100%")
    assert {verdict.word.value for verdict in record.run.verdicts} <= {"holds", "marginal", "cannot tell"}


def test_a_damaged_source_costs_its_own_boot_only(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    for boot in ("b", "c"):
        taker = begin(recording, clock, boot)
        clock.pass_ns(61 * SECOND)
        taker.take(window(clock, 61 * SECOND, figures_of(np.full(100, 20_000))))
        recording.tick("watched")
        recording.end(taker)
    first, second = dict.fromkeys(each.source for each in (*folder.stretches, *folder.minutes))
    folder.close()
    (tmp_path / "folder/sources" / first).write_bytes(b"\0" * 100)
    reported: list[str] = []
    reader = RecorderFolder.open(tmp_path / "folder")
    assert len(Record.open(make_record(reader, tmp_path / "runs", ["rtgauge"], reported.append)).steps) == 1
    assert len(reported) == 1 and first in reported[0]
    (tmp_path / "folder/sources" / second).write_bytes(b"\0" * 100)
    with pytest.raises(RecordError, match="damaged"):
        make_record(RecorderFolder.open(tmp_path / "folder"), tmp_path / "runs", ["rtgauge"])


def test_damaged_facts_cost_only_the_facts(tmp_path: Path) -> None:
    recorded(tmp_path / "folder", hours=1)
    reader = RecorderFolder.open(tmp_path / "folder")
    name = reader.stretches[0].source
    parts = reader.source(name)._replace(facts=b'{"host": 3}')
    (tmp_path / "folder/sources" / name).write_bytes(b"".join(framed(zlib.compress(part)) for part in parts))
    said: list[str] = []
    record = Record.open(make_record(reader, tmp_path / "runs", ["rtgauge"], said.append))
    assert record.steps[0].series
    assert said == [f"left out the facts of the source {name}, because they are damaged"]


@pytest.mark.parametrize(
    ("change", "damaged"),
    [
        ({"wall_ns": 10**30}, 1),
        ({"end_ns": 10**30}, 1),
        ({"figures": -1}, 1),
        ({"source": "another"}, 0),
    ],
)
def test_a_wrong_number_is_a_damaged_entry(tmp_path: Path, change: dict[str, Any], damaged: int) -> None:
    """A folder may come from another machine."""
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    for _ in range(3):
        clock.pass_ns(61 * SECOND)
        taker.take(window(clock, 61 * SECOND, figures_of(np.full(100, 20_000))))
        recording.tick("watched")
    folder.close()
    log = tmp_path / "folder/minutes.log"
    first, *others = entries(log.read_bytes())
    document = json.loads(zlib.decompress(first))
    if "figures" in change:
        document["figures"][0]["count"] = change["figures"]
    else:
        document |= change
    changed = [zlib.compress(json.dumps(document).encode()), *others]
    log.write_bytes(b"".join(map(framed, changed)))
    reader = RecorderFolder.open(tmp_path / "folder")
    assert reader.damaged == damaged
    assert hours_table(reader).rows
    try:
        make_record(reader, tmp_path / "runs", ["rtgauge"])
    except RecordError:
        assert not damaged, "the other entries have their source"


@pytest.mark.parametrize("damage", ["a folder", "a link"])
def test_what_froze_a_folder_cannot_be_read(tmp_path: Path, damage: str) -> None:
    folder_of(tmp_path / "folder").close()
    frozen = tmp_path / "folder/frozen"
    frozen.mkdir() if damage == "a folder" else frozen.symlink_to("hours.log")
    with pytest.raises(RecordError, match="frozen cannot be read: "):
        lines(RecorderFolder.open(tmp_path / "folder"))


def test_the_next_measurement_watches_the_program(tmp_path: Path) -> None:
    recorded(tmp_path / "folder", hours=1)
    record = Record.open(
        make_record(RecorderFolder.open(tmp_path / "folder"), tmp_path / "runs", ["rtgauge", "recorder"])
    )
    command = PastRun.of_run(record.run, record.steps, record.steps[0]).command
    assert command == ("rtgauge", "watch", "--program", "control")


def test_a_folder_is_shown_with_its_answer_first(tmp_path: Path) -> None:
    values = recorded(tmp_path / "folder", hours=1)
    shown = lines(RecorderFolder.open(tmp_path / "folder"))
    assert shown[0].startswith(f"Worst latency {format_time(int(values.max()))} of ")
    assert f"of {len(values):,} activations" in shown[0]


@pytest.mark.parametrize(("bound_us", "word"), [(20, "FAILS"), (500, "HOLDS")])
def test_the_first_line_judges_the_requirement_as_the_record_does(
    tmp_path: Path, bound_us: int, word: str
) -> None:
    values = recorded(tmp_path / "folder", hours=2)
    folder = RecorderFolder.open(tmp_path / "folder")
    folder.settings = folder.settings.model_copy(update={"require": f"latency<={bound_us}us hardness=99%"})
    record = Record.open(make_record(folder, tmp_path / "runs", ["rtgauge"]))
    (verdict, *_) = judged(record, folder.settings.require).run.verdicts
    shown = lines(folder)
    assert (values > bound_us * 1000).any() == (word == "FAILS")
    rest = "; releases that it missed count once a session is over" if word == "HOLDS" else ""
    assert shown[0] == f"{word}   control: {verdict.reason.partition(': ')[2]}{rest}"
    assert shown[1].startswith("Worst latency ")


def test_a_damaged_source_leaves_the_rest_of_the_folder_shown(tmp_path: Path) -> None:
    recorded(tmp_path / "folder", hours=1)
    for source in (tmp_path / "folder/sources").iterdir():
        source.write_bytes(b"damaged")
    folder = RecorderFolder.open(tmp_path / "folder")
    folder.settings = folder.settings.model_copy(update={"require": "latency<=1ms"})
    assert lines(folder)[0].startswith("Worst latency ")


def test_late_activations_without_a_moment_count(tmp_path: Path) -> None:
    values = recorded(tmp_path / "folder", hours=3)
    bound_ns = int(np.quantile(values, 0.9))
    folder = RecorderFolder.open(tmp_path / "folder")
    folder.settings = folder.settings.model_copy(update={"require": f"latency<={bound_ns}ns"})
    (late,) = late_activations(folder)
    assert not folder.keeping.moments
    assert (late.task, late.metric, late.bound_ns, late.activations) == (
        "control",
        "latency",
        bound_ns,
        len(values),
    )
    assert late.certain <= int((values > bound_ns).sum()) <= late.possible
    assert late.possible - late.certain < 0.02 * len(values)
    assert f"late: {late.words}" in lines(folder)


def test_a_recorder_without_its_program_says_so(tmp_path: Path) -> None:
    name = f"none{tmp_path.name[-9:]}"
    assert what_runs(ProgramChoice(name=name)) == f"nothing yet, because no program fits --program {name},"
    assert what_runs(ProgramChoice(pid=os.getpid())) == f"process {os.getpid()}"
    with pytest.raises(InputError, match="no process has the ID"):
        what_runs(ProgramChoice(pid=2**22))


def test_the_folder_can_be_imported_while_it_is_written(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    with pytest.raises(InputError, match="no figures yet"):
        make_record(RecorderFolder.open(tmp_path / "folder"), tmp_path / "runs", ["rtgauge"])
    clock.pass_ns(61 * SECOND)
    taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
    recording.tick("watched")
    path = make_record(RecorderFolder.open(tmp_path / "folder"), tmp_path / "runs", ["rtgauge"])
    assert Record.open(path).steps[0].total.count == 10  # type: ignore[union-attr]
    clock.pass_ns(61 * SECOND)
    taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
    recording.tick("watched")
    assert sum(each.count for stretch in folder.minutes for each in stretch.figures) == 20


@pytest.mark.parametrize("as_json", [False, True])
def test_show_lists_the_contents_of_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    recorded(tmp_path / "folder", hours=2)
    resumer = resumer_of(tmp_path / "folder")
    assert resumer is not None and resumer.show is not None
    resumer.show(tmp_path / "folder", as_json)
    reported = capsys.readouterr().out
    assert ('"watched_ns": 7200000000000' if as_json else "watched for 2 h") in reported
    if not as_json:
        assert "The last hours" in reported and "The worst of each culprit" not in reported, "it has no rows"


def test_the_last_kept_latencies_begin_with_the_newest(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    for culprit, latency_ns in (("irq 31", 99_000), ("task hog", 50_000)):
        clock.pass_ns(SECOND)
        taker.take(moment(clock, culprit, latency_ns))
    rows = latest_table(folder).rows
    assert [row[2] for row in rows] == ["50.0", "99.0"]
    assert rows[0][0] > rows[1][0]


def test_show_escapes_names_of_threads_and_details_of_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    line = {
        "type": "series",
        "series": 0,
        "metric": "latency",
        "unit": "ns",
        "labels": {"task": "a\x1b[31mb\nc"},
    }
    taker.take(json.dumps(line).encode())
    clock.pass_ns(61 * SECOND)
    taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
    recording.tick("watched")
    recording.event("engine failed", "d\x1b[2Je\nf")
    resumer = resumer_of(tmp_path / "folder")
    assert resumer is not None and resumer.show is not None
    resumer.show(tmp_path / "folder", False)
    reported = capsys.readouterr().out
    assert "\x1b" not in reported
    assert "of a\\u001b[31mb\\nc, of 10" in reported and "engine failed: d\\u001b[2Je\\nf" in reported
