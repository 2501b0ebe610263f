# SPDX-License-Identifier: MIT
"""watch: what the kernel tells of another program's threads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Kind
from rtgauge.explain.analysis.waits import QUOTA_TIMERS
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import read_moment
from tests.engine.stream import Live, Stream, refused, run
from tests.engine.test_explain import made_instance

pytestmark = [pytest.mark.root, pytest.mark.tracefs, pytest.mark.real_time]
PERIOD_NS = 5_000_000
THREADS_LATER = 64
"""The numbers that filters leave for threads that begin later. Some kernels take long to change filters."""
SHARING_CPUS = 8
"""Watching and explaining have one ring on machines with at most so many."""
EXPLAIN_BUFFER_KB = 8192
"""More than watching alone takes."""
LOOP = """
import os, threading, time, sys
def loop(policy, priority):
    os.sched_setscheduler(0, policy, os.sched_param(priority))
    os.write(1, b"%d\\n" % threading.get_native_id())  # print() could mix the two lines
    while True:
        time.sleep(0.005)
        sum(range(1000))
threading.Thread(target=loop, args=(os.SCHED_OTHER, 0), daemon=True).start()
loop(os.SCHED_FIFO, 20)
"""
LOCKED = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
lock, attributes = ctypes.create_string_buffer(64), ctypes.create_string_buffer(16)
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setprotocol(attributes, int(sys.argv[1]))
libc.pthread_mutex_init(lock, attributes)
held = threading.Event()
def holder():
    libc.prctl(15, b"holder")
    while True:
        libc.pthread_mutex_lock(lock)
        held.set()
        time.sleep(0.01)
        libc.pthread_mutex_unlock(lock)
        time.sleep(0.01)
threading.Thread(target=holder, daemon=True).start()
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
print(os.getpid(), flush=True)
while True:
    held.wait()
    held.clear()
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_unlock(lock)
"""
"""A real-time thread that waits for a lock that another one sleeps with; the argument: PTHREAD_PRIO_NONE or
PTHREAD_PRIO_INHERIT.
"""
WORKER = """
import os, signal, sys, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print(os.getpid(), flush=True)
while True:
    time.sleep(0.005)
    if asked:
        asked.clear()
        print("works", flush=True)
        while not asked:
            pass
        asked.clear()
        print("worked", flush=True)
"""
MAPPING = """
import ctypes, mmap, os, threading, time
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
memoryview(memory)[::mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
def change():
    libc.prctl(15, b"changer")
    while True:
        for protection in 1, 3:
            libc.mprotect(address, ctypes.c_size_t(len(memory)), protection)
threading.Thread(target=change, daemon=True).start()
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
print(os.getpid(), flush=True)
while True:
    time.sleep(0.005)
    mmap.mmap(-1, mmap.PAGESIZE).close()
"""
"""A real-time thread that maps memory, while another thread has the lock of the memory map all the time."""
MANY = """
import os, threading, time
ready = threading.Barrier(37)
def loop(priority):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    ready.wait()
    while True:
        time.sleep(0.02)
for priority in range(1, 37):
    threading.Thread(target=loop, args=(priority,), daemon=True).start()
ready.wait()
print(os.getpid(), flush=True)
time.sleep(1000)
"""
LATER = """
import os, sys, threading, time
def loop():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    while True:
        time.sleep(0.005)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
print(os.getpid(), flush=True)
sys.stdin.readline()
threading.Thread(target=loop, daemon=True).start()
while True:
    time.sleep(0.005)
"""
"""A real-time thread that begins another one when it is told to."""
THROTTLED = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
print(os.getpid(), flush=True)
while True:
    time.sleep(0.005)
    end = time.thread_time() + 0.003
    while time.thread_time() < end:
        pass
"""
"""An ordinary thread that joins a control group, and computes."""


PARENT = """
import os, time
started, start = os.pipe()
if os.fork() == 0:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    os.write(start, b"x")
    while os.getppid() != 1:
        time.sleep(0.005)
    os._exit(0)
