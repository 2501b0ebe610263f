# SPDX-License-Identifier: MIT
"""Marks of a measured task set."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, NOTE, Entry, MarkKindBase


@unique
class TaskSetMarkKind(MarkKindBase):
    """Marks of a measured task set."""

    UNFINISHED = Entry(
        (DOUBTFUL,),
        "When the step ended, a task had not finished some activations that were already released. The "
        "figures leave them out.",
        "lower the utilization of the task set, or measure for longer",
    )
    TIMELINE_CUT = Entry(
        (NOTE,), "The timeline of a task is incomplete, because it had more segments than rtgauge can keep."
    )
