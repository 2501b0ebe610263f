# SPDX-License-Identifier: MIT
"""Injects causes of latency into or next to a real program under `rtgauge watch`, and prints what was
injected and what was named.

    sudo .venv/bin/python ext/selftest/bench/injected_causes.py [--json] [--keep FOLDER] [CAUSE ...]
    .venv/bin/python ext/selftest/bench/injected_causes.py --guest NAME [CAUSE ...]

With --guest, the programs run in a running x86-64 guest of the lab, with fewer pages and timers, because an
emulated processor is slow. Causes of one kind of program take turns there in one run, because to start a run
takes a minute. A cause that the guest cannot show is left out, and said.

The truth is by the programs' own clocks: an injector reads CLOCK_MONOTONIC when an injection begins and when
it ends, and the program that is watched tells when it ran. In between, as from the last reading of an
injector to the first one of the program, nobody's clock tells: a part may be so much larger. The programs are
in injected_causes.c, which is compiled first. The kernel needs the controllers cpu and freezer of cgroup v1
for three causes, and preempt=none or voluntary for the long system call. What judges is imported only to
judge.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import io
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rtgauge.explain.analysis.explanation import Culprit, Explanation, Part

CPU, OTHER_CPU = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
RTGAUGE = str(Path(sys.executable).with_name("rtgauge"))
SECONDS = 5
LEAST_NS, SHARE = 5_000, 0.01
PROGRAM_PRIORITY = 40
PERIOD_NS, WORK_NS = 4_000_000, 200_000
GROUPS = (
    "/sys/fs/cgroup/freezer/rtgauge-cause",
    "/sys/fs/cgroup/unified/rtgauge-cause",
    "/sys/fs/cgroup/cpu/rtgauge-cause",
)
LONGEST_LEAVE_NS = 50_000
"""From a program's last reading of the clock, or the end of its sleep, until it may be throttled."""
TURN_MS = 500
"""In a run with several causes."""
GUEST_PLACE = "/var/tmp/rtgauge-causes"
"""On a disk, for the causes that wait for one."""


def throttlings(log: Iterable[Sequence[int]]) -> list[tuple[int, int, int, int]]:
    """The throttlings in the gaps of a program's clock, as injected_causes.c writes both down.

    The kernel may have counted one before the counter was read or after, and one may have begun during the
    reading.
    """
    found: list[tuple[int, int, int, int]] = []
    gaps: list[tuple[int, int]] = []
    awake_ns: dict[int, int] = {}
    before_ns, used = 0, (-1, -1)
    for begin, end, read, counted_ns, awake in log:
        if awake:
            awake_ns = {begin: awake}
        if begin != used[0]:  # not the reading of before
            gaps.append((begin, end))
        grown_ns = counted_ns - before_ns
        if grown_ns > 0:
            reading = (end, read)
            long_enough = [gap for gap in [reading, *gaps] if gap[1] - gap[0] >= grown_ns]
            if long_enough:  # else it began while the program slept
                used = long_enough[-1]
                after_ns = min(used[1] - used[0] - grown_ns, LONGEST_LEAVE_NS)
                found.append((used[0], used[0] + grown_ns, awake_ns.get(used[0], 0), after_ns))
            before_ns = counted_ns
            gaps.clear()
    return found


def compiled(folder: Path) -> Path:
    """The programs of the causes, without libraries so that they run in a guest too."""
    source, program = Path(__file__).with_suffix(".c"), folder / "injected_causes"
    subprocess.run(["cc", "-O2", "-static", "-pthread", "-o", str(program), str(source)], check=True)
    return program


def interpreter_lock(folder: str, cpu: int, other_cpu: int, small: bool) -> list[str]:
    """A program in Python. Another thread keeps the interpreter's lock in one long operation."""
    longest = 40_000 if small else 150_000
    return ["python3", "-c", PYTHON, folder, *map(str, (cpu, other_cpu, longest, PERIOD_NS, WORK_NS))]