os.read(started, 1)
print(os.getpid(), flush=True)
time.sleep(1000)
"""
"""A program of which only the child has a real-time thread."""


@contextmanager
def python(*words: str) -> Generator[subprocess.Popen[str]]:
    """A Python program that has printed its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == process.pid
            yield process
        finally:
            process.kill()


@contextmanager
def program() -> Generator[subprocess.Popen[str]]:
    """A Python program with a real-time thread, its first, and another one; both sleep and compute alternately.

    Its CPU is never idle: some kernels in virtual machines do not trace switches from the idle task.
    """
    cpu = max(os.sched_getaffinity(0))
    busy = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"]
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{cpu}])\n{LOOP}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert {int(process.stdout.readline()), int(process.stdout.readline())} > {process.pid}
        yield process
    finally:
        for started in (process, busy):
            started.kill()
            started.wait()
        assert process.stdout is not None
        process.stdout.close()


def watch(engine: Path, tmp_path: Path, pid: int, *words: str) -> Stream:
    with made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name:
        return run(
            engine,
            "watch",
            "--go",
            f"--pid={pid}",
            f"--trace-instance={name}",
            "--warm-up-ns=50000000",
            *words,
        )


def results(stream: Stream, name: str) -> list[dict[str, Any]]:
    return [line for line in stream.all("result") if line["name"] == name]


def test_a_watched_real_time_thread_has_consistent_times(engine: Path, tmp_path: Path) -> None:
    with program() as process:
        stream = watch(engine, tmp_path, process.pid, "--duration-ns=1000000000")
    assert stream.reason == "duration"
    (thread,) = results(stream, "thread")
    assert (thread["values"]["tid"], thread["values"]["policy"], thread["values"]["priority"]) == (
        process.pid,
        "fifo",
        20,
    )
    by = {
        line["metric"]: summary
        for line, summary in zip(stream.all("series"), stream.all("summary"), strict=True)
    }
    assert list(by) == [
        *("latency", "response", "execution", "period"),
        *("overrun", "uncertain", "least-response"),
    ]
    assert thread["values"]["kind"] == "relative"
    assert by["period"]["min_ns"] >= PERIOD_NS
    assert 0 < by["latency"]["min_ns"] < by["response"]["min_ns"]
    assert (
        by["execution"]["sum_ns"] + by["latency"]["sum_ns"]
        <= by["response"]["sum_ns"] + by["latency"]["max_ns"] * 2
    )
    assert abs(by["response"]["count"] - by["latency"]["count"]) <= 1
    # It sleeps once more while the other thread has the interpreter's lock, and not at all if its time has passed.
    assert thread["values"]["voluntary_switches"] > thread["values"]["activations"] / 2
    wakers = {line["labels"]["by"]: line["values"]["count"] for line in results(stream, "woken-by")}
    assert wakers.get("interrupt", 0) > sum(wakers.values()) / 2
    assert {line["labels"]["syscall"] for line in results(stream, "sleeps-in")} & {
        "clock_nanosleep",
        "pselect6",
        "select",
    }
    assert (
        sum(line["values"]["count"] for line in results(stream, "preempted-by"))
        == thread["values"]["preemptions"]
    )


def test_threads_are_chosen_by_name(engine: Path, tmp_path: Path) -> None:
    with program() as process:
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
        stream = watch(engine, tmp_path, process.pid, "--duration-ns=300000000", f"--threads={name},none")
        assert len(results(stream, "thread")) == 2
        labels = {line["labels"]["task"] for line in stream.all("series")}
        assert labels == {name, *(label for label in labels if label.startswith(f"{name}-"))}
        error = refused(engine, "no-program", 2, "watch", "--go", f"--pid={process.pid}", "--threads=none")
        assert "does not have a thread of this name" in error


def test_of_too_many_threads_the_highest_are_watched(engine: Path, tmp_path: Path) -> None:
    with python(MANY) as process:
        stream = watch(engine, tmp_path, process.pid, "--duration-ns=300000000")
    threads = [line["values"] for line in results(stream, "thread")]
    assert {values["priority"] for values in threads} == set(range(5, 37))
    (mark,) = (mark for mark in stream.all("mark") if mark["name"] == "threads-left-out")
    assert "4 threads" in mark["detail"]


