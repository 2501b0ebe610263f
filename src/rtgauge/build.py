# SPDX-License-Identifier: MIT
"""Finds which build of rtgauge this is, by the commit of its sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path

COMMIT = Path(__file__).with_name("commit.txt")


@cache
def commit() -> str | None:
    """Return the first 12 hexadecimal digits of the commit that was built, followed by "+" if the sources
    differed from it. None if it is unknown, for example because rtgauge runs from sources that were not
    installed.
    """
    try:
        return COMMIT.read_text().strip() or None
    except OSError:
        return None