PYTHON = r"""
import json, os, random, signal, sys, threading, time
folder = sys.argv[1]
cpu, other_cpu, longest, period, work = map(int, sys.argv[2:])
told, ran, now = [], [], time.monotonic_ns

def write(*_):
    with open(f"{folder}/told-{os.getpid()}", "w") as file:
        json.dump({"told": told, "ran": ran}, file)
    os._exit(0)

def become(name, priority, on):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(name)
    os.sched_setaffinity(0, [on])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

def keep():
    become("cause-lock", 20, other_cpu)
    while True:
        time.sleep(random.uniform(0.03, 0.08))
        begin, _, end = now(), 3 ** random.randint(longest * 3 // 5, longest), now()
        told.append((begin, end, 0, 0))

signal.signal(signal.SIGTERM, write)
threading.Thread(target=keep, daemon=True).start()
become("victim", 40, cpu)
due = now() + period
while True:
    if now() < due:
        time.sleep(max(due - now(), 0) / 1e9)
    start = end = begin = now()
    while end - begin < work:
        time_ns = now()
        if time_ns - end > 60_000:
            ran.append((start, end))
            start = time_ns
        end = time_ns
    ran.append((start, end))
    due += period
"""


def java(folder: str, _cpu: int, _other_cpu: int, _small: bool) -> list[str]:
    """A program in Java that is stopped while its memory is collected."""
    source, classes = Path(folder, "Cause.java"), Path(folder, "classes")
    source.write_text(JAVA)
    subprocess.run(["javac", "-d", str(classes), str(source)], check=True)
    words = ["chrt", "-f", str(PROGRAM_PRIORITY), "java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", str(classes)]
    return [*words, "Cause", folder, str(PERIOD_NS), str(WORK_NS), str(SECONDS + 30)]


JAVA = r"""
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;

class Cause {
    static final List<long[]> ran = Collections.synchronizedList(new ArrayList<>());
    static final List<long[]> told = Collections.synchronizedList(new ArrayList<>());
    static final Object[] live = new Object[100_000];

    public static void main(String[] words) throws Exception {
        long period = Long.parseLong(words[1]), work = Long.parseLong(words[2]);
        long until = System.nanoTime() + Long.parseLong(words[3]) * 1_000_000_000L;
        for (int i = 0; i < live.length; i++)
            live[i] = new byte[16];
        Thread collector = new Thread(() -> {
            Random random = new Random();
            while (true) {
                LockSupport.parkNanos(30_000_000 + random.nextInt(50_000_000));
                long begin = System.nanoTime();
                System.gc();
                told.add(new long[] {begin, System.nanoTime(), 0, 0});
            }
        }, "collector");
        collector.setDaemon(true);
        Thread victim = new Thread(() -> {
            long due = System.nanoTime() + period;
            while (due < until) {
                for (long now = System.nanoTime(); now < due; now = System.nanoTime())
                    LockSupport.parkNanos(due - now);
                long begin = System.nanoTime(), start = begin, end = begin;
                while (end - begin < work) {
                    long now = System.nanoTime();
                    if (now - end > 20_000) {
                        ran.add(new long[] {start, end});
                        start = now;
                    }
                    end = now;
                }
                ran.add(new long[] {start, end});
                due += period;
            }
        }, "victim");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                String text = "{\"told\": " + lists(told) + ", \"ran\": " + lists(ran) + "}";
                Files.writeString(Path.of(words[0], "told-java"), text);
            } catch (java.io.IOException error) {
                throw new RuntimeException(error);
            }
        }));
        victim.start();
        collector.start();
        victim.join();
    }

    static String lists(List<long[]> rows) {
        StringJoiner text = new StringJoiner(", ", "[", "]");
        for (long[] row : rows.toArray(new long[0][]))
            text.add(Arrays.toString(row));
        return text.toString();
    }
}
"""


def children(_folder: str, cpu: int, _other_cpu: int, _small: bool) -> list[str]:
    """A real program whose children have the real-time threads."""
    words = "stress-ng --cyclic 1 --cyclic-policy fifo --cyclic-prio"
    times = f"{PROGRAM_PRIORITY} --cyclic-sleep {PERIOD_NS} --taskset {cpu} --timeout {SECONDS + 30}"
    return [*words.split(), *times.split()]


