# SPDX-License-Identifier: MIT
"""Finds which build of rtgauge this is, by the commit of its sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path

COMMIT = Path(__file__).with_name("commit.txt")


@cache
def commit() -> str | None:
    """Return the commit that was built: 12 digits, with "+" if its sources were changed. None if unknown, as
    for sources that were not installed.
    """
    try:
        return COMMIT.read_text().strip() or None
    except OSError:
        return None
