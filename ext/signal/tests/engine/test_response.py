# SPDX-License-Identifier: MIT
"""response: what it says adds up; lost answers, noise, a slave that dies, one that is not there; parts by
tracepoints.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from tests.engine.stream import (
    CPUS,
    FIFO,
    PATIENCE_S,
    POLICY,
    Live,
    Stream,
    adds_up,
    children,
    refused,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.engine
LOOPS = ["loop:eventfd", "loop:pipe", "loop:socketpair", "loop:mqueue", "loop:udp"]
MARK = b"rtgauge1"
MASTER_PRIORITY = 98
PPOLL = {"x86_64": 271, "aarch64": 73, "armv7l": 336}


def response(engine: Path, *words: str, policy: str = POLICY, **options: Any) -> Stream:
    return run(engine, "response", "--go", f"--policy={policy}", "--warm-up-ns=20000000", *words, **options)


def values(stream: Stream, name: str = "signal") -> dict[str, Any]:
    return next(line["values"] for line in stream.all("result") if line["name"] == name)


class Peer:
    """A slave, or something between, in the test: what comes on its port is given to `react`."""

    def __init__(self, react: Callable[[Peer, int, tuple[str, int]], None]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.path = f"udp:127.0.0.1:{self.socket.getsockname()[1]}"
        self._react = react
        self.seen: list[int] = []
        self._thread = threading.Thread(target=self._serve)

    def answer(self, number: int, to: tuple[str, int]) -> None:
        self.socket.sendto(MARK + struct.pack(">q", number), to)

    def _serve(self) -> None:
        while True:
            data, sender = self.socket.recvfrom(100)
            if data == b"end":
                return
            (number,) = struct.unpack(">q", data[8:])
            assert data[:8] == MARK
            if number > 0:
                self.seen.append(number)
                self._react(self, number, sender)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"end", self.socket.getsockname())
        self._thread.join()
        self.socket.close()


def checked(stream: Stream) -> dict[str, Any]:
    """Windows, summary and counters of the master tell the same; gives its counters."""
    (summary,) = [line for line in stream.all("summary") if line["series"] == 0]
    windows = stream.windows(0)
    reported = values(stream)
    assert summary["count"] == reported["answers"] == sum(window["count"] for window in windows)
    assert sum(count for window in windows for _, count in window["bins"]) == summary["count"]
    assert sum(count for window in windows for _, count in window["missed_bins"]) == summary["missed"]
    assert summary["missed"] == reported["lost"] + reported["skipped"]
    assert reported["stimuli"] == reported["answers"] + reported["lost"]
    assert summary["impossible"] == 0
    return reported


def test_every_stimulus_of_a_fixed_interval_is_accounted_for(engine: Path) -> None:
    stream = response(engine, "--interval-ns=100000", "--warm-up-ns=100000000", "--duration-ns=500000000")
    results = checked(stream)
    # one may be due at the end of the warm-up, and made after it
    assert abs(results["stimuli"] + results["skipped"] + results["not-made"] - 5000) <= 1
    assert (results["not-made"] > 0) == bool(
        [mark for mark in stream.all("mark") if mark["name"] == "master-late"]
    )


def waits_for_its_time(process: int) -> bool:
    """The master sleeps in ppoll until the next stimulus is due; for an answer it would wait in read."""
    masters = [
        task
        for task in Path(f"/proc/{process}/task").iterdir()
        if os.sched_getparam(int(task.name)).sched_priority == MASTER_PRIORITY
    ]
    return (masters[0] / "syscall").read_text().startswith(f"{PPOLL[os.uname().machine]} ")


@pytest.mark.real_time
def test_a_master_that_is_held_up_loses_no_answers(engine: Path) -> None:
    with Live(
        engine,
        "response",
        f"--policy={POLICY}",
        "--interval-ns=100000000",
        "--count=12",
        "--warm-up-ns=0",
        "--timeout-ns=60000000000",
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        while not waits_for_its_time(live.process.pid):
            time.sleep(0.01)
        live.process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)  # five stimuli become due, or more
        live.process.send_signal(signal.SIGCONT)
        stream = live.finish()
    results = checked(stream)
    assert results["lost"] == 0
    assert results["not-made"] >= 4
    assert results["late-by-max-ns"] > 4 * 100_000_000
    (late,) = [mark for mark in stream.all("mark") if mark["name"] == "master-late"]
    assert late["severity"] == "doubtful"
    assert f"was late by up to {results['late-by-max-ns'] / 1e6:.3f} ms;" in late["detail"]


@pytest.mark.parametrize("path", LOOPS)
@pytest.mark.parametrize("spacing", ["fixed", "drawn"])
def test_every_loop_answers(engine: Path, path: str, spacing: str) -> None:
    words = (
        ["--interval-ns=1000000"]
        if spacing == "fixed"
        else ["--interval-min-ns=3000", "--interval-max-ns=400000"]
    )
    stream = response(engine, f"--path={path}", "--count=200", "--timeout-ns=5000000000", *words)
    assert (stream.reason, stream.status) == ("count", 0)
    assert stream.one("series")["labels"]["role"] == "master"
    results = checked(stream)
    assert (
        results["stimuli"],
        results["lost"],
        results["early-answer"],
        results["double-edge"],
        results["late-answer"],
    ) == (200, 0, 0, 0, 0)
    assert len(stream.one("hello")["cpus"]) == min(2, len(CPUS))


def test_a_duration_is_measured(engine: Path) -> None:
    stream = response(engine, "--duration-ns=300000000")
    assert stream.reason == "duration"
    windows = stream.windows(0)
    assert windows[-1]["end_ns"] - windows[0]["start_ns"] == 300_000_000
    checked(stream)


def test_the_same_seed_draws_the_same_intervals(engine: Path) -> None:
    """Over the same time the numbers of stimuli agree about; the seed that was drawn is told."""
    seeds = [
        response(engine, "--count=1", *words).one("hello")["parameters"]["seed"]
        for words in (["--seed=7"], [], [])
    ]
    assert seeds[0] == 7
    assert seeds[1] != seeds[2]


@pytest.mark.parametrize("policy", [FIFO, pytest.param("rr", marks=pytest.mark.real_time), "other"])
def test_policies_and_cpus(engine: Path, policy: str) -> None:
    stream = response(
        engine,
        "--count=20",
        "--interval-ns=1000000",
        f"--cpu={CPUS[0]}",
        f"--slave-cpu={CPUS[-1]}",
        policy=policy,
    )
    assert stream.one("hello")["cpus"] == sorted({CPUS[0], CPUS[-1]})
    assert stream.one("series")["labels"]["cpu"] == CPUS[0]
    checked(stream)


def test_a_stop_ends_in_order_and_no_process_is_left(engine: Path) -> None:
    with Live(engine, "response", f"--policy={POLICY}", "--interval-ns=1000000") as live:
        live.read_until("armed")
        begun = children(live.process.pid)
        live.send("go\n")
        live.read_until("started")
        live.storm(20)  # foreign signals change nothing
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    assert len(begun) == 1
    assert not Path(f"/proc/{begun[0]}").exists()
    assert checked(stream)["lost"] == 0


def test_the_slave_ends_with_an_engine_that_is_killed(engine: Path) -> None:
    with Live(engine, "response", f"--policy={POLICY}") as live:
        live.read_until("armed")
        (child,) = children(live.process.pid)
        live.signal(signal.SIGKILL)
        live.process.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while os.path.exists(f"/proc/{child}"):  # noqa: PTH110
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_slave_that_dies_is_reported(engine: Path) -> None:
    with Live(
        engine,
        "response",
        f"--policy={POLICY}",
        "--interval-ns=1000000",
        "--timeout-ns=20000000",
        "--warm-up-ns=0",
    ) as live:
        live.read_until("armed")
        (child,) = children(live.process.pid)
        live.send("go\n")
        live.read_until("window")
        os.kill(child, signal.SIGKILL)
        stream = live.finish()
    assert (stream.reason, stream.status) == ("slave-died", 0)
    (mark,) = [line for line in stream.all("mark") if line["name"] == "slave-died"]
    assert mark["severity"] == "invalid"
    assert "signal 9" in mark["detail"]
    assert checked(stream)["answers"] > 0


def test_answers_that_a_proxy_drops_are_counted_and_stop_nothing(engine: Path) -> None:
    def drop_some(peer: Peer, number: int, sender: tuple[str, int]) -> None:
        if number % 25:
            peer.answer(number, sender)

    with Peer(drop_some) as peer:
        stream = response(
            engine,
            f"--path={peer.path}",
            "--role=master",
            "--interval-min-ns=100000",
            "--interval-max-ns=200000",
            "--timeout-ns=2000000000",
            "--count=50",
        )
    reported = checked(stream)
    assert stream.reason == "count"
    assert (reported["stimuli"], reported["answers"], reported["lost"]) == (50, 48, 2)
    # what is lost is at least as late as the timeout
    assert all(at >= 11500 for window in stream.windows(0) for at, _ in window["missed_bins"])


def test_a_late_answer_is_not_the_next_ones(engine: Path) -> None:
    def hold_back(peer: Peer, number: int, sender: tuple[str, int]) -> None:
        if number == 30:
            time.sleep(0.6)
        peer.answer(number, sender)

    with Peer(hold_back) as peer:
        stream = response(
            engine, f"--path={peer.path}", "--role=master", "--interval-min-ns=1000000",
            "--interval-max-ns=1000000", "--timeout-ns=200000000",
            "--count=60", "--warm-up-ns=0",
        )  # fmt: skip
    reported = checked(stream)
    assert reported["late-answer"] == reported["lost"] >= 1
    assert reported["early-answer"] == reported["double-edge"] == 0


def test_noise_is_counted_and_marked(engine: Path) -> None:
    def twice_and_before(peer: Peer, number: int, sender: tuple[str, int]) -> None:
        peer.answer(number, sender)
        if number == 20:
            peer.answer(number, sender)
        if number == 30:
            peer.answer(number + 5, sender)

    with Peer(twice_and_before) as peer:
        stream = response(
            engine,
            f"--path={peer.path}",
            "--role=master",
            "--interval-min-ns=3000000",
            "--interval-max-ns=3000000",
            "--count=40",
            "--warm-up-ns=0",
            "--timeout-ns=5000000000",
        )
    reported = checked(stream)
    assert (reported["double-edge"], reported["early-answer"], reported["lost"]) == (1, 1, 0)
    (mark,) = [line for line in stream.all("mark") if line["name"] == "noise"]
    assert mark["severity"] == "doubtful"


def test_a_master_without_a_slave_says_what_to_do(engine: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = (
        "--go",
        f"--policy={POLICY}",
        "--role=master",
        f"--path=udp:127.0.0.1:{port}",
        "--timeout-ns=10000000",
    )
    assert "start the slave first" in refused(engine, "no-answer", 3, "response", *words)


def test_a_slave_without_a_master_says_that_nothing_came(engine: Path) -> None:
    stream = response(engine, "--role=slave", "--path=udp:127.0.0.1:17223", "--duration-ns=200000000")
    assert (stream.reason, stream.status) == ("duration", 0)
    assert values(stream) == {"answers": 0, "double-edge": 0}
    (mark,) = [line for line in stream.all("mark") if line["name"] == "no-stimulus"]
    assert mark["severity"] == "invalid"


def test_two_engines_over_udp_and_the_slave_ends_with_the_master(engine: Path) -> None:
    path = "--path=udp:127.0.0.1:17224"
    with Live(
        engine, "response", f"--policy={POLICY}", "--role=slave", path, "--warm-up-ns=0", f"--cpu={CPUS[-1]}"
    ) as slave:
        slave.read_until("armed")
        slave.send("go\n")
        slave.read_until("started")
        stream = response(
            engine,
            path,
            "--role=master",
            "--count=100",
            "--interval-ns=1000000",
            f"--cpu={CPUS[0]}",
            "--timeout-ns=5000000000",
        )
        answered = slave.finish()
    results = checked(stream)
    assert (results["stimuli"], results["lost"]) == (100, 0)
    assert (answered.reason, answered.status) == ("count", 0)
    assert answered.one("series")["labels"] == {"cpu": CPUS[-1], "role": "slave", "from": "wake-up"}
    assert values(answered)["answers"] >= 100
    assert answered.one("summary")["count"] == values(answered)["answers"]


@pytest.mark.parametrize(
    ("code", "status", "words", "reported"),
    [
        ("path", 2, ["--path=loop:smoke"], "loop:eventfd"),
        ("path", 2, ["--path=loop:pipe", "--role=master"], "udp:HOST:PORT"),
        ("path", 2, ["--path=udp:localhost:1"], "udp:ADDRESS:PORT"),
        ("path", 3, ["--path=udp:192.0.2.1:700", "--role=slave"], "machine that the slave runs on"),
        ("path", 3, ["--path=gpio:/dev/gpiochip99:1,2", "--role=slave"], "there is no GPIO chip /dev/gpiochip99"),
        ("path", 3, ["--path=gpio:/dev/null:1,2", "--role=slave"], "is not a GPIO chip"),
        ("path", 2, ["--path=gpio:gpiochip0:1", "--role=master"], "OUT,IN"),
        ("interval", 2, ["--interval-min-ns=5", "--interval-max-ns=4"], "longer than"),
        ("cpu-missing", 2, ["--slave-cpu=8000"], "there is no CPU 8000"),
        ("usage", 2, ["--slave-cpu=0", "--role=slave", "--path=udp:127.0.0.1:17225"], "--role both"),
        ("usage", 2, ["--trace-instance=x", "--role=master", "--path=udp:127.0.0.1:17225"], "only for the slave"),
        ("usage", 2, ["--trace-instance=../x"], "letters, digits"),
        ("trace", 3, ["--trace-instance=nobody-made-this"], "tracepoints cannot be recorded"),
    ],
)  # fmt: skip
def test_what_is_refused(engine: Path, code: str, status: int, words: list[str], reported: str) -> None:
    assert reported in refused(engine, code, status, "response", "--go", f"--policy={POLICY}", *words)


def test_what_is_no_gpio_chip_is_not_opened(engine: Path) -> None:
    """To open a watchdog starts a countdown to a reboot. Here opening would break a lease (fcntl(2))."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with tempfile.NamedTemporaryFile() as file:  # a chip's name has at most 63 characters
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            path = f"--path=gpio:{file.name}:1,2"
            error = refused(engine, "path", 3, "response", "--go", f"--policy={POLICY}", path, "--role=slave")
            assert fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK
        finally:
            signal.signal(signal.SIGIO, before)
    assert "is not a GPIO chip" in error


