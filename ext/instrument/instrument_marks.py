# SPDX-License-Identifier: MIT
"""Marks about instruments."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, INVALID, NOTE, Entry, MarkKindBase


@unique
class InstrumentMarkKind(MarkKindBase):
    """Marks about instruments."""

    INSTRUMENT_LOST = Entry(
        (INVALID,),
        "The connection to the instrument broke. The record has what it had sent until then.",
        "check the cable and the power of the instrument, then measure again",
    )
    EDGES_LOST = Entry(
        (INVALID,),
        "The instrument lost edges, because they came faster than it can read them.",
        "use a longer interval, and check whether the line is noisy",
    )
    STREAM_GAPS = Entry(
        (DOUBTFUL,),
        "This machine read from the instrument too slowly, so some values are only in the totals that the "
        "instrument keeps.",
        "measure with less load on this machine, or with a longer interval",
    )
    GLITCHES = Entry(
        (DOUBTFUL,),
        "Some pulses on the line were no longer than one tick of the instrument, so the line is probably "
        "disturbed.",
        "check the wires and their ground, then measure again",
    )
    CELLS_MISSING = Entry(
        (DOUBTFUL,),
        "The histogram of the latmon lacks some samples. Of these, only the minimum, mean and maximum are "
        "known.",
        "measure again",
    )
    FIRST_SECOND = Entry(
        (NOTE,),
        "The latmon counts the samples of its first second in the histogram, but not in the totals that it "
        "sends every second. Therefore the mean is unknown, and minimum and maximum are exact only to 1 us.",
    )
    MISSED_BY_OVERRUNS = Entry(
        (NOTE,),
        "Some answers took longer than a period. The latmon reports only how many periods passed, so "
        "rtgauge counts each as a latency of one period.",
    )
    RESOLUTION_1US = Entry(
        (NOTE,),
        "The tool counts in whole us, so a true value may differ by up to 1 us. The detail says in which "
        "direction.",
    )
    HISTOGRAM_OVERFLOW = Entry(
        (NOTE,),
        "Some samples were too large for the histogram. Their number is known, but not their values.",
        "measure with a larger histogram",
    )
