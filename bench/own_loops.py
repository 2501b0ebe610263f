# SPDX-License-Identifier: MIT
"""Compares what `rtgauge watch` says of people's own loops with what these loops say themselves.

    sudo python bench/own_loops.py [--only absolute,timerfd] [--duration 8] [--busy] [--json FILE]

The programs in bench/own_loops log their own releases, starts and ends, which are joined with watch's
samples release by release. Requirements allow twice and half of the share that was late in truth: watch must
say HOLDS and FAILS. Exit status: 0; 1 if a loop deviates; 3 if one could not be measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy.typing as npt

    Times = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

SOURCES = Path(__file__).parent / "own_loops"
BUILD = {
    "c": ["gcc", "-O2", "-pthread", "loops.c", "-o", "{folder}/loops-c"],
    "c++": ["g++", "-std=c++20", "-O2", "-pthread", "loops.cpp", "-o", "{folder}/loops-c++"],
    "java": ["javac", "-d", "{folder}", "Loops.java"],
    "go": ["go", "build", "-o", "{folder}/loops-go", "loops.go"],
    "rust": ["rustc", "--edition", "2024", "-O", "-o", "{folder}/loops-rust", "loops.rs"],
}
RUN = {
    "c": ["{folder}/loops-c"],
    "c++": ["{folder}/loops-c++"],
    "python": [sys.executable, str(SOURCES / "loops.py")],
    # its threads are real-time as the others' are: an ordinary one waits for few releases on a busy machine
    "java": ["chrt", "--fifo", "40", "java", "-cp", "{folder}", "Loops"],
    "go": ["{folder}/loops-go"],
    "rust": ["{folder}/loops-rust"],
}
CLOSE_NS = 20_000
WITHIN = 0.999
EDGE = 1
"""Releases by which the counts may differ, because the measured phase cuts an activation."""
SPREAD = 1.33
"""By how much the true share may change within CLOSE_NS of a bound."""
SHARES = (0.02, 0.95)
"""The true shares that requirements are made from."""
LEAST_LATE = 25
"""Fewer late releases are too few to tell their share within a factor of 2."""
RUN_FATE, CAUGHT_UP, SKIPPED, DATA = range(4)
UNKNOWN_NS = 0
"""An end in the log that has not come, or a release that the program does not know."""
HELD_S = 1800
UNDER_LOAD = """
(cd "$0" && setsid --fork sh -c 'echo $$ >pid.new && mv pid.new pid && exec stress-ng "$@"' - \\
    --quiet --cpu 0 --hdd 1 --sock 1 --timeout "$1" >/dev/null 2>&1)
shift
exec "$@"
"""
"""Runs a command under load in the folder $0. The load is no child of the command: watch follows those."""
LOAD_MORE_S = 120
"""By how much the load may last longer than the measured phase, should this program be killed."""
WAIT = "30min"
RECORD = 4
"""Numbers of a cycle in a log."""
HEADER_BYTES = 64


@dataclass(frozen=True)
class Loop:
    """A loop to measure."""

    name: str
    language: str = "c"
    period_us: int = 1000
    work_us: int = 100
    long_every: int = 50
    """0: none of its cycles is long."""
    long_us: int = 3500
    fifo: int = 40
    pinned: bool = True
    threads: str | None = None
    cycle: str | None = None
    """What to say with --cycle."""
    on_a_grid: bool = True
    """Its releases are on a grid whose points all count."""
    knows_releases: bool = True
    """Whether the program knows its releases; else only starts and ends are compared."""
    close_ns: int = CLOSE_NS
    """By how much its own times may differ from the kernel's."""
    compared: bool = True
    """False: watch cannot measure its cycles; only the verdicts count."""
    unclear: str = ""
    """Why "cannot tell" is a right answer."""


INTERPRETER_NS = 150_000
"""How long an interpreter may work between the return of the kernel's wait and the program."""
SKIPS = "no event shows whether it skipped its points or ran them late"


def _python(name: str) -> Loop:
    return Loop(name, "python", 10_000, 500, 20, 35_000, close_ns=INTERPRETER_NS, unclear=SKIPS)


