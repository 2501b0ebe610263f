# SPDX-License-Identifier: MIT
"""How a step was measured, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.report.conditions import ordered_steps, step_labels
from rtgauge.report.text import quantity, value, words

if TYPE_CHECKING:
    from rtgauge.record.model import Calibration, Step
    from rtgauge.record.reader import Record

PROBES = {
    "wakeup": "One measuring thread a CPU sleeps until an absolute time, reads the clock as soon as it runs again, and keeps the actual minus the expected "
    "release time: the latency. An activation whose release time passed before the thread came back to wait for it is counted as missed; "
    "it has no latency of its own.",
    "noise": "On each CPU a task does nothing but read the clock, for a part of each round; a difference between two readings that reaches the "
    "threshold is a gap. Gaps are told apart by what the kernel counted meanwhile: a switch to another task, an interrupt of this CPU, or nothing: "
    "then it came from below the kernel.",
    "switch": "Tasks of equal priority on one CPU store the time and yield, in turn; the value is from the time of one task to that of the next: "
    "a yield, a switch and one reading of the clock.",
    "preempt": "A task of low priority computes; one of high priority on the same CPU waits. The value is from the event (the time set in a timer, "
    "or the moment before a task on another CPU posts) to the high task's first reading of the clock.",
    "semaphore": "Two tasks wake each other in turn; the value is from the reading of the clock before one posts to that after the other comes back "
    "from its wait.",
    "inversion": "Three FIFO tasks on one CPU, as in fig. 2 of Garre et al.: the low one holds the lock, the high one waits for it, the middle one "
    "computes until the high one has it or the limit is reached. The value is the high task's wait, from the moment at which it was made ready.",
    "taskset": "Each task waits for its release by absolute time, reads the clock, burns its execution time in a busy loop, and reads the clock again. "
    "All are released together at time 0 (and their offset later). A late activation is run late; none is skipped, so none is missed.",
    "tire": "A simulated tire is computed a step of 10 ms at a time: as fast as possible, or a step each period, released by absolute time. All threads meet "
    "after a step, and the last one reads the clock. A deadline is the next release; a step that is not done by then has missed it, and so has each release "
    "that passed before the threads were back to wait for it.",
}
COMMON = (
    "Nothing was taken off a latency, not the cost of reading the clock either. The largest values are exact. Quantiles are nearest-rank, from a "
    "histogram of 1 % or better unless raw samples were kept; one that falls beyond the histogram's 10 s is a lower bound and shown with ≥. "
    "“Missed filled in” adds the latencies that the missed activations would have had, had each been released when due. "
    "The warm-up is counted apart and is in no figure but the course."
)


def method_words(record: Record) -> list[str]:
    """A paragraph a probe, and one that holds for all."""
    probes = dict.fromkeys(step.key.probe for step in record.steps if step.key.tool == "rtgauge")
    foreign = dict.fromkeys(step.tool for step in record.steps if step.key.tool != "rtgauge")
    others = [f"Steps measured by {tool} hold what it said; what it counts as a latency, and what it leaves out, is its own." for tool in foreign]
    return [*(PROBES[probe] for probe in probes if probe in PROBES), *others, COMMON]


def tools(record: Record) -> list[str]:
    """What measured: every engine or foreign tool, with its version."""
    return list(dict.fromkeys(step.tool for step in record.steps))


def parameter_rows(record: Record) -> list[tuple[str, str]]:
    """(name, value) of every parameter; where steps differ, each value with its steps."""
    steps = ordered_steps(record)
    names = step_labels(record)
    rows: list[tuple[str, str]] = []
    for key in dict.fromkeys(name for step in steps for name in step.parameters):
        by_value: dict[str, list[str]] = {}
        for step in steps:
            shown = "not set" if step.parameters.get(key) in (None, "") else quantity(key, step.parameters[key])[1]
            by_value.setdefault(shown, []).append(names[step.id])
        text = next(iter(by_value)) if len(by_value) == 1 else "; ".join(f"{shown} ({', '.join(where)})" for shown, where in by_value.items())
        rows.append((words(re.sub("_(?:ns|us)$", "", key)), text))
    return rows


def cpu_rows(record: Record) -> list[tuple[str, str]]:
    """Which CPUs were measured, and which were not and why."""
    from rtgauge.units import format_cpu_list

    measured = sorted({cpu for step in record.steps for cpu in step.cpus})
    left = {(str(entry.get("cpu", "?")), str(entry.get("reason", "unknown"))) for step in record.steps for entry in step.cpus_not_measured}
    rows = [("CPUs measured", format_cpu_list(measured) if measured else "unknown")]
    if left:
        rows.append(("CPUs not measured", ", ".join(f"{cpu} ({reason})" for cpu, reason in sorted(left))))
    return rows


def clock_rows(step: Step) -> list[tuple[str, str]]:
    """(name, value) of the clock's facts; its costs with their unit."""
    rows: list[tuple[str, str]] = []
    for key, item in step.clock.items():
        if key.endswith("_ns"):
            rows.append((f"Clock {words(key.removesuffix('_ns')).lower()}", "unknown" if item is None else f"{value(item)} ns"))
        else:
            rows.append((f"Clock {words(key).lower()}", value(item)))
    return rows


def calibrations(record: Record) -> list[tuple[str, Calibration]]:
    """(step, calibration) of every clock that was calibrated; the same one carried by several steps is listed once."""
    names = step_labels(record)
    seen: set[str] = set()
    found: list[tuple[str, Calibration]] = []
    for step in ordered_steps(record):
        for calibration in step.calibrations:
            identity = calibration.model_dump_json()
            if identity not in seen:
                seen.add(identity)
                found.append((names[step.id], calibration))
    return found
