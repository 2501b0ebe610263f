# SPDX-License-Identifier: MIT
"""The registry of marks: what each mark of rtgauge and its engine means, and what to do about it.

`rtgauge marks` prints it, and tools/reference.py makes a page of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum, unique
from functools import cache
from typing import NamedTuple, cast

from rtgauge.extension import load, registered
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
    def kind(self) -> MarkKindBase | None:
        """The mark's kind; None for a mark of another version, or of an extension that is not installed."""
        return mark_kinds().get(self.name)

    @property
    def remedy(self) -> str:
        """Advice on what to do about the mark; empty if there is none."""
        return "" if self.kind is None else self.kind.value.remedy

    @property
    def only_delays(self) -> bool:
        """Whether what the mark reports can only have delayed the measured threads."""
        return self.kind is not None and self.kind.value.only_delays


class Entry(NamedTuple):
    """A mark's entry: its severities (the usual one first), its meaning, and advice (may be empty).

    `only_delays`: whether its cause can only make the measured values larger, and hide nothing.
    """

    severities: tuple[Severity, ...]
    meaning: str
    remedy: str = ""
    only_delays: bool = False


class MarkKindBase(Enum):
    """A set of kinds of marks. The core has one, and extensions may add others."""

    _value_: Entry

    @property
    def label(self) -> str:
        """The mark's name in records: `cpu-held`."""
        return self.name.lower().replace("_", "-")

    def mark(
        self, detail: str | None = None, *, severity: Severity | None = None, series: int | None = None
    ) -> Mark:
        """Make a mark of this kind. `detail` None means its meaning, `severity` None the usual one."""
        return Mark(
            name=self.label,
            severity=severity or self.value.severities[0],
            detail=detail or self.value.meaning,
            series=series,
        )

    def is_in(self, marks: Iterable[Mark]) -> bool:
        """Return whether one of the marks is of this kind."""
        return any(mark.name == self.label for mark in marks)


@unique
class MarkKind(MarkKindBase):
    """The kinds of marks that the core or its engine can make."""

    # Marks about the machine.
    THROTTLED = Entry(
        (DOUBTFUL,),
        "Real-time throttling, the fair server or the limit of a cgroup kept the measuring thread from "
        "running. The detail says which, and how to lift the limit.",
        "lift real-time throttling with: sysctl -w kernel.sched_rt_runtime_us=-1 (for another limit, "
        "follow the detail), then measure again",
        only_delays=True,
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
        only_delays=True,
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
        only_delays=True,
    )
    THERMAL_THROTTLE = Entry(
        (DOUBTFUL,),
        "The processor slowed down because it was too hot.",
        "cool the machine or lower its frequency, then measure again",
        only_delays=True,
    )
    SMI = Entry(
        (DOUBTFUL,),
        "The firmware interrupted the CPUs (SMI), which no event of the kernel shows. The processor counted "
        "how often.",
        "turn off what needs the firmware (USB legacy support, power management) in its settings, or try "
        "another machine",
        only_delays=True,
    )
    SLOW_CPU = Entry(
        (NOTE,),
        "A measured CPU ran below its nominal frequency on average while it was not idle. Its own counters "
        "show this.",
        "set the governor performance, and look for limits of power and heat (thermald, RAPL, the firmware)",
    )
    IPIS = Entry(
        (NOTE,),
        "Other CPUs often interrupted a measured CPU, to call a function there or to flush its TLB.",
        "keep programs that map memory, load modules or change the network off the machine, or isolate the "
        "CPU",
    )
    SWAPPING = Entry(
        (DOUBTFUL,),
        "The machine moved memory to or from swap.",
        "free memory or run swapoff -a, then measure again",
        only_delays=True,
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

    # Marks that the engine makes.
    NOTHING_MEASURED = Entry(
        (INVALID,),
        "The step measured nothing. The detail says why.",
        "do what the detail says, or measure for longer (--duration)",
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
    PARTS_NOT_ENDED = Entry(
        (DOUBTFUL,),
        "A thread began a part of the program but did not reach the next point, or events were lost "
        "meanwhile. The figures leave these parts out.",
        "choose points that the thread reaches one after the other in each cycle",
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
        only_delays=True,
    )
    MEASURED_TOGETHER = Entry(
        (NOTE,),
        "Another measurement or a recorder of rtgauge ran on this kernel at the same time, perhaps in "
        "another container.",
        "measure again when the other measurement has ended, or the recorder is stopped",
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
    OVERLOAD = Entry(
        (INVALID, NOTE),
        "The CPU could not keep up with the period, so the probe ended early. For the probe tire, the mark "
        "is a note, because the steps until then are valid.",
        "use a longer period, or less work in each period",
    )

    # Marks about co-kernels.
    MODE_SWITCHES = Entry(
        (DOUBTFUL, NOTE),
        "The co-kernel handed measuring threads over to Linux, so Linux caused some of these latencies. If "
        "it is unknown how many, the mark is a note.",
        "measure again without what caused this, such as a debugger or page faults; the detail names the "
        "last cause",
    )

    # Marks about other tools' output.
    EARLY = Entry((NOTE,), "Some activations were early, because a calibrated timer is set to fire early.")
    MISSED_UNKNOWN = Entry(
        (NOTE,),
        "The file does not show how many activations were missed, so rtgauge counts none.",
        "give the interval: --interval",
    )


@cache
def mark_kinds() -> Mapping[str, MarkKindBase]:
    """Return every kind of mark of the core and of extensions by its name in records.

    Raises InputError if the marks of an extension cannot be imported.
    """
    added = [cast("type[MarkKindBase]", load("marks", name, MarkKindBase)) for name in registered("marks")]
    return {kind.label: kind for kinds in (MarkKind, *added) for kind in kinds}
