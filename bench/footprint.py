# SPDX-License-Identifier: MIT
"""Size on disk and resident memory while two CPUs are measured at 1 ms without raw samples, beside cyclictest
and jitterdebugger.

Resident memory is the largest so far (VmHWM) after two seconds, with memory locked, as all three do it. The
engine is static: its size is all of it;
the others use shared libraries that are not in theirs, but in their resident memory.
"""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from figures import CannotMeasure, Figure, Findings
from programs import engine, last_words, program, say

WAIT_S = 2.0
SECONDS = 30
"""Each program's own limit; it is told to end long before."""
MIB = 1 << 20
SIZE_LIMIT_MIB, RESIDENT_LIMIT_MIB = 1.6, 4.0
PT_INTERP = 3


def is_static(path: Path) -> bool:
    """Whether an ELF program of this machine's kind (little-endian) asks for no dynamic loader."""
    head = path.read_bytes()
    wide = head[4] == 2
    offset = struct.unpack_from("<Q" if wide else "<I", head, 32 if wide else 28)[0]
    size, count = struct.unpack_from("<HH", head, 54 if wide else 42)
    return all(struct.unpack_from("<I", head, offset + i * size)[0] != PT_INTERP for i in range(count))


def resident_mib(command: list[str], least_cpu_threads: int) -> float:
    """Largest resident memory (MiB) of a measuring program after WAIT_S.

    Raises CannotMeasure where it did not measure.
    """
    name = Path(command[0]).name
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            time.sleep(WAIT_S)
            if process.poll() is not None:
                output.seek(0)
                raise CannotMeasure(f"{name} ended at once: {last_words(output.read()) or 'no message'}")
            status = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
    fields = dict(re.findall(r"^(\w+):\s+(\d+)", status, re.MULTILINE))
    if int(fields["Threads"]) <= least_cpu_threads:
        raise CannotMeasure(f"{name} measured fewer than {least_cpu_threads} CPUs")
    return int(fields["VmHWM"]) / 1024


def measure() -> Findings:
    findings = Findings()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        findings.missing.append("resident memory on 2 CPUs: this machine allows one only; measured on that")
    both = ",".join(map(str, cpus))
    path = Path(engine())
    findings.figures.append(
        Figure(
            "engine on disk",
            [path.stat().st_size / MIB],
            "MiB",
            at_most=SIZE_LIMIT_MIB,
            note="static" if is_static(path) else "NOT static",
        )
    )
    commands = {
        "engine": [str(path), "wakeup", "--go", "--cpu", both, "--duration-ns", str(SECONDS * 10**9)],
        "cyclictest": [
            "-q",
            "-m",
            "-a",
            both,
            "-t",
            str(len(cpus)),
            "-d",
            "0",
            "-p",
            "98",
            "-i",
            "1000",
            "-D",
            str(SECONDS),
            "-h",
            "1000",
        ],
        "jitterdebugger": ["-a", both, "-p", "98", "-i", "1000", "-D", f"{SECONDS}s"],
    }
    for name, command in commands.items():
        try:
            full = command if name == "engine" else [program(name), *command]
            if name != "engine":
                size = Path(full[0]).stat().st_size / MIB
                findings.figures.append(
                    Figure(
                        f"{name} on disk",
                        [size],
                        "MiB",
                        note="" if is_static(Path(full[0])) else "without its shared libraries",
                    )
                )
            say(f"  {name}: resident memory")
            limit = RESIDENT_LIMIT_MIB if name == "engine" else None
            title = f"{name} resident, {len(cpus)} CPUs"
            findings.figures.append(Figure(title, [resident_mib(full, len(cpus))], "MiB", at_most=limit))
        except CannotMeasure as error:
            findings.missing.append(f"resident memory of {name}: {error}")
    return findings
