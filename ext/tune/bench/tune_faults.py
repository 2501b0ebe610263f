# SPDX-License-Identifier: MIT
"""Proof of `rtgauge tune`: does it find and fix a planted fault, keep nothing if there is nothing to gain,
and leave the machine as it was after kill -9?

Run as root on a machine with at least two CPUs that nobody else uses:
`python ext/tune/bench/tune_faults.py RESULTS`.
Every try is a line of the file RESULTS. A second call goes on after the last one; `--only-print` adds
nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

RTGAUGE = [sys.executable, "-m", "rtgauge"]
CPU, OTHER = 1, 0
IMPORTS = "import os, socket, time\n"
BUSY = """
while True:
    end = time.monotonic() + {busy}
    while time.monotonic() < end:
        pass
    time.sleep({pause})
"""
STORM = f"""
import ctypes, struct
os.sched_setaffinity(0, {{{OTHER}}})
# Each of the 16 receivers runs a socket filter of 4000 instructions in the softirq that delivers the packet.
steps = [struct.pack("HBBI", 0x04, 0, 0, 1)] * 3999 + [struct.pack("HBBI", 0x06, 0, 0, 0)]
code = ctypes.create_string_buffer(b"".join(steps))
SO_ATTACH_FILTER, PLACE = 26, ("127.255.255.255", 9971)
receivers = []
for _ in range(16):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 4000, ctypes.addressof(code)))
    receiver.bind(PLACE)
    receivers.append(receiver)
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
while True:
    for _ in range(60):
        there.sendto(b"x", PLACE)
    time.sleep(0.03)
"""
DISK_BYTES = 8 << 20
LOOP_DISKS = f"""
import fcntl, mmap, threading
os.sched_setaffinity(0, {{{CPU}}})
LOOP_SET_FD, LOOP_CLR_FD = 0x4C00, 0x4C01


def read_for_ever(device, begin):
    file = os.memfd_create("disk")
    os.pwrite(file, b"x" * {DISK_BYTES}, 0)
    loop = os.open(device, os.O_RDWR)
    fcntl.ioctl(loop, LOOP_SET_FD, file)
    disk = os.open(device, os.O_RDONLY | os.O_DIRECT)
    fcntl.ioctl(loop, LOOP_CLR_FD)  # once it is closed
    pages = mmap.mmap(-1, {DISK_BYTES})
    while True:
        begin.wait()
        os.preadv(disk, [pages], 0)
        time.sleep(0.03)


devices = {{devices}}
begin = threading.Barrier(len(devices))  # kworkers that run at once delay others most
for device in devices:
    threading.Thread(target=read_for_ever, args=(device, begin)).start()
"""
CONTROL = f"""
os.sched_setaffinity(0, {{{OTHER}}})
while True:
    time.sleep(0.001)
"""
COMPACT = f"""
os.sched_setaffinity(0, {{{OTHER}}})
while True:
    open("/proc/sys/vm/compact_memory", "w").write("1")
    time.sleep(0.02)
