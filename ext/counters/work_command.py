# SPDX-License-Identifier: MIT
"""`rtgauge work`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import Json, Target, WaitForLock, wait_s
from rtgauge.errors import EXIT_CANNOT_TELL
from rtgauge.units import NS_PER_S, parse_duration_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rtgauge.target.target_protocol import Target as Machine

SILENCE_S = 60.0
"""How long the engine may print nothing, in addition to the duration."""


def work(
    pid: Annotated[int, typer.Option(min=1, metavar="PID", help="Process ID of the program.")],
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Threads, separated by commas. [default: real-time threads, or all]"
        ),
    ] = None,
    duration: Annotated[str, typer.Option(metavar="TIME", help="How long to count, e.g. 10s, 5min.")] = "10s",
    target: Target = "local",
    wait: WaitForLock = "0",
    json: Json = False,
) -> None:
    """Tell why some activations of a program work longer than usual.

    rtgauge counts the CPU time, cycles, instructions and last-level cache misses of each activation, and
    compares the slowest 1 % with the usual ones: they executed more instructions, missed the cache more
    often, or the CPU was slower. This needs root. Counting adds 5 to 10 us to each
    switch of these threads.

    \b
    Examples:
      rtgauge work --pid 1234
      rtgauge work --pid 1234 --threads control --duration 1min

    \b
    Exit status:
      0  the slowest activations have a reason, or are not slower
      2  wrong input
      3  the program cannot be counted
      4  cannot tell, for example because the machine has no counters
    """
    from rtgauge.cli.console import Console
    from rtgauge.errors import InputError
    from rtgauge.target.open_target import open_target
    from rtgauge_ext.counters.activation import parse_work
    from rtgauge_ext.counters.work_report import print_report, report

    try:
        duration_ns = parse_duration_ns(duration)
    except ValueError as error:
        raise InputError(f"--duration: {error}") from None
    if not 0 < duration_ns <= 3600 * NS_PER_S:
        raise InputError(f"--duration {duration}: give more than 0 and at most 1h")
    words = ["--pid", str(pid), "--duration-ns", str(duration_ns)]
    words += [] if threads is None else ["--threads", threads]
    with open_target(target, "work", "rtgauge work", wait_s=wait_s(wait)) as opened:
        found = report(parse_work(_lines(opened, words, duration_ns / NS_PER_S)))
    if json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        print_report(found, Console())
    if not found.can_tell:
        raise typer.Exit(EXIT_CANNOT_TELL)


def _lines(opened: Machine, words: list[str], duration_s: float) -> Iterator[bytes]:
    program = opened.engine("work", *words)
    try:
        yield from program.lines(duration_s + SILENCE_S)
    finally:
        program.stop()
