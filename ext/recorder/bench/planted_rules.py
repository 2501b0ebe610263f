# SPDX-License-Identifier: MIT
"""Watches programs that break one rule for real-time threads each, and programs that break none, and prints
what `watch` found.

    sudo env PYTHONPATH=src:. .venv/bin/python ext/recorder/bench/planted_rules.py FOLDER [--only NAME]

FOLDER must be on a disk: the programs write their files there. The truth is in the programs, which the bench
starts as they are: `planted_rules.c` breaks each rule in one of 50 cycles. A planted rule is found if the
rule is named in one of the expected calls and as often as the program broke it (page faults: at least as
often). Clean programs that are not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from rtgauge.record.broken_rules import BrokenRule, broken_rules
from rtgauge.record.model import Result
from rtgauge.target.engine_path import engine_path
from rtgauge_ext.recorder.tracing import make_instance, remove_instance

HERE = Path(__file__).parent
WATCH_S = 5
LINK = ("veth-rules-0", "veth-rules-1")
PTP_STARTS_S = 12
"""How long ptp4l listens, chooses a master and synchronises."""
EVERY = 50
"""As in planted_rules.c."""
PLANTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "malloc": ("memory", ("mmap", "munmap")),
    "mmap": ("memory", ("mmap", "munmap")),
    "brk": ("memory", ("brk",)),
    "madvise": ("memory", ("madvise",)),
    "mprotect": ("memory", ("mprotect",)),
    "first touch": ("page-fault", ("minor",)),
    "copy on write": ("page-fault", ("minor",)),
    "write": ("disk", ("write",)),
    "pwrite": ("disk", ("pwrite64",)),
    "read": ("disk", ("read",)),
    "fsync": ("disk", ("fsync",)),
    "fdatasync": ("disk", ("fdatasync",)),
    "open": ("disk", ("openat",)),
    "log file": ("disk", ("openat",)),
    "unlink": ("disk", ("unlink", "unlinkat")),
    "truncate": ("disk", ("ftruncate",)),
    "msync": ("disk", ("msync",)),
    "mutex": ("lock", ("futex",)),
    "condition": ("lower-waker", ("futex",)),
    "semaphore": ("lower-waker", ("futex",)),
    "pipe": ("lower-waker", ("read",)),
    "socket": ("lower-waker", ("read",)),
    "poll": ("lower-waker", ("poll",)),
    "thread": ("thread", ("clone", "clone3")),
    "process": ("thread", ("clone", "clone3")),
}
"""What the program breaks -> the rule, and the calls of which one must be named."""


@dataclass(frozen=True)
class WatchedRules:
    """What `watch` said of a program."""

    cycles: int
    rules: list[BrokenRule]


def watch(pid: int, folder: Path) -> WatchedRules:
    """Watch a program with the engine."""
    instance = make_instance("rules")
    try:
        words = ["watch", "--go", f"--pid={pid}", f"--trace-instance={instance}"]
        words += [f"--duration-ns={WATCH_S * 10**9}", "--dma-latency-us=-1"]
        output = subprocess.run(
            [engine_path(), *words], check=False, capture_output=True, text=True, cwd=folder
        ).stdout
    finally:
        remove_instance(instance)
    lines = [line for line in map(json.loads, output.splitlines()) if line["type"] == "result"]
    results = [Result(**{name: line[name] for name in ("name", "labels", "values")}) for line in lines]
    cycles = sum(int(each.values.get("judged_cycles") or 0) for each in results if each.name == "thread")
    return WatchedRules(cycles, broken_rules(results))


@contextlib.contextmanager
def started(command: list[str], folder: Path) -> Generator[int]:
    """Start a program, and end it."""
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        for _ in range(200):  # a planted program says when it is ready
            time.sleep(0.02)
            if "ready" in (folder / "output").read_text(errors="replace"):
                break
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def try_planted(name: str, program: Path, folder: Path) -> bool:
    """Return whether the rule was found, and no other one that the program does not break."""
    rule, calls = PLANTED[name]
    with started([str(program), name], folder) as pid:
        watched = watch(pid, folder)
    right = [each for each in watched.rules if each.rule == rule and each.call in calls]
    broken = watched.cycles / EVERY
    times = sum(each.count for each in right)
    print(f"{name}: {times} times in {broken:.0f} ({watched.cycles} cycles): {words(watched.rules)}")
    least = 0.2 if name == "mutex" else 0.9  # the mutex is free in one of four times, or more under load
    return bool(right) and times >= least * broken


def words(rules: list[BrokenRule]) -> str:
    """Return all of it in one line."""
    return "; ".join(f"{each.rule} {each.call} {each.by} x {each.count}" for each in rules) or "nothing"


def compiled(compiler: list[str], source: Path, folder: Path) -> Path | None:
    """Compile a program; None if there is no such compiler."""
    if shutil.which(compiler[0]) is None:
        return None
    program = folder / source.name.replace(".", "_")
    subprocess.run([*compiler, "-o", program, source], check=True)
    return program


def ptp4l(end: int, folder: Path) -> list[str]:
    """Return a command that runs PTP without a card's clock on one end of the link."""
    options = ["--free_running=1", "--logSyncInterval=-4", f"--uds_address={folder}/ptp-{end}"]
    return ["ptp4l", "-i", LINK[end], "-S", "-2", "-m", *options]


