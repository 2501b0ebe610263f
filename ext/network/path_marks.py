# SPDX-License-Identifier: MIT
"""Marks of a path through a network."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, NOTE, Entry, MarkKindBase


@unique
class NetworkMarkKind(MarkKindBase):
    """Marks of a path through a network."""

    OWN_LATE = Entry(
        (NOTE, DOUBTFUL),
        "In some cycles, the measuring machine itself sent its frame late or not at all, read the answer "
        "late, or had no room for it. These cycles say nothing about the far end. If they are more than 1 % "
        "of the answered cycles, the mark is doubtful.",
        "give the task its own CPU (--cpu) or a longer --interval, or find the cause with --explain, then "
        "measure again",
        only_delays=True,
    )
    OTHER_FRAMES = Entry(
        (NOTE,),
        "Answers came twice, or frames came that did not answer this run. They do not count.",
        "check whether something repeats frames, or uses the same path; then measure again",
    )
    STAMPS_MISSING = Entry(
        (NOTE,),
        "Some frames lack usable time stamps of the kernel, so their responses are not split into parts. "
        "Their responses are measured all the same.",
        "check with `ethtool -T INTERFACE` whether the driver makes software time stamps, and do not set the "
        "system's time while rtgauge measures",
    )