def test_events_that_the_kernel_drops_leave_a_gap(engine: Path, tmp_path: Path) -> None:
    """Also if somebody let no ring of this kernel overwrite events: then the kernel counts none as lost."""
    reader = (
        "import os, time\nprint(os.getpid(), flush=True)\nzero = os.open('/dev/zero', os.O_RDONLY)\n"
        "while True:\n    time.sleep(0.01)\n    for _ in range(100): os.read(zero, 1)"
    )
    with python(reader) as process, made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name:
        folder = Path("/sys/kernel/tracing/instances") / name

        def dropped() -> bool:
            counts = [file.read_text() for file in folder.glob("per_cpu/*/stats")]
            return any(re.search(r"(overrun|dropped events): [1-9]", text) for text in counts)

        (folder / "options" / "overwrite").write_text("0")
        with Live(
            engine, "watch", "--go", f"--pid={process.pid}", f"--trace-instance={name}", "--duration-ns=0"
        ) as live:
            while b'"phase":"measure"' not in live.text:
                live.read_more()
            live.signal(signal.SIGSTOP)
            (folder / "buffer_size_kb").write_text("64")
            while not dropped():
                time.sleep(0.01)
            live.signal(signal.SIGCONT)
            taken = live.text.count(b'"phase":"measure"')
            while live.text.count(b'"phase":"measure"') <= taken:
                live.read_more()
            live.signal(signal.SIGTERM)
            stream = live.finish()
    (watched,) = results(stream, "watched")
    assert watched["values"]["gaps"]
    assert "trace-dropped" in stream.marks


def test_its_largest_responses_have_moments(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        program() as process,
        made_instance(
            engine, tmp_path_factory.mktemp("explain"), f"rtgauge-explain-{os.getpid()}"
        ) as explain,
    ):
        stream = watch(
            engine, tmp_path, process.pid, "--duration-ns=500000000", f"--explain-instance={explain}"
        )
    moments = stream.all("moment")
    assert moments
    assert {line["thread"] for line in moments} == {process.pid}


@pytest.mark.parametrize("events", ["default", "default,sched/sched_process_hang"])
def test_what_watching_and_explaining_need_is_recorded_once(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, events: str
) -> None:
    instances = Path("/sys/kernel/tracing/instances")

    def recorded(name: str) -> set[str]:
        files = (instances / name).glob("events/*/*/enable")
        return {file.parent.name for file in files if file.read_text()[0] == "1"}

    with (
        program() as process,
        made_instance(
            engine, tmp_path_factory.mktemp("explain"), f"rtgauge-explain-{os.getpid()}"
        ) as explained,
        watching(
            engine,
            tmp_path,
            process.pid,
            f"--explain-instance={explained}",
            f"--explain-events={events}",
            f"--explain-buffer-kb={EXPLAIN_BUFFER_KB}",
        ) as live,
    ):
        live.read_until("moment")
        watched, more = recorded(f"rtgauge-test-{os.getpid()}"), recorded(explained)
        room_kb = int((instances / f"rtgauge-test-{os.getpid()}" / "buffer_size_kb").read_text().split()[0])
        process.kill()
        live.finish()
        assert {"sched_switch", "sys_enter_futex", "hrtimer_start"} <= watched
        assert not recorded(f"rtgauge-test-{os.getpid()}")
        assert not recorded(explained)
    if events == "default" and (os.cpu_count() or 1) <= SHARING_CPUS:
        assert not more
        assert "irq_handler_entry" in watched
        assert room_kb >= EXPLAIN_BUFFER_KB
    else:
        assert {"sched_switch", "irq_handler_entry", "sched_process_hang"} <= more


