# SPDX-License-Identifier: MIT
"""Tabulates how hardware disturbed the measured CPUs of a step: other CPUs' interrupts, frequency, heat."""

from __future__ import annotations

from collections.abc import Mapping

from rtgauge.record.model import Step, TableLine
from rtgauge.report.table import Column, Table, numbers
from rtgauge.report.text import NONE, whole
from rtgauge.system.changes import IPIS, RESCHEDULING
from rtgauge.system.cpu_frequency import cpu_frequencies
from rtgauge.units import plural

MOST_CPUS = 16
KINDS = (RESCHEDULING, *IPIS)
"""The kernel's names of the columns."""
NOTE = (
    "The first three count interrupts by other CPUs in the whole step. GHz is the mean while the CPU was not "
    "idle, and the nominal frequency, by the CPU's counters; without them, before and after the step."
)


def hardware_tables(step: Step, name: str = "") -> list[Table]:
    """Return a row for each measured CPU, the most interrupted first; no table if nothing is known.

    `name`: of the step, for the title.
    """
    lines = None if step.changes.interrupts == "unknown" else step.changes.interrupts
    counts = {cpu: [_count(lines, name, cpu) for name in KINDS] for cpu in step.cpus}
    rows = [
        [f"CPU {cpu}", *map(whole, counts[cpu]), _frequency(step, cpu), whole(_throttled(step, cpu))]
        for cpu in sorted(step.cpus, key=lambda cpu: -sum(count or 0 for count in counts[cpu]))
    ]
    if all(cell in (NONE, "0") for row in rows for cell in row[1:]):
        return []
    rest = len(rows) - MOST_CPUS
    notes = [NOTE, *([f"step.json also has {plural(rest, 'more CPU')}"] if rest > 0 else [])]
    columns = [Column(), *numbers("reschedulings", "function calls", "TLB flushes", "GHz", "times too hot")]
    return [Table(f"Hardware, {name}" if name else "Hardware", columns, rows[:MOST_CPUS], notes)]


def _count(lines: Mapping[str, TableLine] | None, name: str, cpu: int) -> int | None:
    if lines is None:
        return None
    found = [line.per_cpu.get(str(cpu), 0) for line in lines.values() if line.name == name]
    return None if None in found else sum(count or 0 for count in found)


def _frequency(step: Step, cpu: int) -> str:
    counted = cpu_frequencies(step.results).get(cpu)
    if counted is not None:
        return str(counted).removesuffix(" GHz")
    read = step.changes.frequency_khz.get(str(cpu))
    return NONE if read is None else f"{read.before / 1e6:.2f} → {read.after / 1e6:.2f}"


def _throttled(step: Step, cpu: int) -> int | None:
    counts = [
        count
        for key, count in step.changes.throttle_counts.items()
        if key.startswith(f"cpu{cpu}/") or "package" in key
    ]
    return None if None in counts else sum(count or 0 for count in counts)
