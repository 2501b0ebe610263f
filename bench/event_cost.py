# SPDX-License-Identifier: MIT
"""What each kernel event that explaining records costs a wake-up: the table in docs/explain.md.

    sudo python bench/event_cost.py [--rounds 200] [--engine PROGRAM] [--cpu 1] [--only SET]...

First two processes wake each other through pipes on one CPU, then an engine measures wake-ups by the timer.
Each round switches the events of each set on for a moment, in random order, and once no event. A set's cost
is the difference of its median to the median without events of the same round. Printed are the medians of
these differences, with an interval at 90 %.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from raw_bpf import RawBpf

IntArray = npt.NDArray[np.int64]
TRACEFS = Path("/sys/kernel/tracing")
WINDOW_S = 0.05
SETTLE_S = 0.01
"""Left out at the begin of each window: the kernel changes code on all CPUs."""
INTERVAL_NS = 200_000
TRIPS = 1_000
BLOCKS = 1_000
"""For the interval."""
SWITCH = "sched/sched_switch"
AT_A_WAKE_UP = (
    "power/cpu_idle",
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "sched/sched_waking",
    SWITCH,
)
"""The default events that occur at a wake-up from idle by the CPU's own timer."""
VECTORS = ("reschedule", "call_function", "call_function_single", "irq_work")
USUAL = (
    *AT_A_WAKE_UP,
    *(f"irq_vectors/{name}_{edge}" for name in VECTORS for edge in ("entry", "exit")),
    *("irq", "sched/sched_wakeup_new", "sched/sched_migrate_task", "sched/sched_pi_setprio"),
    *("timer/timer_expire_entry", "timer/timer_expire_exit", "timer/tick_stop", "ipi", "nmi/nmi_handler"),
    *("signal/signal_generate", "workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end"),
    *("lock/contention_begin", "lock/contention_end", "csd", "osnoise"),
    *("exceptions/page_fault_user", "exceptions/page_fault_kernel"),
)


@dataclass(frozen=True)
class EventSet:
    """Events to switch on together, and files to write before. `{tid}` is the measured thread."""

    events: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()
    """Each file with the value to write and the value to restore."""
    by: Literal["ftrace", "perf", "bpf"] = "ftrace"
    """What records them."""


NONE = "none"
BUFFER_KB = "512"
"""The default of --explain-buffer."""
FILTER = f"events/{SWITCH}/filter"
OFF = ("tracing_on", "0", "1")
"""The events occur, but are not written: the rest is what the kernel's calls cost."""
OF_THE_THREAD = (FILTER, "prev_pid=={tid}||next_pid=={tid}", "0")
SETS: dict[str, EventSet] = {
    "all default events": EventSet(USUAL),
    "the five at a wake-up": EventSet(AT_A_WAKE_UP),
    **{name: EventSet((name,)) for name in AT_A_WAKE_UP},
    "the five, not written": EventSet(AT_A_WAKE_UP, (OFF,)),
    "the five without local_timer_exit": EventSet(
        tuple(name for name in AT_A_WAKE_UP if not name.endswith("_exit"))
    ),
    "the five, by perf": EventSet(AT_A_WAKE_UP, by="perf"),
    "the five, by a BPF program": EventSet(AT_A_WAKE_UP, by="bpf"),
    "the five, with sub-buffers of 64 KiB": EventSet(AT_A_WAKE_UP, (("buffer_subbuf_size_kb", "64", "4"),)),
    "the five, clock local": EventSet(AT_A_WAKE_UP, (("trace_clock", "local", "mono"),)),
    "the five, clock mono_raw": EventSet(AT_A_WAKE_UP, (("trace_clock", "mono_raw", "mono"),)),
    "hrtimer_expire_entry instead of local_timer": EventSet(
        (*(name for name in AT_A_WAKE_UP if "local_timer" not in name), "timer/hrtimer_expire_entry")
    ),
    "the other default events": EventSet(tuple(name for name in USUAL if name not in AT_A_WAKE_UP)),
    "sched_switch of the thread, by filter": EventSet((SWITCH,), (OF_THE_THREAD,)),
    "sched_switch of others, by filter": EventSet((SWITCH,), ((FILTER, "prev_pid==1&&next_pid==1", "0"),)),
    "sched_switch of the thread, by set_event_pid": EventSet((SWITCH,), (("set_event_pid", "{tid}", ""),)),
    "sched_switch, not written": EventSet((SWITCH,), (OFF,)),
    "all default events, ring of 16 KiB": EventSet(USUAL, (("buffer_size_kb", "16", BUFFER_KB),)),
    "all default events, without overwriting": EventSet(USUAL, (("options/overwrite", "0", "1"),)),
    "all default events, clock counter": EventSet(USUAL, (("trace_clock", "counter", "mono"),)),
    "all default events, clock mono_raw": EventSet(USUAL, (("trace_clock", "mono_raw", "mono"),)),
    "all default events, clock local": EventSet(USUAL, (("trace_clock", "local", "mono"),)),
    "all default events, clock x86-tsc": EventSet(USUAL, (("trace_clock", "x86-tsc", "mono"),)),
    "nothing (the error of this measurement)": EventSet(),
}


class Others:
    """perf, which records the five events of all CPUs into a ring while it is told to, and a BPF program."""

    def __init__(self, folder: Path, wanted: set[str]) -> None:
        self.bpf = RawBpf() if "bpf" in wanted else None
        self.perf = self._perf(folder) if "perf" in wanted else None
        self.control = (folder / "control").open("w") if self.perf is not None else None
        self.answers = (folder / "answers").open() if self.perf is not None else None
        self.records = False

    def _perf(self, folder: Path) -> subprocess.Popen[bytes]:
        for name in ("control", "answers"):
            os.mkfifo(folder / name)
        events = ",".join(name.replace("/", ":") for name in AT_A_WAKE_UP)
        command = ["perf", "record", "-q", "-a", "-e", events, "--delay=-1", "--overwrite", "--clockid=mono"]
        command += [f"--control=fifo:{folder / 'control'},{folder / 'answers'}"]
        command += [f"--mmap-pages={BUFFER_KB}K", f"--output={folder / 'data'}"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def _say(self, word: str) -> None:
        """Say `enable` or `disable` to perf, and wait until it has done so."""
        assert self.control is not None
        assert self.answers is not None
        print(word, file=self.control, flush=True)
        self.answers.readline()
        self.records = word == "enable"

    def begin_perf(self) -> None:
        self._say("enable")

    def begin_bpf(self) -> None:
        assert self.bpf is not None
        self.bpf.attach(name.partition("/")[2] for name in AT_A_WAKE_UP)

    def end(self) -> None:
        if self.records:
            self._say("disable")
        if self.bpf is not None:
            self.bpf.detach()

    def close(self) -> None:
        if self.perf is not None:
            self.perf.terminate()
            self.perf.wait()


def enabled(instance: Path, events: tuple[str, ...], on: bool) -> None:
    for event in events:
        file = instance / "events" / event / "enable"
        if file.exists():
            file.write_text("1" if on else "0")


@contextmanager
def recorded(instance: Path, chosen: EventSet, tid: int, others: Others) -> Generator[None]:
    """Record these events, and wait until the kernel has changed its code."""
    if chosen.by != "ftrace":
        (others.begin_perf if chosen.by == "perf" else others.begin_bpf)()
        try:
            time.sleep(SETTLE_S)
            yield
        finally:
            others.end()
        return
    for path, value, _ in chosen.files:
        (instance / path).write_text(value.format(tid=tid))
    enabled(instance, chosen.events, True)
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        enabled(instance, chosen.events, False)
        for path, _, old in chosen.files:
            (instance / path).write_text(old)


def one_window(instance: Path, chosen: EventSet, tid: int, others: Others) -> tuple[int, int]:
    """Record one window. Return its begin and end (CLOCK_MONOTONIC, ns)."""
    with recorded(instance, chosen, tid, others):
        begin_ns = time.monotonic_ns()
        time.sleep(WINDOW_S)
        return begin_ns, time.monotonic_ns()


def measuring_thread(pid: int) -> int:
    """Return the engine's thread with real-time priority."""
    while True:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if os.sched_getscheduler(int(task.name)) == os.SCHED_FIFO:
                return int(task.name)
        time.sleep(0.01)


def releases_ns(file: Path) -> tuple[IntArray, IntArray]:
    """Return the releases and the latencies in a file of samples."""
    start_ns = struct.unpack_from("<q", file.read_bytes(), 32)[0]
    latencies_ns = np.fromfile(file, "<i8", offset=64)
    missed = np.cumsum(latencies_ns // INTERVAL_NS)  # after each activation; the file leaves them out
    numbers = np.arange(len(latencies_ns)) + np.append(0, missed[:-1])
    return start_ns + numbers * INTERVAL_NS, latencies_ns


def medians_ns(samples: tuple[IntArray, IntArray], spans: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Return the median latency of the releases in each span."""
    places = {name: np.searchsorted(samples[0], span) for name, span in spans.items()}
    return {name: float(np.median(samples[1][low:high])) for name, (low, high) in places.items()}


W = TypeVar("W")


def rounds_of(options: argparse.Namespace, window: Callable[[EventSet], W]) -> list[dict[str, W]]:
    """Return what `window` returned for each set and for no event, in each round."""
    rounds: list[dict[str, W]] = []
    for _ in range(options.rounds):
        names = [NONE, *options.only]
        random.shuffle(names)
        rounds.append({name: window(SETS.get(name, EventSet())) for name in names})
    return rounds


def wake_ups(
    options: argparse.Namespace, instance: Path, folder: Path, others: Others
) -> list[dict[str, float]]:
    """Return the median latency (ns) with each set of each round."""
    command = [options.engine, "wakeup", "--go", "--cpu", str(options.cpu), "--duration-ns", "0"]
    command += ["--interval-ns", str(INTERVAL_NS), "--samples-dir", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as engine:
        try:
            tid = measuring_thread(engine.pid)
            time.sleep(1)  # until the first release
            rounds = rounds_of(options, lambda chosen: one_window(instance, chosen, tid, others))
        finally:
            engine.terminate()
            engine.wait()
    samples = releases_ns(folder / "samples-0.i64")
    return [medians_ns(samples, windows) for windows in rounds]


def pipe_turns(options: argparse.Namespace, instance: Path, others: Others) -> list[dict[str, float]]:
    """Return the median time (ns) of half a round trip between two processes on one CPU, each of which is one
    wake-up and one switch, with each set of each round.
    """
    os.sched_setaffinity(0, {options.cpu})
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(to_write)
        while os.read(to_read, 1):
            os.write(from_write, b".")
        os._exit(0)

    def one(chosen: EventSet) -> float:
        with recorded(instance, chosen, os.getpid(), others):
            halves_ns: list[float] = []
            for _ in range(TRIPS):
                begin_ns = time.perf_counter_ns()
                os.write(to_write, b".")
                os.read(from_read, 1)
                halves_ns.append((time.perf_counter_ns() - begin_ns) / 2)
            return statistics.median(halves_ns)

    try:
        return rounds_of(options, one)
    finally:
        os.close(to_write)
        os.waitpid(child, 0)
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def show(title: str, rounds: list[dict[str, float]]) -> None:
    """Print the costs: medians of the differences within a round, with intervals."""
    bare = statistics.median(found[NONE] for found in rounds)
    print(f"{title}: {bare / 1000:.2f} us without events, {len(rounds)} rounds")
    for name in sorted(rounds[0].keys() - {NONE}, key=list(SETS).index):
        costs = [found[name] - found[NONE] for found in rounds]
        blocks = sorted(statistics.median(random.choices(costs, k=len(costs))) for _ in range(BLOCKS))
        low, high = blocks[BLOCKS // 20], blocks[-BLOCKS // 20]
        print(f"  {name}: {statistics.median(costs):+.0f} ns ({low:.0f} to {high:.0f})", flush=True)


def main() -> None:
    """Measure in an instance of tracefs, which is removed again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--engine", default="rtgauge-engine")
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(SETS), help="this set; may be repeated")
    options = parser.parse_args()
    options.only = options.only or list(SETS)
    instance = TRACEFS / "instances" / f"rtgauge-bench-{os.getpid()}"
    instance.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        others = Others(Path(folder), {SETS[name].by for name in options.only})
        try:
            (instance / "trace_options").write_text("norecord-cmd")
            (instance / "trace_clock").write_text("mono")
            (instance / "buffer_size_kb").write_text(BUFFER_KB)
            show("half a round trip through pipes", pipe_turns(options, instance, others))
            show("latency of a wake-up", wake_ups(options, instance, Path(folder), others))
        finally:
            others.close()
            instance.rmdir()


if __name__ == "__main__":
    main()
