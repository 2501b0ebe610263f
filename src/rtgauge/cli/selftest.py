# SPDX-License-Identifier: MIT
"""`rtgauge selftest`: are the explanations right?"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.conclusion import settle, status
from rtgauge.cli.console import Console
from rtgauge.cli.options import RUNS, JsonAlone, Out, Target, WaitForLock, grouped, wait_s
from rtgauge.cli.progress import make_display
from rtgauge.errors import EXIT_FAILS, EXIT_INTERRUPTED, InputError, MeasureError
from rtgauge.explain.analysis.selftest import ALL_CPUS, OUTSIDE, OUTSIDE_LOG, self_test
from rtgauge.explain.page.document import selftest_document
from rtgauge.explain.page.presenter import print_self_test
from rtgauge.lab.running_guests import find_running
from rtgauge.lab.stops import clock_offset_ns, stopped_now_and_then
from rtgauge.load.stall import KINDS, LENGTH_US, LONGEST_US
from rtgauge.plan.plan import Overrides, Plan, make_plan
from rtgauge.record.model import Run
from rtgauge.record.writer import RecordWriter
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.run import RunOptions, start_run
from rtgauge.suggest import nearest
from rtgauge.target.address import parse_address
from rtgauge.units import parse_duration_ns

SECONDS_A_STALL = 0.1
"""The time that a stall takes of its step: about 60 ms to the next one, and the loss at the ends."""
ABOVE_SHARE = 0.3
"""Of a stall's length: latencies above it are explained."""
LEAST_LENGTH_NS = 100_000
STOPPED_S, STOPPED_EVERY_S = 0.2, 1.5
"""How long a guest is stopped, and how often about: each stop is a latency on each of its CPUs, of which 200
a step are kept.
"""
THROTTLED_S = 8
"""Throttling comes once a second (sched_rt_period_us)."""
WATCHED = ("fault", "catch-up")
"""Kinds whose own program is measured (load/stall_program.py)."""
MOST_A_STEP = 80
"""A step keeps the events of 200 latencies, some of which are the machine's own."""


@dataclass(frozen=True)
class Stalls:
    """Which stalls are made, and where."""

    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=(
                "hog, from-idle, two-cpus, catch-up, softirq, timers, throttle, fault, idle, irqs-off, "
                "preempt-off, stopped; default: all but stopped."
            ),
        ),
    ] = None
    count: Annotated[
        int,
        typer.Option(
            min=4,
            max=10_000,
            metavar="N",
            help="Approximate number of stalls; throttling happens once a second and is not counted.",
        ),
    ] = 300
    length: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Approximate length of a stall, 100us to 20ms; choose more than the machine's own delays.",
        ),
    ] = "1ms"
    cpu: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="N", help="CPU to stall and to measure; by default the last one."
        ),
    ] = None
    target: Target = "local"

    def guest(self) -> str | None:
        """The guest that is stopped from outside; None: none is."""
        address = parse_address(self.target)
        return None if address is None or (self.kinds or "").strip() != OUTSIDE else address.guest

    def plan(self) -> Plan:
        """The steps that make and measure them. Raises InputError."""
        chosen = list(KINDS) if self.kinds is None else [kind.strip() for kind in self.kinds.split(",")]
        possible = [*KINDS, OUTSIDE]
        for kind in chosen:
            if kind not in possible:
                raise InputError(
                    f"--kinds {kind}: the kinds are {', '.join(possible)}{nearest(kind, possible)}"
                )
        if OUTSIDE in chosen and self.guest() is None:
            raise InputError(
                f"--kinds {OUTSIDE} cannot be combined with other kinds and needs a guest of the "
                f"lab: --target lab:NAME"
            )
        if self.cpu is None and self.target != "local" and OUTSIDE not in chosen:
            raise InputError("give --cpu, the CPU of the other machine to stall")
        length_ns = parse_duration_ns(self.length)
        if not LEAST_LENGTH_NS <= length_ns <= LONGEST_US * 1_000:
            raise InputError(f"--length {self.length}: 100us to {LONGEST_US // 1000}ms")
        cpu = max(os.sched_getaffinity(0)) if self.cpu is None else self.cpu
        steps = _steps(chosen, self.count, cpu, length_ns)
        return make_plan(
            {"name": "selftest", "order": "as-written", "step": steps},
            "selftest",
            Overrides(targets=[self.target]),
        )


