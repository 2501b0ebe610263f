# SPDX-License-Identifier: MIT
"""watch on loops as people write them (bench/own_loops/loops.c): their kinds, and every release accounted for."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.stream import PATIENCE_S, Live, Stream, children, refused, wakeup
from tests.engine.test_explain import made_instance
from tests.engine.test_watch import WORKER, python, results, watch
from tests.support.trace_instance import trace_instance

pytestmark = [pytest.mark.root, pytest.mark.tracefs, pytest.mark.real_time]
SOURCES = Path(__file__).parents[2] / "bench" / "own_loops"
PERIOD_NS = 5_000_000
MEASURED_NS = 1_000_000_000
RTTIME_US = 200_000
UNTIL_TOLD = """
import os, select, sys
print(os.getpid(), flush=True)
while not select.select([sys.stdin], [], [], 0.005)[0]:
    pass
"""


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("loops") / "loops"
    subprocess.run(["gcc", "-O2", "-pthread", SOURCES / "loops.c", "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def cpp_loops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("loops") / "loops-c++"
    subprocess.run(["g++", "-std=c++20", "-O2", "-pthread", SOURCES / "loops.cpp", "-o", program], check=True)
    return program


@contextmanager
def loop(program: Path | list[str], kind: str, folder: Path, *words: str) -> Generator[subprocess.Popen[str]]:
    """A loop of this kind that has begun."""
    options = ["--log", str(folder / "log"), "--period-us", str(PERIOD_NS // 1000), "--fifo", "20", *words]
    command = program if isinstance(program, list) else [str(program)]
    with subprocess.Popen([*command, kind, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def watched(engine: Path, tmp_path: Path, process: subprocess.Popen[str]) -> tuple[dict[str, Any], Stream]:
    """Return the values of the thread with the loop, and the stream."""
    stream = watch(engine, tmp_path, process.pid, f"--duration-ns={MEASURED_NS}", f"--period-ns={PERIOD_NS}")
    threads = [line["values"] for line in results(stream, "thread")]
    return max(threads, key=lambda values: values["activations"] + values["overruns"]), stream


def releases_of(values: dict[str, Any]) -> int:
    return int(values["activations"] + values["overruns"] + values["unknown_releases"])


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("absolute", "clock_nanosleep"),
        ("rate", "clock_nanosleep"),
        ("skip", "clock_nanosleep"),
        ("signals", "clock_nanosleep"),
        ("sensor", "clock_nanosleep"),
        ("two-periods", "clock_nanosleep"),
        ("timerfd", "read"),
        ("epoll", "epoll_wait"),
        ("posix-timer", "rt_sigtimedwait"),
        ("setitimer", "rt_sigsuspend"),
        ("condition", "futex"),
        ("condition-wall", "futex"),
        ("lock", "clock_nanosleep"),
        ("disk", "clock_nanosleep"),
        ("deadline", "sched_yield"),
        ("executor", "futex"),
    ],
)
def test_each_release_of_a_grid_is_accounted_for(
    engine: Path, tmp_path: Path, loops: Path, kind: str, call: str
) -> None:
    with loop(loops, kind, tmp_path, "--long-every", "20", "--long-us", "12000") as process:
        values, _ = watched(engine, tmp_path, process)
    assert (values["kind"], values["call"]) == ("periodic", call)
    assert values["wall_clock"] is (kind == "condition-wall")
    assert abs(releases_of(values) - MEASURED_NS // PERIOD_NS) <= 1


def test_a_steady_clocks_sleep_is_not_on_the_wall_clock(
    engine: Path, tmp_path: Path, cpp_loops: Path
) -> None:
    """C++'s sleep_until passes a relative time on CLOCK_REALTIME."""
    with loop(cpp_loops, "c++-sleep-until", tmp_path) as process:
        values, _ = watched(engine, tmp_path, process)
    assert (values["kind"], values["wall_clock"]) == ("periodic", False)
    assert abs(releases_of(values) - MEASURED_NS // PERIOD_NS) <= 1


def test_an_event_loop_in_milliseconds_is_on_its_grid(engine: Path, tmp_path: Path) -> None:
    with loop([sys.executable, str(SOURCES / "loops.py")], "asyncio", tmp_path) as process:
        values, _ = watched(engine, tmp_path, process)
    assert (values["kind"], values["call"]) == ("periodic", "epoll_wait")
    assert abs(releases_of(values) - MEASURED_NS // PERIOD_NS) <= 1


def test_a_fast_loop_with_many_calls_is_measured(engine: Path, tmp_path: Path, loops: Path) -> None:
    """No release may look like one for which it did not wait, except after a cycle that was too long."""
    period_ns = 100_000
    with loop(loops, "calls", tmp_path, "--period-us", "100", "--work-us", "1", "--calls", "100") as process:
        words = f"--duration-ns={MEASURED_NS}", f"--period-ns={period_ns}"
        (thread,) = results(watch(engine, tmp_path, process.pid, *words), "thread")
        process.terminate()
        process.wait(PATIENCE_S)
    release_ns, _, end_ns, _ = np.fromfile(tmp_path / "log", "<i8").reshape(-1, 4).T
    values = thread["values"]
    assert values["kind"] == "periodic"
    assert values["activations"]
    assert values["overruns"] <= np.count_nonzero(end_ns[:-1] > release_ns[1:] - period_ns // 5)
    assert releases_of(values) >= MEASURED_NS // period_ns - 1


def test_the_slack_of_its_timers_is_reported(engine: Path, tmp_path: Path, loops: Path) -> None:
    with loop(loops, "absolute", tmp_path, "--fifo", "0") as process:
        Path(f"/proc/{process.pid}/timerslack_ns").write_text("3000000")
        values, _ = watched(engine, tmp_path, process)
    assert values["timer_slack_ns"] == 3_000_000


def test_a_change_of_its_policy_is_reported(engine: Path, tmp_path: Path, loops: Path) -> None:
    with (
        loop(loops, "absolute", tmp_path) as process,
        made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name,
        Live(
            engine, "watch", "--go", f"--pid={process.pid}", f"--trace-instance={name}", "--warm-up-ns=0",
            f"--duration-ns={3 * MEASURED_NS}",
        ) as live,
    ):  # fmt: skip
        live.read_until("started")
        os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
        stream = live.finish()
    values = next(line["values"] for line in results(stream, "change") if line["values"]["what"] == "policy")
    assert "fifo" in values["from"]
    assert "other" in values["to"]


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
def test_the_cause_of_the_end_of_a_program_is_reported(
    engine: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """It crashes, or works for longer than its limit of real-time CPU time."""
    with python(WORKER) as process:
        if how is signal.SIGKILL:
            resource.prlimit(process.pid, resource.RLIMIT_RTTIME, (RTTIME_US, RTTIME_US))
        with (
            made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name,
            Live(
                engine, "watch", "--go", f"--pid={process.pid}", f"--trace-instance={name}", "--duration-ns=0"
            ) as live,
        ):
            live.read_until("window")
            process.send_signal(how if how is signal.SIGSEGV else signal.SIGUSR1)
            stream = live.finish()
    (values,) = (line["values"] for line in results(stream, "watched"))
    assert stream.reason == "program-ended"
    assert values["signal"] == how
    assert values.get("rttime_us") == (RTTIME_US if how is signal.SIGKILL else None)


def test_a_signal_that_ends_another_program_is_not_this_ones(engine: Path, tmp_path: Path) -> None:
    """The filter of the events lets threads through whose numbers are close to the watched ones."""
    for _ in range(50):
        with (
            python(UNTIL_TOLD) as process,
            subprocess.Popen(["sleep", "1000"]) as stranger,
        ):
            try:
                if not 0 < stranger.pid - process.pid <= 64:
                    process.kill()
                    continue
                words = ("watch", "--go", f"--pid={process.pid}", "--duration-ns=0")
                with (
                    made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name,
                    Live(engine, *words, f"--trace-instance={name}") as live,
                ):
                    live.read_until("window")
                    stranger.send_signal(signal.SIGTERM)
                    stranger.wait()
                    live.read_until("window")
                    assert process.stdin is not None
                    process.stdin.close()
                    stream = live.finish()
                break
            finally:
                stranger.kill()
    else:
        pytest.fail("no process got a number close to the program's")
    (values,) = (line["values"] for line in results(stream, "watched"))
    assert stream.reason == "program-ended"
    assert "signal" not in values


def test_a_deadline_thread_over_budget_is_throttled(engine: Path, tmp_path: Path, loops: Path) -> None:
    """Only its budget, half a period, can make it give way: nothing has a higher priority."""
    with loop(loops, "deadline", tmp_path, "--long-every", "20", "--long-us", "12000") as process:
        values, stream = watched(engine, tmp_path, process)
    assert values["throttled"] >= values["activations"] // 20
    assert values["throttled_ns"] > values["throttled"] * PERIOD_NS // 10
    assert not results(stream, "preempted-by")


SLEEPER = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.002)
"""


def test_a_deadline_thread_that_sleeps_is_a_loop_by_its_sleeps(engine: Path, tmp_path: Path) -> None:
    """The kernel arms a timer of its own as such a thread falls asleep, which is not the program's."""
    budget = [f"--sched-{name}={ns}" for name, ns in (("runtime", 500_000), ("deadline", 1_000_000))]
    command = ["chrt", "--deadline", *budget, "--sched-period=1000000", "0", sys.executable, "-c", SLEEPER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            stream = watch(engine, tmp_path, process.pid, f"--duration-ns={MEASURED_NS}")
        finally:
            process.kill()
    (thread,) = (line["values"] for line in results(stream, "thread"))
    assert (thread["kind"], thread["call"]) == ("relative", "clock_nanosleep")


ALTERNATING = """
import os, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
if os.fork() == 0:
    while True: pass
print("ready", flush=True)
policies = [(os.SCHED_FIFO, 10), (os.SCHED_OTHER, 0)]
while True:
    for policy, priority in policies:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
        end = time.monotonic() + 0.02
        while time.monotonic() < end: pass
        time.sleep(0.001)
"""


def test_a_thread_is_throttled_only_while_it_is_real_time(engine: Path, tmp_path: Path) -> None:
    """It is real-time and ordinary by turns of 20 ms. Only while it is ordinary does the other take its CPU."""
    with subprocess.Popen(
        [sys.executable, "-c", ALTERNATING], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            values, _ = watched(engine, tmp_path, process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert values["preemptions"] > 0
    assert values["throttled"] == 0


@pytest.mark.skipif(
    Path("/proc/sys/kernel/sched_rt_runtime_us").read_text().strip() == "-1",
    reason="real-time tasks are not throttled here",
)
def test_a_starving_poller_is_throttled_and_not_preempted(engine: Path, tmp_path: Path, loops: Path) -> None:
    """Only the kernel's limit on real-time tasks, of which each period lasts 1 s, lets the other run."""
    cpu = max(os.sched_getaffinity(0))
    with (
        subprocess.Popen(
            ["taskset", "--cpu-list", str(cpu), sys.executable, "-c", "while True: pass"]
        ) as hog,
        loop(loops, "poller", tmp_path, "--cpu", str(cpu)) as process,
    ):
        try:
            name = Path(f"/proc/{hog.pid}/comm").read_text().strip()
            stream = watch(engine, tmp_path, process.pid, f"--duration-ns={3 * MEASURED_NS}")
        finally:
            hog.kill()
    (thread,) = (line["values"] for line in results(stream, "thread"))
    assert thread["kind"] == "poller"
    assert thread["throttled"] > 0
    assert thread["throttled_ns"] > 0
    assert "throttling" in {line["labels"]["by"] for line in results(stream, "stopped-by")}
    assert name not in str([line["labels"] for line in results(stream, "preempted-by")])


def test_a_loop_in_a_pid_namespace_is_watched_by_the_kernels_pid(
    engine: Path, tmp_path: Path, loops: Path
) -> None:
    """It is process 1 of its namespace."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", str(loops)]
    with loop(inside, "absolute", tmp_path) as process:
        (pid,) = children(process.pid)
        stream = watch(engine, tmp_path, pid, f"--duration-ns={MEASURED_NS}", f"--period-ns={PERIOD_NS}")
    (thread,) = (line["values"] for line in results(stream, "thread"))
    assert thread["tid"] == pid
    assert thread["kind"] == "periodic"
    assert abs(releases_of(thread) - MEASURED_NS // PERIOD_NS) <= 1


def test_watch_refuses_a_pid_namespace_of_its_own(engine: Path) -> None:
    """Its PIDs are not those of the kernel's events."""
    inside = ("unshare", "--pid", "--fork", "--mount-proc")
    message = refused(engine, "pid-namespace", 3, "watch", "--pid=1", prefix=inside)
    assert "--pid=host" in message


def test_another_measurement_on_this_kernel_is_a_mark(engine: Path, tmp_path: Path, loops: Path) -> None:
    with (
        made_instance(engine, tmp_path / "other", f"rtgauge-other-{os.getpid()}"),
        loop(loops, "absolute", tmp_path) as process,
    ):
        _, alone = watched(engine, tmp_path, process)
        with trace_instance(tmp_path, f"rtgauge-another-{os.getpid()}") as other:
            other.start("sched")
            _, together = watched(engine, tmp_path, process)
    assert "another" in next(
        mark["detail"] for mark in together.all("mark") if mark["name"] == "measured-together"
    )
    assert "rtgauge-other" not in str([mark["detail"] for mark in alone.all("mark")])  # it records nothing


def test_a_recorder_on_this_kernel_is_a_mark_of_every_probe(engine: Path, tmp_path: Path) -> None:
    with trace_instance(tmp_path, f"rtgauge-recorder-{os.getpid()}-1") as recorder:
        recorder.start("sched")
        together = wakeup(engine, "--duration-ns=100000000")
    assert "a recorder of rtgauge" in next(
        mark["detail"] for mark in together.all("mark") if mark["name"] == "measured-together"
    )


def test_what_the_engine_itself_takes_from_a_thread_is_counted(
    engine: Path, tmp_path: Path, loops: Path
) -> None:
    """Both have only one CPU."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    try:
        with loop(loops, "relative", tmp_path, "--fifo", "0", "--work-us", "3000") as process:
            values, stream = watched(engine, tmp_path, process)
    finally:
        os.sched_setaffinity(0, cpus)
    own_ns = values["preempted_by_rtgauge_ns"]
    assert own_ns > 0
    latency = next(line["series"] for line in stream.all("series") if line["metric"] == "latency")
    late_ns = next(line["sum_ns"] for line in stream.all("summary") if line["series"] == latency)
    marked = any(mark["name"] == "delayed-by-rtgauge" for mark in stream.all("mark"))
    assert marked is (own_ns * 100 > late_ns)


def test_a_relative_sleep_is_named(engine: Path, tmp_path: Path, loops: Path) -> None:
    with loop(loops, "relative", tmp_path) as process:
        values, _ = watched(engine, tmp_path, process)
    assert values["kind"] == "relative"
    assert abs(values["sleep_ns"] - PERIOD_NS) < PERIOD_NS / 100
    assert values["period_ns"] > PERIOD_NS


def test_a_loop_that_hangs_misses_the_rest_and_is_named(engine: Path, tmp_path: Path, loops: Path) -> None:
    """It hangs while it is measured: after the warm-up, which is 2 s longer for the cost of watching."""
    with loop(loops, "hang", tmp_path, "--trouble-ms", "2400") as process:
        values, _ = watched(engine, tmp_path, process)
    assert values["stuck"]
    assert values["stuck_in"] == "futex"
    assert abs(values["activations"] + values["overruns"] - MEASURED_NS // PERIOD_NS) <= 1


def test_threads_that_live_for_one_cycle_are_marked(engine: Path, tmp_path: Path, loops: Path) -> None:
    with loop(loops, "churn", tmp_path) as process:
        _, stream = watched(engine, tmp_path, process)
    assert "threads-unwatched" in {mark["name"] for mark in stream.all("mark")}


def test_threads_that_take_turns_in_one_cycle_are_unclear(engine: Path, tmp_path: Path, loops: Path) -> None:
    with loop(loops, "turns", tmp_path) as process:
        _, stream = watched(engine, tmp_path, process)
    unclear = {line["labels"]["task"]: line["values"]["unclear"] for line in results(stream, "thread")}
    assert unclear == {"first": True, "second": True}
    assert "takes turns" in next(
        mark["detail"] for mark in stream.all("mark") if mark["name"] == "cycle-unclear"
    )


def test_the_stops_of_a_sleepless_thread_are_named(engine: Path, tmp_path: Path, loops: Path) -> None:
    """The kernel interrupts each CPU that runs a task, at least once a second."""
    cpu = str(max(os.sched_getaffinity(0)))
    with loop(loops, "poller", tmp_path, "--cpu", cpu) as process:
        values, stream = watched(engine, tmp_path, process)
    assert values["kind"] == "poller"
    assert values["interrupts_traced"]
    assert 0 < values["observed_ns"] <= MEASURED_NS
    stops = {line["labels"]["by"]: line["values"] for line in results(stream, "stopped-by")}
    assert any("interrupt" in by or "irq" in by for by in stops)
    gaps = next(line["series"] for line in stream.all("series") if line["metric"] == "gap")
    (summary,) = [line for line in stream.all("summary") if line["series"] == gaps]
    assert sum(values["count"] for values in stops.values()) == summary["count"] > 0
    assert max(values["max_ns"] for values in stops.values()) == summary["max_ns"]