@dataclass(frozen=True)
class Cause:
    """The explanation has to name one of `expected`, a pattern on the culprit's words, which may name a
    second task where the kernel did not trace the switch between them. `beside`: an injector runs next to the
    program. `program`: its command line, if it is not of injected_causes.c, of the trial's folder, the CPU,
    another one, and whether the processor is slow. `inside`: kinds of parts that belong to an injection as
    its injector sees it. `options`: of watch. `kind`: causes of one kind may take turns. `needs`: a script
    that prints why a guest cannot show it.
    """

    name: str
    expected: str
    beside: bool = False
    program: Callable[[str, int, int, bool], list[str]] | None = None
    inside: tuple[str, ...] = ()
    options: tuple[str, ...] = ("--threads", "victim")
    above: str = "500us"
    """Longer latencies than this are explained."""
    kind: str = ""
    needs: str = ""
    by_gap: bool = False
    """The injector knows when the kernel begins, and the program, which works then, how long it did not run.
    """
    least_ns: int = 400_000
    """Shorter latencies are not of this cause: what it takes to stop a thread, or to wake it again."""
    unsure_ns: int = 100_000
    unsure_before_ns: int = 0
    """How long after an injection, and before it, at most the program may have waited for what was injected.
    """
    may_end_early: bool = False
    """The injector reads its clock later than the program goes on."""
    runs: int = 1
    """Of waits only a new maximum is explained, which are few in a run."""
    times: int = 1
    """How much longer a run is than others."""


OWN = ("own work",)
SIZE_DOUBTS = ("was throttled", "the end of a page fault", "the host of this virtual machine")
"""Words of the doubts that say how much of a latency may be something else."""
UNKNOWN = {"unattributed", "one or the other", "page fault or own work"}
"""Kinds of parts that are a doubt by their name."""
SLEEPS = (
    *OWN,
    "blocked",
    "page fault",
    "lock owner",
    "lock owner asleep",
    "task",
    "idle exit",
    "wake-up on another CPU",
    "preemption off",
)
MACHINE = (
    "irq",
    "interrupt",
    "softirq",
    "NMI",
    "switch",
    "wake-up",
    "timer late",
    "steal",
    "no software ran",
)
TWO_CPUS = "[ $(nproc) -gt 1 ] || echo it has one CPU"
JAVA_IS_THERE = "command -v java >/dev/null || echo it has no Java"
MODES = "/sys/kernel/debug/sched/preempt"
VOLUNTARY = (
    f"grep -qE '[(](none|voluntary)[)]' {MODES} || echo its kernel preempts system calls, $(cat {MODES})"
)
CAUSES = (
    Cause("task of a higher priority", r"\bcause-hog\b", beside=True, kind="plain"),
    Cause("the same, and one on another CPU", r"\bcause-hog\b", beside=True, needs=TWO_CPUS),
    Cause(
        "hog while another loop uses up the budget",
        r"\bcause-hog\b",
        beside=True,
        options=("--threads", "victim,cause-second"),
        runs=3,
    ),
    Cause("task of the same priority", r"\bcause-same\b", beside=True, kind="plain"),
    Cause("fair program next to a busy task", r"\bcause-busy\b", beside=True),
    # the timer is still on the CPU that the program left, which may be idle when it expires
    Cause(
        "moved to a busy CPU",
        r"\bcause-hog\b",
        beside=True,
        inside=("preemption off", "idle exit"),
        needs=TWO_CPUS,
    ),
    Cause(
        "long system call of a lower task",
        r"preemption off in cause-call",
        beside=True,
        inside=OWN,
        needs=VOLUNTARY,
        kind="plain",
    ),
    Cause(
        "network softirq",
        r"softirq NET_RX",
        beside=True,
        inside=(*OWN, "preemption off", "task"),
        kind="plain",
    ),
    Cause(
        "many timers at once",
        r"local timer interrupt|hrtimer",
        beside=True,
        inside=(*OWN, "preemption off"),
        by_gap=True,
        kind="plain",
    ),
    # other fair programs get some of the time too
    Cause(
        "real-time throttling",
        r"throttling|fair server",
        beside=True,
        inside=OWN,
        unsure_ns=10**9,
        unsure_before_ns=10**9,
        times=4,
    ),
    Cause("SIGSTOP", r"stopped", beside=True, inside=SLEEPS, kind="plain"),
    Cause("debugger", r"stopped", beside=True, inside=SLEEPS, kind="plain"),
    Cause("frozen cgroup", r"blocked.* until cause-freezer", beside=True, inside=SLEEPS, kind="plain"),
    Cause(
        "frozen cgroup, version 2", r"blocked.* until cause-freezer", beside=True, inside=SLEEPS, kind="plain"
    ),
    # after a throttling it waits for its turn, which its clock does not tell apart
    Cause(
        "CPU quota of its cgroup",
        r"quota",
        inside=(*OWN, "task"),
        above="2ms",
        times=4,
    ),
    Cause("starved producer", r"\bcause-hog\b", runs=5),
    Cause("held lock", r"cause-owner with the lock", inside=SLEEPS, runs=5, kind="waits"),
    Cause(
        "lock with inheritance, owner on another CPU",
        r"spin for a lock of cause-owner|cause-owner with the lock",
        inside=SLEEPS,
        needs=TWO_CPUS,
    ),
    Cause(
        "lock whose owner is in fdatasync",
        r"cause-owner asleep in fdatasync with the lock",
        inside=SLEEPS,
    ),
    Cause("priority inversion, third task", r"\bcause-third\b", runs=5, kind="waits"),
    Cause("another thread's mprotect", r"\bcause-mapping\b", inside=SLEEPS, kind="pages"),
    Cause(
        "another thread has Python's lock",
        r"cause-lock",
        program=interpreter_lock,
        inside=SLEEPS,
        may_end_early=True,
    ),
    Cause(
        "Java collects memory",
        r"VM Thread",
        program=java,
        inside=SLEEPS,
        needs=JAVA_IS_THERE,
        may_end_early=True,
    ),
    Cause("page faults", r"page fault", inside=OWN, kind="pages"),
    Cause("copies on write", r"copy on write", inside=OWN, kind="pages"),
    Cause(
        "own work between page faults",
        r"thread victim itself",
        inside=("page fault", "page fault or own work"),
        kind="pages",
    ),
    Cause("fdatasync", r"fdatasync", inside=SLEEPS, kind="waits"),
    Cause("its own long work", r"thread victim itself", inside=("page fault",), kind="waits"),
    Cause("hog next to the program's children", r"\bcause-hog\b", beside=True, program=children, options=()),
)