@contextlib.contextmanager
def link() -> Generator[None]:
    """Make a link of two network devices."""
    subprocess.run(["ip", "link", "add", LINK[0], "type", "veth", "peer", "name", LINK[1]], check=True)
    for name in LINK:
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "del", LINK[0]], check=True)


@contextlib.contextmanager
def partner(name: str, folder: Path) -> Generator[None]:
    """Run the other ptp4l, if a program needs one."""
    if not name.startswith("ptp4l") or shutil.which("ptp4l") is None:
        yield
        return
    with link(), started(ptp4l(0 if name.endswith("slave") else 1, folder), folder):
        yield


def clean_programs(folder: Path) -> Iterator[tuple[str, list[str] | None]]:
    """Yield (name, command) of programs that break no rule after their start-up; None: not installed."""
    loops = {
        "C": compiled(["gcc", "-O2", "-pthread"], HERE / "clean_loop.c", folder),
        "C++": compiled(["g++", "-O2", "-pthread"], HERE / "clean_loop.cpp", folder),
        "Rust": compiled(["rustc", "-O"], HERE / "clean_loop.rs", folder),
    }
    real_time = ["chrt", "-f", "40"]
    yield from (
        (f"{language} loop", None if program is None else [*real_time, str(program)])
        for language, program in loops.items()
    )
    (folder / "rt-app.json").write_text(
        json.dumps(
            {
                "global": {
                    "duration": 60,
                    "default_policy": "SCHED_FIFO",
                    "lock_pages": True,
                    "calibration": 10,
                    "logdir": "/dev/shm",
                },
                "tasks": {
                    "thread0": {
                        "priority": 40,
                        "loop": -1,
                        "run": 200,
                        "timer": {"ref": "unique", "period": 2000},
                    }
                },
            }
        )
    )
    commands = {
        "cyclictest": ["cyclictest", "-q", "-m", "-p", "40", "-i", "1000"],
        "cyclictest, two threads": ["cyclictest", "-q", "-m", "-p", "40", "-i", "1000", "-t", "2"],
        "rt-app": ["rt-app", str(folder / "rt-app.json")],
        "jackd": ["jackd", "-R", "-P", "40", "-d", "dummy", "-p", "256", "-r", "48000"],
        "ptp4l, master": [*real_time, *ptp4l(0, folder)],
        "ptp4l, slave": [*real_time, *ptp4l(1, folder), "-s"],
        "rtgauge": [
            *(str(engine_path()), "wakeup", "--go", "--policy=fifo", "--priority=40"),
            *("--interval-ns=1000000", "--duration-ns=60000000000"),
        ],
    }
    for name, command in commands.items():
        program = command[3] if command[0] == "chrt" else command[0]
        yield name, command if shutil.which(program) else None


def main() -> None:
    """Watch all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="only programs whose names contain this")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=str(given.folder)))
    chosen = given.only or ""
    planted = compiled(["gcc", "-O1", "-pthread"], HERE / "planted_rules.c", folder)
    if planted is None:
        raise SystemExit("gcc is missing")
    names = [name for name in PLANTED if chosen in name]
    detected = [name for name in names if try_planted(name, planted, folder)]
    print(f"found {len(detected)} of {len(names)}; missing: {sorted(set(names) - set(detected)) or 'none'}")
    for name, command in clean_programs(folder):
        if chosen not in name:
            continue
        if command is None:
            print(f"{name}: not installed")
            continue
        with partner(name, folder), started(command, folder) as pid:
            if name.startswith("ptp4l"):
                time.sleep(PTP_STARTS_S)
            watched = watch(pid, folder)
        print(f"{name}: {watched.cycles} cycles: {words(watched.rules)}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    main()
