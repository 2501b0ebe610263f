# SPDX-License-Identifier: MIT
"""A board with nothing but BusyBox: its service is the engine alone, and the host makes the record."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import good, rtgauge, wait_until
from tests.support.machine import Machine
from tests.support.messages import missing

from ext.recorder.tests.driven import SECOND, DrivenClock, begin, folder_of, moment, recording_of
from ext.recorder.tests.recorded_loop import built_loop, loop
from rtgauge.record.reader import Record
from rtgauge_ext.recorder.tracing import INSTANCES, PREFIX

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [
    pytest.mark.root,
    pytest.mark.tracefs,
    pytest.mark.real_time,
    pytest.mark.alone,  # other measurements would get a mark
]
NAME = "alone-loop"
FOLDER = "/var/lib/rtgauge/recorder/flight"
UNIT = "rtgauge-recorder-flight.service"
UNITS = 'mkdir -p "$1/root/etc/systemd/system" "$1/root/var/lib/rtgauge/recorder"'


@contextmanager
def service(board: Machine) -> Generator[subprocess.Popen[bytes]]:
    """What systemd would start."""
    root = board.folder / "root"
    (line,) = re.findall(r"^ExecStart=(.*)$", (root / f"etc/systemd/system/{UNIT}").read_text(), re.MULTILINE)
    words = [
        re.sub(r"\\(.)", r"\1", word).replace("%%", "%").replace("$$", "$")
        for word in re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    ]
    with subprocess.Popen([*board.inside, "chroot", str(root), *words]) as process:
        try:
            yield process
        finally:
            process.kill()


def left(board: Machine) -> list[str]:
    root = board.folder / "root"
    return [
        str(path)
        for part in ("etc", "usr", "var/lib")
        for path in (root / part).rglob("*")
        if not path.is_dir() or path.is_symlink() or path.name == "flight"
    ]


def test_an_engine_records_alone_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Machine(tmp_path, script=UNITS) as board, loop(built_loop(tmp_path / NAME), tmp_path):
        monkeypatch.setenv("PATH", f"{board.client()}:/usr/bin:/bin:/usr/sbin:/sbin")
        there = ("--target", board.target)
        options = ("--program", NAME, "--require", "period=5ms", "--keep", "8MiB")
        install = ("recorder", "install", "flight", *there, "--", *options)
        assert "at the next boot" in good(rtgauge(*install)).stdout
        again = rtgauge(*install)
        assert again.returncode == 2 and "already exists" in again.stderr

        folder = board.folder / "root" / FOLDER[1:]

        def moments() -> int:
            return len(list((folder / "moments").glob("[0-9]*"))) if folder.exists() else 0

        with service(board) as first:
            wait_until(lambda: moments() > 0, "the first moment")
            first.send_signal(signal.SIGKILL)
            first.wait()
        before = moments()
        with service(board) as second:
            wait_until(lambda: moments() > before, "a moment after the kill")
            assert good(rtgauge("recorder", "status", "flight", *there)).stdout.startswith("A recorder runs")
            second.send_signal(signal.SIGTERM)
            assert second.wait() == 0
        assert not [p for f in INSTANCES for p in f.glob(f"{PREFIX}{second.pid}-*")]

        status = good(rtgauge("recorder", "status", "flight", *there)).stdout
        assert status.startswith("No recorder runs")
        assert not missing(status, "--program alone-loop", "figures until")
        assert "not explained yet" not in status and "2 x kill" not in status
        imported = rtgauge("recorder", "import", FOLDER, *there, "--out", tmp_path / "runs")
        assert imported.returncode in {0, 1, 4}, imported.stderr
        (path,) = (tmp_path / "runs").iterdir()
        (step,) = Record.open(path).steps
        assert step.total is not None and step.total.count > 0
        assert step.explain is not None and 0 < step.explain.moments <= moments()

        removed = good(rtgauge("recorder", "uninstall", "flight", "--folder", *there)).stdout
        assert removed.count("removed ") == 4
        assert left(board) == []


def test_the_status_of_a_recorder_with_python_comes_from_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Machine(tmp_path, script=UNITS) as board:
        monkeypatch.setenv("PATH", f"{board.client()}:/usr/bin:/bin:/usr/sbin:/sbin")
        path, clock = board.folder / "root/var/lib/rtgauge/recorder/control", DrivenClock()
        folder = folder_of(path)
        taker = begin(recording_of(folder, clock), clock)
        clock.pass_ns(SECOND)
        taker.take(moment(clock, "irq 31", 99_000, 2 << 20))  # more than the engine reads of a file
        status = good(rtgauge("recorder", "status", "control", "--target", board.target)).stdout
        assert status == good(rtgauge("recorder", "status", path)).stdout
        assert status.startswith("A recorder runs for --program control") and "irq 31" in status
        folder.close()
        wrong = rtgauge("recorder", "status", "contrl", "--target", board.target)
        assert wrong.returncode == 2 and "there are: control" in wrong.stderr
