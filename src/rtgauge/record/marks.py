# SPDX-License-Identifier: MIT
"""The registry of marks: what each mark of rtgauge and its engine means, and what to do about it.

`rtgauge marks` prints it, and tools/reference.py makes a page of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum, unique
from typing import NamedTuple

from rtgauge.record.strict_model import Model


class Severity(StrEnum):
    """How much a mark devalues a step."""

    NOTE = "note"
    DOUBTFUL = "doubtful"
    INVALID = "invalid"


NOTE, DOUBTFUL, INVALID = Severity


def worst_severity(severities: Iterable[Severity | None]) -> Severity | None:
    """Return the highest of the severities; None if there are none."""
    return max(
        (severity for severity in severities if severity is not None), key=list(Severity).index, default=None
    )


def is_doubt(severity: Severity | None) -> bool:
    """Return whether the severity is more than a note."""
    return severity is not None and severity is not Severity.NOTE


class Mark(Model):
    """A named doubt about a step or a run. `series` is None unless the mark concerns only that series."""

    name: str
    severity: Severity
    detail: str
    series: int | None = None

    @property
    def kind(self) -> MarkKind | None:
        """The mark's kind in the registry; None for a mark of another version."""
        return KIND_OF_NAME.get(self.name)

    @property
    def remedy(self) -> str:
        """Advice on what to do about the mark; empty if there is none."""
        return "" if self.kind is None else self.kind.value.remedy


class Entry(NamedTuple):
    """A mark's entry: its severities (the usual one first), its meaning, and advice (may be empty)."""

    severities: tuple[Severity, ...]
    meaning: str
    remedy: str = ""