@dataclass(frozen=True)
class Row:
    """One injection and its latency: sizes in ns; `wrong_ns`: by how much the part is wrong beyond what is
    said to be open.
    """

    injected_ns: int
    unsure_ns: int
    named: str
    named_ns: int
    unknown_ns: int
    doubts: tuple[str, ...]
    right: bool
    wrong_ns: int
    sentence: str

    @property
    def is_wrong(self) -> bool:
        """Whether it is wrong without a doubt by more than the larger of 5 us and 1 %."""
        return self.is_off and not any(words in doubt for doubt in self.doubts for words in SIZE_DOUBTS)

    @property
    def is_off(self) -> bool:
        """Whether it is wrong by so much, with or without a doubt of all of it."""
        return self.wrong_ns > max(LEAST_NS, SHARE * self.injected_ns)


@functools.cache
def explained(record: Path) -> list[Explanation]:
    """The latencies of a record, with the waits for others."""
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.record.reader import Record

    return [
        known
        for step in explained_steps(Record.open(record))
        for known in (*step.explanations, *step.blocked)
    ]


def is_expected(cause: Cause, culprit: Culprit) -> bool:
    """Whether this is the cause. A timer that was late while a task ran is not the task: the CPU may have
    stood still.
    """
    from rtgauge.explain.analysis.explanation import Kind, culprit_name

    return (
        culprit.kind is not Kind.TIMER_LATE and re.search(cause.expected, culprit_name(culprit)) is not None
    )


def injected_ns(cause: Cause, part: Part, injections: list[tuple[int, int, int, int]]) -> int:
    """How long a part of the name that is expected is. Interrupts come of themselves too: only those count
    that an injection touches.
    """
    if not cause.by_gap:
        return part.ns
    return sum(
        end - start
        for start, end, _ in part.spans
        if any(first < end and start < last for _, _, first, last in injections)
    )