@pytest.mark.root
@pytest.mark.tracefs
@pytest.mark.parametrize(
    ("path", "interrupt", "segments"),
    [
        ("loop:eventfd", "none", ["scheduling-latency", "scheduling-duration"]),
        (
            "loop:udp",
            "softirq NET_RX",
            ["interrupt-latency", "service-time", "scheduling-latency", "scheduling-duration"],
        ),
    ],
)
def test_a_response_is_taken_apart(
    engine: Path, tmp_path: Path, path: str, interrupt: str, segments: list[str]
) -> None:
    options = ("--run=parts", f"--journal={tmp_path}/journal")
    instance = f"rtgauge-test-{os.getpid()}"
    run_agent(engine, "set", *options, "--", f"trace:{instance}", "present")
    try:
        stream = response(
            engine,
            f"--path={path}",
            "--count=300",
            "--interval-ns=1000000",
            f"--trace-instance={instance}",
            "--timeout-ns=5000000000",
        )
    finally:
        assert '"action":"restored"' in run_agent(engine, "restore", *options)
    checked(stream)
    names = {line["series"]: line["labels"].get("segment") for line in stream.all("series")}
    assert [names[number] for number in sorted(names)] == [None, *segments]
    parts = values(stream, "parts")
    assert parts["interrupt"] == interrupt
    # Not every kernel traces each switch from an idle CPU to the slave: then it is said. tests/lab has
    # kernels that do.
    few = parts["not_split"] * 5 > parts["split"]
    assert ("parts-missing" in stream.marks) == few
    assert parts["split"] + parts["not_split"] >= 300
    sums = {line["series"]: line for line in stream.all("summary")}
    for number, name in names.items():
        if name is not None and sums[number]["count"]:
            assert 0 < sums[number]["min_ns"] <= sums[number]["max_ns"] <= sums[0]["max_ns"]
            assert sums[number]["impossible"] == 0
    assert ("no-interrupt" in stream.marks) == (interrupt == "none")
    adds_up(Stream("".join(line + "\n" for line in stream.text.splitlines() if '"series":0,' not in line)))


def run_agent(engine: Path, *words: str) -> str:
    import subprocess

    return subprocess.run(
        [str(engine), *words], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout
