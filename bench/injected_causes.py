# SPDX-License-Identifier: MIT
"""Injects causes of latency beside a real program under `rtgauge watch`, and prints what was injected and what was named.

    sudo python3 bench/injected_causes.py [CAUSE ...]

The truth is by the injectors' own clocks: each writes when it began and ended, CLOCK_MONOTONIC. A cause is a function of `CAUSES`: it injects until its
process gets SIGTERM, and tells when each injection began and ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU = max(os.sched_getaffinity(0))
SECONDS = 6
LEAST_NS, SHARE = 5_000, 0.01
PROGRAM_PRIORITY, HIGHER, LOWER = 40, 60, 20
PERIOD_NS, WORK_NS = 4_000_000, 200_000


def now_ns() -> int:
    """CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def compute(ns: int) -> tuple[int, int]:
    """Work for so long; gives when it began and ended."""
    begin = end = now_ns()
    while end - begin < ns:
        end = now_ns()
    return begin, end


def become(name: str, priority: int, cpu: int = CPU) -> None:
    """Name, SCHED_FIFO priority (0: fair) and CPU of this process."""
    Path("/proc/self/comm").write_text(name)
    os.sched_setaffinity(0, [cpu])
    os.sched_setscheduler(0, os.SCHED_FIFO if priority else os.SCHED_OTHER, os.sched_param(priority))


def pauses() -> Iterator[int]:
    """Sleeps between two injections and gives the length of the next, in ns, until this process is stopped."""
    while True:
        time.sleep(random.uniform(0.03, 0.08))
        yield random.randint(600_000, 1_800_000)


TOLD: list[tuple[int, int]] = []


def tell(begin_ns: int, end_ns: int) -> None:
    """One injection. It is printed at the end: to print it now would keep the CPU for longer than is told."""
    TOLD.append((begin_ns, end_ns))


def print_told(_number: int, _frame: object) -> None:
    """Print all injections and end."""
    for begin_ns, end_ns in TOLD:
        print(begin_ns, end_ns)
    sys.exit(0)


def hog() -> None:
    """A task of a higher priority computes."""
    become("cause-hog", HIGHER)
    for ns in pauses():
        tell(*compute(ns))


def two_hogs() -> None:
    """The same, while another CPU has one too."""
    if os.fork() == 0:
        become("cause-other", HIGHER, min(os.sched_getaffinity(0)))
        for ns in pauses():
            compute(ns)
    hog()


def same_priority() -> None:
    """A task of the same priority computes: FIFO does not take turns."""
    become("cause-same", PROGRAM_PRIORITY)
    for ns in pauses():
        tell(*compute(ns))


@dataclass(frozen=True)
class Cause:
    """`inject` runs in a process of its own; the explanation has to name one of `expected` (a pattern on the culprit's words,
    which may name a second task where the kernel did not trace the switch between them)."""

    name: str
    inject: Callable[[], None]
    expected: str


CAUSES = (
    Cause("hog", hog, r"\bcause-hog\b"),
    Cause("two hogs", two_hogs, r"\bcause-hog\b"),
    Cause("same priority", same_priority, r"\bcause-same\b"),
)


def program(seconds: int) -> None:
    """The program that is watched: a loop with a period, which computes for a while."""
    become("victim", PROGRAM_PRIORITY)
    due = now_ns() + PERIOD_NS
    end = due + seconds * 10**9
    while due < end:
        time.sleep(max(due - now_ns(), 0) / 1e9)
        compute(WORK_NS)
        due += PERIOD_NS


@dataclass(frozen=True)
class Row:
    """One injection and its latency: sizes in ns; `doubts` of the explanation, with `unknown_ns` that it does not attribute."""

    injected_ns: int
    named: str
    named_ns: int
    doubts: tuple[str, ...]
    unknown_ns: int
    right: bool

    @property
    def wrong_without_doubt(self) -> bool:
        """Whether the part is wrong by more than the larger of 5 us and 1 %, and no doubt covers it."""
        off = abs(self.injected_ns - self.named_ns)
        return off > max(LEAST_NS, SHARE * self.injected_ns) and off - self.unknown_ns > max(LEAST_NS, SHARE * self.injected_ns)


def explained(record: str) -> list[dict[str, Any]]:
    """The latencies of a record."""
    done = subprocess.run(["rtgauge", "explain", record, "--json"], capture_output=True, text=True, check=True)
    return [latency for step in json.loads(done.stdout)["steps"] for latency in step["latencies"]]


def judged(cause: Cause, latencies: list[dict[str, Any]], injections: list[tuple[int, int]]) -> list[Row]:
    """A row for each latency that an injection delayed most of."""
    rows: list[Row] = []
    for latency in latencies:
        begin, end = latency["release_ns"], latency["release_ns"] + latency["latency_ns"]
        shared = sum(max(min(end, stop) - max(begin, start), 0) for start, stop in injections)
        if 2 * shared < latency["latency_ns"]:
            continue
        parts = {part["culprit"]: part["ns"] for part in latency["parts"]}
        unknown = {part["culprit"] for part in latency["parts"] if part["kind"] in {"unattributed", "one or the other"}}
        main = max(parts, key=lambda name: parts[name])
        found = sum(ns for name, ns in parts.items() if name not in unknown and re.search(cause.expected, name))
        open_ns = sum(parts[name] for name in unknown)
        rows.append(Row(shared, main, found, tuple(latency["doubts"]), open_ns, re.search(cause.expected, main) is not None))
    return rows


def tried(cause: Cause, folder: Path) -> list[Row]:
    """Injects one cause beside the program, watches it, and judges what the explanations say."""
    log = folder / "injections"
    with log.open("w") as file:
        injector = subprocess.Popen([sys.executable, __file__, "--inject", cause.name], stdout=file, process_group=0)
        try:
            words = ["rtgauge", "watch", "--wait", "5min", "--duration", f"{SECONDS}s", "--save", "--out", str(folder), "--"]
            subprocess.run([*words, sys.executable, __file__, "--program", str(SECONDS + 8)], check=True, stdout=subprocess.DEVNULL)
        finally:
            os.killpg(injector.pid, signal.SIGTERM)
            injector.wait()
    pairs = [(int(words[0]), int(words[1])) for line in log.read_text().splitlines() if len(words := line.split()) == 2]
    records = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    return judged(cause, explained(str(records[-1])), pairs) if records else []


def main() -> None:
    """Tries the causes and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("causes", nargs="*", help=f"of: {', '.join(cause.name for cause in CAUSES)}; default: all")
    parser.add_argument("--inject", help=argparse.SUPPRESS)
    parser.add_argument("--program", type=int, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.inject is not None:
        signal.signal(signal.SIGTERM, print_told)
        next(cause for cause in CAUSES if cause.name == words.inject).inject()
    elif words.program is not None:
        program(words.program)
    else:
        print("| injected | named | latencies | named rightly | injected, largest (us) | named (us) | wrong without a doubt |\n|---|---|---|---|---|---|---|")
        for cause in CAUSES:
            if words.causes and cause.name not in words.causes:
                continue
            with tempfile.TemporaryDirectory() as folder:
                rows = tried(cause, Path(folder))
            largest = max(rows, key=lambda row: row.injected_ns, default=None)
            shown = ("none", "", "") if largest is None else (largest.named, f"{largest.injected_ns / 1000:,.1f}", f"{largest.named_ns / 1000:,.1f}")
            counts = (len(rows), sum(row.right for row in rows))
            wrong = sum(row.wrong_without_doubt for row in rows)
            print(f"| {cause.name} | {shown[0]} | {counts[0]} | {counts[1]} | {shown[1]} | {shown[2]} | {wrong} |", flush=True)


if __name__ == "__main__":
    main()
