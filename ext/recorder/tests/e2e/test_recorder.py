# SPDX-License-Identifier: MIT
"""A recorder on a real program, through restarts of both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import COMMAND, environment, good, rtgauge, wait_until

from ext.recorder.tests.recorded_loop import built_loop, loop
from rtgauge.record.reader import Record
from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.tracing import INSTANCES, PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.root,
    pytest.mark.tracefs,
    pytest.mark.real_time,
    pytest.mark.alone,  # other measurements would get a mark
]
NAME = "recorded-loop"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_loop(tmp_path_factory.mktemp("loops") / NAME)


@contextmanager
def recorder(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*COMMAND, "recorder", "run", "--program", NAME, "--folder", str(folder), *words]
    with subprocess.Popen(command, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def moments(folder: Path) -> int:
    return len(list((folder / "moments").glob("[0-9]*"))) if folder.exists() else 0


def events(folder: Path) -> list[str]:
    return [event.what for event in RecorderFolder.open(folder).events]


def instances(*recorders: subprocess.Popen[bytes]) -> list[str]:
    return [
        path.name
        for folder in INSTANCES
        for process in recorders
        for path in folder.glob(f"{PREFIX}{process.pid}-*")
    ]


def test_a_program_is_recorded_through_restarts_and_kills(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    require = ("--require", "period=5ms latency<=1us")  # every cycle is late
    reported = tmp_path / "said"
    alarm = Path("/usr/local/sbin") / f"rtgauge-test-alarm-{os.getpid()}"
    alarm.parent.mkdir(parents=True, exist_ok=True)
    alarm.write_text(f'#!/bin/sh\necho "$1" >> {reported}\n')
    alarm.chmod(0o755)
    try:
        with recorder(folder, *require, "--on-trigger", str(alarm), "--trigger-every", "1ms") as first:
            with loop(program, tmp_path):
                wait_until(lambda: moments(folder) > 0, "the first moment")
            wait_until(lambda: "trigger ended" in events(folder), "the program's end to be noticed")
            before = moments(folder)
            with loop(program, tmp_path):
                wait_until(lambda: moments(folder) > before, "a moment of the restarted program")
                first.send_signal(signal.SIGKILL)
                first.wait()
                before = moments(folder)
                with recorder(folder, *require) as second:
                    wait_until(lambda: moments(folder) > before, "a moment after the kill")
                    second.send_signal(signal.SIGTERM)
                    assert second.wait() == 0
    finally:
        alarm.unlink()
    assert {"late", "ended"} <= set(reported.read_text().split())
    assert instances(first, second) == []
    shown = json.loads(good(rtgauge("show", folder, "--json")).stdout)
    counts = shown["counts"]
    assert counts["program_ends"] == 1 and counts["kills"] == 1
    assert counts["watched_ns"] > 0 and counts["cpu_ns"] > 0
    assert [event["what"] for event in shown["events"]].count("recorder started") == 2
    assert any(moment["culprit"] for moment in shown["moments"])
    imported = rtgauge("recorder", "import", folder, "--out", tmp_path / "runs")
    assert imported.returncode in {0, 1, 4}, imported.stderr
    (path,) = (tmp_path / "runs").iterdir()
    (step,) = Record.open(path).steps
    assert step.total is not None and step.total.count > 0
    assert step.explain is not None and step.explain.moments == moments(folder)
    why = good(rtgauge("show", path, "--why")).stdout
    assert "us on CPU" in why


def test_a_trigger_can_freeze_the_folder(program: Path, tmp_path: Path) -> None:
    with (
        loop(program, tmp_path),
        recorder(
            tmp_path / "folder", "--require", "period=5ms latency<=1us", "--on-trigger", "freeze"
        ) as process,
    ):
        assert process.wait(300) == 0
    assert events(tmp_path / "folder")[-1] == "recorder stopped"
    assert moments(tmp_path / "folder") > 0
    again = rtgauge("recorder", "run", "--program", NAME, "--folder", tmp_path / "folder")
    assert again.returncode == 2 and "is frozen (trigger late: " in again.stderr


def test_the_time_of_for_does_not_begin_again(tmp_path: Path) -> None:
    words = ["recorder", "run", "--program", "nobody", "--folder", tmp_path / "folder", "--for", "2s"]
    assert "stopped" in good(rtgauge(*words)).stderr
    assert "the time of --for is over" in good(rtgauge(*words)).stdout
    assert events(tmp_path / "folder").count("recorder started") == 1


def test_a_thread_that_hangs_is_silent(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with (
        loop(program, tmp_path) as process,
        recorder(folder, "--require", "period=5ms latency<=1s", "--silent", "50"),
    ):
        wait_until(lambda: moments(folder) > 0, "the first moment")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "trigger silent" in events(folder), "the silence to be noticed")
        process.send_signal(signal.SIGCONT)


def triggers(folder: Path) -> dict[str, bool]:
    """The triggers whose events are kept, and whether there are events."""
    opened = RecorderFolder.open(folder)
    actual: dict[str, bool] = {}
    for number in sorted(opened.keeping.moments):
        head, line = opened.moment(number)
        document = json.loads(line)
        if document["kind"] == "triggered":
            actual |= dict.fromkeys(head.triggers, any(document["pages"].values()))
    return actual


def test_each_trigger_keeps_its_events(program: Path, tmp_path: Path) -> None:
    folder, number, path = tmp_path / "folder", tmp_path / "errors", tmp_path / "trigger"
    number.write_text("1")
    copies = Path("/sys/kernel/tracing/options/copy_trace_marker").exists()
    marker = ("--trigger-marker", "rtgauge-test") if copies else ()
    words = ("--require", "period=5ms latency<=1s", "--socket", str(path), "--trigger-file", f"{number}+1")
    with loop(program, tmp_path) as process, recorder(folder, *words, *marker):
        wait_until(lambda: moments(folder) > 0, "the first moment")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(str(path))
            sender.send(b"torque limit 7")
        Path("/sys/kernel/tracing/trace_marker").write_text("rtgauge-test 12")
        number.write_text("2")
        expected = {"message", "file", "marker"} if copies else {"message", "file"}
        wait_until(lambda: expected <= set(triggers(folder)), "the events of the triggers")
        process.kill()
        wait_until(lambda: "ended" in triggers(folder), "the events before the end")
    assert triggers(folder)["ended"], "the engine sees the end by itself, however late the recorder is"


ATTACK = """
import glob, os, signal, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
folder, trigger, recorder, *engines = sys.argv[1:]
got = []
def tries(name, what):
    try:
        what()
    except OSError:
        return
    got.append(name)
