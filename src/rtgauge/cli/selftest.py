# SPDX-License-Identifier: MIT
"""`rtgauge selftest`: are the explanations right?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import WaitForLock

SECONDS_A_STALL = 0.1
"""What a stall takes of its step: about 60 ms to the next one, and what is lost at the ends."""
THROTTLED_S = 8
"""Throttling comes once a second (sched_rt_period_us)."""
WATCHED = "rtgauge-faults"
"""The program that the kind `fault` measures (load/stall_program.py)."""
MOST_A_STEP = 80
"""A step keeps the events of 200 latencies, some of which are the machine's own."""


def selftest(
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="With commas between: hog, softirq, timers, throttle, fault, idle, irqs-off, preempt-off; default: all that are possible."
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=4, max=10_000, metavar="N", help="Stalls to inject, about; throttling comes once a second and is not counted.")
    ] = 210,
    cpu: Annotated[int | None, typer.Option(min=0, max=65_535, metavar="N", help="CPU to stall and to measure; by default the last one.")] = None,
    target: Annotated[str, typer.Option(metavar="NAME", help="Machine: local, ssh://[user@]host[:port]; it needs python3.")] = "local",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for records.")] = Path("rtgauge-runs"),
    wait: WaitForLock = "0",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document; everything else goes to standard error.")] = False,
) -> None:
    """Stall a CPU in known ways, measure beside it, and compare the explanations with what was done.

    hog: a task of higher priority computes. softirq: one packet goes to many sockets. timers: many timers are due at once. throttle: the scheduler gives
    lower tasks their share. fault: a program's loop touches memory that it has not got yet. idle: a deep idle state is left, where there is one.
    irqs-off, preempt-off: a kernel module does what its name says, where it is loaded (kmod/test/stall). What is not possible is said and left out.
    Nothing of the machine's settings is changed; for about half a minute one of its CPUs is busy.

    \b
    Examples:
      rtgauge selftest
      rtgauge selftest --kinds hog --count 30
      rtgauge selftest --cpu 3 --json

    \b
    Exit status:
      0    all were found, and 95 % named rightly
      1    not so
      2    wrong input
      3    could not measure
      130  interrupted
    """
    import os
    from dataclasses import asdict
    from json import dumps

    from rtgauge.cli.conclusion import settle, status
    from rtgauge.cli.console import Console
    from rtgauge.cli.options import wait_s
    from rtgauge.cli.progress_display import make_display
    from rtgauge.errors import EXIT_FAILS, EXIT_INTERRUPTED, InputError, MeasureError
    from rtgauge.explain.analysis.selftest import self_test
    from rtgauge.explain.page.presenter import print_self_test
    from rtgauge.load.stall import KINDS
    from rtgauge.plan.plan import Overrides, make_plan
    from rtgauge.runner.interrupt import Interrupt
    from rtgauge.runner.run import start_run
    from rtgauge.runner.schedule import RunOptions
    from rtgauge.suggest import nearest

    chosen = list(KINDS) if kinds is None else [kind.strip() for kind in kinds.split(",")]
    for kind in chosen:
        if kind not in KINDS:
            raise InputError(f"--kinds {kind}: the kinds are {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if cpu is None and target != "local":
        raise InputError("--cpu: say which CPU of the other machine is stalled")
    where = max(os.sched_getaffinity(0)) if cpu is None else cpu
    display = make_display()
    plan = make_plan({"name": "selftest", "order": "as-written", "step": _steps(chosen, count, where)}, "selftest", Overrides(targets=[target]))
    with Interrupt(display.stopping) as interrupt, display:
        path, run, _ = start_run(plan, RunOptions(out, ["rtgauge", *sys.argv[1:]], wait_s=wait_s(wait)), display, interrupt)
    record, problem = settle(path, run)
    result = self_test(record)
    if result is None and run.state != "interrupted":
        raise MeasureError("nothing could be explained here: the kernel's events cannot be recorded (see the marks: rtgauge show latest)")
    if json:
        typer.echo(dumps({"record": str(path), "passed": result is not None and result.passed, **({} if result is None else asdict(result))}, indent=1))
    elif result is not None:
        print_self_test(result, Console())
        typer.echo(f"record  {path}")
    ended = status(record, problem)
    if ended == EXIT_INTERRUPTED:
        raise typer.Exit(ended)
    raise typer.Exit(0 if result is not None and result.passed else EXIT_FAILS)


def _steps(kinds: list[str], count: int, cpu: int) -> list[dict[str, object]]:
    """A step a kind, or several where it would be too long."""
    quick = [kind for kind in kinds if kind != "throttle"]
    each = -(-count // max(len(quick), 1))
    steps: list[dict[str, object]] = []
    for kind in kinds:
        parts = 1 if kind == "throttle" else -(-each // MOST_A_STEP)
        seconds = THROTTLED_S if kind == "throttle" else each / parts * SECONDS_A_STALL
        step: dict[str, object] = {"load": f"stall:{kind}:{cpu}", "duration": f"{seconds:.1f}s", "explain": True, "explain-above": "300us"}
        wakeup: dict[str, object] = {"probe": "wakeup", "cpu": str(cpu), "interval": "200us"}
        match kind:
            case "fault":
                step |= {"probe": "watch", "program": WATCHED}
            case "idle":
                step |= wakeup | {"interval": "4ms", "dma-latency": "off", "explain-above": "10us"}
            case "irqs-off" | "preempt-off":
                step |= wakeup | {"explain-events": "default,stack"}
            case _:
                step |= wakeup
        steps += [step] * parts
    return steps
