# SPDX-License-Identifier: MIT
"""Explains in words how a step was measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.facts import Calibration
from rtgauge.record.model import COKERNELS, Step, StepKey
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, quantity, value, whole, words
from rtgauge.system.runtime import runtimes
from rtgauge.units import format_cpu_list, plural
from rtgauge.verdict.coverage import FORBIDDEN

COMMON = (
    "rtgauge subtracts nothing from a latency, not even the cost of reading the clock. The largest values "
    "are exact. Quantiles are nearest-rank values, read from a histogram with a resolution of 1 % or better "
    "unless raw samples were kept. A quantile beyond the histogram's 10 s is a lower bound and is shown with "
    "≥. “Missed filled in” adds the latencies that the missed activations would have had if each had been "
    "released when due. The warm-up is counted separately and appears in no figure except the course over "
    "time."
)


def _paragraph(key: StepKey) -> str | None:
    """Return the paragraph on how this probe measures, in this space and on this co-kernel."""
    probe = PROBES[key.probe]
    return probe.methods.get(key.rt) or probe.methods.get(key.space, probe.method)


def method_words(view: RecordView) -> list[str]:
    """Return a paragraph for each probe and space, and a paragraph that applies to all."""
    measured = [
        step.key for step in view.record.steps if step.key.tool == "rtgauge" and step.key.probe in PROBES
    ]
    paragraphs = list(dict.fromkeys(_paragraph(key) for key in measured))
    foreign = dict.fromkeys(step.tool for step in view.record.steps if step.key.tool != "rtgauge")
    theirs = (
        "have the figures that the tool printed; the tool chose what to count as a latency and what to leave "
        "out."
    )
    others = [f"Steps measured by {tool} {theirs}" for tool in foreign]
    measured_on = dict.fromkeys(step.key.rt for step in view.record.steps)
    cokernels = [runtime.method for runtime in runtimes() if runtime.name in measured_on]
    return [*(paragraph for paragraph in paragraphs if paragraph is not None), *cokernels, *others, COMMON]


def _handed_over(step: Step) -> int | None:
    """Return how often a co-kernel moved threads of this step to Linux; None if not counted."""
    counts = [result.values.get("mode_switches") for result in step.results if result.name == "cokernel"]
    return sum(count for count in counts if isinstance(count, int)) if counts and None not in counts else None


def cokernel_lines(view: RecordView) -> list[str]:
    """Return a line for each co-kernel that measured: its name, and how often it moved threads to Linux."""
    lines: list[str] = []
    for rt, name in COKERNELS.items():
        ours = [step for step in view.record.steps if step.key.rt == rt and step.key.tool == "rtgauge"]
        counts = [_handed_over(step) for step in ours]
        if not counts:
            continue
        known = [count for count in counts if count is not None]
        times = "no thread" if not sum(known) else f"threads {plural(sum(known), 'time')}"
        handed = f"it handed {times} to Linux"
        handed = handed if known else "rtgauge did not count how often it handed threads to Linux"
        unknown = f" ({len(counts) - len(known)} of {plural(len(counts), 'step')} not counted)"
        missing = unknown if 0 < len(known) < len(counts) else ""
        lines.append(f"measured on {name}: {handed}{missing}")
    return lines


def tools(view: RecordView) -> list[str]:
    """Return every engine or foreign tool that measured, with its version."""
    return list(dict.fromkeys(step.tool for step in view.record.steps))


def _joined(by_step: Mapping[str, str]) -> str:
    """Return the value that all steps share, or each value with its steps. `by_step`: by the step's name."""
    steps_of: dict[str, list[str]] = {}
    for step, text in by_step.items():
        steps_of.setdefault(text, []).append(step)
    if len(steps_of) == 1:
        return next(iter(steps_of))
    return "; ".join(f"{text} ({', '.join(steps)})" for text, steps in steps_of.items())


def parameter_rows(view: RecordView) -> list[tuple[str, str]]:
    """Return (name, value) of every parameter. If steps differ, each value has its steps."""
    rows: list[tuple[str, str]] = []
    for key in dict.fromkeys(name for step in view.steps for name in step.parameters):
        items = {view.labels[step.id]: step.parameters.get(key) for step in view.steps}
        shown = {
            name: "not set" if item in (None, "") else quantity(key, item)[1] for name, item in items.items()
        }
        rows.append((words(re.sub("_(?:ns|us)$", "", key)), _joined(shown)))
    return rows


def cpu_rows(view: RecordView) -> list[tuple[str, str]]:
    """Return rows for the measured CPUs, and for each CPU that was left out, with the reason."""
    measured = sorted({cpu for step in view.record.steps for cpu in step.cpus})
    entries = [entry for step in view.record.steps for entry in step.cpus_not_measured]
    left = {(str(entry.get("cpu", "?")), str(entry.get("reason", "unknown"))) for entry in entries}
    rows = [("CPUs measured", format_cpu_list(measured) if measured else "unknown")]
    if left:
        reasons = {reason: FORBIDDEN.get(reason, reason.replace("-", " ")) for _, reason in left}
        named = ", ".join(f"{cpu} ({reasons[reason]})" for cpu, reason in sorted(left))
        rows.append(("CPUs not measured", named))
    return rows


def clock_rows(view: RecordView) -> list[tuple[str, str]]:
    """Return (name, value) of the clock's facts, with the unit of each cost. If steps differ, each value has
    its steps.
    """
    steps = [step for step in view.steps if step.clock]
    rows: list[tuple[str, str]] = []
    for key in dict.fromkeys(name for step in steps for name in step.clock):
        items = {view.labels[step.id]: step.clock.get(key) for step in steps}
        unit = " ns" if key.endswith("_ns") else ""
        shown = {name: value(item) + (unit if item is not None else "") for name, item in items.items()}
        rows.append((f"Clock {words(key.removesuffix('_ns')).lower()}", _joined(shown)))
    return rows


def calibrations(view: RecordView) -> list[tuple[str, Calibration]]:
    """Return (step, calibration) of every calibrated clock, once even if several steps have it."""
    distinct: dict[str, tuple[str, Calibration]] = {}
    for step in view.steps:
        for calibration in step.calibrations:
            distinct.setdefault(calibration.model_dump_json(), (view.labels[step.id], calibration))
    return list(distinct.values())


def clock_table(calibrations: Iterable[tuple[str, Calibration]]) -> Table:
    """Return a row per clock with its step, its resolution and the cost of reading it, in ns."""
    rows: list[list[str]] = []
    for step, clock in calibrations:
        figures = (clock.resolution_ns, clock.smallest_step_ns, clock.count, clock.min_ns, clock.p50_ns)
        mean = NONE if clock.mean_ns is None else f"{clock.mean_ns:.1f}"
        rows.append([clock.clock, *map(whole, figures), mean, whole(clock.p99_ns), whole(clock.max_ns)])
        rows[-1] = [clock.clock, *[""] * 8] if clock.error is not None else rows[-1]
        rows[-1].append(step if clock.error is None else f"not read: {clock.error}")
    figures = numbers("resolution", "smallest step", "readings", "min", "p50", "mean", "p99", "max")
    columns = [*texts("clock"), *figures, *texts("step")]
    notes = ["Figures are in ns. The cost of one reading is the difference between two successive readings."]
    return Table("Cost of reading each clock", columns, rows, notes)