def judged(
    cause: Cause, latencies: list[Explanation], injections: list[tuple[int, int, int, int]]
) -> list[Row]:
    """A row for each latency that an injection delayed most of."""
    from rtgauge.explain.analysis.explanation import culprit_name, sentence
    from rtgauge.explain.analysis.ranking import ranked_culprits

    rows: list[Row] = []
    for latency in latencies:
        begin, end = latency.moment.release_ns, latency.moment.release_ns + latency.latency_ns
        touching = [known for known in injections if known[0] < end and begin < known[1]]
        least = sum(min(end, stop) - max(begin, start) for start, stop, _, _ in touching)
        most = sum(min(end, last) - max(begin, first) for _, _, first, last in touching)
        if 2 * least < latency.latency_ns or latency.latency_ns < cause.least_ns:
            continue
        named = [(culprit_name(part.culprit), part) for part in latency.parts]
        parts: dict[str, int] = {}
        for name, part in named:
            parts[name] = parts.get(name, 0) + part.ns
        unknown = {name for name, part in named if part.culprit.kind in UNKNOWN}
        main = ranked_culprits([latency])[0].culprit
        found_ns = sum(
            injected_ns(cause, part, injections)
            for name, part in named
            if name not in unknown and is_expected(cause, part.culprit)
        )
        inside = sum(
            part.ns
            for _, part in named
            if part.culprit.kind in {*MACHINE, *cause.inside} and not is_expected(cause, part.culprit)
        )
        open_ns = sum(parts[name] for name in unknown)
        wrong = max(found_ns - most, least - found_ns - inside - open_ns, 0)
        rows.append(
            Row(
                least,
                most - least,
                culprit_name(main),
                found_ns,
                open_ns,
                tuple(latency.doubts),
                is_expected(cause, main),
                wrong,
                sentence(latency),
            )
        )
    return rows


def in_guest(guest: str, script: str, **files: Any) -> bytes:
    """What a script prints in a guest of the lab. Raises CalledProcessError if it fails."""
    command = [RTGAUGE, "lab", "shell", guest, script]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **files).stdout


class Local:
    """Runs the programs of a trial on this machine."""

    place: tuple[str, ...] = ()

    def __init__(self, folder: Path, program: Path) -> None:
        self._program, self.folder = program, str(folder)
        self._injector: subprocess.Popen[bytes] | None = None

    def watched(self, causes: Sequence[Cause]) -> list[str]:
        """The command line of the program that is watched."""
        if causes[0].program is not None:
            return causes[0].program(self.folder, CPU, OTHER_CPU, False)
        return self._command("within", causes)

    def inject(self, causes: Sequence[Cause]) -> None:
        """Start the injector."""
        self._injector = subprocess.Popen(self._command("beside", causes), process_group=0)

    def end(self) -> None:
        """End the injector, and let the programs write down what they told."""
        if self._injector is not None:
            os.killpg(self._injector.pid, signal.SIGTERM)
            self._injector.wait()
        time.sleep(0.2)  # for its children to write down what they told
        for group in map(Path, GROUPS):
            if group.exists():
                group.rmdir()

    def _command(self, role: str, causes: Sequence[Cause]) -> list[str]:
        words = [role, self.folder, str(CPU), str(OTHER_CPU), str(TURN_MS), "full"]
        return [str(self._program), *words, *(cause.name for cause in causes)]


class InGuest:
    """Runs the programs of a trial in a guest, whose processor is slow."""

    def __init__(self, folder: Path, guest: str) -> None:
        self._local, self._guest = folder, guest
        self.place = ("--target", f"lab:{guest}")
        self._there = f"{GUEST_PLACE}/trial"
        cpus = in_guest(guest, f"rm -rf {self._there}; mkdir {self._there}; nproc")
        self._cpus = int(cpus) - 1, 0

    def watched(self, causes: Sequence[Cause]) -> list[str]:
        """The command line of the program that is watched."""
        if causes[0].program is not None:
            return causes[0].program(self._there, *self._cpus, True)
        return self._command("within", causes)

    def inject(self, causes: Sequence[Cause]) -> None:
        """Start the injector."""
        write = f"echo $$ >{self._there}/injector; exec {shlex.join(self._command('beside', causes))}"
        files = f"</dev/null >{self._there}/injector.log 2>&1"
        in_guest(self._guest, f"setsid sh -c {shlex.quote(write)} {files} &")

    def end(self) -> None:
        """End the injector, wait until the programs have written down what they told, and fetch it."""
        # a cause within the program has no injector, and a program in Python tells nobody its number
        stop = f"cd {self._there}; touch injector victim injector.log; set -- $(sed 's/^/-/' injector)"
        stop += '; [ $# = 0 ] || kill -TERM "$@"; set -- "$@" $(cut -d" " -f1 victim)'
        wait = 'for _ in $(seq 50); do kill -0 "$@" 2>/dev/null || break; sleep 0.1; done; sleep 0.3'
        fetch = "tar cf - injector.log $(ls told-*)"
        told = in_guest(self._guest, f"{stop}; {wait}; rmdir {' '.join(GROUPS)} 2>/dev/null; {fetch}")
        with tarfile.open(fileobj=io.BytesIO(told)) as tar:
            tar.extractall(self._local, filter="data")

    def _command(self, role: str, causes: Sequence[Cause]) -> list[str]:
        words = [role, self._there, *map(str, self._cpus), str(TURN_MS), "small"]
        return [f"{GUEST_PLACE}/injected_causes", *words, *(cause.name for cause in causes)]


