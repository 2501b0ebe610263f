# SPDX-License-Identifier: MIT
"""`rtgauge watch`: a program of the user's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.options import Details, Json, WaitForLock

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

SETTLE_S = 2.0
"""How long a program that is started may take to begin its real-time threads."""
GRACE_S = 5.0
REAL_TIME = ("1", "2", "6")
"""SCHED_FIFO, SCHED_RR, SCHED_DEADLINE (include/uapi/linux/sched.h)."""


def _has_real_time(pid: int) -> bool:
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if len(fields) > 38 and fields[38] in REAL_TIME:
            return True
    return False


def _started(command: list[str], target: str) -> AbstractContextManager[int]:
    """The program on its target, once that is ours: started when this is entered, ended when it is left."""
    from rtgauge.target.address import parse_address
    from rtgauge.target.ssh_program import program_on

    return _started_here(command) if parse_address(target) is None else program_on(target, command, SETTLE_S)


@contextmanager
def _started_here(command: list[str]) -> Generator[int]:
    """The program, which has begun its threads; it is ended with this.

    What it prints goes to standard error. Raises InputError, MeasureError.
    """
    from rtgauge.errors import InputError, MeasureError

    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        end_s = time.monotonic() + SETTLE_S
        while time.monotonic() < end_s and process.poll() is None and not _has_real_time(process.pid):
            time.sleep(0.02)
        if process.poll() is not None:
            raise MeasureError(
                f"{command[0]} ended at once, with status {process.returncode}: there is nothing to watch"
            )
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def watch(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- CMD", help="Program to start on the target and watch; it is ended afterwards."
        ),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(min=1, metavar="PID", help="Process ID of a program that already runs on the target."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Its name instead, as in /proc/PID/comm, if only one program has it."
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=(
                "Names of its threads, separated by commas; default: threads with a real-time policy, "
                "otherwise all."
            ),
        ),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Watched time, e.g. 10s, 10min; default: 10s.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain/--no-explain", help="Explain the largest latencies by the kernel's events."),
    ] = True,
    explain_above: Annotated[
        str | None, typer.Option(metavar="TIME", help="Also explain each latency above this, e.g. 100us.")
    ] = None,
    dma_latency: Annotated[
        str | None,
        typer.Option(
            metavar="US",
            help=("Limit the C-state exit latency to this many us; off (default): as the program sets it."),
        ),
    ] = None,
    require: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help='Requirement to check, e.g. "latency<=100us" or "response<=500us".'
        ),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the record, as rtgauge run does.")] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record of --save.")
    ] = Path("rtgauge-runs"),
    wait: WaitForLock = "0",
    target: Annotated[
        str,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Machine with the program: local, ssh://[user@]host[:port] or lab:NAME.",
        ),
    ] = "local",
    details: Details = False,
    json: Json = False,
) -> None:
    """Watch the threads of your own program.

    Shows how late each thread runs after it is woken, how long until it sleeps again, its period, who wakes
    and preempts it, and what delayed it most. Nothing is linked into the program. It needs root and a kernel
    with tracefs.

    \b
    Examples:
      rtgauge watch --pid 1234 --duration 1min
      rtgauge watch --require "latency<=100us" -- ./control --rate 1000
      rtgauge watch --program control --duration 1min
      rtgauge watch --pid 1234 --threads control,io --explain-above 200us --save
      rtgauge watch --target ssh://board --pid 812
      rtgauge watch --target ssh://board -- /opt/control --rate 1000

    Exit status: see rtgauge run --help.
    """
    from rtgauge.cli.probe_command import measure_probe
    from rtgauge.errors import InputError
    from rtgauge.probe.watch import named
    from rtgauge.target.address import parse_address

    if sum((pid is not None, program is not None, bool(command))) != 1:
        raise InputError(
            "give a program that runs, by --pid PID or --program NAME, or a command to start: "
            "rtgauge watch -- CMD"
        )
    if (
        command
        and parse_address(target) is None
        and shutil.which(command[0]) is None
        and not Path(command[0]).exists()
    ):
        raise InputError(f"{command[0]} cannot be started: No such file or directory")
    given = {
        "pid": pid,
        "program": named(command) if command else program,
        "threads": threads,
        "duration": duration,
        "dma-latency": dma_latency,
        "explain": explain,
        "explain-above": explain_above,
    }
    values = {name: value for name, value in given.items() if value is not None}
    status = measure_probe(
        "watch",
        values,
        load="idle",
        target=target,
        files={},
        require=require,
        as_json=json,
        required=values,
        save=out if save else None,
        wait=wait,
        details=details,
        program=(lambda: _started(command, target)) if command else None,
    )
    raise typer.Exit(status)