@unique
class MarkKind(Enum):
    """Every kind of mark that rtgauge or its engine can make."""

    _value_: Entry

    # Marks about the machine.
    THROTTLED = Entry(
        (DOUBTFUL,),
        "Real-time throttling, the fair server or a cgroup's limit held the measuring thread back. The "
        "detail says which, and how to lift it.",
        "remove the limit with: sysctl -w kernel.sched_rt_runtime_us=-1 (and see the mark for the fair "
        "server), then measure again",
    )
    CPU_HELD = Entry(
        (DOUBTFUL,),
        "Another task occupied a CPU for seconds, so the measuring thread could not run. The detail names "
        "the task.",
        "end the task, lower its priority, or choose other CPUs with --cpu",
    )
    CPU_LOST = Entry(
        (INVALID,),
        "The kernel moved a measuring thread to another CPU.",
        "keep the CPU online and its cpuset unchanged, and measure again",
    )
    CPU_OFFLINE = Entry(
        (INVALID,),
        "A measured CPU went offline.",
        "keep the CPUs online, and measure again",
    )
    STEAL = Entry(
        (DOUBTFUL, NOTE),
        "The hypervisor took CPU time from this virtual machine. The mark is a note if the hypervisor took "
        "little time.",
        "give the virtual machine its own CPUs (pin its virtual CPUs), or measure on the bare machine",
    )
    EMULATED = Entry(
        (NOTE,),
        "Software emulates the processor. Its times say nothing about a real machine, so the verdict is "
        '"cannot tell".',
        "measure on the real machine, or in a virtual machine with hardware support (KVM)",
    )
    GUESTS_RUNNING = Entry(
        (DOUBTFUL,),
        "Guests of the lab ran on this machine and took time from it.",
        "stop the guests (rtgauge lab stop NAME), then measure again",
    )
    THERMAL_THROTTLE = Entry(
        (DOUBTFUL,),
        "The processor slowed down because it was too hot.",
        "cool the machine or lower its frequency, then measure again",
    )
    SWAPPING = Entry(
        (DOUBTFUL,),
        "The machine swapped.",
        "free memory or run swapoff -a, then measure again",
    )
    CLOCK_CHANGED = Entry(
        (INVALID,),
        "The machine was suspended, or its clock source changed.",
        "prevent NTP steps and suspends, then measure again",
    )
    CLOCK_BACKWARDS = Entry(
        (INVALID,),
        "A clock went backwards while its resolution was measured.",
        "choose another clock source, then measure again",
    )
    DMA_LATENCY_FAILED = Entry(
        (NOTE,),
        "The CPUs could enter C-states, because /dev/cpu_dma_latency could not be used.",
        "run as root, so that rtgauge can hold /dev/cpu_dma_latency, and measure again",
    )
    NOT_LOCKED = Entry(
        (NOTE,),
        "Memory was not locked. Page faults can add to latencies.",
        "raise the memory lock limit (ulimit -l unlimited) and measure again",
    )

    # Marks about the run.
    STARTING_STATE = Entry(
        (DOUBTFUL,),
        "A setting of an earlier step could not be restored, so this step began from another state.",
        "restore the setting (rtgauge restore), then measure again",
    )
    NOT_PUT_BACK = Entry(
        (NOTE,),
        "A setting of this step could not be restored.",
        "try again with: rtgauge restore",
    )
    RESTORED_BEFORE = Entry((NOTE,), "Settings that an earlier run had left changed were restored first.")
    DEPLOYMENT_INCOMPLETE = Entry(
        (NOTE,),
        "The kernel refused some settings of the deployment or ignores them, or rtgauge could not move "
        "some tasks. step.json names each of them.",
        "see which settings, and why: rtgauge deploy show",
    )
    DEPLOYMENT_HELD = Entry(
        (NOTE,), "The run was measured in the deployment that `rtgauge deploy apply` had set."
    )
    NOTHING_TO_RAISE = Entry(
        (NOTE,),
        "`--raise` names a device that has no IRQ thread.",
        "boot a PREEMPT_RT kernel, or boot this one with threadirqs",
    )
    LOAD_DIED = Entry(
        (INVALID,),
        "A load program ended too early.",
        "see in the step's load.log why the load ended, then continue with rtgauge resume, or run again",
    )
    RUNTIME_CHOSEN = Entry((NOTE,), "rtgauge chose the co-kernel to measure with. The detail says why.")
    RESUMED = Entry((NOTE,), "The run was measured in more than one session.")
    KERNEL_CHANGED = Entry(
        (DOUBTFUL,),
        "The run was resumed on another kernel. The steps before and after that measured different systems.",
        "boot the earlier kernel, or start a new run",
    )
    STOPPED = Entry((NOTE,), "The user ended the step early.", "measure again without stopping the step")
    THRESHOLD = Entry(
        (NOTE,),
        "A latency above `--stop-at` ended the step.",
    )
    GUEST_NOT_UP = Entry(
        (NOTE,),
        "A guest of the lab did not come up or did not answer. Its console output is in the record.",
        "read the console output, then boot the guest again: rtgauge lab boot NAME",
    )
    CONNECTION_BROKEN = Entry((NOTE,), "The connection to the target broke and came back. No data was lost.")
    PICKED_UP = Entry((NOTE,), "The connection broke and the step continued; a later session picked it up.")
    OTHER_TOOL = Entry((NOTE,), "Another tool measured this step, to check rtgauge against it.")
    OTHER_PERIOD = Entry((NOTE,), "The other tool could not measure with the step's own period.")

    # Marks that the engine makes.
    NOTHING_MEASURED = Entry(
        (INVALID,),
        "The step has no value at all. The detail says why.",
        "see the mark for the reason, then measure for longer (--duration)",
    )
    ENGINE_DIED = Entry(
        (INVALID,),
        "The engine was killed. Everything that it had measured by then is kept.",
        "see the step's stream.ndjson for the engine's last lines, then measure again",
    )
    LEASE_LOST = Entry(
        (INVALID,),
        "rtgauge was suspended for longer than the engine's lease (by Ctrl-Z or with its machine), or the "
        "run's guard was killed, so the engine ended. Everything that it had measured by then is kept.",
        "measure again, and leave rtgauge running",
    )
    SAMPLES_LOST = Entry(
        (INVALID, DOUBTFUL),
        "Samples were taken but are missing. The mark is doubtful if they are missing from an imported file.",
        "measure again with a longer interval, or without raw samples",
    )
    IMPOSSIBLE_LATENCY = Entry(
        (INVALID,),
        "A thread woke too early, or something ended before it began. A clock or a timer is wrong.",
        "choose another clock source or calibrate the timer, then measure again",
    )
    WATCHDOG = Entry(
        (INVALID, NOTE),
        "The watchdog ended the probe, because a measuring thread used up a CPU or ordinary threads could "
        "not run. The mark is a note if the watchdog could not be started.",
        "measure again with a lower load, or without other real-time programs",
    )
    WINDOWS_DISAGREE = Entry(
        (INVALID,),
        "The engine's windows and its summary contradict each other, so one of them is wrong.",
        "measure again; if the mark comes back, report it and attach the record",
    )
    SUMMARY_MISSING = Entry(
        (DOUBTFUL,),
        "The engine wrote no summary of a series, so nothing checks its windows.",
        "measure again",
    )
    EXPLAIN_COST = Entry((NOTE,), "Recording the kernel's events takes time. The detail says how much.")
    NOT_EXPLAINED = Entry(
        (NOTE,),
        "Some or all latencies are not explained. The detail says why.",
        "run as root on a kernel with CONFIG_FTRACE",
    )
    TRACE_DROPPED = Entry(
        (NOTE, DOUBTFUL),
        "The kernel dropped trace events. The mark is doubtful if measured values were lost with them.",
        "measure again with less load or fewer threads",
    )

    # Marks of single probes.
    ACTIVATIONS_UNKNOWN = Entry(
        (DOUBTFUL,),
        "The kernel did not trace some activations of a watched thread. The figures leave out their "
        "latencies.",
        "keep the program's CPU busy (with a nice 19 task that computes), or use another kernel, because "
        "this one does not trace every switch",
    )
    SWITCHES_MISSING = Entry(
        (DOUBTFUL,),
        "The kernel did not trace a few switches of a watched thread. The figures leave out their times.",
        "keep the program's CPU busy, or use another kernel, because this one does not trace every switch",
    )
    THREADS_LEFT_OUT = Entry(
        (DOUBTFUL,),
        "The program has more threads than can be watched at once. Only the threads with the highest "
        "real-time priority are watched.",
        "name the threads of interest: --threads",
    )
    THREADS_UNWATCHED = Entry(
        (DOUBTFUL,),
        "The program began threads that ended before they could be watched. The figures leave out what "
        "they did.",
        "let the program keep its threads, or let it begin them before they are watched",
    )
    CYCLE_UNCLEAR = Entry(
        (DOUBTFUL,),
        "Several waits of a thread could begin its cycle, its wait is rounded to milliseconds, or its cycles "
        "move between threads, so its releases are not certain. The detail says which.",
        "say which wait begins the cycle (--cycle CALL or --cycle CALL:FD), let the loop wait in a call "
        "with exact times, such as clock_nanosleep, or keep it on one thread (Go: runtime.LockOSThread)",
    )
    WALL_CLOCK_SET = Entry(
        (DOUBTFUL,),
        "A thread waits for times of the wall clock, and the wall clock was set while it was watched.",
        "let the thread wait for times of CLOCK_MONOTONIC (C++: steady_clock)",
    )
    DELAYED_BY_RTGAUGE = Entry(
        (DOUBTFUL,),
        "The engine itself kept a watched thread from running for more than 1 % of its latencies, or, "
        "with a requirement, of the time by which it was later than the bound.",
        "leave a CPU to rtgauge: bind the program to other CPUs (taskset), or make its threads real-time",
    )
    MEASURED_TOGETHER = Entry(
        (NOTE,),
        "Another measurement of rtgauge ran on this kernel at the same time, perhaps in another container.",
        "let one measurement end before another begins",
    )
    PROGRAM_ENDED = Entry(
        (NOTE,),
        "The watched program ended before the measured time was over. The figures cover the time until then.",
    )
    PROGRAM_KILLED = Entry(
        (DOUBTFUL,),
        "The watched program crashed, or a signal killed it. The figures cover the time until then.",
        "find out why the program ended, and measure again",
    )
    THREAD_CHANGED = Entry(
        (NOTE,),
        "The policy, the priority, the CPUs or the control group of a watched thread changed while it was "
        "watched.",
        "find out who changed it (rtkit, systemd, a CPU that went offline), and measure again",
    )
    POLICY_NOT_SET = Entry(
        (DOUBTFUL,),
        "Not all of the kernel's timerlat threads were found. The others kept their default "
        "priority, FIFO 95.",
        "measure again, or measure with --space user",
    )
    PARTS_MISSING = Entry(
        (DOUBTFUL,),
        "Some responses could not be split into parts, because the kernel did not trace each switch to the "
        "slave.",
        "keep the slave's CPU busy, or measure without --trace-parts",
    )
    NO_INTERRUPT = Entry(
        (NOTE,),
        "The path has no interrupt, so there is no interrupt latency and no service time.",
        "choose a path with an interrupt: --path wire or gpio",
    )
    NO_STIMULUS = Entry(
        (INVALID,),
        "No stimulus came.",
        "start the master first, and check that both ends name the same line",
    )
    SLAVE_DIED = Entry(
        (INVALID,),
        "The slave, or the observer of a periodic task, ended too early.",
        "see the detail and the messages of the slave, then measure again",
    )
    MASTER_LATE = Entry(
        (NOTE, DOUBTFUL),
        "The master was too late for some stimuli and did not send them. The mark is doubtful above 1 %.",
        "give the master its own CPU or a longer --interval, then measure again",
    )
    NOISE = Entry(
        (DOUBTFUL,),
        "Answers came without a stimulus, or several came for one stimulus. The line is noisy or has another "
        "user.",
        "check the wires and who else uses the line, then measure again",
    )
    REFERENCE_MISSING = Entry(
        (NOTE,),
        "Some edges on the wire have no time stamp, so they are missing from the series of the wire.",
    )
    OVERLOAD = Entry(
        (INVALID, NOTE),
        "The CPU could not keep up with the period, so the probe ended early. The mark is a note for a "
        "tire, whose steps until then are valid.",
        "use a longer period, or less work in each period",
    )
    PERIOD_SHORT = Entry(
        (NOTE,),
        "A step of the tire takes longer than its period, so no deadline can be met.",
        "use a longer period, fewer nodes or more threads",
    )
    UNFINISHED = Entry(
        (DOUBTFUL,),
        "Activations of a task were released but not finished when the step ended. The figures leave "
        "them out.",
        "lower the utilization of the set, or measure for longer",
    )
    TIMELINE_CUT = Entry((NOTE,), "The timeline of a task had more segments than could be kept.")
    NOT_PREEMPTED = Entry(
        (DOUBTFUL,),
        "The low task did not run at some events, so they preempted nothing.",
        "measure again on a CPU without other real-time tasks",
    )
    FEW_SWITCHES = Entry(
        (NOTE,),
        "The same task often continued after a yield: this policy does not hand over the CPU each time.",
        "measure with --policy fifo",
    )

    # Marks about co-kernels.
    MODE_SWITCHES = Entry(
        (DOUBTFUL, NOTE),
        "Real-time threads were handed to Linux while they measured, so Linux caused some of these "
        "latencies. The mark is a note if their number is unknown.",
        "measure again without debuggers and page faults; the detail names the last cause",
    )
    PERIOD_OF_THE_TASK = Entry(
        (NOTE,),
        "RTAI's program prints a period that differs from the period of its task. rtgauge uses the "
        "period of the task.",
    )
    PERIOD_ASSUMED = Entry(
        (DOUBTFUL,),
        "Neither the program nor RTAI's scheduler reports the period. rtgauge assumes the default of "
        "the program.",
        "give the period: --interval",
    )

    # Marks about instruments and files of edges.
    INSTRUMENT_LOST = Entry(
        (INVALID,),
        "The connection to the instrument broke. What it had sent until then is kept.",
        "check the instrument's cable and power, then measure again",
    )
    EDGES_LOST = Entry(
        (INVALID,),
        "The instrument lost edges, because they came faster than it can read.",
        "use a longer interval, and check whether the line is noisy",
    )
    STREAM_GAPS = Entry(
        (DOUBTFUL,),
        "This machine read the instrument too slowly. Some values are only in the instrument's own totals.",
        "measure with less load on this machine, or with a longer interval",
    )
    GLITCHES = Entry(
        (DOUBTFUL,),
        "Pulses as short as one tick of the instrument came on the line.",
        "check the wires and their ground, then measure again",
    )
    CELLS_MISSING = Entry(
        (DOUBTFUL,),
        "The latmon binned only some of its samples. Only the minimum, mean and maximum of the others are "
        "known.",
        "measure again",
    )
    FIRST_SECOND = Entry(
        (NOTE,),
        "The latmon's bins include its first second, which its lines leave out. Therefore the mean is "
        "unknown, and the extremes are exact only to 1 us.",
    )
    MISSED_BY_OVERRUNS = Entry(
        (NOTE,),
        "Periods passed while an answer was missing. rtgauge assumes a latency of one period for "
        "each, because the latmon reports only their number.",
    )
    EXTRA_EDGES = Entry(
        (DOUBTFUL,),
        "The channel of the answer has edges without a stimulus. The line is noisy, or an edge crosses the "
        "threshold more than once.",
        "set the instrument's threshold and hysteresis, then record again",
    )
    ANSWERS_INVERTED = Entry(
        (DOUBTFUL,),
        "Edges went in the opposite direction to the stimulus, so they do not count as its answer.",
        "if the answer is toggled, import with --any-edge",
    )
    LAST_UNANSWERED = Entry(
        (NOTE,),
        "The file ends before the last stimulus has an answer. This stimulus counts neither as answered nor "
        "as missed.",
    )
    TIME_UNKNOWN = Entry(
        (NOTE,),
        "The file does not give the time of the measurement. rtgauge uses the file's modification time.",
    )

    # Marks about other tools' output.
    RESOLUTION_1US = Entry(
        (NOTE,),
        "The tool counts in whole us, so values may be up to 1 us off. The detail says in which direction.",
    )
    RESOLUTION = Entry((NOTE,), "The tool counted in bins, so values may be up to one bin larger.")
    UNIT_ASSUMED = Entry(
        (NOTE,),
        "The text does not show whether its latencies are in us or ns (-N). rtgauge assumes us.",
        "keep the tool's command line in the file, or import its JSON",
    )
    BINS_ASSUMED = Entry(
        (NOTE,), "The file does not give the width of its bins. The detail says which width rtgauge assumes."
    )
    TOOL_ASSUMED = Entry(
        (NOTE,),
        "The programs latency and latmus print the same line. rtgauge assumes that it is from Xenomai's "
        "latency.",
    )
    HISTOGRAM_OVERFLOW = Entry(
        (NOTE,),
        "Some samples lie above the histogram. Their number is known, but not their values.",
        "measure with a larger histogram",
    )
    NO_HISTOGRAM = Entry(
        (NOTE,),
        "The file has only the minimum, average and maximum. Of the quantiles, it is only known that they "
        "are not below the minimum.",
        "measure with a histogram (cyclictest -h)",
    )
    LAST_BIN_CLIPPED = Entry(
        (NOTE,),
        "The tool's last bin also counts every larger value. The values of the samples in this bin are "
        "known only to be at least its lower end.",
        "measure with a larger histogram",
    )
    COUNTS_PLUS_ONE = Entry((NOTE,), "The tool writes each count 1 too high. rtgauge subtracts 1.")
    COUNT_OF_IRQ = Entry(
        (NOTE,),
        "rtla top prints only a CPU's count of timer interrupts. Its threads have the same count, unless "
        "rtla lost some.",
    )
    LOOP_IN_FIRST_BIN = Entry(
        (NOTE,),
        "oslat counts each round of its own loop, not only gaps. The first bin is the loop itself.",
    )
    MEAN_ROUNDED = Entry(
        (NOTE,),
        "The histogram is incomplete, so the mean is the one that the tool prints, rounded down, and "
        "the standard deviation is missing.",
    )
    SIGN_LOST = Entry(
        (DOUBTFUL,),
        "Some activations were early, and the tool's histogram does not keep the sign.",
        "calibrate the timer, then measure again",
    )
    EARLY = Entry((NOTE,), "Some activations were early, because a calibrated timer is set early.")
    OVERRUNS = Entry(
        (DOUBTFUL,),
        "The tool reports overruns, which are missed activations. How late they would have been is unknown.",
        "measure with a longer period",
    )
    IN_BAND_SWITCHES = Entry(
        (DOUBTFUL,),
        "latmus reports switches to Linux, during which the task was not real-time.",
        "measure again without debuggers and page faults",
    )
    MISSED_DERIVED = Entry(
        (NOTE,),
        "The tool does not report missed activations. rtgauge derives them from the latencies and the "
        "interval.",
    )
    MISSED_UNKNOWN = Entry(
        (NOTE,),
        "The number of missed activations is unknown, so none are counted.",
        "give the interval: --interval",
    )
    AVERAGE_CONTRADICTS = Entry(
        (DOUBTFUL,),
        "The file's average and its histogram contradict each other. One of them does not cover all samples.",
        "measure again and keep the whole output",
    )
    MAXIMUM_DIFFERS = Entry(
        (DOUBTFUL,),
        "hwlatdetect's maximum differs from the largest of its samples.",
        "measure again and keep the whole output",
    )
    SAMPLES_MISSING = Entry(
        (DOUBTFUL,),
        "hwlatdetect found more gaps than are in the file.",
        "measure again and keep the whole output",
    )
    QUANTITIES_MIXED = Entry(
        (DOUBTFUL,),
        "rteval adds rtla's counts of interrupt, thread and user context into one histogram.",
        "measure with rtla itself",
    )
    OVERFLOW_UNKNOWN = Entry(
        (DOUBTFUL,),
        "rteval ignores values above rtla's bins. The true maximum may be larger than the one shown.",
        "measure with rtla itself",
    )
    NO_SUMMARY = Entry(
        (DOUBTFUL,),
        "rtla's rows count, over and max are missing, so it is unknown how many samples lie above the "
        "histogram.",
        "measure without --no-summary, and keep the whole output",
    )
    EXTREMES_OF_WHOLE_SECONDS = Entry(
        (NOTE,),
        "The histogram has samples beyond the extremes, which the tool computes from whole seconds only.",
    )
    SECONDS_MISSING = Entry(
        (DOUBTFUL, NOTE),
        "Lines of some seconds are missing. The mark is a note if the last line (RTS) gives the figures for "
        "all seconds.",
        "keep the whole output of the tool",
    )
    CUT_SHORT = Entry((NOTE,), "The last sample in the file is incomplete, so it is left out.")
    SHORT_MEASUREMENT = Entry(
        (NOTE,),
        "The tool measured for a short time. It may have missed rare events.",
        "measure for longer",
    )
    STOPPED_AT_THRESHOLD = Entry(
        (NOTE,),
        "The tool stopped at a latency above its limit. Its maximum is that latency.",
    )
    SMALL_GAPS_UNKNOWN = Entry((NOTE,), "hwlatdetect does not record gaps below its threshold.")
    DUTY_CYCLE = Entry(
        (NOTE,),
        "hwlatdetect looked for gaps only part of the time. It missed the gaps in the rest of the time.",
    )
    NO_REAL_TIME_PRIORITY = Entry(
        (DOUBTFUL,),
        "The tool measured without a real-time priority. It was delayed like any ordinary program.",
        "measure with a real-time priority",
    )
    LOW_PRIORITY = Entry(
        (NOTE,),
        "The tool measured below the priority of interrupt threads, which delay it.",
        "measure at a higher priority, such as 98",
    )

    @property
    def label(self) -> str:
        """The mark's name in records: `cpu-held`."""
        return self.name.lower().replace("_", "-")

    def mark(self, detail: str, *, severity: Severity | None = None, series: int | None = None) -> Mark:
        """Make a mark of this kind. `severity` None means the usual one."""
        return Mark(
            name=self.label, severity=severity or self.value.severities[0], detail=detail, series=series
        )

    def is_in(self, marks: Iterable[Mark]) -> bool:
        """Return whether one of the marks is of this kind."""
        return any(mark.kind is self for mark in marks)


KIND_OF_NAME = {kind.label: kind for kind in MarkKind}