def test_without_an_explanation_only_its_own_switches_are_recorded(engine: Path, tmp_path: Path) -> None:
    instance = Path(f"/sys/kernel/tracing/instances/rtgauge-test-{os.getpid()}")
    with (
        program() as process,
        watching(engine, tmp_path, process.pid, "--explain-instance=rtgauge-gone") as live,
    ):
        live.read_until("armed")
        text = (instance / "events/sched/sched_switch/filter").read_text()
        process.kill()
        stream = live.finish()
    assert "not-explained" in stream.marks
    assert str(process.pid) in text


@pytest.mark.parametrize(("protocol", "name"), [("0", "inversion"), ("1", "inversion-lent")])
def test_a_lock_of_a_thread_of_lower_priority_is_an_inversion(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, protocol: str, name: str
) -> None:
    with (
        python(LOCKED, protocol) as process,
        made_instance(
            engine, tmp_path_factory.mktemp("explain"), f"rtgauge-explain-{os.getpid()}"
        ) as explained,
    ):
        stream = watch(
            engine, tmp_path, process.pid, "--duration-ns=2000000000", f"--explain-instance={explained}"
        )
    (inversion,) = results(stream, name)
    assert inversion["labels"]["by"] == "holder"
    assert 0 < inversion["values"]["max_ns"] <= inversion["values"]["total_ns"]
    futex = next(
        line["values"] for line in results(stream, "sleeps-in") if line["labels"]["syscall"] == "futex"
    )
    assert inversion["values"]["count"] <= futex["count"]
    assert inversion["values"]["max_ns"] <= futex["max_ns"]
    formats = TraceFormats.read(stream.one("trace_formats"))
    moments = [line for line in stream.all("moment") if line["kind"] == "blocked"]
    assert {line["thread"] for line in moments} == {process.pid}
    assert any("holder" in explain(read_moment(formats, line), formats.symbols).owners for line in moments)


def test_a_wait_for_the_lock_of_its_memory_names_who_has_it(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        python(MAPPING) as process,
        python("import mmap, os\nprint(os.getpid(), flush=True)\nwhile True: mmap.mmap(-1, 4096).close()"),
        made_instance(
            engine, tmp_path_factory.mktemp("explain"), f"rtgauge-explain-{os.getpid()}"
        ) as explained,
    ):
        stream = watch(
            engine,
            tmp_path,
            process.pid,
            "--duration-ns=1000000000",
            f"--explain-instance={explained}",
            "--explain-above-ns=100000",  # a wait of a busy machine may be too long to know how it began
        )
        tasks = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()}
    document = stream.one("trace_formats")
    formats = TraceFormats.read(document)
    moments = [read_moment(formats, line) for line in stream.all("moment")]
    waits = {
        (part.culprit.name, part.culprit.until)
        for moment in moments
        for part in explain(moment, formats.symbols).parts
        if part.culprit.kind is Kind.KERNEL_LOCK
    }
    taken = [event for moment in moments for event in moment.table.events if event.name.startswith("mmap_")]
    assert {event.pid for event in taken} <= set(range(min(tasks), max(tasks) + 1))
    assert all(event.number("write") for event in taken)
    # kernels before 6.14 tell it with the names of control groups only, which costs too much
    cheap = "mmap_lock/mmap_lock_released" in document["events"]
    assert (("mmap_lock", "changer") in waits) is cheap


def test_a_program_is_found_by_its_name(engine: Path, tmp_path: Path) -> None:
    name = f"w{os.getpid()}"
    renamed = (
        f"import os\nopen('/proc/self/comm', 'w').write('{name}')\nprint(os.getpid(), "
        "flush=True)\nwhile True: os.read(0, 1) or os._exit(0)"
    )
    with python(renamed), made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as instance:
        words = (f"--trace-instance={instance}", "--duration-ns=100000000", "--warm-up-ns=50000000")
        stream = run(engine, "watch", "--go", f"--program={name}", *words)
        assert [line["labels"]["task"] for line in results(stream, "thread")] == [name]
        assert "did not find a program named no-such-name" in refused(
            engine, "no-program", 2, "watch", "--go", "--program=no-such-name", *words
        )


