# SPDX-License-Identifier: MIT
"""Proof of `rtgauge tune` on a guest of the lab, with faults that our machine cannot have: an interrupt that
may be moved on the measured CPU, a deep idle state (emulated by a module), and a bad clock source.

Run on a quiet machine, from the root of the repository, after `make headers`: `python -m
ext.tune.bench.tune_faults_lab RESULTS`. It boots a guest of its own, `tune-faults`, with Debian's stock
kernel and two CPUs. The fault is planted again at each boot, so that the confirmation meets it. Every try is
a line of the file RESULTS; a second call goes on after the last one.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ext.tune.bench.tune_faults import CPU, LEAST_EFFECT, LOOKS, RTGAUGE, short, tuned
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.headers import headers_tree

GUEST = "tune-faults"
PORT = 5299
SOURCES = Path(__file__).parent / "guest_faults"
INITTAB = """::ctrlaltdel:/bin/reboot
::shutdown:/bin/umount -r /var
::once:/bin/sh /var/fault
"""
CLOCK = "/sys/devices/system/clocksource/clocksource0"
PACKETS_IRQ = "/proc/irq/$(basename $(dirname /proc/irq/*/virtio*-input.0))/smp_affinity_list"
TRIES = 10


@dataclass(frozen=True)
class Fault:
    """What plants a fault in the guest. `percent`: the share of activations that decides. `watched`: the
    guest's program whose response time decides; without one, the latency of a FIFO thread does.
    """

    name: str
    plant: str
    fixed_by: str
    percent: int
    watched: str | None = None

    @property
    def watch(self) -> list[str]:
        """The command that is watched."""
        return (
            []
            if self.watched is None
            else ["--", "taskset", "-c", str(CPU), "chrt", "-f", "80", self.watched]
        )


FAULTS = (
    Fault(
        "network interrupt on the CPU",
        f"echo {CPU} > {PACKETS_IRQ}; /opt/packet_filters 300 & "
        f"while :; do iperf3 -c 10.0.2.2 -p {PORT} -u -R -t 36000 -b 8k -l 32; sleep 1; done",
        "irqs-on-isolated",
        95,
    ),
    Fault("deep idle state", "insmod /opt/deep_idle.ko", "c-states", 50),
    Fault(
        "clock source of the ACPI timer",
        f"echo acpi_pm > {CLOCK}/current_clocksource",
        "clock-source",
        95,
        watched="/opt/clock_reader",
    ),
)


def rtgauge(*words: str, given: str | None = None) -> str:
    """What a command printed that got `given` as its input. Raises CalledProcessError if it failed."""
    completed = subprocess.run([*RTGAUGE, *words], input=given, text=True, stdout=subprocess.PIPE, check=True)
    return completed.stdout


def boot(fault: Fault | None) -> None:
    """Boot the guest anew, with the fault or without one."""
    plant = "" if fault is None else fault.plant
    rtgauge("lab", "shell", GUEST, "cat > /var/fault && sync", given=plant)
    rtgauge("lab", "stop", GUEST)
    rtgauge("lab", "boot", GUEST, "--smp", "2")


@contextmanager
def guest() -> Generator[None]:
    """The guest, as long as this is entered."""
    (folder,) = (path for path in (paths.cache() / "kernels").glob("linux-image-amd64-*") if path.is_dir())
    (kernel,) = folder.glob("vmlinuz-*")
    with tempfile.TemporaryDirectory() as name:
        overlay = Path(name)
        for place in ("etc", "opt"):
            (overlay / place).mkdir()
        (overlay / "etc/inittab").write_text(INITTAB)
        for source in SOURCES.glob("*.c"):
            subprocess.run(["gcc", "-O2", "-static", "-o", overlay / "opt" / source.stem, source], check=True)
        release = kernel.name.removeprefix("vmlinuz-")
        headers_tree("x86_64", print).make(release, SOURCES / "deep_idle", overlay / "opt")
        files = ("--kernel", str(kernel), "--modules", str(folder), "--overlay", name)
        rtgauge("lab", "add", GUEST, *files)
        server = subprocess.Popen(["iperf3", "-s", "-p", str(PORT)], stdout=subprocess.DEVNULL)
        try:
            rtgauge("lab", "boot", GUEST, "--smp", "2")
            yield
        finally:
            server.kill()
            server.wait()
            rtgauge("lab", "stop", GUEST)
            rtgauge("lab", "rm", GUEST)


def kept_us(fault: Fault) -> float:
    """What the fault's percentage of activations kept, in 5 s at 10 ms."""
    words = [
        "--target",
        f"lab:{GUEST}",
        "--duration",
        "5s",
        "--dma-latency",
        "off",
        "--json",
        "--wait",
        "30min",
    ]
    if fault.watched is None:
        words = ["probe", "wakeup", "--cpu", str(CPU), "--interval", "10ms", *words]
    else:
        words = ["watch", *words, *fault.watch]
    metric = "latency" if fault.watched is None else "response"
    (series,) = [
        each for each in json.loads(rtgauge(*words))["steps"][0]["series"] if each["metric"] == metric
    ]
    return series["filled"][f"p{fault.percent}_ns"] / 1000


def a_try(fault: Fault, number: int) -> dict[str, Any]:
    """One planted fault, tuned. The bound is between the guest with the fault and without it."""
    boot(None)
    clean_us = max(kept_us(fault) for _ in range(LOOKS))
    boot(fault)
    faulty_us = min(kept_us(fault) for _ in range(LOOKS))
    line: dict[str, Any] = {"fault": fault.name, "clean_us": round(clean_us), "faulty_us": round(faulty_us)}
    if faulty_us < LEAST_EFFECT * clean_us:
        return line
    bound = f"<={math.sqrt(clean_us * faulty_us):.0f}us hardness={fault.percent}%"
    require = f"period=10ms latency{bound}" if fault.watched is None else f"response{bound}"
    words = ["--target", f"lab:{GUEST}", "--duration", "3s", "--seed", str(number)]
    result = short(tuned(require, *words, *fault.watch))
    return {**line, **result, "fixed": fault.fixed_by in result["kept"]}


def main() -> None:
    """Measure what is missing, and print each try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--tries", type=int, default=TRIES, help="of each fault")
    parser.add_argument("--faults", default="", help="only faults whose name begins so; several with commas")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if fault.name.startswith(tuple(given.faults.split(",")))]
    finished = [json.loads(line)["fault"] for line in given.results.open()] if given.results.exists() else []
    missing = [fault for fault in chosen for _ in range(finished.count(fault.name), given.tries)]
    with guest():
        for number, fault in enumerate(missing, len(finished)):
            line = a_try(fault, number)
            with given.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"  {number + 1} {line}", flush=True)


if __name__ == "__main__":
    main()
