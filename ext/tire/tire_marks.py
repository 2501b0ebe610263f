# SPDX-License-Identifier: MIT
"""Marks of a measured tire."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import NOTE, Entry, MarkKindBase


@unique
class TireMarkKind(MarkKindBase):
    """Marks of a measured tire."""

    PERIOD_SHORT = Entry(
        (NOTE,),
        "Each step of the tire takes longer than the period, so every deadline is missed.",
        "use a longer period, fewer nodes or more threads",
    )