for path in [folder, f"{folder}/moments", *glob.glob("/sys/kernel/tracing/instances/rtgauge-recorder-*")]:
    tries(f"list {path}", lambda: os.listdir(path))
for name in ("recorder.json", "hours.log", "frozen"):
    tries(f"read {name}", lambda: open(f"{folder}/{name}").close())
    tries(f"write {name}", lambda: open(f"{folder}/{name}", "w").close())
tries("replace the folder", lambda: os.rename(folder, folder + ".old"))
tries("replace the socket", lambda: os.unlink(trigger))
tries("make a file next to the socket", lambda: open(trigger + ".x", "w").close())
tries("write trace_marker", lambda: open("/sys/kernel/tracing/trace_marker", "w").close())
for pid in (recorder, *engines):
    tries(f"kill {pid}", lambda: os.kill(int(pid), signal.SIGTERM))
    tries(f"memory {pid}", lambda: open(f"/proc/{pid}/mem").close())
    tries(f"stack {pid}", lambda: open(f"/proc/{pid}/stack").read())
    tries(f"descriptors {pid}", lambda: os.listdir(f"/proc/{pid}/fd"))
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
tries("fill the queue of the socket", lambda: sender.connect(trigger))
print(got)
"""
"""Everything that another user may try; it prints what worked."""


def test_another_user_cannot_read_fill_or_trigger_a_recorder(program: Path) -> None:
    place = Path("/run") / f"rtgauge-test-{os.getpid()}"
    place.mkdir(mode=0o755)
    folder, trigger = place / "folder", place / "trigger"
    words = ("--require", "period=5ms latency<=10s", "--socket", str(trigger))
    try:
        with loop(program, place), recorder(folder, *words) as process:
            wait_until(lambda: moments(folder) > 0, "the first moment")
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            attack = [sys.executable, "-c", ATTACK, folder, trigger, str(process.pid), *children]
            done = subprocess.run(attack, capture_output=True, text=True, check=False, timeout=300)
            assert (done.stdout, done.stderr) == ("[]\n", "")
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        opened = RecorderFolder.open(folder)
        assert opened.counts["trigger_message"] == 0
        assert "trigger message" not in events(folder)
        assert opened.bytes < 2 << 20
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(place)
