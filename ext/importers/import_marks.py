# SPDX-License-Identifier: MIT
"""Marks about files of edges and the output of other tools."""

from __future__ import annotations

from enum import unique

from rtgauge.record.marks import DOUBTFUL, NOTE, Entry, MarkKindBase


@unique
class ImportMarkKind(MarkKindBase):
    """Marks about files of edges and the output of other tools."""

    OTHER_TOOL = Entry(
        (NOTE,),
        "Another tool measured this step, so that you can compare its result with the one from rtgauge.",
    )
    OTHER_PERIOD = Entry(
        (NOTE,),
        "The other tool cannot measure with the period of this step. The detail gives the period that it "
        "used.",
    )
    PERIOD_OF_THE_TASK = Entry(
        (NOTE,),
        "The test program of RTAI prints a period that differs from the actual period of its task. rtgauge "
        "uses the actual period.",
    )
    PERIOD_ASSUMED = Entry(
        (DOUBTFUL,),
        "Neither the test program nor the RTAI scheduler reports the period. rtgauge assumes the default "
        "period of the program.",
        "give the period: --interval",
    )
    EXTRA_EDGES = Entry(
        (DOUBTFUL,),
        "The channel of the answers has edges that do not belong to a stimulus. Either the line is noisy, or "
        "an edge crosses the threshold more than once.",
        "set the threshold and the hysteresis of the instrument, then record again",
    )
    ANSWERS_INVERTED = Entry(
        (DOUBTFUL,),
        "Some edges went in the opposite direction to the stimulus, so they do not count as its answer.",
        "if the answer toggles the line, import the file with --any-edge",
    )
    LAST_UNANSWERED = Entry(
        (NOTE,),
        "The file ends before the last stimulus was answered, so rtgauge does not count this stimulus.",
    )
    TIME_UNKNOWN = Entry(
        (NOTE,),
        "The file does not say when the tool measured. rtgauge uses the time at which the file was last "
        "changed.",
    )
    RESOLUTION = Entry(
        (NOTE,), "The tool counted in bins, so a true value may be larger by up to the width of one bin."
    )
    UNIT_ASSUMED = Entry(
        (NOTE,),
        "The file does not say whether its latencies are in us or in ns (-N). rtgauge assumes us.",
        "keep the tool's command line in the file, or import its JSON",
    )
    BINS_ASSUMED = Entry(
        (NOTE,), "The file does not say how wide its bins are. The detail says which width rtgauge assumes."
    )
    TOOL_ASSUMED = Entry(
        (NOTE,),
        "The programs latency and latmus print the same lines, so the file does not show which one "
        "measured. rtgauge assumes latency (Xenomai).",
    )
    NO_HISTOGRAM = Entry(
        (NOTE,),
        "The file has only the minimum, average and maximum. Therefore rtgauge knows only that each "
        "quantile is at least the minimum.",
        "measure with a histogram (cyclictest -h)",
    )
    LAST_BIN_CLIPPED = Entry(
        (NOTE,),
        "The last bin of the tool also counts every larger value, so a sample in it may be larger than the "
        "bin.",
        "measure with a larger histogram",
    )
    COUNTS_PLUS_ONE = Entry((NOTE,), "The tool writes every count 1 too high, so rtgauge subtracts 1.")
    COUNT_OF_IRQ = Entry(
        (NOTE,),
        "For each CPU, rtla top prints only how many timer interrupts it measured. rtgauge uses this "
        "number for the threads, too, which is right unless rtla lost some.",
    )
    LOOP_IN_FIRST_BIN = Entry(
        (NOTE,),
        "oslat counts each round of its own loop, not only gaps, so the first bin counts undisturbed rounds.",
    )
    MEAN_ROUNDED = Entry(
        (NOTE,),
        "The histogram is incomplete. Therefore rtgauge shows the mean that the tool prints, which is "
        "rounded down, and leaves out the standard deviation.",
    )
    SIGN_LOST = Entry(
        (DOUBTFUL,),
        "Some activations were early, but the histogram of the tool shows them as late.",
        "calibrate the timer, then measure again",
    )
    OVERRUNS = Entry(
        (DOUBTFUL,),
        "The tool reports overruns, which are missed activations. It does not report how late they were.",
        "measure with a longer period",
    )
    MISSED_DERIVED = Entry(
        (NOTE,),
        "The tool does not report missed activations. rtgauge derives them from the latencies and the "
        "interval.",
    )
    AVERAGE_CONTRADICTS = Entry(
        (DOUBTFUL,),
        "The average and the histogram in the file contradict each other. One of them does not cover all "
        "samples.",
        "measure again and keep the whole output",
    )
    MAXIMUM_DIFFERS = Entry(
        (DOUBTFUL,),
        "The maximum that hwlatdetect prints differs from the largest of its samples.",
        "measure again and keep the whole output",
    )
    SAMPLES_MISSING = Entry(
        (DOUBTFUL,),
        "hwlatdetect found more gaps than are in the file.",
        "measure again and keep the whole output",
    )
    QUANTITIES_MIXED = Entry(
        (DOUBTFUL,),
        "rteval adds the latencies in interrupt, thread and user context, which rtla counts separately, "
        "into one histogram.",
        "measure with rtla itself",
    )
    OVERFLOW_UNKNOWN = Entry(
        (DOUBTFUL,),
        "rteval ignores values that are too large for the histogram of rtla, so the true maximum may be "
        "larger than the one shown.",
        "measure with rtla itself",
    )
    NO_SUMMARY = Entry(
        (DOUBTFUL,),
        "The file lacks the rows count, over and max of rtla, so it is unknown how many samples were too "
        "large for the histogram.",
        "measure without --no-summary, and keep the whole output",
    )
    EXTREMES_OF_WHOLE_SECONDS = Entry(
        (NOTE,),
        "The histogram has samples outside the minimum and maximum, because the tool computes these only "
        "from complete seconds.",
    )
    SECONDS_MISSING = Entry(
        (DOUBTFUL, NOTE),
        "The file lacks the lines of some seconds. If its last line (RTS) gives the figures for all "
        "seconds, the mark is a note.",
        "keep the whole output of the tool",
    )
    CUT_SHORT = Entry((NOTE,), "The last sample in the file is incomplete, so rtgauge leaves it out.")
    SHORT_MEASUREMENT = Entry(
        (NOTE,),
        "The tool measured for only a short time, so it may have missed rare events.",
        "measure for longer",
    )
    STOPPED_AT_THRESHOLD = Entry(
        (NOTE,),
        "The tool stopped at the first latency above its limit, so the maximum is that latency.",
    )
    SMALL_GAPS_UNKNOWN = Entry((NOTE,), "hwlatdetect does not record gaps below its threshold.")
    DUTY_CYCLE = Entry(
        (NOTE,),
        "hwlatdetect looked for gaps only during part of the time, so it missed gaps in the rest.",
    )
    NO_REAL_TIME_PRIORITY = Entry(
        (DOUBTFUL,),
        "The tool measured without a real-time priority, so other programs could delay it like any "
        "ordinary program.",
        "measure with a real-time priority",
        only_delays=True,
    )
    LOW_PRIORITY = Entry(
        (NOTE,),
        "The tool measured at a lower priority than the interrupt threads, so these could delay it.",
        "measure at a priority above theirs, such as 98",
    )
