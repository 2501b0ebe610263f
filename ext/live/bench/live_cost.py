# SPDX-License-Identifier: MIT
"""What `--live` costs the measurement: the same step with and without the page, alternately, on the same CPU.

    python ext/live/bench/live_cost.py [--rounds 12] [--seconds 4] [--cpu N]
        [--probe wakeup|tire] [--watching]

With it, a browser's part is played by a client that takes every document and every frame. The two sides are
compared as `rtgauge compare` does it:
`the same within 2 us` are two one-sided tests (TOST) over the quantiles of the runs, at 5 % after correction
for the number of quantiles.

--watching: one run with the page, in which the client comes and goes; each of these times counts as a run. It
leaves out what the page costs
without anybody who looks, and sees much smaller differences, since both sides are seconds apart.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from figures import CannotMeasure
from programs import last_cpu, last_words, say

from rtgauge.analysis.comparison_scope import Scope
from rtgauge.analysis.quantile_difference import Interval, RunFigures, between_runs, holm
from rtgauge.analysis.quantile_interval import RunQuantile
from rtgauge.analysis.sides import Side, sides_of
from rtgauge.record.quantiles import share_of
from rtgauge.record.reader import Record
from rtgauge.record.windows import Chosen, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALPHA = 0.05
WITHIN_NS = 2_000
SHOWN = ("p50", "p99")
LOOKS_S = 4.2
SETTLING_NS = 1_200_000_000
"""The engine is told within a second that somebody looks, or does no longer."""
WORDS = {
    "wakeup": ("wakeup", "--interval", "1ms"),
    "tire": ("tire", "--period", "2ms", "--nodes", "4000", "--speed", "2"),
}
METRIC = {"wakeup": "latency", "tire": "response"}


def _look(url: str, path: str, answer: str | None, cpu: int, until_s: float = math.inf) -> None:
    """Take everything until then, or until the server closes; answer each message where it is expected."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    # Where nothing is measured, if there is such a CPU: a browser is usually on another machine.
    os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0) - {cpu} or {cpu})
    with suppress(WebSocketException, OSError), connect(url.replace("http://", "ws://") + path) as socket:
        for _ in socket:
            if answer is not None:
                socket.send(answer)
            if time.monotonic() > until_s:
                break


def _browse(url: str, probe: str, cpu: int, until_s: float = math.inf) -> None:
    """As a browser with the page open."""
    with ThreadPoolExecutor(2) as pool:
        pool.submit(_look, url, "live", None, cpu, until_s)
        if probe == "tire":
            pool.submit(_look, url, "frames", "", cpu, until_s)


