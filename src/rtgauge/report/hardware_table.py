# SPDX-License-Identifier: MIT
"""Tabulates how hardware disturbed the measured CPUs of a step: other CPUs' interrupts, frequency, heat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rtgauge.record.model import Step, TableLine
from rtgauge.report.table import Column, Table, numbers, ranked
from rtgauge.report.text import NONE, whole
from rtgauge.system.cpu_counters import CpuWork, cpu_frequencies, cpu_work, why_slower
from rtgauge.system.step_changes import IPIS, RESCHEDULING, peak_temperatures
from rtgauge.units import plural

MOST_CPUS, MOST_ZONES = 16, 4
KINDS = (RESCHEDULING, *IPIS)
"""The kernel's names of the columns."""
TITLES = ("reschedulings", "function calls", "TLB flushes", "GHz", "times too hot")
WORK_TITLES = ("cycles per instruction", "misses per 1,000")
LEFT_OUT_FIRST = (*reversed(WORK_TITLES), "times too hot", "TLB flushes", "function calls")
NOTE = (
    "The first three count interrupts by other CPUs in the whole step. GHz is the mean while the CPU was not "
    "idle, and the nominal frequency, by the CPU's counters; without them, before and after the step."
)

WORK_NOTE = "Cycles and last-level misses include everything that ran on the CPU, also a load."


def hardware_tables(step: Step, name: str = "", among: Sequence[Step] = ()) -> list[Table]:
    """Return a row for each measured CPU, the most interrupted first; no table if nothing is known.

    `name`: of the step, for the title. `among`: steps, one of which may be the same without load.
    """
    lines = None if step.changes.interrupts == "unknown" else step.changes.interrupts
    counts = {cpu: [_count(lines, name, cpu) for name in KINDS] for cpu in step.cpus}
    work = cpu_work(step.results)
    rows = [
        [
            f"CPU {cpu}",
            *map(whole, counts[cpu]),
            *(_frequency(step, cpu), whole(_throttled(step, cpu) or None)),
            *(_work(work.get(cpu)) if work else []),
        ]
        for cpu in sorted(step.cpus, key=lambda cpu: -sum(count or 0 for count in counts[cpu]))
    ]
    peaks = sorted(peak_temperatures(step.results).items(), key=lambda known: -known[1])[:MOST_ZONES]
    if not peaks and all(cell in (NONE, "0") for row in rows for cell in row[1:]):
        return []
    rest = len(rows) - MOST_CPUS
    notes = [NOTE, *([WORK_NOTE] if work else []), *_slower(step, among)]
    hottest = ", ".join(f"{zone} {peak / 1000:.0f} C" for zone, peak in peaks)
    notes += [f"Highest temperatures while the engine ran: {hottest}."] if peaks else []
    notes += [f"step.json also has {plural(rest, 'more CPU')}"] if rest > 0 else []
    titles = [*TITLES, *(WORK_TITLES if work else ())]
    title = f"Hardware, {name}" if name else "Hardware"
    columns = ranked([Column(), *numbers(*titles)], *(each for each in LEFT_OUT_FIRST if each in titles))
    return [Table(title, columns, rows[:MOST_CPUS], notes)]


def _work(work: CpuWork | None) -> list[str]:
    return [NONE, NONE] if work is None else [f"{work.cycles_each:.2f}", f"{work.misses_per_1000:.2f}"]


def _slower(step: Step, among: Sequence[Step]) -> list[str]:
    """Return a line for each CPU whose work took longer than in the same step without load."""
    of = (step.key.probe, "idle", step.key.deployment)
    idle = next((each for each in among if (each.key.probe, each.key.load, each.key.deployment) == of), None)
    if idle is None or step.key.load == "idle":
        return []
    work, frequencies = cpu_work(step.results), cpu_frequencies(step.results)
    work_idle, frequencies_idle = cpu_work(idle.results), cpu_frequencies(idle.results)
    return [
        f"CPU {cpu}, compared with idle: {why}."
        for cpu in step.cpus
        if cpu in work and cpu in work_idle
        if (why := why_slower(work[cpu], work_idle[cpu], frequencies.get(cpu), frequencies_idle.get(cpu)))
    ][:MOST_CPUS]


def _count(lines: Mapping[str, TableLine] | None, name: str, cpu: int) -> int | None:
    if lines is None:
        return None
    counts = [line.per_cpu.get(str(cpu), 0) for line in lines.values() if line.name == name]
    return None if None in counts else sum(count or 0 for count in counts)


def _frequency(step: Step, cpu: int) -> str:
    counted = cpu_frequencies(step.results).get(cpu)
    if counted is not None:
        return str(counted).removesuffix(" GHz")
    read = step.changes.frequency_khz.get(str(cpu))
    return NONE if read is None else f"{read.before / 1e6:.2f} → {read.after / 1e6:.2f}"


def _throttled(step: Step, cpu: int) -> int | None:
    counts = step.changes.throttle_counts
    core = [count for key, count in counts.items() if key.startswith(f"cpu{cpu}/") and "package" not in key]
    # Each CPU of a package has a copy of the package's counter.
    packages = [count for key, count in counts.items() if "package" in key]
    if None in (*core, *packages):
        return None
    return sum(count or 0 for count in core) + max((count or 0 for count in packages), default=0)