"""
READ = f"""
import mmap
os.sched_setaffinity(0, {{{OTHER}}})
disk = os.open("{{disk}}", os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
while True:
    for block in range(4096):
        os.preadv(disk, [page], block * 4096)
"""


RT_RUNTIME = Path("/sys/fs/cgroup/cpu/cpu.rt_runtime_us")
"""Of the root group, in kernels with CONFIG_RT_GROUP_SCHED."""


def hog(policy: str, priority: int, busy: float, pause: float) -> str:
    """A real-time task on the measured CPU."""
    begin = (
        f"os.sched_setaffinity(0, {{{CPU}}})\n"
        f"os.sched_setscheduler(0, os.{policy}, os.sched_param({priority}))\n"
    )
    return IMPORTS + begin + BUSY.format(busy=busy, pause=pause)


@dataclass(frozen=True)
class Fault:
    """A planted fault: a program, files written for it, and the settings of which one has to be kept.

    `watched`: the ordinary program that it delays. Its 95th percentile decides, because ordinary tasks wait
    for each other too. Without one, the 99th percentile of a FIFO thread decides. `cpu`: the measured one. It
    is the first for a watched program, because the kernel of our machine does not trace how a task begins to
    run on an idle second CPU.
    """

    name: str
    program: str
    fixed_by: frozenset[str]
    files: tuple[tuple[str, str], ...] = ()
    watched: str | None = None
    cpu: int = CPU

    @property
    def percent(self) -> int:
        """The share of activations that decides."""
        return 99 if self.watched is None else 95


def faults() -> list[Fault]:
    """Those that this machine can have. All come at least every 10 s, and none takes more than a fifth of a
    CPU.
    """
    elsewhere = frozenset({"rt-tasks-elsewhere"})
    planted = [
        Fault("FIFO hog, priority 99", hog("SCHED_FIFO", 99, 0.02, 0.4), elsewhere),
        Fault("round-robin hog, priority 98", hog("SCHED_RR", 98, 0.05, 0.4), elsewhere),
        Fault("compaction of locked memory", IMPORTS + COMPACT, frozenset({"compact-unevictable"})),
        Fault(
            "NAPI storm steered to the CPU (RPS)",
            IMPORTS + STORM,
            frozenset({"rps"}),
            (("/sys/class/net/lo/queues/rx-0/rps_cpus", f"{1 << CPU:x}"),),
        ),
    ]
    if RT_RUNTIME.exists():
        planted.append(
            Fault(
                "throttling after 100 ms of each second",
                hog("SCHED_FIFO", 1, 0.03, 0.12),
                elsewhere | {"rt-group-throttling"},
                ((str(RT_RUNTIME), "100000"),),
            )
        )
    loops = sorted(Path("/sys/block").glob("loop*"))
    free = [path for path in loops if not (path / "loop").is_dir()]
    if free:
        devices = [f"/dev/{path.name}" for path in free[-4:]]
        planted.append(
            Fault(
                "kworkers of disks on the CPU",
                IMPORTS + LOOP_DISKS.replace("{devices}", str(devices)),
                frozenset({"workqueues"}),
                (("/sys/devices/virtual/workqueue/cpumask", f"{1 << OTHER:x}"),),
                IMPORTS + CONTROL,
                OTHER,
            )
        )
    disk = next((f"/dev/{path.name}" for path in Path("/sys/block").glob("vd*")), None)
    queues = [path.parent for path in Path("/proc/irq").glob("*/virtio*-req.0")]
    if disk is not None and queues and _movable(queues[0]):
        affinity = (str(queues[0] / "smp_affinity_list"), str(CPU))
        program = IMPORTS + READ.replace("{disk}", disk)
        planted.append(Fault("disk's interrupt", program, frozenset({"irqs-on-isolated"}), (affinity,)))
    return planted


def _movable(interrupt: Path) -> bool:
    """Whether its CPUs may be written: not if the kernel manages them."""
    file = interrupt / "smp_affinity_list"
    try:
        file.write_text(file.read_text())
    except OSError:
        return False
    return True


@contextmanager
def planted(fault: Fault | None) -> Generator[None]:
    """The fault, as long as this is entered."""
    before = {path: Path(path).read_text() for path, _ in (fault.files if fault else ())}
    process: subprocess.Popen[bytes] | None = None
    try:
        for path, text in fault.files if fault else ():
            Path(path).write_text(text)
        if fault is not None:
            process = subprocess.Popen([sys.executable, "-c", fault.program])
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()
        for path, text in before.items():
            Path(path).write_text(text)


def kept_us(fault: Fault | None = None) -> float:
    """What the share of the fault that decides kept, in 2 s: of a FIFO thread's activations at 1 ms, or of
    the watched program's.
    """
    words = ["--duration", "2s", "--dma-latency", "off", "--json", "--wait", "30min"]
    if fault is None or fault.watched is None:
        words = ["probe", "wakeup", "--cpu", str(CPU), "--policy", "fifo", *words]
    else:
        words = ["watch", *words, "--", sys.executable, "-c", fault.watched]
    percent = 99 if fault is None else fault.percent
    completed = subprocess.run(
        [*RTGAUGE, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return json.loads(completed.stdout)["steps"][0]["series"][0]["filled"][f"p{percent}_ns"] / 1000


def tuned(require: str, *words: str, cpu: int = CPU) -> dict[str, Any]:
    """The document of one tuning, with how long it took."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        completed = subprocess.run(
            [
                *RTGAUGE, "tune", "--cpu", str(cpu), "--budget", "5min", "--load", "idle",
                "--confirm-load", "cpu", "--wait", "30min", "--json", "--require", require, "--out", out,
                *words,
            ],
            capture_output=True, check=False,
        )  # fmt: skip
    if not completed.stdout:
        raise RuntimeError(completed.stderr.decode()[-400:])
    return {**json.loads(completed.stdout), "took_s": round(time.monotonic() - begin)}