@contextmanager
def watching(engine: Path, tmp_path: Path, pid: int, *words: str) -> Generator[Live]:
    """An engine that watches a process until it is stopped."""
    with (
        made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name,
        Live(
            engine,
            "watch",
            "--go",
            f"--pid={pid}",
            f"--trace-instance={name}",
            "--warm-up-ns=0",
            "--duration-ns=0",
            *words,
        ) as live,
    ):
        yield live


def test_a_thread_that_begins_later_is_watched_from_then_on(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    journal = tmp_path_factory.mktemp("explain")
    instance = Path(f"/sys/kernel/tracing/instances/rtgauge-test-{os.getpid()}")

    def last_recorded() -> int:
        text = (instance / "events/syscalls/sys_enter_futex/filter").read_text()
        (last,) = re.findall(r"common_pid *<= *(\d+)", text)
        return int(last)

    with (
        python(LATER) as process,
        made_instance(engine, journal, f"rtgauge-explain-{os.getpid()}") as explain,
        watching(engine, tmp_path, process.pid, f"--explain-instance={explain}") as live,
    ):
        live.read_until("started")
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        while b'{"type":"series","series":7,' not in live.text:
            live.read_more()
        tid = max(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
        while last_recorded() < tid:
            live.read_more()
        assert last_recorded() >= tid + THREADS_LATER
        process.kill()
        stream = live.finish()
    first, second = results(stream, "thread")
    assert (first["values"]["priority"], second["values"]["priority"]) == (20, 10)
    assert second["labels"]["task"] in {line["labels"]["task"] for line in stream.all("series")}
    assert {line["series"] for line in stream.all("summary")} == {
        line["series"] for line in stream.all("series")
    }


def test_the_real_time_threads_of_its_children_are_watched(engine: Path, tmp_path: Path) -> None:
    with python(PARENT) as process:
        stream = watch(engine, tmp_path, process.pid, "--duration-ns=300000000")
    (thread,) = results(stream, "thread")
    assert (thread["values"]["policy"], thread["values"]["priority"]) == ("fifo", 20)
    assert thread["values"]["tid"] != process.pid
    assert thread["values"]["activations"] > 0


def sleeps(pid: int) -> int:
    """How often the first thread of a program has gone to sleep."""
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_a_response_goes_on_while_the_program_is_stopped(engine: Path, tmp_path: Path) -> None:
    with (
        program() as process,
        watching(engine, tmp_path, process.pid) as live,
    ):
        while b'"phase":"measure"' not in live.text:
            live.read_more()
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        stopped_ns = time.monotonic_ns()
        subprocess.run([sys.executable, "-c", ""], check=True)  # takes far longer than an ordinary response
        length_ns = time.monotonic_ns() - stopped_ns
        os.kill(process.pid, signal.SIGCONT)
        before = sleeps(process.pid)
        while sleeps(process.pid) < before + 3:
            live.read_more()
        process.kill()
        stream = live.finish()
    by = {
        line["metric"]: summary
        for line, summary in zip(stream.all("series"), stream.all("summary"), strict=True)
    }
    # it may have been stopped in its sleep, up to a period before its release
    assert by["response"]["max_ns"] > length_ns - PERIOD_NS
    assert by["execution"]["max_ns"] < by["response"]["max_ns"]


@contextmanager
def worker() -> Generator[subprocess.Popen[str]]:
    """A Python program with one real-time thread, which works from one SIGUSR1 to the next."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{process.pid}\n"
            yield process
        finally:
            process.kill()


@contextmanager
def group_with_quota() -> Generator[Path]:
    """A control group that has 1 ms of CPU time in each 50 ms, which it gets on a busy machine too."""
    first, second = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    settings = (
        {"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "1000"}
        if first.exists()
        else {"cpu.max": "1000 50000"}
    )
    group = (first if first.exists() else second) / f"rtgauge-test-{os.getpid()}"
    group.mkdir()
    try:
        if not all(group.joinpath(name).exists() for name in settings):
            pytest.skip("the control groups of this machine have no CPU quota")
        for name, value in settings.items():
            group.joinpath(name).write_text(value)
        yield group
    finally:
        group.rmdir()


def test_quota_throttling_is_known_from_its_timer(
    engine: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        group_with_quota() as group,
        python(THROTTLED, str(group / "cgroup.procs")) as process,
        made_instance(
            engine, tmp_path_factory.mktemp("explain"), f"rtgauge-explain-{os.getpid()}"
        ) as explained,
        watching(
            engine,
            tmp_path,
            process.pid,
            f"--explain-instance={explained}",
            "--explain-above-ns=20000000",
        ) as live,
    ):
        while not re.search(rb'"throttled":\[{.*"quota_timers":true.*\n', live.text):
            live.read_more()
        process.kill()
        stream = live.finish()
    formats = TraceFormats.read(stream.one("trace_formats"))
    symbols = Symbols.read(stream.one("symbols")["symbols"])
    moments = [read_moment(formats, line) for line in stream.all("moment")]
    known = [moment for moment in moments if moment.has_quota_timers and moment.throttled]
    fired = [
        symbols.name(event.number("function"))
        for moment in known
        for event in moment.table.events
        if event.name == "hrtimer_expire_entry"
    ]
    assert "sched_cfs_period_timer" in fired
    assert set(fired) <= QUOTA_TIMERS
    kinds = {part.culprit.kind for moment in known for part in explain(moment, symbols).parts}
    assert Kind.QUOTA in kinds


@contextmanager
def frozen(pid: int, folder: Path) -> Generator[None]:
    """A control group of version 2 that has this process, frozen: the kernel says that it stands."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", folder], check=True)
    group = folder / f"rtgauge-test-{os.getpid()}"
    try:
        group.mkdir()
        group.joinpath("cgroup.procs").write_text(str(pid))
        group.joinpath("cgroup.freeze").write_text("1")
        while "frozen 1" not in group.joinpath("cgroup.events").read_text():
            pass
        yield
        group.joinpath("cgroup.freeze").write_text("0")
    finally:
        folder.joinpath("cgroup.procs").write_text(str(pid))
        group.rmdir()
        subprocess.run(["umount", folder], check=True)


