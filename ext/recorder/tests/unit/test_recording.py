# SPDX-License-Identifier: MIT
"""A recorder's folder while time passes, by a clock that the tests drive."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ext.recorder.tests.driven import (
    METRICS,
    MIB,
    SECOND,
    START,
    DrivenClock,
    Names,
    begin,
    figures_of,
    folder_of,
    moment,
    recording_of,
    window,
)
from rtgauge.errors import InputError
from rtgauge.record.own_folder import OwnFolder
from rtgauge_ext.recorder import append_log
from rtgauge_ext.recorder.clocks import Times
from rtgauge_ext.recorder.folder import AGE, BLOCK, RecorderFolder
from rtgauge_ext.recorder.recorder import STARTED, age_ns
from rtgauge_ext.recorder.recorder_report import lines
from rtgauge_ext.recorder.triggers import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unsynced")


def disk_bytes(path: Path) -> int:
    return sum(-(-file.stat().st_size // BLOCK) * BLOCK for file in path.rglob("*") if file.is_file())


def thirty_days(folder: RecorderFolder, clock: DrivenClock) -> Iterator[dict[str, Any]]:
    """Let a loop of 1 kHz run for 30 days. Every 10 minutes, one of eight causes makes it late; for a day,
    a storm of one more does so every 30 s.
    """
    rng = np.random.default_rng(7)
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    step_ns, steps = 600 * SECOND, 30 * 144
    drawn = [figures_of((20_000 + rng.gamma(2.0, 4_000, 600_000)).astype(np.int64)) for _ in range(12)]
    for step in range(steps):
        clock.pass_ns(step_ns)
        figures = drawn[step % len(drawn)]
        for series in range(len(METRICS)):
            taker.take(window(clock, step_ns, figures, series))
        culprit = f"cause {step % 8}"
        taker.take(moment(clock, culprit, 300_000 + step, size=12_000))
        storm = 20 if 1440 <= step < 1584 else 0
        for number in range(storm):
            clock.pass_ns(1)
            taker.take(moment(clock, "storm", 1_000_000 + 20 * step + number, size=12_000))
        yield figures
        recording.tick("watched")
    recording.end(taker)


@pytest.mark.slow
def test_thirty_days_at_1_khz_fit_50_mib(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    total = 0
    maximum = 0
    most_bytes = 0
    for step, figures in enumerate(thirty_days(folder, clock)):
        total += figures["count"]
        maximum = max(maximum, figures["max_ns"])
        if step % 100 == 0:
            most_bytes = max(most_bytes, disk_bytes(tmp_path))
    folder.close()
    assert most_bytes <= 50 * MIB
    again = RecorderFolder.open(tmp_path / "folder")
    worst = {}
    for kept in again.keeping.moments.values():
        worst[kept.culprit] = max(worst.get(kept.culprit, 0), kept.latency_ns)
    assert worst == {f"cause {n}": 300_000 + 30 * 144 - 8 + n for n in range(8)} | {
        "storm": 1_000_000 + 20 * 1583 + 19
    }
    latency = [
        each
        for stretch in (*again.stretches, *again.minutes)
        for each in stretch.figures
        if each.metric == "latency"
    ]
    assert sum(each.count for each in latency) == total == 30 * 86_400 * 1000
    assert max(each.max_ns or 0 for each in latency) == maximum
    counts = again.counts
    assert counts["moments"] == 30 * 144 + 144 * 20
    assert counts["moments_removed"] == counts["moments"] - len(again.keeping.moments)
    assert counts["watched_ns"] == clock.now.monotonic_ns - START.monotonic_ns


def test_a_small_folder_folds_its_hours_and_counts_on(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder", keep=2 * MIB)
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    rng = np.random.default_rng(3)
    total = 0
    for _ in range(24 * 60):
        clock.pass_ns(1800 * SECOND)
        values = (rng.lognormal(10.5, 1.2, 2_000)).astype(np.int64)
        total += len(values)
        taker.take(window(clock, 1800 * SECOND, figures_of(values)))
        recording.tick("watched")
        assert folder.bytes <= 2 * MIB
    recording.end(taker)
    stretches = [*folder.stretches, *folder.minutes]
    assert sum(each.count for stretch in stretches for each in stretch.figures) == total
    lengths = [stretch.end_ns - stretch.start_ns for stretch in folder.stretches]
    assert max(lengths) > 3600 * SECOND, "old hours became days"
    assert min(lengths) <= 3600 * SECOND, "young hours stay"


def test_the_age_of_a_folder_survives_kills_boots_suspends(tmp_path: Path) -> None:
    """`--for` means this age."""
    clock = DrivenClock()
    for boot in ("b", "c", "d"):
        folder = folder_of(tmp_path / "folder")
        recording = recording_of(folder, clock)
        recording.counts["between_ns"] += age_ns(folder, clock()) - sum(folder.counts[name] for name in AGE)
        recording.event(STARTED, "")
        taker = begin(recording, clock, boot)
        for state in ("watched", "absent", "unseen"):
            clock.pass_ns(3600 * SECOND)
            taker.take(window(clock, 3600 * SECOND, figures_of(np.full(9, 5_000))))
            recording.tick(state)
        clock.pass_ns(SECOND, asleep_ns=1800 * SECOND)
        recording.tick("watched")
        recording.flush()
        folder.close()  # a kill: nothing says that it stopped
        clock.now = Times(10 * SECOND, 10 * SECOND, clock.now.wall_ns + 7200 * SECOND)  # a boot
    age = age_ns(RecorderFolder.open(tmp_path / "folder"), clock())
    assert age == 3 * (3 * 3600 + 1 + 1800 + 7200) * SECOND
    clock.pass_ns(0, set_ns=-100_000 * SECOND)
    assert age_ns(RecorderFolder.open(tmp_path / "folder"), clock()) == age - 7200 * SECOND


def test_a_frozen_folder_is_not_written_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder")
    folder.freeze("trigger late: control: latency 3 ms\x1b[2J")
    folder.close()
    with pytest.raises(InputError, match=r"is frozen \(trigger late: control: latency 3 ms\\u001b.*remove"):
        folder_of(tmp_path / "folder")
    shown = RecorderFolder.open(tmp_path / "folder")
    assert any(line.startswith("frozen: trigger late") for line in lines(shown))
    (tmp_path / "folder/frozen").unlink()
    folder_of(tmp_path / "folder").close()


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """The folder is copied after each write; each copy has all of the minutes until then."""
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    for minute in range(1, 150):
        clock.pass_ns(61 * SECOND)
        taker.take(window(clock, 61 * SECOND, figures_of(np.full(minute, 5_000))))
        if minute % 10 == 0:
            taker.take(moment(clock, "a", 10_000 + minute))
        recording.tick("watched")
        killed = RecorderFolder.open(tmp_path / "folder")
        stretches = [*killed.stretches, *killed.minutes]
        observed = sum(each.count for stretch in stretches for each in stretch.figures)
        assert observed == minute * (minute + 1) // 2
        assert len(killed.keeping.moments) == minute // 10
        assert killed.damaged == 0
    assert folder.stretches and folder.minutes, "there were folded hours, and minutes of the present one"


def test_a_kill_between_folding_and_clearing_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    monkeypatch.setattr(append_log.AppendLog, "clear", lambda self: None)
    for _ in range(59):
        clock.pass_ns(61 * SECOND)
        taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
        recording.tick("watched")
    folder.fold_hour()
    folder.close()
    monkeypatch.undo()
    again = RecorderFolder.create(tmp_path / "folder", folder.settings)
    stretches = [*again.stretches, *again.minutes]
    assert sum(each.count for stretch in stretches for each in stretch.figures) == 590


def test_a_full_disk_is_counted_and_its_minutes_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    clock.pass_ns(61 * SECOND)
    taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
    recording.tick("watched")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        patched.setattr(RecorderFolder, "_write", full)
        for _ in range(5):
            clock.pass_ns(61 * SECOND)
            taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
            taker.take(moment(clock, "a", 10_000))
            recording.tick("watched")
    clock.pass_ns(61 * SECOND)
    recording.tick("watched")
    clock.pass_ns(61 * SECOND)
    recording.tick("watched")
    folder.close()
    again = RecorderFolder.open(tmp_path / "folder")
    stretches = [*again.stretches, *again.minutes]
    assert sum(each.count for stretch in stretches for each in stretch.figures) == 60
    assert again.counts["full_disk"] == 5
    assert again.counts["moments_not_written"] == 5
    assert again.counts["watched_ns"] == 8 * 61 * SECOND


def test_suspends_and_settings_of_the_clock_are_counted(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    begin(recording, clock)
    clock.pass_ns(10 * SECOND, asleep_ns=3600 * SECOND)
    recording.tick("watched")
    clock.pass_ns(10 * SECOND, set_ns=-2 * SECOND)
    recording.tick("watched")
    clock.pass_ns(50 * SECOND, set_ns=SECOND // 50)  # NTP slews the clock
    recording.tick("absent")
    assert folder.counts["suspended_ns"] == 3600 * SECOND
    assert folder.counts["suspends"] == 1
    assert folder.counts["clock_sets"] == 1
    assert folder.counts["watched_ns"] == 20 * SECOND
    assert folder.counts["absent_ns"] == 50 * SECOND
    assert [event.what for event in folder.events] == ["suspended", "clock set"]
    assert "back by 2" in folder.events[1].detail


def test_a_latency_beyond_its_own_bound_pulls_the_trigger_once(tmp_path: Path) -> None:
    clock = DrivenClock()
    triggers: list[Trigger] = []
    recording = recording_of(
        folder_of(tmp_path / "folder"), clock, bounds={"latency": 100_000}, on_trigger=triggers.append
    )
    taker = begin(recording, clock)
    taker.take(moment(clock, "irq 31", 99_000))
    clock.pass_ns(1)
    late = moment(clock, "irq 31", 150_000)
    taker.take(late)
    begin(recording, clock).take(late)  # the next engine saw it too
    assert [trigger.name for trigger in triggers] == ["late"]
    assert triggers[0].detail == "control: latency 150 us, more than 100 us; irq 31"


def test_what_the_budget_does_not_allow_to_name_is_named_later(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    names = Names()
    names.allowed = False
    recording._namer = names  # type: ignore[assignment]
    taker = begin(recording, clock)
    for number in range(3):
        clock.pass_ns(1)
        taker.take(moment(clock, f"cause {number}", 10_000 + number))
    assert {kept.culprit for kept in folder.keeping.moments.values()} == {""}
    names.allowed = True
    clock.pass_ns(SECOND)
    recording.tick("watched")
    assert {kept.culprit for kept in folder.keeping.moments.values()} == {"cause 0", "cause 1", "cause 2"}


def test_a_reader_sees_the_rest_while_the_recorder_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    taker = begin(recording_of(folder, clock), clock)
    for number in range(3):
        clock.pass_ns(1)
        taker.take(moment(clock, f"cause {number}", 10_000 + number))
    half = tmp_path / "folder/moments/.0123456789abcdef0123456789abcdef.tmp"
    half.write_bytes(b"half")
    read = OwnFolder.read_own

    def removed_meanwhile(self: OwnFolder, name: str, most_bytes: int) -> bytes:
        if name.endswith("00000002"):
            raise FileNotFoundError(name)
        return read(self, name, most_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(OwnFolder, "read_own", removed_meanwhile)
        reader = RecorderFolder.open(tmp_path / "folder")
    assert sorted(reader.keeping.moments) == [1, 3]
    assert half.exists() and reader.damaged == 0
    folder.close()
    RecorderFolder.create(tmp_path / "folder", folder.settings).close()
    assert not half.exists(), "a killed recorder left it"


def test_two_recorders_cannot_use_one_folder(tmp_path: Path) -> None:
    from rtgauge.errors import InputError

    folder = folder_of(tmp_path / "folder")
    with pytest.raises(InputError, match="another recorder uses"):
        folder_of(tmp_path / "folder")
    folder.close()
    folder_of(tmp_path / "folder").close()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    from rtgauge.errors import InputError

    (tmp_path / "mine").write_text("important")
    with pytest.raises(InputError, match="has other files"):
        folder_of(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_nobody_else_can_read_the_folder(tmp_path: Path) -> None:
    folder_of(tmp_path / "folder").close()
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
