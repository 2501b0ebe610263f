# SPDX-License-Identifier: MIT
"""What a recorder does when it takes more of the CPU than it may."""

from __future__ import annotations

from collections import Counter

from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder.cpu_budget import CpuBudget

MINUTE_NS = 60 * NS_PER_S


def after(counts: Counter[str], minutes: int, share: float) -> Counter[str]:
    """The counts after so many minutes in which recording took this share."""
    counts["watched_ns"] += minutes * MINUTE_NS
    counts["cpu_ns"] += round(minutes * MINUTE_NS * share)
    return counts


def test_a_storm_is_judged_by_itself_and_forgiven_later() -> None:
    counts = after(Counter(), 60 * 24, 0.1)  # another recorder of this folder, whose time is over
    budget = CpuBudget(0.005, counts)
    assert budget.look(after(counts, 9, 0.02)) is None and not budget.spares
    changed = budget.look(after(counts, 1, 0.02))
    assert budget.spares and changed is not None and "2 % of a CPU in the last 10 min" in changed
    assert budget.look(after(counts, 59, 0.004)) is None and budget.spares
    changed = budget.look(after(counts, 1, 0.004))
    assert not budget.spares and changed is not None and changed.endswith("as usual again")


def test_while_it_takes_too_much_it_spares_and_says_so_once() -> None:
    counts: Counter[str] = Counter()
    budget = CpuBudget(0.005, counts)
    reported = [budget.look(after(counts, 60, 0.006)) for _ in range(24)]
    assert budget.spares and [text is not None for text in reported] == [True] + [False] * 23


def test_within_its_budget_nothing_changes() -> None:
    counts: Counter[str] = Counter()
    budget = CpuBudget(0.005, counts)
    assert all(budget.look(after(counts, 10, 0.005)) is None for _ in range(100)) and not budget.spares


def test_a_program_that_does_not_run_is_no_reason() -> None:
    budget = CpuBudget(0.005, Counter())
    assert budget.look(Counter(cpu_ns=NS_PER_S, absent_ns=60 * MINUTE_NS)) is None and not budget.spares
