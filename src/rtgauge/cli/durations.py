# SPDX-License-Identifier: MIT
"""Durations on the command line."""

from __future__ import annotations

from rtgauge.errors import InputError
from rtgauge.units import parse_duration_ns


def duration_option(option: str, text: str) -> int:
    """The ns of a duration such as `2us`. Raises InputError, naming the option, for what is none or is negative."""
    try:
        value_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if value_ns < 0:
        raise InputError(f"{option} {text} is negative; write it like 2us")
    return value_ns