class _ComesAndGoes:
    """A browser that looks for a while and does not for as long.

    `seen`: the times (ns) between which it did for sure, `unseen`: did not.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.unseen: list[tuple[int, int]] = []

    def __call__(self, url: str, probe: str, cpu: int) -> None:
        gone_ns = time.monotonic_ns()
        while True:
            came_ns = time.monotonic_ns()
            self.unseen.append((gone_ns + SETTLING_NS, came_ns))
            _browse(url, probe, cpu, time.monotonic() + LOOKS_S)
            gone_ns = time.monotonic_ns()
            if gone_ns - came_ns < LOOKS_S * 1e9:
                return  # the run has ended
            self.seen.append((came_ns + SETTLING_NS, gone_ns))
            time.sleep(LOOKS_S)


def _turn(
    probe: str,
    cpu: int,
    folder: Path,
    seconds: float,
    *,
    live: bool,
    look: Callable[[str, str, int], None] | None = None,
) -> Record:
    """The record of one turn; `look`(address, probe, CPU) is the browser. Raises CannotMeasure."""
    words = [
        "probe",
        *WORDS[probe],
        "--duration",
        f"{seconds:g}s",
        "--cpu",
        str(cpu),
        "--save",
        "--out",
        str(folder),
        "--wait",
        "10min",
    ]
    command = [
        sys.executable,
        "-c",
        "from rtgauge.cli.main import main; main()",
        *words,
        *(["--live", "127.0.0.1:0"] if live else []),
    ]
    with (
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as run,
        ThreadPoolExecutor(1) as pool,
    ):
        errors: list[str] = []
        assert run.stderr is not None
        for text in run.stderr:
            errors.append(text)
            if text.startswith("live  "):
                pool.submit(look or _browse, text.split()[1], probe, cpu)
        status = run.wait()
    if status:
        raise CannotMeasure(
            f"rtgauge {' '.join(words[:2])} failed (exit status {status}): {last_words(''.join(errors))}"
        )
    (path,) = folder.iterdir()
    return Record.open(path)


def _missed(records: Sequence[Record]) -> str:
    """What missed its deadline or was not activated, of how many."""
    steps = [step for record in records for step in record.steps]
    values = [result.values for step in steps for result in step.results if result.name == "tire"]
    if values:
        return (
            f"{sum(int(v['deadline_missed']) for v in values):,} of "
            f"{sum(int(v['activations']) for v in values):,} deadlines missed"
        )
    totals = [step.total for step in steps if step.total is not None]
    return (
        f"{sum(total.missed for total in totals):,} of "
        f"{sum(total.count + total.missed for total in totals):,} activations missed"
    )


def _frames(records: Sequence[Record]) -> str:
    values = [
        result.values
        for record in records
        for step in record.steps
        for result in step.results
        if result.name == "tire"
    ]
    seconds = sum(int(v["activations"]) for v in values) * 0.002
    frames = sum(int(v["frames"]) for v in values)
    return (
        f"{frames:,} frames copied ({frames / seconds:.1f} a second); "
        f"{sum(int(v['frames_late']) for v in values)} copies ended after the next release"
    )


def _us(ns: int | None) -> str:
    return "no limit" if ns is None else f"{ns / 1000:+.2f}"


def _side(probe: str, record: Record) -> Side:
    (side,) = sides_of([record], Scope(metric=METRIC[probe]) if probe == "tire" else Scope())
    return side


def _inside(windows: Windows, times: Sequence[tuple[int, int]]) -> Chosen:
    """Whether each window lies between two of these times."""
    inside = [(windows.start_ns >= begin) & (windows.end_ns <= end) for begin, end in times]
    return np.any(inside, axis=0)


def _part(side: Side, times: tuple[int, int]) -> Side:
    """The side with the windows between these times only."""
    inside = _inside(side.windows, [times])
    return replace(side, windows=side.windows.chosen(inside), block=side.block[inside], run=side.run[inside])


def _missed_within(record: Record, times: Sequence[tuple[int, int]]) -> str:
    """What missed its deadline (of the tire: also what ended after it, with a slack below 0), or was not
    activated, of how many.
    """
    (step,) = record.steps
    windows = record.windows(step)
    windows = windows.chosen(_inside(windows, times))
    slack = next((series.series for series in step.series if series.metric == "slack"), None)
    released = windows.are_of(step.series[0].series)
    missed = int(windows.missed[released].sum())
    total = int(windows.count[released].sum()) + missed
    if slack is None:
        return f"{missed:,} of {total:,} activations missed"
    bins, counts = windows.bins.total(windows.are_of(slack))
    late = int(counts[bins < 0].sum())
    return f"{missed + late:,} of {total:,} deadlines missed"


def _quantile(side: Side, name: str) -> tuple[int, int]:
    """The ends (ns) of the bin in which a quantile of one run is."""
    quantile = RunQuantile(side.window_counts, share_of(name))
    return quantile.low_ns, quantile.high_ns


def _compare(sides: dict[bool, list[Side]]) -> list[str]:
    """A line a quantile, as `rtgauge compare` says it: each side of a list is a run."""
    lines: list[str] = []
    intervals: dict[str, tuple[Interval, list[float]]] = {}
    for name in SHOWN:
        ends = {live: [_quantile(side, name) for side in of_live] for live, of_live in sides.items()}
        with_page, without = (
            RunFigures([low for low, _ in ends[live]], [high for _, high in ends[live]])
            for live in (True, False)
        )
        means = [sum(figures.high_ns) / len(figures.high_ns) / 1000 for figures in (without, with_page)]
        intervals[name] = between_runs(with_page, without).interval(alpha=ALPHA, within_ns=WITHIN_NS), means
    corrected = holm([interval.p_not_within for interval, _ in intervals.values()])
    for (name, (interval, values)), p in zip(intervals.items(), corrected, strict=True):
        finding = (
            f"the same within {WITHIN_NS / 1000:g} us"
            if p < ALPHA
            else f"not shown to be the same within {WITHIN_NS / 1000:g} us"
        )
        lines.append(
            f"{name}: {values[0]:.1f} us without, {values[1]:.1f} us with; difference "
            f"{_us(interval.low_ns)} .. {_us(interval.high_ns)} us "
            f"(95 %), {finding} (p = {p:.2g})"
        )
    return lines


def measure(probe: str, cpu: int, rounds: int, seconds: float) -> list[str]:
    """What `rounds` turns of each side show; the sides change places from round to round.

    Raises CannotMeasure.
    """
    sides: dict[bool, list[Record]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for live in (False, True) if number % 2 else (True, False):
                sides[live].append(_turn(probe, cpu, Path(folder) / f"{number}-{live}", seconds, live=live))
            say(f"  {probe}: round {number + 1} of {rounds}")
        lines = _compare(
            {live: [_side(probe, record) for record in records] for live, records in sides.items()}
        )
        lines.append(f"without {_missed(sides[False])}, with {_missed(sides[True])}")
        return [*lines, _frames(sides[True])] if probe == "tire" else lines


def measure_watching(probe: str, cpu: int, rounds: int) -> list[str]:
    """What one run shows in which a browser comes `rounds` times. Raises CannotMeasure."""
    look = _ComesAndGoes()
    with tempfile.TemporaryDirectory() as folder:
        record = _turn(probe, cpu, Path(folder) / "watching", rounds * 2 * LOOKS_S + 1, live=True, look=look)
        side = _side(probe, record)
        times = {True: look.seen, False: look.unseen}
        looks = {live: [_part(side, each) for each in within] for live, within in times.items()}
        looks = {live: [each for each in of_live if len(each.windows)] for live, of_live in looks.items()}
        lines = [f"{len(looks[True])} times with a browser, {len(looks[False])} without", *_compare(looks)]
        lines.append(
            f"without {_missed_within(record, times[False])}, with {_missed_within(record, times[True])}"
        )
        return [*lines, *([_frames([record])] if probe == "tire" else [])]


def main() -> int:
    """Print both probes' lines."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--seconds", type=float, default=4, help="of one turn")
    options.add_argument("--cpu", type=int, default=last_cpu())
    options.add_argument("--watching", action="store_true", help="one run, in which a browser comes and goes")
    options.add_argument("--probe", action="append", choices=list(WORDS))
    chosen = options.parse_args()
    for probe in chosen.probe or WORDS:
        print(
            f"{' '.join(WORDS[probe])}: {chosen.rounds} rounds of "
            f"{LOOKS_S if chosen.watching else chosen.seconds:g} s each, CPU {chosen.cpu}"
        )
        try:
            lines = (
                measure_watching(probe, chosen.cpu, chosen.rounds)
                if chosen.watching
                else measure(probe, chosen.cpu, chosen.rounds, chosen.seconds)
            )
            print(*(f"  {text}" for text in lines), sep="\n", flush=True)
        except CannotMeasure as error:
            print(f"  not measured: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
