# SPDX-License-Identifier: MIT
"""Watches three threads that wait for one another over pipes, sockets, eventfds, condition variables and
between processes, and compares the explained chains with the programs' own clocks.

    sudo env PYTHONPATH=src:. .venv/bin/python bench/wait_chains.py [--seconds 10]

A chain is right if it has the three threads in order, the last one does what it did, and each time differs
from the clock's by at most 0.3 ms and 5 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Explanation
from rtgauge.explain.analysis.thread_path import Phase
from rtgauge.explain.analysis.wait_chain import chain_words
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.target.engine_path import engine_path

SOURCE = Path(__file__).with_name("planted_chains.c")
KINDS = ("pipe", "socket", "eventfd", "condition", "processes")
NAMES = ["chain-a", "chain-b", "chain-c"]
INSTANCES = Path("/sys/kernel/tracing/instances")
ABOVE_NS = 4_000_000


class Cycle(NamedTuple):
    """What the program's clocks say of a cycle."""

    end_ns: int
    times_ns: tuple[int, ...]
    sleeps: bool


def logged(text: str) -> list[Cycle]:
    """Return the whole cycles in the program's output."""
    words = [line.split() for line in text.splitlines()]
    return [
        Cycle(int(line[0]), tuple(map(int, line[1:4])), line[4] == "sleeps")
        for line in words
        if len(line) == 5
    ]


def is_right(found: Explanation, cycle: Cycle) -> bool:
    """Return whether the chain is what the clocks say."""
    chain = found.chain
    phase = Phase.BLOCKED if cycle.sleeps else Phase.RUNNING
    return (
        [link.name for link in chain] == NAMES
        and chain[-1].phase is phase
        and all(
            abs(link.ns - truth_ns) <= 300_000 + 0.05 * truth_ns
            for link, truth_ns in zip(chain, cycle.times_ns, strict=True)
        )
    )


def watched(program: Path, kind: str, seconds: int) -> tuple[list[Explanation], list[Cycle]]:
    """Run the program and watch it."""
    instances = [INSTANCES / f"rtgauge-chains-{part}" for part in ("watch", "explain")]
    for instance in instances:
        instance.mkdir()
    try:
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen([program, kind], stdout=output)
            words = ["watch", "--go", f"--pid={process.pid}", f"--trace-instance={instances[0].name}"]
            words += ["--threads=chain-a", f"--explain-instance={instances[1].name}"]
            words += [f"--explain-above-ns={ABOVE_NS}", "--explain-buffer-kb=4096", "--dma-latency-us=-1"]
            words += [f"--duration-ns={seconds * 10**9}"]
            try:
                said = subprocess.run(
                    ["nice", "-n", "-19", engine_path(), *words], check=True, capture_output=True, text=True
                ).stdout
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            cycles = logged(output.read())
    finally:
        for instance in instances:
            instance.rmdir()
    lines = [json.loads(line) for line in said.splitlines()]
    formats = TraceFormats.read(next(line for line in lines if line["type"] == "trace_formats"))
    moments = [read_moment(formats, line) for line in lines if line["type"] == "moment"]
    responses = [each for each in moments if not each.is_wait and each.latency_ns >= ABOVE_NS]
    return [explain(moment, formats.symbols) for moment in responses], cycles


def main() -> None:
    """Try each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    seconds: int = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "planted_chains"
        subprocess.run(["gcc", "-O1", "-pthread", "-o", program, SOURCE], check=True)
        for kind in KINDS:
            explained, cycles = watched(program, kind, seconds)
            right, wrong = 0, ""
            for found in explained:
                begin_ns, end_ns = found.moment.release_ns, found.moment.end_ns + 100_000
                cycle = next((each for each in cycles if begin_ns < each.end_ns <= end_ns), None)
                if cycle is not None and is_right(found, cycle):
                    right += 1
                    continue
                wrong = wrong or f"{found.chain} instead of {cycle}; {'; '.join(found.doubts)}"
            words = chain_words(explained[0].chain) if explained else ""
            print(f"{kind}: {right} of {len(explained)} right, such as: {words}")
            if wrong:
                print(f"  wrong: {wrong}")


if __name__ == "__main__":
    main()