LOOPS = (
    Loop("absolute"),
    Loop("relative", on_a_grid=False),
    Loop("c++-sleep-until", "c++", unclear=SKIPS),
    Loop("c++-wait-until", "c++"),
    Loop("rate", unclear=SKIPS),
    Loop("skip", unclear=SKIPS),
    Loop("timerfd", unclear=SKIPS),
    Loop("epoll", unclear=SKIPS),
    Loop("posix-timer", unclear=SKIPS),
    Loop("setitimer", unclear=SKIPS),
    Loop("condition"),
    Loop("condition-wall"),
    # the kernel's timer wheel wakes it
    Loop("receive", period_us=8000, long_us=20_000, on_a_grid=False, knows_releases=False),
    # the kernel chooses its grid
    Loop(
        "deadline",
        period_us=10_000,
        work_us=1000,
        long_us=6000,
        long_every=20,
        fifo=0,
        pinned=False,
        knows_releases=False,
    ),
    Loop("poller", compared=False, unclear="it never sleeps"),
    Loop("two-sleeps", unclear="two waits of one period"),
    Loop("two-periods"),
    Loop("executor", work_us=50),
    Loop("lock", long_every=0),
    Loop("lock-inheriting", long_every=0),
    Loop("c++-atomic-wait", "c++", long_every=0, unclear=SKIPS),
    Loop("disk", long_every=0),
    Loop("sensor"),
    # the handler works between the return of the kernel's wait and the program
    Loop("signals", close_ns=50_000),
    Loop("stopped", long_every=0),
    _python("asyncio"),
    _python("py-threads"),
    _python("py-event"),
    Loop(
        "java-executor",
        "java",
        5000,
        500,
        0,
        fifo=0,
        pinned=False,
        threads="java-executor",
        close_ns=INTERPRETER_NS,
        unclear=SKIPS,
    ),
    Loop(
        "go-ticker",
        "go",
        5000,
        500,
        0,
        fifo=0,
        pinned=False,
        compared=False,
        unclear="its work moves between threads",
    ),
    Loop("turns", compared=False, unclear="its work moves between threads"),
    Loop("rust-sleep", "rust", long_every=0, unclear=SKIPS),
    Loop("io-uring", on_a_grid=False),
    Loop(
        "data", on_a_grid=False, threads="data", long_us=400, unclear="no event shows when queued data came"
    ),
    Loop("churn", period_us=10_000, compared=False, unclear="its threads live for one cycle", long_every=20),
    Loop("hang", unclear="one hang is too few to tell a share"),
    Loop("ends", unclear="its thread ends"),
)


@dataclass
class Truth:
    """What the program logged of the measured phase."""

    release: Times
    start: Times
    end: Times
    """UNKNOWN_NS: not in the measured phase, or never."""
    fate: Times
    end_ns: int
    late_starts: int = 0
    """Activations that began after the end, which watch may count or not."""

    @property
    def ran(self) -> Flags:
        """Those that waited for their release, and began."""
        return np.isin(self.fate, (RUN_FATE, DATA)) & (self.start != UNKNOWN_NS)

    @property
    def ends_seen(self) -> Flags:
        """Those after which it waited again, so that an event shows their end."""
        return np.append(self.fate[1:] != CAUGHT_UP, True) & (self.fate != CAUGHT_UP)

    def late(self, metric: str, bound_ns: int) -> float:
        """The share that broke a bound. What had not ended counts with its age."""
        reached = self.start if metric == "latency" else self.end
        age = np.where(reached == UNKNOWN_NS, self.end_ns, reached) - self.release
        return float(np.count_nonzero((age > bound_ns) | (self.fate == SKIPPED)) / len(age))

    def bound(self, metric: str) -> tuple[int, float] | None:
        """Choose a bound that some releases break, the farthest from all of them.

        Return it with the share that breaks it, or None if a difference of CLOSE_NS changes each share.
        """
        reached = self.start if metric == "latency" else self.end
        values = np.sort((reached - self.release)[(reached != UNKNOWN_NS) & (self.fate != SKIPPED)])
        best: tuple[int, float] | None = None
        widest = 0.0
        for low, high in itertools.pairwise(values):
            middle = int(low + high) // 2
            if middle < CLOSE_NS or (high - low) / middle <= widest:
                continue
            share = self.late(metric, middle)
            if (
                max(SHARES[0], LEAST_LATE / len(self.release)) <= share <= SHARES[1]
                and self.late(metric, middle - CLOSE_NS) <= SPREAD * share
                and SPREAD * self.late(metric, middle + CLOSE_NS) >= share
            ):
                best, widest = (middle, share), (high - low) / middle
        return best


