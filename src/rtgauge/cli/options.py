# SPDX-License-Identifier: MIT
"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.errors import InputError
from rtgauge.units import NS_PER_S, NS_PER_UNIT, parse_duration_ns

if TYPE_CHECKING:
    from rtgauge.report.frequency_tables import Timing

LONGEST_WAIT_NS = 7 * NS_PER_UNIT["d"]

Target = Annotated[
    str,
    typer.Option(metavar="NAME", help="Machine: local, ssh://[user@]host[:port], lab:NAME or labgrid:PLACE."),
]
RecordArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RECORD",
        help="A record: its folder, its name in rtgauge-runs as `rtgauge list` prints it, or latest.",
    ),
]
Require = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help='Requirement to check, e.g. "period=1ms latency<=200us hardness=100%".'
    ),
]
AllowLeftOut = Annotated[
    bool,
    typer.Option(
        "--allow-left-out",
        help="Let the requirement hold even if a load or a step could not be measured.",
    ),
]
Details = Annotated[
    bool, typer.Option("--details", help="Print every CPU, thread, part and mark, not just one row per load.")
]
WaitForLock = Annotated[
    str,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="How long to wait for a machine that another run holds; default: not at all.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Fraction = Annotated[
    str,
    typer.Option(
        metavar="PART", help="Fraction of the period that the latency may take, e.g. 0.5, 1/3, 25%."
    ),
]
Marker = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TIME",
        help='Known time to mark in the figures, e.g. "CAN frame=130us"; may be repeated.',
    ),
]


def timing(fraction: str, marker: list[str] | None, confidence: float = 0.95) -> Timing:
    """The options of frequency tables and figures. Raises InputError."""
    from rtgauge.analysis.frequency import Options, check_fraction
    from rtgauge.report.frequency_tables import Timing, parse_markers

    if not 0.5 <= confidence < 1:
        raise InputError(f"--confidence {confidence:g} is not in 0.5 to 1 (exclusive); try 0.95")
    return Timing(Options(check_fraction(fraction), confidence), parse_markers(marker))


def wait_s(text: str) -> float:
    """`--wait`: how long to wait for a machine that another run holds, in s. Raises InputError."""
    wait_ns = 0 if text == "0" else duration_option("--wait", text)
    if wait_ns > LONGEST_WAIT_NS:
        raise InputError(f"--wait {text}: give at most 7d")
    return wait_ns / NS_PER_S


def duration_option(option: str, text: str) -> int:
    """A duration such as `2us` in ns.

    Raises InputError, which names the option, if it is not a duration or is negative.
    """
    try:
        value_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if value_ns < 0:
        raise InputError(f"{option} {text} is negative; give a duration such as 2us")
    return value_ns
