# SPDX-License-Identifier: MIT
"""`rtgauge selftest` checks whether the explanations are right."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import JsonAlone, Out, Target, WaitForLock, wait_s
from rtgauge.errors import EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK, MeasureError
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge.record.model import Run


def selftest(
    *,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=(
                "hog, from-idle, two-cpus, catch-up, softirq, timers, throttle, fault, idle, irqs-off, "
                "preempt-off, stopped; default: all but stopped."
            ),
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            min=4,
            max=10_000,
            metavar="N",
            help=(
                "Approximate number of stalls. It does not apply to throttling, which happens once a second."
            ),
        ),
    ] = 300,
    length: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help=(
                "Approximate length of a stall, 100us to 20ms. It must be longer than the machine's own "
                "delays."
            ),
        ),
    ] = "1ms",
    cpu: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="N", help="CPU to stall and to measure; by default the last one."
        ),
    ] = None,
    target: Target = "local",
    out: Out = RECORDS,
    wait: WaitForLock = "0",
    json: JsonAlone = False,
) -> None:
    """Stall a CPU in known ways, measure, and compare the explanations with the stalls.

    hog: a task of higher priority computes. from-idle: a timer wakes such a task. two-cpus: another CPU runs
    such a task too. catch-up: a late loop makes up for missed cycles. softirq: one packet goes to many
    sockets. timers: many timers are due at once. throttle: the scheduler gives lower-priority tasks their
    share. fault: a program touches new memory in its loop. idle: a CPU leaves a deep idle state. irqs-off,
    preempt-off: a kernel module keeps interrupts or preemption off (kmod/test/stall). stopped: a guest of the
    lab is stopped from outside, all its CPUs at once, for 200 ms. Kinds that this machine cannot produce are
    named below the table, with the reason. No setting of the machine changes, but one of its CPUs is busy for
    about 45 seconds.

    \b
    Examples:
      rtgauge selftest
      rtgauge selftest --kinds hog --count 30
      rtgauge selftest --cpu 3 --json
      rtgauge selftest --target lab:debian --cpu 1 --kinds irqs-off --length 20ms
      rtgauge selftest --target lab:debian --kinds stopped --count 20

    \b
    Exit status:
      0    of each kind, all stalls were found, and at least 95 % of the causes
           and sizes are right
      1    a kind never came or was not found, or too many causes or sizes are
           wrong
      2    wrong input
      3    could not measure, or a measurement is invalid
      4    the machine was too busy to tell
      130  interrupted
    """
    from rtgauge.cli.command_end import settle, status
    from rtgauge.cli.console import Console
    from rtgauge.cli.progress import make_display
    from rtgauge.runner.interrupt import Interrupt
    from rtgauge.runner.measure_run import RunOptions, start_run
    from rtgauge.target.kind import name_in_scheme
    from rtgauge_ext.selftest.judge import self_test
    from rtgauge_ext.selftest.selftest_plan import STOPPED_S, self_test_plan, stopped_guests
    from rtgauge_ext.selftest.selftest_presenter import print_self_test, selftest_document

    plan, guests = self_test_plan(kinds, count, length, cpu, target), stopped_guests(kinds, target)
    options = RunOptions(out, ["rtgauge", *sys.argv[1:]], wait_s=wait_s(wait))
    display = make_display()
    with (
        Interrupt(display.stopping) as interrupt,
        display,
        nullcontext()
        if guests is None
        else guests.stopped_now_and_then(name_in_scheme(target), STOPPED_S) as stops,
    ):
        path, run, _ = start_run(plan, options, display, interrupt)
    if guests is not None and stops is not None:
        _write_stops(path, run, guests.clock_offset_ns(name_in_scheme(target)), stops)
    record, problem = settle(path, run)
    result = self_test(record)
    if result is None and run.state != "interrupted":
        raise MeasureError(
            "cannot explain any latency, because the kernel's events cannot be recorded; the marks say "
            "why: rtgauge show latest"
        )
    if json:
        typer.echo(selftest_document(str(path), result).model_dump_json(indent=1))
    elif result is not None:
        print_self_test(result, Console())
        typer.echo(f"record  {path}")
    ended = status(record, problem)
    if ended != EXIT_OK:
        raise typer.Exit(ended)
    if result is not None and result.too_busy:
        raise typer.Exit(EXIT_CANNOT_TELL)
    raise typer.Exit(EXIT_OK if result is not None and result.passed else EXIT_FAILS)


def _write_stops(path: Path, run: Run, offset_ns: int, stops: list[tuple[int, int]]) -> None:
    """Write a guest's stops to the record, with times of the guest's clock, which is `offset_ns` ahead."""
    from rtgauge.record.writer import RecordWriter
    from rtgauge_ext.selftest.judge import ALL_CPUS, OUTSIDE, OUTSIDE_LOG

    lines = [
        dumps({"kind": OUTSIDE, "cpu": ALL_CPUS, "start_ns": start + offset_ns, "end_ns": end + offset_ns})
        for start, end in stops
    ]
    RecordWriter(path, run.id).write_log(OUTSIDE_LOG, "".join(f"{line}\n" for line in lines).encode())