@grouped
def selftest(*, stalls: Stalls, out: Out = RUNS, wait: WaitForLock = "0", json: JsonAlone = False) -> None:
    """Stall a CPU in known ways, measure, and compare the explanations with the stalls.

    hog: a task of higher priority computes; from-idle: one that a timer wakes; two-cpus: while another CPU
    has one too. catch-up: a late loop's own work.
    softirq: one packet goes to many sockets. timers: many timers are due at once. throttle: the scheduler
    gives lower tasks their share. fault: a program touches new memory in its loop. idle: a CPU leaves a deep
    idle state. irqs-off, preempt-off: a kernel module keeps interrupts or preemption off (kmod/test/stall).
    stopped: a guest of the lab is stopped from outside, all its CPUs at once, for 200 ms.
    The table lists the kinds that this machine cannot do. No setting of the machine changes, but one of its
    CPUs is busy for about 45 seconds.

    \b
    Examples:
      rtgauge selftest
      rtgauge selftest --kinds hog --count 30
      rtgauge selftest --cpu 3 --json
      rtgauge selftest --target lab:debian --cpu 1 --kinds irqs-off --length 20ms
      rtgauge selftest --target lab:debian --kinds stopped --count 20

    \b
    Exit status:
      0    all were found, and 95 % named rightly
      1    not so
      2    wrong input
      3    could not measure
      130  interrupted
    """
    plan, guest = stalls.plan(), stalls.guest()
    options = RunOptions(out, ["rtgauge", *sys.argv[1:]], wait_s=wait_s(wait))
    display = make_display()
    with (
        Interrupt(display.stopping) as interrupt,
        display,
        nullcontext() if guest is None else stopped_now_and_then(guest, STOPPED_S) as stops,
    ):
        path, run, _ = start_run(plan, options, display, interrupt)
    if guest is not None and stops is not None:
        _write_stops(path, run, guest, stops)
    record, problem = settle(path, run)
    result = self_test(record)
    if result is None and run.state != "interrupted":
        raise MeasureError(
            "nothing could be explained here: the kernel's events cannot be recorded (see the "
            "marks: rtgauge show latest)"
        )
    if json:
        typer.echo(selftest_document(str(path), result).model_dump_json(indent=1))
    elif result is not None:
        print_self_test(result, Console())
        typer.echo(f"record  {path}")
    ended = status(record, problem)
    if ended == EXIT_INTERRUPTED:
        raise typer.Exit(ended)
    raise typer.Exit(0 if result is not None and result.passed else EXIT_FAILS)


def _write_stops(path: Path, run: Run, guest: str, stops: list[tuple[int, int]]) -> None:
    """The stops of a guest in the record, by the guest's own clock."""
    running = find_running(guest)
    offset_ns = 0 if running is None else clock_offset_ns(running)
    lines = [
        dumps({"kind": OUTSIDE, "cpu": ALL_CPUS, "start_ns": start + offset_ns, "end_ns": end + offset_ns})
        for start, end in stops
    ]
    RecordWriter(path, run.id).write_log(OUTSIDE_LOG, "".join(f"{line}\n" for line in lines).encode())


def _steps(kinds: list[str], count: int, cpu: int, length_ns: int) -> list[dict[str, object]]:
    """A step a kind, or several where it would be too long."""
    if kinds == [OUTSIDE]:
        seconds = count * STOPPED_EVERY_S
        return [
            {
                "probe": "wakeup",
                "interval": "2ms",
                "duration": f"{seconds:.1f}s",
                "explain": True,
                "explain-above": f"{STOPPED_S / 2 * 1000:.0f}ms",
            }
        ]
    length = "" if length_ns == LENGTH_US * 1000 else f":{length_ns // 1000}"
    quick = [kind for kind in kinds if kind != "throttle"]
    each = -(-count // max(len(quick), 1))
    steps: list[dict[str, object]] = []
    for kind in kinds:
        parts = 1 if kind == "throttle" else -(-each // MOST_A_STEP)
        seconds = (
            THROTTLED_S if kind == "throttle" else each / parts * (SECONDS_A_STALL + 2 * length_ns / 1e9)
        )
        step: dict[str, object] = {
            "load": f"stall:{kind}:{cpu}{length}",
            "duration": f"{seconds:.1f}s",
            "explain": True,
        }
        step["explain-above"] = f"{length_ns * ABOVE_SHARE:.0f}ns"
        wakeup: dict[str, object] = {"probe": "wakeup", "cpu": str(cpu), "interval": f"{length_ns // 5}ns"}
        match kind:
            case _ if kind in WATCHED:
                step |= {"probe": "watch", "program": KINDS[kind]}
            case "idle":
                step |= wakeup | {"interval": "4ms", "dma-latency": "off", "explain-above": "10us"}
            case "irqs-off" | "preempt-off":
                # a release must come early in each stall, and the stack of each wake-up takes time
                step |= wakeup | {"explain-events": "default,stack", "interval": f"{length_ns * 2 // 5}ns"}
            case _:
                step |= wakeup
        steps += [step] * parts
    return steps
