# SPDX-License-Identifier: MIT
"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.errors import InputError
from rtgauge.units import parse_duration_ns

if TYPE_CHECKING:
    from rtgauge.report.frequency_tables import Timing

Fraction = Annotated[str, typer.Option(metavar="PART", help="The part of a period that a lateness may take, e.g. 0.5, 1/3, 25%.")]
Marker = Annotated[list[str] | None, typer.Option(metavar="NAME=TIME", help='A time to draw beside the measured ones, e.g. "CAN frame=130us"; several.')]


def timing(fraction: str, marker: list[str] | None, confidence: float = 0.95) -> Timing:
    """What the options say. Raises InputError."""
    from rtgauge.analysis.frequency import Options, check_fraction
    from rtgauge.errors import InputError
    from rtgauge.report.figures.known_times import parse_markers
    from rtgauge.report.frequency_tables import Timing

    if not 0.5 <= confidence < 1:
        raise InputError(f"--confidence {confidence:g} is not at least 0.5 and below 1; 0.95 is usual")
    return Timing(Options(check_fraction(fraction), confidence), parse_markers(marker))


def duration_option(option: str, text: str) -> int:
    """The ns of a duration such as `2us`. Raises InputError, naming the option, for what is none or is negative."""
    try:
        value_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if value_ns < 0:
        raise InputError(f"{option} {text} is negative; write it like 2us")
    return value_ns
