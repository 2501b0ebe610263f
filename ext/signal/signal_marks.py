# SPDX-License-Identifier: MIT
"""Marks of a signal path."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, INVALID, NOTE, Entry, MarkKindBase


@unique
class SignalMarkKind(MarkKindBase):
    """Marks of a signal path."""

    PARTS_MISSING = Entry(
        (DOUBTFUL,),
        "rtgauge could not split some responses into parts, because the kernel did not trace every switch "
        "to the slave.",
        "keep the CPU of the slave busy, or measure without --trace-parts",
    )
    NO_INTERRUPT = Entry(
        (NOTE,),
        "This path does not use an interrupt, so the results lack interrupt latency and service time.",
        "choose a path with an interrupt: --path wire or gpio",
    )
    NO_STIMULUS = Entry(
        (INVALID,),
        "The slave did not receive any stimulus.",
        "start the master first, and check that both ends name the same line",
    )
    SLAVE_DIED = Entry(
        (INVALID,),
        "The slave, or the observer of a periodic task, ended too early.",
        "read the detail and the messages of the slave to find the cause, then measure again",
    )
    MASTER_LATE = Entry(
        (NOTE, DOUBTFUL),
        "The master was too late for some stimuli and did not send them. If it missed more than 1 %, the "
        "mark is doubtful.",
        "give the master its own CPU or a longer --interval, then measure again",
    )
    REFERENCE_MISSING = Entry(
        (NOTE,),
        "Some edges on the wire were not time-stamped, so they are missing from the figures of the wire.",
    )
    NOISE = Entry(
        (DOUBTFUL,),
        "Answers came without a stimulus, or several came for one stimulus. Either the line is noisy, or "
        "something else uses it.",
        "check the wires, and whether something else uses the line; then measure again",
    )