def test_a_response_goes_on_while_the_program_is_frozen(engine: Path, tmp_path: Path) -> None:
    """It sleeps so that a signal wakes it, but outside a system call."""
    with (
        worker() as process,
        watching(engine, tmp_path, process.pid) as live,
    ):
        while b'"phase":"measure"' not in live.text:
            live.read_more()
        process.send_signal(signal.SIGUSR1)
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n"
        with frozen(process.pid, tmp_path / "groups"):
            frozen_ns = time.monotonic_ns()
            subprocess.run([sys.executable, "-c", ""], check=True)  # far longer than an ordinary response
            length_ns = time.monotonic_ns() - frozen_ns
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "worked\n"
        live.read_more()
        process.kill()
        stream = live.finish()
    by = {
        line["metric"]: summary
        for line, summary in zip(stream.all("series"), stream.all("summary"), strict=True)
    }
    assert by["response"]["max_ns"] > length_ns
    assert by["response"]["max_ns"] - by["execution"]["max_ns"] > length_ns / 2
    calls = {line["labels"]["syscall"] for line in results(stream, "sleeps-in")}
    assert "write" not in calls, "its last call, in which it was not frozen"


def test_it_ends_with_the_program(engine: Path, tmp_path: Path) -> None:
    with (
        program() as process,
        made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name,
        Live(
            engine, "watch", "--go", f"--pid={process.pid}", f"--trace-instance={name}", "--duration-ns=0"
        ) as live,
    ):
        live.read_until("started")
        process.kill()
        stream = live.finish()
    assert stream.reason == "program-ended"


@pytest.mark.parametrize(
    ("code", "words", "reported"),
    [
        ("usage", [], "--pid is missing"),
        ("no-program", ["--pid=4194303"], "there is no process"),
        ("usage", ["--pid=1", "--trace-instance=../x"], "letters, digits"),
        ("usage", ["--pid=1"], "--trace-instance is missing"),
    ],
)
def test_what_is_refused(engine: Path, code: str, words: list[str], reported: str) -> None:
    assert reported in refused(engine, code, 2, "watch", "--go", *words)
