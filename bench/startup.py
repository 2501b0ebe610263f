# SPDX-License-Identifier: MIT
"""How long `rtgauge --help` takes, wall time, interleaved with an empty Python and with cyclictest for scale;
and a probe of 1 s with cyclictest for 1 s.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from figures import CannotMeasure, Figure, Findings
from programs import program, say

TIMES, PROBES = 15, 7
LIMIT_S, PROBE_LIMIT_S = 0.20, 1.5


def rtgauge() -> list[str]:
    """The command as it is installed beside this Python; else the package run by it, which is the same
    code.
    """
    beside = shutil.which("rtgauge", path=str(Path(sys.executable).parent))
    return (
        [beside]
        if beside
        else [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'rtgauge'; from rtgauge.cli.main import main; main()",
        ]
    )


def seconds(command: list[str], expect: bytes) -> float:
    begin = time.perf_counter()
    completed = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    took = time.perf_counter() - begin
    if completed.returncode or expect not in completed.stdout + completed.stderr:
        raise CannotMeasure(
            f"{command[0]} failed: "
            f"{(completed.stderr or b'no message').decode(errors='replace').strip().splitlines()[-1]}"
        )
    return took


def measure() -> Findings:
    findings = Findings()
    commands: dict[str, tuple[list[str], bytes, float | None]] = {
        "rtgauge --help": ([*rtgauge(), "--help"], b"probe", LIMIT_S),
        "python -c pass": ([sys.executable, "-c", "pass"], b"", None),
    }
    try:
        commands["cyclictest --help"] = ([program("cyclictest"), "--help"], b"Usage", None)
    except CannotMeasure as error:
        findings.missing.append(f"start of cyclictest: {error}")
    findings.figures += by_turns(commands, TIMES)
    probes: dict[str, tuple[list[str], bytes, float | None]] = {
        "rtgauge probe wakeup --duration 1s": (
            [*rtgauge(), "probe", "wakeup", "--duration", "1s"],
            b"Largest latency",
            PROBE_LIMIT_S,
        )
    }
    if "cyclictest --help" in commands:
        probes["cyclictest --duration=1"] = (
            [program("cyclictest"), "--quiet", "--mlockall", "--priority=98", "--smp", "--duration=1"],
            b"Max:",
            None,
        )
    findings.figures += by_turns(probes, PROBES)
    return findings


def by_turns(commands: dict[str, tuple[list[str], bytes, float | None]], times: int) -> list[Figure]:
    """Each command so often, one after the other: how long it took.

    `commands`: name -> command, what its output has, limit in s.
    """
    say(f"  {times} times each: {', '.join(commands)}")
    for command, expect, _ in commands.values():
        seconds(command, expect)  # once unseen: byte code written, files in the page cache
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, (command, expect, _) in commands.items():
            took[name].append(seconds(command, expect))
    return [Figure(name, took[name], "s", at_most=limit) for name, (_, _, limit) in commands.items()]
