# SPDX-License-Identifier: MIT
"""wakeup: the machine is taken away, the reader goes, the engine is stopped or killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.stream import CPUS, PATIENCE_S, POLICY, Live, Stream, wakeup
from tests.engine.test_wakeup import activations, check_windows
from tests.support.hog import hog

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine


@pytest.mark.real_time
@pytest.mark.parametrize("which", ["one CPU", "all CPUs"])
def test_a_thread_that_takes_its_cpu_is_ended(engine: Path, which: str) -> None:
    cpus = CPUS[-1:] if which == "one CPU" else CPUS
    words = [
        "wakeup",
        "--policy=fifo",
        "--interval-ns=1000",
        "--warm-up-ns=0",
        f"--cpu={','.join(map(str, cpus))}",
    ]
    with Live(engine, *words) as live:
        live.read_until("armed")
        live.send("go\n")
        if which == "one CPU" and len(CPUS) > 1:
            live.read_until("started")
            for _ in range(5):  # the other CPUs are still there
                subprocess.run(["true"], check=True, timeout=PATIENCE_S)
        stream = live.finish()
    assert (stream.reason, stream.status) == ("watchdog", 0)
    mark = next(mark for mark in stream.all("mark") if mark["name"] == "watchdog")
    assert mark["severity"] == "invalid"
    assert "the interval is too short" in mark["detail"]
    for series in range(len(cpus)):
        summary = next(line for line in stream.all("summary") if line["series"] == series)
        assert summary["count"] + summary["missed"] + summary["lost"] > 1000


@pytest.mark.real_time
@pytest.mark.skipif(len(CPUS) < 2, reason="with one CPU nothing runs that could see it")
@pytest.mark.parametrize("end", ["duration", "stopped"])
def test_a_cpu_that_is_held_is_found_and_given_up_at_the_end(engine: Path, end: str) -> None:
    duration = ["--duration-ns=1000000000"] if end == "duration" else []
    cpu = CPUS[-1]
    with Live(engine, "wakeup", "--policy=fifo", "--warm-up-ns=0", *duration) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        with hog(cpu) as pid:
            live.read_until("mark")  # without a stop: found by itself
            if end == "stopped":
                live.send("stop\n")
            stream = live.finish()  # while the CPU is held
    assert stream.reason == end
    (mark,) = [mark for mark in stream.all("mark") if mark["name"] == "cpu-held"]
    assert mark["detail"].startswith("python")
    assert f"(pid {pid}, FIFO 99) kept CPU {cpu} for " in mark["detail"]
    assert not {"watchdog", "cpu-lost"} & set(stream.marks)
    held = CPUS.index(cpu)
    assert mark["series"] == held
    summary = next(line for line in stream.all("summary") if line["series"] == held)
    check_windows(stream, held)
    if end == "duration":
        assert all(activations(stream, series) == 1000 for series in range(len(CPUS)))
    assert summary["missed"] > 0


@pytest.mark.real_time
@pytest.mark.skipif(len(CPUS) < 2, reason="with one CPU nothing runs that could see it")
def test_a_burst_on_a_cpu_that_is_held_names_the_holder(engine: Path) -> None:
    with Live(engine, "noise", "--policy=fifo", "--warm-up-ns=0", f"--cpu={CPUS[-1]}") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        with hog(CPUS[-1]) as pid:
            stream = live.finish()  # while the CPU is held
    error = stream.one("error")
    assert error["code"] == "cpu-busy"
    assert f"(pid {pid}, FIFO 99)" in error["message"]


@pytest.mark.real_time
@pytest.mark.skipif(len(CPUS) < 2, reason="with one CPU nothing runs that could see it")
def test_a_held_cpu_does_not_keep_the_engine_from_a_stop(engine: Path) -> None:
    """The first thread and the watchdog are on the CPU that is held; a measured one is not."""
    with Live(engine, "wakeup", "--policy=fifo", f"--cpu={CPUS[0]}") as live, hog(CPUS[-1]):
        live.read_until("armed")
        live.send("go\n")
        live.read_until("window")
        live.send("stop\n")
        assert live.finish().reason == "stopped"


def test_a_reader_that_goes_ends_the_engine(engine: Path) -> None:
    with Live(engine, "wakeup", f"--policy={POLICY}") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        assert live.process.stdout
        live.process.stdout.close()
        assert live.process.wait(PATIENCE_S) == 3


def _fill(pipe: int) -> None:
    """Empty lines until nothing more fits: the next writer waits."""
    writer = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"\n")
    except BlockingIOError:
        pass
    finally:
        os.close(writer)


@pytest.mark.real_time
@pytest.mark.slow
def test_a_reader_that_rests_costs_samples_at_the_most(engine: Path) -> None:
    """The watchdog tells a drain that waits for its reader from one that starves."""
    with Live(
        engine,
        "wakeup",
        "--policy=fifo",
        "--interval-ns=50000",
        "--warm-up-ns=0",
        "--duration-ns=11000000000",
        f"--cpu={CPUS[-1]}",
    ) as live:
        live.read_until("armed")
        assert live.process.stdout
        fcntl.fcntl(live.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        live.send("go\n")
        live.read_until("started")
        _fill(live.process.stdout.fileno())
        time.sleep(10)
        stream = live.finish(without_empty_lines=True)
    assert "watchdog" not in stream.marks
    assert stream.reason == "duration"
    summary = stream.one("summary")
    assert summary["count"] + summary["missed"] + summary["lost"] == 220_000
    assert summary["lost"] > 0  # the engine did wait: its ring holds 3.3 s
    assert "samples-lost" in stream.marks


def test_a_pause_is_counted_as_missed(engine: Path) -> None:
    with Live(engine, "wakeup", f"--policy={POLICY}", "--duration-ns=1500000000", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        time.sleep(0.2)
        live.signal(signal.SIGSTOP)
        time.sleep(0.6)
        live.signal(signal.SIGCONT)
        stream = live.finish()
    assert stream.reason == "duration"
    for series in range(len(CPUS)):
        assert activations(stream, series) == 1500
        check_windows(stream, series)
        summary = next(line for line in stream.all("summary") if line["series"] == series)
        assert summary["missed"] >= 500
        assert summary["max_ns"] >= 500_000_000


def test_a_killed_engine_leaves_whole_lines(engine: Path, tmp_path: Path) -> None:
    with Live(engine, "wakeup", f"--policy={POLICY}", "--warm-up-ns=0", f"--samples-dir={tmp_path}") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("window")
        live.signal(signal.SIGKILL)
        live.process.wait()
        assert live.process.stdout
        text = (live.text + live.process.stdout.read()).decode()
    assert text.endswith("\n")
    stream = Stream(text)
    assert stream.all("window")
    assert not stream.all("summary")
    assert (tmp_path / "samples-0.i64").read_bytes().startswith(b"rtgauge\x01")


@pytest.mark.parametrize(("closed", "status"), [("<&-", 0), (">&-", 3), ("<&- >&-", 3), ("<&- >&- 2>&-", 3)])
def test_closed_standard_streams_are_no_files_of_others(
    engine: Path, tmp_path: Path, closed: str, status: int
) -> None:
    # One thread and no other file, so that the samples would be the next to take a free number.
    words = [
        "wakeup",
        f"--policy={POLICY}",
        f"--cpu={CPUS[0]}",
        "--dma-latency-us=-1",
        "--count=50",
        "--warm-up-ns=0",
        f"--samples-dir={tmp_path}",
    ]
    if status:
        words.append("--go")
    completed = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', str(engine), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == status
    if status == 0:
        assert Stream(completed.stdout).reason == "stopped"  # a closed input is at its end
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"rtgauge\x01")
        assert path.stat().st_size % 8 == 0


def test_a_full_disk_for_the_stream(engine: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        completed = subprocess.run(
            [engine, "wakeup", "--go", f"--policy={POLICY}"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (completed.returncode, completed.stderr) == (3, b"")


def test_two_at_once_do_not_disturb_each_others_counts(engine: Path) -> None:
    with (
        Live(engine, "wakeup", f"--policy={POLICY}", "--count=500") as first,
        Live(engine, "wakeup", f"--policy={POLICY}", "--count=500") as second,
    ):
        for live in (first, second):
            live.read_until("armed")
            live.send("go\n")
        for live in (first, second):
            stream = live.finish()
            assert stream.reason == "count"
            for series in range(len(CPUS)):
                assert activations(stream, series) == 500


@pytest.mark.real_time
def test_started_as_real_time_it_drains_as_ordinary(engine: Path) -> None:
    with Live(
        engine,
        "wakeup",
        "--policy=fifo",
        preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5)),
    ) as live:
        live.read_until("armed")
        assert os.sched_getscheduler(live.process.pid) == os.SCHED_OTHER
        live.send("stop\n")
        assert live.finish().reason == "stopped"


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", "--interval-ns=100000"),
        ("periodic", "--period-ns=200000"),
        ("response", "--interval-ns=200000"),
    ],
    ids=lambda words: words[0],
)
def test_it_needs_little_memory(engine: Path, words: tuple[str, ...]) -> None:
    """Resident with all memory locked: under 4 MiB on two CPUs, without raw samples."""
    with Live(engine, *words, f"--policy={POLICY}", f"--cpu={','.join(map(str, CPUS[:2]))}") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("window")
        lines = Path(f"/proc/{live.process.pid}/status").read_text(encoding="utf-8").splitlines()
        status = dict(line.split(":", 1) for line in lines)
        live.send("stop\n")
        live.finish()
    assert int(status["VmHWM"].split()[0]) < 4096


def test_a_whole_stream_through_wakeup_alone(engine: Path) -> None:
    """`--go` reads nothing from standard input, even where there is something."""
    completed = subprocess.run(
        [engine, "wakeup", "--go", f"--policy={POLICY}", "--count=50"],
        input="stop\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert Stream(completed.stdout).reason == "count"
    assert wakeup(engine, "--count=50").reason == "count"
