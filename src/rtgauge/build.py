# SPDX-License-Identifier: MIT
"""Finds out which build of rtgauge this is: the commit of its sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path

COMMIT = Path(__file__).with_name("commit.txt")


@cache
def commit() -> str | None:
    """Return the commit that was built: 12 digits, with "+" if its sources were changed. None if it is
    unknown, as in sources that were not installed.
    """
    try:
        return COMMIT.read_text().strip() or None
    except OSError:
        return None
