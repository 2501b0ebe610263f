# SPDX-License-Identifier: MIT
"""User-space instructions a sample of the measuring thread, counted by callgrind: the difference of two
lengths, so that the start drops out.

callgrind counts each thread apart. In all three programs the measuring thread is the first that the main
thread starts (2 in callgrind's
numbers). valgrind hides the kernel's clock page from its programs, so that reading the clock is a system call
there and the
page's own instructions, which are the same for all, are in no figure.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from figures import CannotMeasure, Figure, Findings, Repeated
from programs import engine, program, run, say

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT, LONG = 1000, 3000
MEASURING_THREAD = "02"
SHARE_LIMIT = 0.5
STATED = 195
"""Instructions a sample of cyclictest as the project's aim states it; the count differs with the C library.
"""


@dataclass(frozen=True)
class Counted:
    instructions: int
    samples: int


def counted(command: list[str], samples: Callable[[str], int]) -> Counted:
    """`samples` reads from the program's standard output how many it took."""
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as name:
        folder = Path(name)
        valgrind = [
            program("valgrind"),
            "--tool=callgrind",
            "--separate-threads=yes",
            f"--callgrind-out-file={folder / 'out'}",
        ]
        output = run([*valgrind, *command], cwd=folder)
        path = folder / f"out-{MEASURING_THREAD}"
        found = re.search(r"^totals: (\d+)$", path.read_text(), re.MULTILINE) if path.exists() else None
        if found is None:
            raise CannotMeasure(f"callgrind counted no thread {MEASURING_THREAD} of {Path(command[0]).name}")
        return Counted(int(found[1]), samples(output))


def engine_samples(output: str) -> int:
    summary = next(
        document for document in map(json.loads, output.splitlines()) if document["type"] == "summary"
    )
    return int(summary["count"])


def cyclictest_samples(output: str) -> int:
    match = re.search(r"^# Total: (\d+)", output, re.MULTILINE)
    overflows = re.search(r"^# Histogram Overflows: (\d+)", output, re.MULTILINE)
    if match is None or overflows is None:
        raise CannotMeasure("cyclictest did not say how many samples it took")
    return int(match[1]) + int(overflows[1])


def jitterdebugger_samples(output: str) -> int:
    matches = re.findall(r"C:\s*(\d+)", output)
    if not matches:
        raise CannotMeasure("jitterdebugger did not say how many samples it took")
    return int(matches[-1])


def a_sample(command: Callable[[int], list[str]], samples: Callable[[str], int]) -> float:
    repeat = Repeated(1)
    short, long = (repeat(lambda count=count: counted(command(count), samples)) for count in (SHORT, LONG))
    return (long.instructions - short.instructions) / (long.samples - short.samples)


def measure(cpu: int) -> Findings:
    findings = Findings()
    program("valgrind")
    tools: dict[str, tuple[Callable[[int], list[str]], Callable[[str], int]]] = {
        "rtgauge": (
            lambda n: [engine(), "wakeup", "--go", "--cpu", str(cpu), "--warm-up-ns", "0", "--count", str(n)],
            engine_samples,
        ),
        "cyclictest": (
            lambda n: [
                program("cyclictest"),
                "-q",
                "-m",
                "-t",
                "1",
                "-a",
                str(cpu),
                "-p",
                "98",
                "-i",
                "1000",
                "-l",
                str(n),
                "-h",
                "1000",
            ],
            cyclictest_samples,
        ),
        "jitterdebugger": (
            lambda n: [
                program("jitterdebugger"),
                "-v",
                "-a",
                str(cpu),
                "-p",
                "98",
                "-i",
                "1000",
                "-l",
                str(n),
            ],
            jitterdebugger_samples,
        ),
    }
    found: dict[str, float] = {}
    for name, (command, samples) in tools.items():
        say(f"  {name}: {SHORT} and {LONG} samples under callgrind")
        try:
            found[name] = a_sample(command, samples)
        except CannotMeasure as error:
            findings.missing.append(f"instructions a sample of {name}: {error}")
    if "rtgauge" in found and "cyclictest" in found:
        name = "instructions a sample: rtgauge / cyclictest"
        findings.figures.append(Figure(name, [found["rtgauge"] / found["cyclictest"]], at_most=SHARE_LIMIT))
    for name, value in found.items():
        limit = STATED * SHARE_LIMIT if name == "rtgauge" else None
        findings.figures.append(Figure(f"instructions a sample: {name}", [value], "instr.", at_most=limit))
    return findings
