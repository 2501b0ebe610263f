# SPDX-License-Identifier: MIT
"""Puts the highest sustained frequency into words: each search's result, and every measured period."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.analysis.frequency import Gathered
from rtgauge.analysis.sustained import RESOLUTION, Curve, Point
from rtgauge.record.reader import Record
from rtgauge.report import frequency_tables
from rtgauge.report.frequency_tables import format_hz
from rtgauge.report.presenter import frequency_grids
from rtgauge.report.table import Table, applying, numbers, texts
from rtgauge.report.text import NONE, us, whole
from rtgauge.units import format_share, format_time


def _spread(curve: Curve) -> str:
    if curve.spread_ns is None:
        return "none was sustained"
    low, high = curve.spread_ns
    return format_time(low) if low == high else f"{format_time(low)} to {format_time(high)}"


def _fails(curve: Curve) -> str:
    failing = [(result.failing_ns, result) for result in curve.found if result.failing_ns is not None]
    if not failing:
        return NONE
    longest_ns, result = max(failing, key=lambda pair: pair[0])
    return f"{format_time(longest_ns)}{' (master)' if result.by_master else ''}"


def sustained_sentence(curve: Curve) -> str:
    """Return a sentence like "response, idle: 11.9 kHz sustained (every 84.1 us); lost cycles at 77.1 us"."""
    repeats = len(curve.found)
    if curve.sustained_ns is None:
        failed = sum(result.sustained_ns is None for result in curve.found)
        where = f" in {failed} of {repeats} repeats" if repeats > 1 else ""
        return f"{curve.label}: no period is sustained: cycles were lost at every measured period{where}"
    least = "at least " if curve.no_end else ""
    varies = curve.spread_ns is not None and curve.spread_ns[0] != curve.spread_ns[1]
    among = f" in all {repeats} repeats{f', {_spread(curve)}' if varies else ''}" if repeats > 1 else ""
    failing = _fails(curve)
    ends = "" if failing == NONE else f"; lost cycles at {failing}"
    ends = "; nothing was lost at the shortest period" if curve.no_end else ends
    doubt = "; the search is not finished" if any(not result.complete for result in curve.found) else ""
    sustained = f"{format_hz(curve.sustained_hz)} sustained (every {format_time(curve.sustained_ns)})"
    return f"{curve.label}: {least}{sustained}{among}{ends}{doubt}"


def result_grid(curves: Sequence[Curve]) -> Table | None:
    """Return the shortest period that every repeat sustained, a row per search; None without a search."""
    if not curves:
        return None
    rows: list[list[str]] = []
    near = f"periods within {RESOLUTION - 1:.0%} are not distinguished"
    notes = [
        f"sustained: the shortest period at which, and above which, no cycle was lost in any repeat; {near}.",
        (
            "loses: the longest period at which something was lost, or (master) at which only the "
            "master was late."
        ),
    ]
    for curve in curves:
        hz = format_hz(curve.sustained_hz) if curve.sustained_hz is not None else "none"
        short = "≤ " if curve.no_end and curve.sustained_ns is not None else ""
        period = NONE if curve.sustained_ns is None else f"{short}{format_time(curve.sustained_ns)}"
        found = [_spread(curve), _fails(curve), whole(len(curve.found)), whole(curve.cycles)]
        rows.append([curve.label, period, f"{'≥ ' if short else ''}{hz}", *found])
        notes += [f"{curve.label}: {note}" for note in _notes(curve)]
    columns = [*texts(""), *numbers("period", "frequency", "spread", "loses", "repeats", "cycles")]
    return Table("Highest sustained frequency", columns, rows, notes)


def _notes(curve: Curve) -> list[str]:
    known = sum(result.sustained_ns is not None for result in curve.found)
    spread = f"the spread of {known} repeats contains the median of many more repeats"
    by_master = any(result.by_master for result in curve.found)
    late = "at a shorter period the master was late and the slave lost nothing: the slave may sustain more"
    shortest = "nothing was lost at the shortest period either, so a shorter one may be sustained."
    unfinished = [str(result.repeat) for result in curve.found if not result.complete]
    notes = applying((known > 1, f"{spread} with a probability of {curve.coverage:.0%}."))
    if curve.loss_at_most is not None:
        lost = f"fewer than {format_share(curve.loss_at_most)} cycles are lost; more cycles lower this limit."
        notes.append(f"at {format_time(curve.sustained_ns)}, at 95 % confidence {lost}")
    return notes + applying(
        (by_master, f"{late}; measure with a master on another machine."),
        (curve.no_end, shortest),
        (unfinished, f"the search did not finish in repeat {', '.join(unfinished)}."),
    )


def _share(count: int, cycles: int) -> str:
    return "0" if not count else f"{count / cycles * 100:.3g} %"


def curve_grid(curve: Curve) -> Table:
    """Return a table with a row per period, summed over its repeats."""
    periods: dict[int, list[Point]] = {}
    for point in curve.points:
        periods.setdefault(point.period_ns, []).append(point)
    rows: list[list[str]] = []
    columns = {"lost": "lost", "not_made": "not made", "over_half": "over half", "long": "over 1 ms"}
    notes = ["over half: later than half of the period, lost cycles included."]
    if any(point.not_made for point in curve.points):
        notes.insert(0, "not made: stimuli that the master itself was too late for.")
    else:
        del columns["not_made"]
    for period, points in periods.items():
        cycles = sum(point.cycles for point in points)
        largest = max((point.max_ns for point in points if point.max_ns is not None), default=None)
        shares = [_share(sum(getattr(point, name) for point in points), cycles) for name in columns]
        rows.append([format_time(period), format_hz(1e9 / period), whole(cycles), *shares, us(largest)])
    heads = numbers("period", "frequency", "cycles", *columns.values(), "max (us)")
    return Table(f"Losses and long delays: {curve.label}", heads, rows, notes)


def grids(curves: Sequence[Curve]) -> list[Table]:
    """Return every table; empty without a curve."""
    result = result_grid(curves)
    return [] if result is None else [result, *(curve_grid(curve) for curve in curves)]


def timing_grids(
    records: Sequence[Record], gathered: Sequence[Gathered], curves: Sequence[Curve], width: int | None = None
) -> list[Table]:
    """Return every table on how often a task can run. `width`: the terminal's columns; None: for a page."""
    frequencies = frequency_tables.grids([quantity.table for quantity in gathered])
    return [*frequencies, *frequency_grids(records, width), *grids(curves)]


def timing_sentences(gathered: Sequence[Gathered], curves: Sequence[Curve]) -> list[str]:
    """Return the results as sentences without full stops."""
    frequencies = frequency_tables.conclusion([quantity.table for quantity in gathered])
    return [*map(sustained_sentence, curves), *([] if frequencies is None else [frequencies])]