def state() -> dict[str, str]:
    """What a tuning changes: settings, the affinity of interrupts and of real-time threads."""
    from rtgauge_ext.audit.rules import tried_rules

    paths = set(Path("/proc/irq").glob("[0-9]*/smp_affinity_list"))
    paths |= set(Path("/sys/fs/cgroup/cpuset").glob("*/"))
    for rule in tried_rules().values():
        for setting in rule.trial.set if rule.trial is not None else []:
            if setting.file is not None and "{" not in setting.file:
                paths |= set(Path("/").glob(setting.file.lstrip("/")))
    texts: dict[str, str] = {}
    for path in paths:
        with suppress(OSError):
            texts[str(path)] = "there" if path.is_dir() else path.read_text()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if fields[38] in {"1", "2"}:  # the policy: FIFO, RR
                texts[status.parent.name] = str(sorted(os.sched_getaffinity(int(status.parent.name))))
    return texts


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Names of what is not as before; threads that came or went are none."""
    return [name for name, text in before.items() if after.get(name, text) != text]


LEAST_EFFECT, LOOKS = 2, 3
"""A fault does not show on this machine if the smallest latency of three runs with it is less than twice the
largest of three without it: nothing is tuned.
"""


def a_fault(number: int, names: tuple[str, ...]) -> dict[str, Any]:
    """One planted fault of these, by turns, tuned. The bound is between the machine with and without it."""
    known = [fault for fault in faults() if fault.name in names]
    fault = known[number % len(known)]
    clean_us = max(kept_us(fault) for _ in range(LOOKS))
    with planted(fault):
        faulty_us = min(kept_us(fault) for _ in range(LOOKS))
        if faulty_us < LEAST_EFFECT * clean_us:
            return {"fault": fault.name, "clean_us": round(clean_us), "faulty_us": round(faulty_us)}
        bound_us = math.sqrt(clean_us * faulty_us)
        before = state()
        require = f"latency<={bound_us:.0f}us hardness={fault.percent}%"
        words = ["--duration", "1s", "--seed", str(number)]
        if fault.watched is None:
            result = tuned(f"period=1ms {require}", *words)
        else:
            result = tuned(require, *words, "--", sys.executable, "-c", fault.watched, cpu=fault.cpu)
        same = differences(before, state())
    kept = [each["rule"] for each in result["kept"]]
    return {
        "fault": fault.name,
        "clean_us": round(clean_us),
        "faulty_us": round(faulty_us),
        "fixed": bool(fault.fixed_by & set(kept)) and result["outcome"] in {"fixed", "better"},
        "others_kept": sorted(set(kept) - fault.fixed_by),
        "different": same,
        **short(result),
    }


def short(result: dict[str, Any]) -> dict[str, Any]:
    """What a line of the results holds of a tuning."""
    after = result["tests"][-1] if result["confirmed"] else None
    return {
        "kept": [each["rule"] for each in result["kept"]],
        "outcome": result["outcome"],
        "runs": result["runs"],
        "took_s": result["took_s"],
        "confirmed": result["confirmed"],
        "confirmed_gain": None if after is None else after["gain"],
    }


NOTHING = ("thp", "timer-migration", "block-completion", "pcie-aspm")
"""Settings that change nothing for a wake-up on an idle CPU of this machine."""


def nothing(number: int) -> dict[str, Any]:
    """A bound that no setting reaches."""
    result = tuned(
        "period=1ms latency<=1us hardness=95%", "--duration", "200ms", "--seed", str(1000 + number),
        "--only", ",".join(NOTHING),
    )  # fmt: skip
    return short(result)


def a_kill(number: int) -> dict[str, Any]:
    """Kill -9 at a random moment, then `rtgauge restore`."""
    generator = random.Random(number)
    known = [fault for fault in faults() if fault.name.startswith(("FIFO", "NAPI"))]
    with planted(known[number % len(known)]), tempfile.TemporaryDirectory() as out:
        before = state()
        process = subprocess.Popen(
            [
                *RTGAUGE, "tune", "--cpu", str(CPU), "--budget", "5min", "--load", "idle", "--confirm-load",
                "cpu", "--wait", "10min", "--require", "latency<=1us", "--duration", "200ms", "--out", out,
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None and not any(Path(out).glob("*/steps/01-*/step.json")):
            time.sleep(0.02)
        after_s = generator.uniform(0, 8)
        time.sleep(after_s)
        changed = differences(before, state())
        process.kill()
        process.wait()
        for _ in range(100):
            if not subprocess.run(
                [*RTGAUGE, "restore"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            ).returncode:
                break
            time.sleep(0.5)
        different = differences(before, state())
    return {"after_s": round(after_s, 2), "changed": len(changed), "different": different}


PARTS = ("fault", "kill", "nothing")
TRIES_OF_A_FAULT, KILLS, TRIES_OF_NOTHING = 10, 50, 60


def summary(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What the results say."""
    by_part = {part: [line for line in lines if line["part"] == part] for part in PARTS}
    planted = by_part["fault"]
    text_lines = [
        f"  {line['fault']}: {line['clean_us']} us, with it {line['faulty_us']} us: it does not show here"
        for line in planted
        if "outcome" not in line
    ]
    finished = [line for line in planted if "outcome" in line]
    text_lines += [
        f"  {line['fault']}: {line['clean_us']} us, with the fault {line['faulty_us']} us; "
        f"{line['outcome']}, kept {', '.join(line['kept']) or 'nothing'}, {line['runs']} runs, "
        f"{line['took_s']} s"
        for line in finished
    ]
    if finished:
        in_time = sum(line["fixed"] and line["took_s"] <= 600 for line in finished)
        others = sum(bool(line["others_kept"]) for line in finished)
        text_lines.append(f"faults found and fixed within 10 minutes: {in_time} of {len(finished)}")
        text_lines.append(f"another setting kept as well: {others} of {len(finished)}")
        text_lines.append(
            f"everything as before: {sum(not line['different'] for line in finished)} of {len(finished)}"
        )
    idle = by_part["nothing"]
    if idle:
        text_lines.append(
            f"nothing to gain, nothing kept: {sum(not line['kept'] for line in idle)} of {len(idle)}"
        )
    ended = [*finished, *idle]
    if ended:
        worse = sum(bool(line["kept"]) and (line["confirmed_gain"] or 0) < -0.2 for line in ended)
        text_lines.append(f"worse at the end by more than 20 %: {worse} of {len(ended)}")
    killed = by_part["kill"]
    if killed:
        in_force = sum(line["changed"] > 0 for line in killed)
        back = sum(not line["different"] for line in killed)
        text_lines.append(
            f"killed: everything put back in {back} of {len(killed)} ({in_force} with settings in force)"
        )
    return text_lines