@dataclass
class Row:
    """The comparison of one loop."""

    loop: str
    releases: tuple[int, int] = (0, 0)
    """In truth, and by watch; likewise below."""
    activations: tuple[int, int] = (0, 0)
    overruns: tuple[int, int] = (0, 0)
    late: dict[str, tuple[int, float, float, float]] = field(
        default_factory=dict[str, tuple[int, float, float, float]]
    )
    """A bound in ns, the share that was late in truth, and the least and the most by watch."""
    within: dict[str, float] = field(default_factory=dict[str, float])
    """The share of the activations whose value is within 20 us of the program's own."""
    verdicts: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """The requirement, the right word, and the word of watch."""
    deviations: list[str] = field(default_factory=list[str])
    marks: list[str] = field(default_factory=list[str])
    error: str = ""


class CannotMeasureError(Exception):
    """A loop could not be measured."""


def build(folder: Path, languages: set[str]) -> set[str]:
    """Build the programs, and return the languages that this machine has."""
    have: set[str] = {"python"}
    for language in sorted(languages - have):
        command = [word.format(folder=folder) for word in BUILD[language]]
        try:
            completed = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            print(f"{command[0]} is not installed: the loops in {language} are left out", file=sys.stderr)
            continue
        if completed.returncode:
            print(f"{' '.join(command)}: {completed.stderr}", file=sys.stderr)
            continue
        have.add(language)
    return have


@contextmanager
def load(busy: bool, duration_s: int) -> Generator[list[str]]:
    """Yield the words before a command that start programs that use CPUs, a disk and sockets; end these
    afterwards. `watch` starts its command once it holds the machine's lock.
    """
    if not busy:
        yield []
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield ["sh", "-c", UNDER_LOAD, folder, f"{duration_s + LOAD_MORE_S}s"]
        finally:
            pid = Path(folder, "pid")
            if pid.exists():
                stress = os.pidfd_open(int(pid.read_text()))
                signal.pidfd_send_signal(stress, signal.SIGTERM)
                select.select([stress], [], [])
                os.close(stress)


