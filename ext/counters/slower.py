# SPDX-License-Identifier: MIT
"""Judges why an activation worked longer than usual.

Time = instructions x cycles per instruction / frequency, so each factor that grew is a cause. If the counters
stand still during a system management interrupt (SMI), it looks like a lower frequency, so SMIs are counted.
Page faults are counted without hardware, and are the cause if they can take all of the additional time.
"""

from __future__ import annotations

from enum import StrEnum

from rtgauge.explain.analysis.attribution import QUICK_FAULT_NS
from rtgauge.record.model import Model
from rtgauge.system.cpu_counters import MORE_MISSES, SLOWER, CpuWork
from rtgauge.units import format_factor, format_time, plural
from rtgauge_ext.counters.activation import WorkCounts


class Why(StrEnum):
    """What made an activation work longer."""

    PAGE_FAULTS = "page faults"
    MORE_WORK = "more work"
    MEMORY = "cache or memory bandwidth"
    STALLS = "other stalls"
    FREQUENCY = "frequency"
    FIRMWARE = "firmware (SMI)"


class Cause(Model):
    """A cause, by which factor it made the work longer, and a clause that says so."""

    why: Why
    factor: float
    words: str


def causes(slow: WorkCounts, usual: WorkCounts) -> list[Cause] | None:
    """Return why `slow` needed more CPU time than `usual`, the largest factor first; empty if it did not
    notably, or if no single factor did. None: this machine did not count the work.
    """
    if slow.cpu_ns < SLOWER * usual.cpu_ns:
        return []
    faults = _page_faults(slow, usual)
    if not (slow.is_complete and usual.is_complete):
        return None if faults is None else [faults]
    now, before = _work(slow), _work(usual)
    smis = (slow.smi or 0) - (usual.smi or 0)
    found: list[Cause] = []
    if (more := now.instructions / before.instructions) >= SLOWER:
        words = f"it executed {format_factor(more)} times as many instructions"
        found.append(faults or Cause(why=Why.MORE_WORK, factor=more, words=words))
    if (stalls := now.cycles_each / before.cycles_each) >= SLOWER:
        found.append(_stalls(stalls, now, before))
    ghz, ghz_before = now.cycles / slow.cpu_ns, before.cycles / usual.cpu_ns
    if (slowed := ghz_before / ghz) >= SLOWER and smis <= 0:
        words = f"the CPU ran at {ghz:.2f} instead of {ghz_before:.2f} GHz"
        found.append(Cause(why=Why.FREQUENCY, factor=slowed, words=words))
    if smis > 0:
        words = f"the firmware interrupted the CPU ({plural(smis, 'SMI')})"
        found.append(Cause(why=Why.FIRMWARE, factor=max(slowed, 1.0), words=words))
    return sorted(found, key=lambda cause: -cause.factor)


def _page_faults(slow: WorkCounts, usual: WorkCounts) -> Cause | None:
    """Return page faults as the cause if they can take all of the additional time, as in an explanation."""
    more, additional_ns = slow.page_faults - usual.page_faults, slow.cpu_ns - usual.cpu_ns
    if more <= 0 or additional_ns > more * QUICK_FAULT_NS:
        return None
    instead = f"it had {plural(slow.page_faults, 'page fault')} instead of {usual.page_faults}"
    words = f"{instead} (at most {format_time(additional_ns / more)} each)"
    return Cause(why=Why.PAGE_FAULTS, factor=slow.cpu_ns / max(usual.cpu_ns, 1), words=words)


def _work(counts: WorkCounts) -> CpuWork:
    return CpuWork(counts.cycles or 0, counts.instructions or 0, counts.llc_misses or 0)


def _stalls(factor: float, now: CpuWork, before: CpuWork) -> Cause:
    words = f"an instruction took {format_factor(factor)} times as many cycles, "
    if now.misses_per_1000 >= MORE_MISSES * max(before.misses_per_1000, 0.1):
        words += (
            f"with {before.misses_per_1000:.1f} → {now.misses_per_1000:.1f} last-level misses per 1,000 "
            "instructions: cache or memory bandwidth"
        )
        return Cause(why=Why.MEMORY, factor=factor, words=words)
    words += "without more last-level misses: other instructions, or a busy sibling (SMT)"
    return Cause(why=Why.STALLS, factor=factor, words=words)