def main() -> None:
    """Run what is missing, then print all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--faults", default="", help="only faults whose name begins so; several with commas")
    parser.add_argument("--most-s", type=float, default=math.inf, help="begin no try after so many seconds")
    parser.add_argument("--only-print", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begin = time.monotonic()
    lines = [json.loads(line) for line in given.results.open()] if given.results.exists() else []
    names = tuple(fault.name for fault in faults() if fault.name.startswith(tuple(given.faults.split(","))))
    makers: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
        "fault": (partial(a_fault, names=names), TRIES_OF_A_FAULT * len(names)),
        "kill": (a_kill, KILLS),
        "nothing": (nothing, TRIES_OF_NOTHING),
    }
    for part in () if given.only_print else given.parts.split(","):
        make, tries = makers[part]
        finished = sum(line["part"] == part and line.get("fault", names[0]) in names for line in lines)
        for number in range(finished, tries):
            if time.monotonic() - begin > given.most_s:
                break
            try:
                line = {"part": part, **make(number)}
            except RuntimeError as error:
                # Another program took the machine's settings or its lock: said, and tried again.
                print(f"  {number + 1} ended early: {error}", flush=True)
                line = {"part": part, **make(number)}
            lines.append(line)
            with given.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"  {number + 1} {line}", flush=True)
    print("\n".join(summary(lines)))


if __name__ == "__main__":
    main()