def run(command: list[str]) -> tuple[int, str, str]:
    """The exit status and the output of a command, which ends with this program."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=HELD_S)
        except BaseException:
            process.terminate()
            raise
        return process.returncode, out, err


def watch(
    loop: Loop, rtgauge: str, folder: Path, duration_s: int, under: list[str]
) -> tuple[Path, dict[str, Any]]:
    """Watch the loop, which the words `under` start. Return the record and its step. Raises
    CannotMeasureError.
    """
    records = folder / f"{loop.name}-records"
    program = [word.format(folder=folder) for word in RUN[loop.language]]
    options = {
        "log": folder / f"{loop.name}.log",
        "period-us": loop.period_us,
        "work-us": loop.work_us,
        "long-us": loop.long_us,
        "long-every": loop.long_every,
        "fifo": loop.fifo,
        "cpu": max(os.sched_getaffinity(0)) if loop.pinned else -1,
        **({"trouble-ms": 1000 * (duration_s // 2 + 4)} if loop.language == "c" else {}),
    }
    command = [rtgauge, "watch", "--duration", f"{duration_s}s", "--save", "--out", str(records), "--json"]
    command += ["--samples", str(folder / f"{loop.name}.samples"), "--wait", WAIT]
    if loop.threads:
        command += ["--threads", loop.threads]
    if loop.on_a_grid:
        command += ["--period", f"{loop.period_us}us"]
    if loop.cycle:
        command += ["--cycle", loop.cycle]
    command += ["--", *under, *program, loop.name]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    _, out, err = run(command)
    found = list(records.glob("*/run.json"))
    try:
        (step,) = json.loads(out)["steps"]
        return found[0].parent, step
    except (ValueError, KeyError, IndexError):
        words = [line for line in err.splitlines() if line.strip()]
        raise CannotMeasureError(words[-1] if words else "no output") from None


def read_log(path: Path, loop: Loop, begin_ns: int, end_ns: int) -> Truth:
    """The program's own account of the measured phase. Raises CannotMeasureError."""
    try:
        log = np.fromfile(path, "<i8").reshape(-1, RECORD)
    except OSError:
        raise CannotMeasureError("the program wrote no log") from None
    release, start, end, fate = log.T.copy()
    if loop.name == "java-executor":  # it computes them from the time left, and may be preempted meanwhile
        period_ns = loop.period_us * 1000
        first_ns = (
            int(release[0])
            + int(np.median((release - release[0] + period_ns // 2) % period_ns))
            - period_ns // 2
        )
        release = first_ns + np.rint((release - first_ns) / period_ns).astype(np.int64) * period_ns
    release = np.where(release == UNKNOWN_NS, start, release)
    if loop.name == "hang":
        period_ns = loop.period_us * 1000
        missing: Times = np.arange(int(release[-1]) + period_ns, end_ns, period_ns, dtype=np.int64)
        none: Times = np.full_like(missing, UNKNOWN_NS)
        release, start, end = (
            np.concatenate(pair) for pair in ((release, missing), (start, none), (end, none))
        )
        fate = np.concatenate((fate, np.full_like(missing, SKIPPED)))
    inside = (release >= begin_ns) & (release < end_ns)
    if not inside.any():
        raise CannotMeasureError("the program's log has no release in the measured phase")
    late_starts = int(np.count_nonzero(inside & (start > end_ns)))
    start, end = np.where(start > end_ns, UNKNOWN_NS, start), np.where(end > end_ns, UNKNOWN_NS, end)
    return Truth(release[inside], start[inside], end[inside], fate[inside], end_ns, late_starts)


def samples(record: Path, step: dict[str, Any], loop: Loop, metric: str) -> Times:
    """The times and values of all threads of the loop in the measured phase, in time order."""
    found = [np.empty((0, 2), np.int64)]
    for series in step["series"]:
        if series["metric"] == metric and (not loop.threads or loop.threads in series["labels"]["task"]):
            path = record / "steps" / step["id"] / f"samples-{series['series']}.i64"
            found.append(np.fromfile(path, "<i8", offset=HEADER_BYTES).reshape(-1, 2))
    all_of_them = np.concatenate(found)
    inside = (all_of_them[:, 0] >= step["start_ns"]) & (all_of_them[:, 0] < step["end_ns"])
    chosen = all_of_them[inside]
    return chosen[np.argsort(chosen[:, 0], kind="stable")]


def within(truth: Truth, measured: Times, metric: str, loop: Loop) -> float:
    """The share of the program's activations for which watch has a value close to the program's.

    Each is joined with watch's activation whose start (or end) is nearest to the program's.
    """
    reached = truth.start if metric == "latency" else truth.end
    chosen = truth.ran & (reached != UNKNOWN_NS)
    if metric == "response":
        chosen &= truth.ends_seen
    if not chosen.any():
        return 1.0
    if not len(measured):
        return 0.0
    own_reached, own_value = reached[chosen], (reached - truth.release)[chosen]
    told = measured.sum(axis=1)
    order = np.argsort(told)
    told, value = told[order], measured[order, 1]
    after = np.clip(np.searchsorted(told, own_reached), 1, max(len(told) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(told) - 1)
    nearest = np.where(np.abs(told[after] - own_reached) < np.abs(told[before] - own_reached), after, before)
    close = np.abs(told[nearest] - own_reached) <= loop.close_ns
    if loop.knows_releases:
        close &= np.abs(value[nearest] - own_value) <= loop.close_ns
    return float(np.count_nonzero(close) / len(close))


def judge(rtgauge: str, record: Path, requirement: str) -> str:
    """The word of the verdict, in capitals. Raises CannotMeasureError."""
    _, out, err = run([rtgauge, "show", str(record), "--require", requirement, "--json"])
    try:
        return str(json.loads(out)["run"]["verdicts"][0]["word"]).upper()
    except (ValueError, KeyError, IndexError):
        raise CannotMeasureError(f"{requirement}: {err.strip() or 'no verdict'}") from None


def compare(loop: Loop, rtgauge: str, folder: Path, duration_s: int, *, busy: bool) -> Row:
    """Watch a loop, and compare. Raises CannotMeasureError."""
    row = Row(loop.name)
    with load(busy, duration_s) as under:
        record, step = watch(loop, rtgauge, folder, duration_s, under)
    row.marks = sorted({mark["name"] for mark in step["marks"]})
    truth = read_log(folder / f"{loop.name}.log", loop, step["start_ns"], step["end_ns"])
    measured = {metric: samples(record, step, loop, metric) for metric in ("latency", "response")}
    overruns = samples(record, step, loop, "overrun")
    missed = len(overruns)
    activations = max(len(measured["latency"]), len(measured["response"]))
    ran = int(truth.ran.sum())
    row.releases = (len(truth.release), activations + missed)
    row.activations = (ran, activations)
    row.overruns = (len(truth.release) - ran, missed)
    compared = loop.compared and not (loop.unclear and "cycle-unclear" in row.marks)
    for name in ("releases", "activations", "overruns") if compared else ():
        own, told = getattr(row, name)
        if abs(own - told) > EDGE + truth.late_starts:
            row.deviations.append(f"{told:,} of {own:,} {name}")
    for metric, series in measured.items():
        row.within[metric] = within(truth, series, metric, loop)
        if row.within[metric] < WITHIN and compared:
            row.deviations.append(
                f"{metric} of {row.within[metric]:.2%} within {loop.close_ns / 1000:.0f} us"
            )
        bound = truth.bound(metric)
        if bound is not None and (loop.knows_releases or metric == "response"):
            bound_ns, share = bound
            late = np.count_nonzero(series[:, 1] > bound_ns)
            least, most = late + np.count_nonzero(overruns[:, 1] > bound_ns), late + missed
            told = (float(least / max(activations + missed, 1)), float(most / max(activations + missed, 1)))
            row.late[metric] = (bound_ns, share, *told)
            _judge_both(row, loop, rtgauge, record, metric)
    return row


def _agrees(right: str, word: str) -> bool:
    """A requirement that holds may hold with little margin."""
    return word == right or (right == "HOLDS" and word == "MARGINAL")


def _judge_both(row: Row, loop: Loop, rtgauge: str, record: Path, metric: str) -> None:
    """Judge requirements that allow twice and half of the true share."""
    bound_ns, share, _, _ = row.late[metric]
    period = f"period={loop.period_us}us " if loop.on_a_grid else ""
    for allowed, right in ((2 * share, "HOLDS"), (share / 2, "FAILS")):
        if allowed >= 1:
            continue
        requirement = f"{period}{metric}<={bound_ns / 1000:.0f}us hardness={100 * (1 - allowed):.4f}%"
        word = judge(rtgauge, record, requirement)
        row.verdicts.append((requirement, right, word))
        if not _agrees(right, word) and not (loop.unclear and word == "CANNOT TELL"):
            row.deviations.append(f"{word} instead of {right}: {requirement}")


def _range(least: float, most: float) -> str:
    text = f"{least:.2%}"
    return text if text == f"{most:.2%}" else f"{text} to {most:.2%}"


def table(rows: list[Row]) -> str:
    """The comparison as a table in Markdown."""
    lines = [
        "| loop | releases | activations | overruns | late | within 20 us: latency, response | verdicts |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.error:
            lines.append(f"| {row.loop} | {row.error} | | | | | |")
            continue
        counts = [
            f"{own:,}" if own == told else f"{own:,} ({told:,})"
            for own, told in (row.releases, row.activations, row.overruns)
        ]
        late = ", ".join(
            f"{metric} > {bound_ns / 1000:,.0f} us: {own:.2%} ({_range(least, most)})"
            for metric, (bound_ns, own, least, most) in row.late.items()
        )
        close = ", ".join(
            f"{row.within[metric]:.1%}" if metric in row.within else "-" for metric in ("latency", "response")
        )
        right = sum(_agrees(expected, word) for _, expected, word in row.verdicts)
        unsure = sum(word == "CANNOT TELL" for _, _, word in row.verdicts)
        verdicts = f"{right} of {len(row.verdicts)} right" + (f", {unsure} cannot tell" if unsure else "")
        lines.append(f"| {row.loop} | {' | '.join(counts)} | {late or '-'} | {close} | {verdicts} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of loops, separated by commas")
    parser.add_argument("--duration", type=int, default=8, help="measured time of each loop, in s")
    parser.add_argument("--busy", action="store_true", help="load the machine with stress-ng meanwhile")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--rtgauge", default="rtgauge")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else [loop.name for loop in LOOPS]
    unknown = set(names) - {loop.name for loop in LOOPS}
    if unknown:
        parser.error(
            f"no loop is named {', '.join(sorted(unknown))}: {', '.join(loop.name for loop in LOOPS)}"
        )
    if arguments.busy and shutil.which("stress-ng") is None:
        parser.error("--busy needs stress-ng: apt install stress-ng")
    loops = [loop for loop in LOOPS if loop.name in names]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[Row] = []
    status = 0
    with tempfile.TemporaryDirectory(prefix="rtgauge-own-loops-") as name:
        folder = Path(name)
        try:
            have = build(folder, {loop.language for loop in loops})
            for loop in loops:
                if loop.language not in have:
                    rows.append(Row(loop.name, error=f"{loop.language} is not there"))
                    continue
                try:
                    row = compare(loop, arguments.rtgauge, folder, arguments.duration, busy=arguments.busy)
                except CannotMeasureError as error:
                    row = Row(loop.name, error=str(error))
                rows.append(row)
                if arguments.json:
                    arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
                deviations = row.error or "; ".join(row.deviations) or "agrees"
                print(f"{loop.name}: {deviations}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            status = 130
    print(table(rows))
    if status:
        return status
    return 3 if any(row.error for row in rows) else int(any(row.deviations for row in rows))


if __name__ == "__main__":
    sys.exit(main())
