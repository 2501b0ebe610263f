# SPDX-License-Identifier: MIT
"""`rtgauge watch` watches the user's program."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from rtgauge.cli.extension_options import AddedValues, InsteadOfWatching, added_to
from rtgauge.cli.probe_command import measure_probe, with_options
from rtgauge.cli.shared_options import option, parameters_of
from rtgauge.errors import InputError, MeasureError
from rtgauge.probe.points import SEPARATOR
from rtgauge.probe.watch import PROBE, named
from rtgauge.target.address import parse_address
from rtgauge.target.ssh_program import program_on

ADDED_TO = "watch"
"""The command, for extensions that add options to it alone."""
SETTLE_S = 2.0
"""How long a started program may take to begin its real-time threads."""
NAMED_S = 30.0
"""How long a started program may take to begin a thread that --threads names."""
GRACE_S = 5.0
REAL_TIME = ("1", "2", "6")
"""The numbers of SCHED_FIFO, SCHED_RR and SCHED_DEADLINE (include/uapi/linux/sched.h)."""


def _has_begun(pid: int, threads: str | None) -> bool:
    """Return whether the process has a named thread or, if none is named, any real-time thread."""
    names = None if threads is None else threads.split(",")
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            start, _, rest = stat.read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if names is not None:
            if start.partition("(")[2] in names:
                return True
        elif len(fields) > 38 and fields[38] in REAL_TIME:
            return True
    return False


def started(command: list[str], target: str, threads: str | None) -> AbstractContextManager[int]:
    """Return a context that starts a program on the target, yields its pid, and ends the program when left.

    `threads`: names, separated by commas; None: any real-time thread. The context yields the pid when the
    program has such a thread, or after a time limit. Entering it raises the errors of `program_on`.
    """
    settle_s = SETTLE_S if threads is None else NAMED_S
    if parse_address(target) is None:
        return _started_here(command, settle_s, threads)
    return program_on(target, command, settle_s, threads)


@contextmanager
def _started_here(command: list[str], settle_s: float, threads: str | None) -> Generator[int]:
    """Start a program here and yield its pid once its threads have begun. End it when the context is left.

    Its output goes to standard error. Raises InputError if it cannot be started, MeasureError if it ends.
    """
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started: {error.strerror}") from None
    try:
        end_s = time.monotonic() + settle_s
        while time.monotonic() < end_s and process.poll() is None and not _has_begun(process.pid, threads):
            time.sleep(0.02)
        if process.poll() is not None:
            raise MeasureError(
                f"{command[0]} cannot be watched, because it ended at once, with status {process.returncode}"
            )
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


COMMAND = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- CMD", help="Program to start on the target and watch; rtgauge ends it afterwards."
    ),
]
EXPLAIN = Annotated[
    bool,
    typer.Option("--explain/--no-explain", help="Use the kernel's events to explain the largest latencies."),
]
POINT = Annotated[
    list[str] | None,
    option(
        "NAME=BINARY:SYMBOL",
        "A point of the program, in the order of its cycle: the call of a function, a static probe "
        "(usdt:PROVIDER:NAME) or 0xADDRESS. The part NAME runs from this point to the next. Give two to 16.",
        "--point",
    ),
]
BEGIN = Annotated[
    str | None,
    option("BINARY:SYMBOL", "The point at which a part of the program begins.", "--begin"),
]
END = Annotated[
    str | None,
    option("BINARY:SYMBOL", "The point at which the part of --begin ends.", "--end"),
]


def _points(given: dict[str, Any]) -> str | None:
    """Return the points as the parameter `points`, and remove their options from `given`."""
    begin, end = given.pop("begin"), given.pop("end")
    points: list[str] = given.pop("points") or []
    if (begin is None) != (end is None) or (begin is not None and points):
        raise InputError("give --begin and --end together, or several points with --point")
    if begin is not None:
        points = [f"part={begin}", f"end={end}"]
    return SEPARATOR.join(points) or None


def _do_instead(given: Mapping[str, Any]) -> None:
    """If an option asks for something else than to measure, do it and exit."""
    defaults = {name: each.default for name, each in inspect.signature(watch).parameters.items()}
    differing = {name: value for name, value in given.items() if value != defaults[name]}
    for group in AddedValues.given(ADDED_TO, given).of(InsteadOfWatching):
        if (instead := group.instead(differing)) is not None:
            instead()
            raise typer.Exit


def _watch(command: list[str] | None, **given: Any) -> None:
    _do_instead({"command": command, **given})
    given["points"] = _points(given)
    if sum((given["pid"] is not None, given["program"] is not None, bool(command))) != 1:
        raise InputError(
            "say which program to watch: a running one with --pid PID or --program NAME, or one to start: "
            "rtgauge watch -- CMD"
        )
    if not command:
        raise typer.Exit(measure_probe(PROBE, given))
    target = given["target"]
    if parse_address(target) is None and shutil.which(command[0]) is None and not Path(command[0]).exists():
        running = f"; for a running process, give --pid {command[0]}" if command[0].isdigit() else ""
        raise InputError(f"{command[0]} cannot be started: no such file or directory{running}")
    given["program"] = named(command)
    raise typer.Exit(measure_probe(PROBE, given, lambda: started(command, target, given["threads"])))


watch = with_options(
    _watch,
    PROBE,
    "rtgauge watch",
    {
        "points": (POINT, None),
        "begin": (BEGIN, None),
        "end": (END, None),
        "explain": (EXPLAIN, True),
        "command": (COMMAND, None),
        **{
            each.name: (each.annotation, each.default)
            for group in added_to(ADDED_TO)
            for each in parameters_of(group)
        },
    },
)
