# SPDX-License-Identifier: MIT
"""Proof of `rtgauge tune` on a guest of the lab, with faults that this machine cannot have: an interrupt that
may be moved, on the measured CPU, and a bad clock source.

Run on a quiet machine, from the root of the repository: `python -m bench.tune_faults_lab GUEST RESULTS`. The
guest must run. Every try is a line of the file RESULTS; a second call goes on after the last one.

Not planted: a deep idle state. An emulated guest has none: its CPUs have no cpuidle driver.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tune_faults import CPU, LEAST_EFFECT, RTGAUGE, short, tuned

PORT = 5299
CLOCK = "/sys/devices/system/clocksource/clocksource0"
NETWORK_IRQ = "$(grep -l . /proc/irq/*/virtio*-input.0/../smp_affinity_list)"
TRIES = 10


@dataclass(frozen=True)
class Fault:
    """Commands in the guest: what plants the fault, and what takes it away. `server`: it needs a flood of
    packets from here.
    """

    name: str
    plant: str
    remove: str
    fixed_by: str
    server: bool = False


FAULTS = (
    Fault(
        "network interrupt on the CPU",
        f"for file in {NETWORK_IRQ}; do echo {CPU} > $file; done; "
        f"taskset 1 iperf3 -c 10.0.2.2 -p {PORT} -R -t 36000 -b 100M >/dev/null 2>&1 </dev/null &",
        f"killall iperf3; for file in {NETWORK_IRQ}; do echo 0-1 > $file; done",
        "irqs-on-isolated",
        server=True,
    ),
    Fault(
        "clock source of the ACPI timer",
        f"cat {CLOCK}/current_clocksource > /tmp/clock; echo acpi_pm > {CLOCK}/current_clocksource",
        f"cat /tmp/clock > {CLOCK}/current_clocksource",
        "clock-source",
    ),
)


def in_guest(guest: str, command: str) -> str:
    """What a command printed."""
    words = [*RTGAUGE, "lab", "shell", guest, f"sh -c {shlex.quote(command)}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout


@contextmanager
def planted(guest: str, fault: Fault) -> Generator[None]:
    """The fault, as long as this is entered."""
    words = ["iperf3", "-s", "-p", str(PORT)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL) if fault.server else None
    try:
        in_guest(guest, fault.plant)
        yield
    finally:
        in_guest(guest, fault.remove)
        if server is not None:
            server.kill()
            server.wait()


def kept_us(guest: str) -> float:
    """What 99 % of a FIFO thread's activations kept, in 5 s at 10 ms."""
    words = ["probe", "wakeup", "--target", f"lab:{guest}", "--cpu", str(CPU), "--duration", "5s"]
    words += ["--interval", "10ms", "--json", "--wait", "30min"]
    done = subprocess.run([*RTGAUGE, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout)["steps"][0]["series"][0]["filled"]["p99_ns"] / 1000


def a_try(guest: str, fault: Fault, number: int) -> dict[str, Any]:
    """One planted fault, tuned. The bound is between the guest with the fault and without it."""
    clean_us = kept_us(guest)
    with planted(guest, fault):
        faulty_us = kept_us(guest)
        line: dict[str, Any] = {
            "fault": fault.name,
            "clean_us": round(clean_us),
            "faulty_us": round(faulty_us),
        }
        if faulty_us < LEAST_EFFECT * clean_us:
            return line
        require = f"period=10ms latency<={math.sqrt(clean_us * faulty_us):.0f}us hardness=99%"
        words = ["--target", f"lab:{guest}", "--duration", "3s", "--seed", str(number)]
        result = tuned(require, *words)
    return {**line, **short(result), "fixed": fault.fixed_by in short(result)["kept"]}


def main() -> None:
    """Measure what is missing, and print each try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guest")
    parser.add_argument("results", type=Path)
    parser.add_argument("--tries", type=int, default=TRIES, help="of each fault")
    given = parser.parse_args()
    done = len(given.results.read_text().splitlines()) if given.results.exists() else 0
    for number in range(done, given.tries * len(FAULTS)):
        line = a_try(given.guest, FAULTS[number % len(FAULTS)], number)
        with given.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"  {number + 1} {line}", flush=True)


if __name__ == "__main__":
    main()
