# SPDX-License-Identifier: MIT
"""Marks of the microbenchmarks."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, NOTE, Entry, MarkKindBase


@unique
class MicrobenchmarkMarkKind(MarkKindBase):
    """Marks of the microbenchmarks."""

    NOT_PREEMPTED = Entry(
        (DOUBTFUL,),
        "At some events, the low-priority task did not run, so the high-priority task could not preempt it.",
        "measure again on a CPU without other real-time tasks",
    )
    FEW_SWITCHES = Entry(
        (NOTE,),
        "The same task often continued after a yield, because this policy does not hand over the CPU each "
        "time.",
        "measure with --policy fifo",
    )