def prepare_guest(guest: str, program: Path) -> None:
    """Copy the programs to a guest, and mount the controllers of cgroup v1 that the causes need."""
    mounts = "".join(
        f"mkdir -p {place}; grep -q {place} /proc/mounts || mount -t cgroup -o {name} {name} {place}; "
        for name, place in ((name, f"/sys/fs/cgroup/{name}") for name in ("cpu", "freezer"))
    )
    copy = f"cat >{GUEST_PLACE}/injected_causes && chmod +x {GUEST_PLACE}/injected_causes"
    with program.open("rb") as file:
        in_guest(guest, f"mkdir -p {GUEST_PLACE} /sys/fs/cgroup/unified; {mounts} {copy}", stdin=file)


def tried(causes: Sequence[Cause], folder: Path, seconds: int, program: Path, guest: str | None) -> bool:
    """Injects causes in turn, watches the program, and leaves the record and what all told in the folder.
    Gives whether it did.
    """
    trial = Local(folder, program) if guest is None else InGuest(folder, guest)
    if any(cause.beside for cause in causes):
        trial.inject(causes)
    watch = [RTGAUGE, "watch", *trial.place, "--wait", "20min", "--duration", f"{seconds}s"]
    save = [
        "--explain-above",
        causes[0].above,
        *causes[0].options,
        "--save",
        "--out",
        str(folder / "records"),
    ]
    command = [*watch, *save, "--", *trial.watched(causes)]
    try:
        with (folder / "output").open("w") as output:
            run = subprocess.Popen(command, stdout=output, stderr=output)
            while run.poll() is None and not list(folder.glob("records/*/SHA256SUMS")):
                time.sleep(0.2)
    finally:
        trial.end()
    run.terminate()  # nobody needs the page of a complete record
    run.wait()
    if not list(folder.glob("records/*/SHA256SUMS")):
        print(folder.joinpath("output").read_text(), file=sys.stderr)
        return False
    return True


def rows_of(cause: Cause, folder: Path) -> list[Row]:
    """Judges what a trial left in its folder of one of its causes."""
    documents = [json.loads(file.read_text()) for file in folder.glob("told-*")]
    ran = sorted(tuple(known) for document in documents for known in document["ran"])
    documents = [document for document in documents if document.get("cause", cause.name) == cause.name]
    reported = [tuple(injection) for document in documents for injection in document["told"]]
    reported += [found for document in documents for found in throttlings(document.get("throttled", []))]
    if cause.by_gap:
        gaps = [(before[1], after[0]) for before, after in itertools.pairwise(ran)]
        injections = [
            (*gap, *gap) for due, end, *_ in reported for gap in gaps if gap[0] - WORK_NS < due < gap[1] < end
        ]
    else:
        known = sorted(bounded(cause, *injection, ran) for injection in reported)
        begins = [*(injection[0] for injection in known), sys.maxsize][1:]
        ends = [0, *(injection[1] for injection in known)][:-1]
        injections = [
            (begin, end, max(first, before), min(last, after))
            for (begin, end, first, last), before, after in zip(known, ends, begins, strict=True)
        ]
    records = list((folder / "records").iterdir())
    return judged(cause, explained(records[-1]), injections)


