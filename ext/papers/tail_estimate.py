# SPDX-License-Identifier: MIT
"""The extreme-value estimate of each side of a comparison: latencies too rare to be measured."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.analysis.sides import Side
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, capital, us
from rtgauge.units import format_count
from rtgauge_ext.papers.extreme_value import TailEstimate, TailLevel, estimate


def tail_estimate(side: Side, *, confidence: float = 0.95) -> TailEstimate:
    """Return the extreme-value estimate of one side, or why there is none."""
    return estimate(*side.maxima, confidence=confidence).model_copy(update={"side": side.label})


def _tail_cells(levels: Sequence[TailLevel], columns: Sequence[int]) -> list[str]:
    """Return, for each number of activations, the level and its interval."""
    by_number = {level.activations: level for level in levels}
    cells: list[str] = []
    for n in columns:
        level = by_number.get(n)
        high = NONE if level is None else "no limit" if level.high_ns is None else us(level.high_ns)
        cells.append(NONE if level is None else f"{us(level.ns)} ({us(level.low_ns)} to {high})")
    return cells


def tail_grid(tails: Sequence[TailEstimate], quantity: str, alpha: float) -> Table:
    """Return the table of levels that are exceeded once in a number of activations."""
    columns = sorted({level.activations for tail in tails for level in tail.levels})
    rows: list[list[str]] = []
    notes: list[str] = []
    cannot: dict[str, list[str]] = {}
    for tail in tails:
        if columns:
            shape = NONE if tail.shape is None or tail.cannot is not None else f"{tail.shape:+.2f}"
            rows.append([tail.side, shape, *_tail_cells(tail.levels, columns)])
        if tail.cannot is not None:
            cannot.setdefault(tail.cannot, []).append(tail.side)
        else:
            tests = ", ".join(f"{test.name} p = {test.p_value:.2f}" for test in tail.assumptions)
            size = format_count(round(tail.activations_a_block))
            notes.append(f"{tail.side}: {tail.blocks} blocks of about {size} activations; {tests}.")
    for why, labels in cannot.items():
        whose = "" if len(labels) == len(tails) > 1 else f"{'; '.join(labels)}: "
        samples = "this sample" if len(labels) == 1 else "these samples"
        notes.append(f"{whose}rtgauge cannot estimate rarer values from {samples}: {why}.")
    confidence = f"{(1 - alpha) * 100:g} %"
    if columns:
        notes.append(
            f"Times are in us, with {confidence} profile-likelihood intervals. Extrapolating these values "
            "assumes that nothing changes. A burst of late activations counts once."
        )
    heads = [*texts(""), *numbers("shape", *(f"10^{len(str(n)) - 1}" for n in columns))]
    return Table(f"{capital(quantity)} exceeded once in", heads, rows, notes)
