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
        "Real-time throttling, the fair server or the limit of a cgroup kept the measuring thread from "
        "running. The detail says which, and how to lift the limit.",
        "lift real-time throttling with: sysctl -w kernel.sched_rt_runtime_us=-1 (for another limit, "
        "follow the detail), then measure again",
    )
    CPU_HELD = Entry(
        (DOUBTFUL,),
        "Another task kept a CPU for seconds, so the measuring thread could not run there. The detail "
        "names the task.",
        "end the task, lower its priority, or choose other CPUs with --cpu",
    )
    CPU_LOST = Entry(
        (INVALID,),
        "The kernel moved a measuring thread to another CPU.",
        "do not take the CPU offline or change the cpuset while rtgauge measures, then measure again",
    )
    CPU_OFFLINE = Entry(
        (INVALID,),
        "A CPU went offline while it was measured.",
        "keep the CPU online, then measure again",
    )
    STEAL = Entry(
        (DOUBTFUL, NOTE),
        "The hypervisor took CPU time from this virtual machine. If it took little time, the mark is a note.",
        "give the virtual machine its own CPUs (pin its virtual CPUs), or measure on the bare machine",
    )
    EMULATED = Entry(
        (NOTE,),
        "Software emulates the processor. Times on such a processor say nothing about a real machine, so "
        'the verdict is "cannot tell".',
        "measure on the real machine, or in a virtual machine with hardware support (KVM)",
    )
    GUESTS_RUNNING = Entry(
        (DOUBTFUL,),
        "Guests of the lab ran on this machine and used its CPUs.",
        "stop each guest (rtgauge lab stop NAME), then measure again",
    )
    THERMAL_THROTTLE = Entry(
        (DOUBTFUL,),
        "The processor slowed down because it was too hot.",
        "cool the machine or lower its frequency, then measure again",
    )
    SWAPPING = Entry(
        (DOUBTFUL,),
        "The machine moved memory to or from swap.",
        "free memory or run swapoff -a, then measure again",
    )
    CLOCK_CHANGED = Entry(
        (INVALID,),
        "The machine was suspended, or its clock source changed.",
        "keep the machine from suspending and from changing its clock source, then measure again",
    )
    CLOCK_BACKWARDS = Entry(
        (INVALID,),
        "A clock went backwards while rtgauge measured its resolution.",
        "choose another clock source, then measure again",
    )
    DMA_LATENCY_FAILED = Entry(
        (NOTE,),
        "The CPUs could enter C-states, because rtgauge could not open /dev/cpu_dma_latency.",
        "measure again as root, so that rtgauge can open /dev/cpu_dma_latency",
    )
    NOT_LOCKED = Entry(
        (NOTE,),
        "Memory was not locked, so page faults can make latencies longer.",
        "raise the limit for locked memory (ulimit -l unlimited), then measure again",
    )

    # Marks about the run.
    STARTING_STATE = Entry(
        (DOUBTFUL,),
        "rtgauge could not restore a setting after an earlier step, so this step began with another setting.",
        "restore the setting (rtgauge restore), then measure again",
    )
    NOT_PUT_BACK = Entry(
        (NOTE,),
        "rtgauge could not restore a setting after this step.",
        "try again with: rtgauge restore",
    )
    RESTORED_BEFORE = Entry(
        (NOTE,), "An earlier run had left settings changed; rtgauge restored them before this run."
    )
    DEPLOYMENT_INCOMPLETE = Entry(
        (NOTE,),
        "The kernel refused some settings of the deployment or ignores them, or rtgauge could not move "
        "some tasks. step.json names each of them.",
        "see which settings, and why: rtgauge deploy show",
    )
    DEPLOYMENT_HELD = Entry(
        (NOTE,), "`rtgauge deploy apply` had set a deployment, which stayed in force during the run."
    )
    NOTHING_TO_RAISE = Entry(
        (NOTE,),
        "`--raise` names a device that has no IRQ thread.",
        "boot a PREEMPT_RT kernel, or boot this one with threadirqs",
    )
    LOAD_DIED = Entry(
        (INVALID,),
        "A load program ended too early.",
        "load.log in the folder of the step says why the load ended; then continue with rtgauge resume, or "
        "run again",
    )
    RUNTIME_CHOSEN = Entry(
        (NOTE,), "rtgauge chose which kernel schedules the measured threads. The detail says why."
    )
    RESUMED = Entry((NOTE,), "The run was interrupted and continued later.")
    KERNEL_CHANGED = Entry(
        (DOUBTFUL,),
        "The run was resumed on another kernel, so the steps before and after that measured different "
        "systems.",
        "boot the earlier kernel, or start a new run",
    )
    STOPPED = Entry((NOTE,), "A user ended the step early.", "measure again, and let the step end by itself")
    THRESHOLD = Entry(
        (NOTE,),
        "A latency above `--stop-at` ended the step.",
    )
    GUEST_NOT_UP = Entry(
        (NOTE,),
        "A guest of the lab did not boot, or did not answer. The record has the console output of the guest.",
        "read the console output, then boot the guest again: rtgauge lab boot NAME",
    )
    CONNECTION_BROKEN = Entry((NOTE,), "The connection to the target broke and came back. All data arrived.")
    PICKED_UP = Entry(
        (NOTE,),
        "The connection broke, but the step continued on the target. `rtgauge resume` fetched its results "
        "later.",
    )
    OTHER_TOOL = Entry(
        (NOTE,),
        "Another tool measured this step, so that you can compare its result with the one from rtgauge.",
    )
    OTHER_PERIOD = Entry(
        (NOTE,),
        "The other tool cannot measure with the period of this step. The detail gives the period that it "
        "used.",
    )

    # Marks that the engine makes.
    NOTHING_MEASURED = Entry(
        (INVALID,),
        "The step measured nothing. The detail says why.",
        "mend what the detail names, or measure for longer (--duration)",
    )
    ENGINE_DIED = Entry(
        (INVALID,),
        "Something killed the engine. The record has everything that it had measured by then.",
        "read the last lines in the step's stream.ndjson, then measure again",
    )
    LEASE_LOST = Entry(
        (INVALID,),
        "The engine ended because it did not hear from rtgauge for too long: rtgauge was stopped (Ctrl-Z) "
        "or its machine was suspended, or something killed the guard of the run. The record has everything "
        "that the engine had measured by then.",
        "measure again, and keep rtgauge and its machine running",
    )
    SAMPLES_LOST = Entry(
        (INVALID, DOUBTFUL),
        "The engine measured samples that are missing from the record. If they are missing from an "
        "imported file, the mark is doubtful.",
        "measure again with a longer interval, or without --samples",
    )
    IMPOSSIBLE_LATENCY = Entry(
        (INVALID,),
        "A thread woke too early, or a measured time is negative, so a clock or a timer is wrong.",
        "choose another clock source or calibrate the timer, then measure again",
    )
    WATCHDOG = Entry(
        (INVALID, NOTE),
        "The watchdog ended the probe, because a measuring thread used up a CPU, or ordinary threads could "
        "not run. If the watchdog could not be started, the mark is a note.",
        "measure again with a lower load, or without other real-time programs",
    )
    WINDOWS_DISAGREE = Entry(
        (INVALID,),
        "The engine's windows and its summary contradict each other, so one of them is wrong.",
        "measure again; if the mark comes back, report this defect and attach the record",
    )
    SUMMARY_MISSING = Entry(
        (DOUBTFUL,),
        "The engine did not write the summary of a series, so rtgauge could not check the windows of that "
        "series.",
        "measure again",
    )
    EXPLAIN_COST = Entry(
        (NOTE,), "Recording the kernel's events made latencies longer. The detail says by how much."
    )
    NOT_EXPLAINED = Entry(
        (NOTE,),
        "rtgauge could not explain some or all of the largest latencies. The detail says why.",
        "run as root on a kernel with CONFIG_FTRACE",
    )
    TRACE_DROPPED = Entry(
        (NOTE, DOUBTFUL),
        "The kernel dropped trace events. If measured values were lost with them, the mark is doubtful.",
        "measure again with less load or fewer threads",
    )

    # Marks of single probes.
    ACTIVATIONS_UNKNOWN = Entry(
        (DOUBTFUL,),
        "The kernel did not trace some activations of a watched thread. The figures leave out their "
        "latencies.",
        "use another kernel, because this one does not trace every switch from an idle CPU; or keep the "
        "CPU of the program busy (nice -n 19 with a program that computes)",
    )
    SWITCHES_MISSING = Entry(
        (DOUBTFUL,),
        "The kernel did not trace a few switches to a watched thread. The figures leave out the times that "
        "this affects.",
        "use another kernel, because this one does not trace every switch from an idle CPU; or keep the "
        "CPU of the program busy",
    )
    THREADS_LEFT_OUT = Entry(
        (DOUBTFUL,),
        "The program has more threads than rtgauge can watch at once. It watched only the threads with the "
        "highest real-time priority.",
        "name the threads to watch: --threads",
    )
    THREADS_UNWATCHED = Entry(
        (DOUBTFUL,),
        "The program started threads that ended before rtgauge could watch them. The figures leave out "
        "what they did.",
        "let the program keep its threads, or let it start them before you watch it",
    )
    CYCLE_UNCLEAR = Entry(
        (DOUBTFUL,),
        "The releases of a thread are not certain. The detail gives the cause: several of its waits could "
        "begin the cycle, its waits are rounded to milliseconds, or its cycles move between threads.",
        "say which wait begins the cycle (--cycle CALL or --cycle CALL:FD), let the loop wait in a call "
        "with exact times, such as clock_nanosleep, or run the loop in one thread (Go: "
        "runtime.LockOSThread)",
    )
    WALL_CLOCK_SET = Entry(
        (DOUBTFUL,),
        "A thread waits for times on the wall clock, which somebody set while rtgauge watched the thread.",
        "let the thread wait for times on CLOCK_MONOTONIC (C++: steady_clock)",
    )
    DELAYED_BY_RTGAUGE = Entry(
        (DOUBTFUL,),
        "rtgauge itself delayed a watched thread: by more than 1 % of its latencies or, with a "
        "requirement, of the time by which the thread exceeded the bound.",
        "leave one CPU to rtgauge and bind the program to the others (taskset), or give its threads a "
        "real-time priority",
    )
    MEASURED_TOGETHER = Entry(
        (NOTE,),
        "Another measurement of rtgauge ran on this kernel at the same time, perhaps in another container.",
        "measure again when the other measurement has ended",
    )
    PROGRAM_ENDED = Entry(
        (NOTE,),
        "The watched program ended before the duration was over. The figures cover the time until then.",
    )
    PROGRAM_KILLED = Entry(
        (DOUBTFUL,),
        "The watched program crashed, or a signal killed it. The figures cover the time until then.",
        "find out why the program ended, and measure again",
    )
    THREAD_CHANGED = Entry(
        (NOTE,),
        "The policy, the priority, the CPUs or the control group of a thread changed while rtgauge watched "
        "it.",
        "find out what changed them (rtkit, systemd, a CPU that went offline), then measure again",
    )
    POLICY_NOT_SET = Entry(
        (DOUBTFUL,),
        "rtgauge did not find all timerlat threads of the kernel. The threads that it did not find kept "
        "their default priority, FIFO 95.",
        "measure again, or measure with --space user",
    )
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
    NOISE = Entry(
        (DOUBTFUL,),
        "Answers came without a stimulus, or several came for one stimulus. Either the line is noisy, or "
        "something else uses it.",
        "check the wires, and whether something else uses the line; then measure again",
    )
    OWN_LATE = Entry(
        (NOTE, DOUBTFUL),
        "In some cycles, the measuring machine itself sent its frame late or not at all, or read the answer "
        "late. These cycles say nothing about the far end. If they are more than 1 % of the answered cycles, "
        "the mark is doubtful.",
        "give the task its own CPU (--cpu) or a longer --interval, or find the cause with --explain, then "
        "measure again",
    )
    OTHER_FRAMES = Entry(
        (NOTE,),
        "Answers came twice, or frames came that were no answers to this run. They do not count.",
        "check whether something repeats frames, or uses the same path; then measure again",
    )
    STAMPS_MISSING = Entry(
        (NOTE,),
        "The kernel gave no usable time stamps for some frames, so their responses are not split into parts. "
        "Their responses are measured all the same.",
        "check with `ethtool -T INTERFACE` whether the driver makes software time stamps, and do not set the "
        "system's time while rtgauge measures",
    )
    REFERENCE_MISSING = Entry(
        (NOTE,),
        "Some edges on the wire were not time-stamped, so they are missing from the figures of the wire.",
    )
    OVERLOAD = Entry(
        (INVALID, NOTE),
        "The CPU could not keep up with the period, so the probe ended early. For the probe tire, the mark "
        "is a note, because the steps until then are valid.",
        "use a longer period, or less work in each period",
    )
    PERIOD_SHORT = Entry(
        (NOTE,),
        "Each step of the tire takes longer than the period, so every deadline is missed.",
        "use a longer period, fewer nodes or more threads",
    )
    UNFINISHED = Entry(
        (DOUBTFUL,),
        "When the step ended, a task had not finished some activations that were already released. The "
        "figures leave them out.",
        "lower the utilization of the task set, or measure for longer",
    )
    TIMELINE_CUT = Entry(
        (NOTE,), "The timeline of a task is incomplete, because it had more segments than rtgauge can keep."
    )
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

    # Marks about co-kernels.
    MODE_SWITCHES = Entry(
        (DOUBTFUL, NOTE),
        "The co-kernel handed measuring threads over to Linux, so Linux caused some of these latencies. If "
        "it is unknown how many, the mark is a note.",
        "measure again without what caused this, such as a debugger or page faults; the detail names the "
        "last cause",
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

    # Marks about instruments and files of edges.
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
        "The latmon counts its first second in the histogram, but leaves it out of the lines per second. "
        "Therefore the mean is unknown, and minimum and maximum are exact only to 1 us.",
    )
    MISSED_BY_OVERRUNS = Entry(
        (NOTE,),
        "Some answers took longer than a period. The latmon reports only how many periods passed, so "
        "rtgauge counts each as a latency of one period.",
    )
    EXTRA_EDGES = Entry(
        (DOUBTFUL,),
        "The channel of the answers has edges that belong to no stimulus. Either the line is noisy, or an "
        "edge crosses the threshold more than once.",
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

    # Marks about other tools' output.
    RESOLUTION_1US = Entry(
        (NOTE,),
        "The tool counts in whole us, so a true value may differ by up to 1 us. The detail says in which "
        "direction.",
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
    HISTOGRAM_OVERFLOW = Entry(
        (NOTE,),
        "Some samples were too large for the histogram. Their number is known, but not their values.",
        "measure with a larger histogram",
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
    EARLY = Entry((NOTE,), "Some activations were early, because a calibrated timer is set to fire early.")
    OVERRUNS = Entry(
        (DOUBTFUL,),
        "The tool reports overruns, which are missed activations. It does not report how late they were.",
        "measure with a longer period",
    )
    IN_BAND_SWITCHES = Entry(
        (DOUBTFUL,),
        "latmus reports that the task was switched to Linux for a time, so it was not always real-time.",
        "measure again without debuggers and page faults",
    )
    MISSED_DERIVED = Entry(
        (NOTE,),
        "The tool does not report missed activations. rtgauge derives them from the latencies and the "
        "interval.",
    )
    MISSED_UNKNOWN = Entry(
        (NOTE,),
        "The file does not show how many activations were missed, so rtgauge counts none.",
        "give the interval: --interval",
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
    )
    LOW_PRIORITY = Entry(
        (NOTE,),
        "The tool measured at a lower priority than the interrupt threads, so these could delay it.",
        "measure at a priority above theirs, such as 98",
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