def bounded(
    cause: Cause, begin_ns: int, end_ns: int, before_ns: int, after_ns: int, ran: list[tuple[int, int]]
) -> tuple[int, int, int, int]:
    """An injection: begin and end by its own clock, and the first and the last time at which the program did
    not run around it.
    """
    if not ran:
        return begin_ns, end_ns, begin_ns - before_ns, end_ns + after_ns
    if cause.beside or cause.may_end_early:
        # a reading of its clock that comes after the program ran is too late
        next_run = bisect.bisect_right(ran, (begin_ns, sys.maxsize))
        end_ns = min(end_ns, ran[next_run][0]) if next_run < len(ran) else end_ns
    after = bisect.bisect_left(ran, (end_ns, 0))
    last = ran[after][0] if after < len(ran) else end_ns
    first = max(
        begin_ns - max(before_ns, cause.unsure_before_ns),
        max((stop for _, stop in ran[max(after - 5, 0) : after] if stop <= begin_ns), default=0),
    )
    return begin_ns, end_ns, first, min(last, end_ns + cause.unsure_ns)


def summary(cause: Cause, rows: list[Row]) -> dict[str, Any]:
    """What the table has of one cause."""
    right = [row for row in rows if row.right]
    answers = [row.named for row in rows]
    return {
        "injected": cause.name,
        "latencies": len(rows),
        "right": len(right),
        "named": statistics.mode(answers) if answers else "",
        "unsure_ns": statistics.median([row.unsure_ns for row in rows]) if rows else 0,
        "doubted": sum(bool(row.doubts) for row in rows),
        "off": sum(row.is_off for row in rows),
        "wrong": sum(row.is_wrong for row in rows),
        "largest_wrong_ns": max((row.wrong_ns for row in rows if row.is_wrong), default=0),
        "rows": [asdict(row) for row in rows],
    }


def table_row(row: dict[str, Any]) -> str:
    """A summary as a row of the table."""
    cells = [str(row[key]) for key in ("injected", "named", "latencies", "right", "doubted")]
    wrong = f"{row['wrong']}, {row['largest_wrong_ns'] / 1000:,.1f}" if row["wrong"] else "0"
    return f"| {' | '.join([*cells, wrong])} | {row['unsure_ns'] / 1000:,.1f} |"


def together(causes: Iterable[Cause], *, are_together: bool) -> list[list[Cause]]:
    """The causes of each run."""
    kinds: dict[str, list[Cause]] = {}
    for cause in causes:
        kinds.setdefault(cause.kind if are_together and cause.kind else cause.name, []).append(cause)
    return list(kinds.values())


def main() -> None:
    """Tries the causes and prints the table."""
    names = [cause.name for cause in CAUSES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", metavar="CAUSE", help=f"of: {'; '.join(names)}; default: all")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of each trial; default: {SECONDS}")
    parser.add_argument("--json", action="store_true", help="a line of JSON a cause, with every latency")
    parser.add_argument("--keep", type=Path, help="a folder that does not exist yet: it gets the records")
    parser.add_argument("--runs", type=int, default=5, help="of a cause, at most; default: 5")
    parser.add_argument("--guest", metavar="NAME", help="a running guest of the lab in which to try them")
    words = parser.parse_args()
    if not words.json:
        print(
            "| injected | named | latencies | named correctly | with a doubt | wrong without a "
            "doubt, by at most (us) | known within (us) |"
        )
        print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        program = compiled(Path(place))
        chosen = [cause for cause in CAUSES if not words.causes or cause.name in words.causes]
        if words.guest is not None:
            prepare_guest(words.guest, program)
            lacks = {
                cause: in_guest(words.guest, cause.needs).decode().strip() for cause in chosen if cause.needs
            }
            for cause, lack in lacks.items():
                if lack:
                    print(f"{cause.name}: not in {words.guest}: {lack}", file=sys.stderr)
            chosen = [cause for cause in chosen if not lacks.get(cause)]
        for number, causes in enumerate(together(chosen, are_together=words.guest is not None)):
            with tempfile.TemporaryDirectory() as folder:
                tries = [Path(folder, str(run)) for run in range(min(causes[0].runs, words.runs))]
                seconds = words.seconds * len(causes) * causes[0].times
                for run in tries:
                    run.mkdir()
                good = [run for run in tries if tried(causes, run, seconds, program, words.guest)]
                for cause in causes:
                    row = summary(cause, [row for run in good for row in rows_of(cause, run)])
                    print(json.dumps(row) if words.json else table_row(row), flush=True)
                if words.keep is not None:
                    shutil.copytree(folder, words.keep / str(number))


if __name__ == "__main__":
    main()
