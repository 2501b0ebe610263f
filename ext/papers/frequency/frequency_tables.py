# SPDX-License-Identifier: MIT
"""Makes the tables of how often a task can run: tables 4 to 9 of Brown & Martin (2010) on lateness,
frequencies, and both jitter and lateness; and the highest sustained frequency with every measured period.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rtgauge.record.marks import is_doubt
from rtgauge.record.reader import Record
from rtgauge.report.presenter import frequency_grids as presenters_grids
from rtgauge.report.table import Table, applying, numbers, ranked, texts
from rtgauge.report.text import NONE, us, whole
from rtgauge.units import format_duration, format_share, format_time
from rtgauge_ext.papers.frequency.frequency import HARDNESS, ConditionRow, FrequencyTable, Limit
from rtgauge_ext.papers.frequency.frequency_options import HALF
from rtgauge_ext.papers.frequency.sustained import RESOLUTION, SustainedCurve, SustainedPoint

FASTER = "†"
"""The mark of a frequency above the one at which it was measured."""


def format_hz(hz: float | None) -> str:
    """Return a frequency with three significant digits in Hz, kHz or MHz; "any" if nothing limits it, "none"
    if no frequency is possible.
    """
    if hz is None:
        return "any"
    if hz <= 0:
        return "none"
    for limit, divisor, unit in ((1e3, 1, "Hz"), (1e6, 1e3, "kHz"), (float("inf"), 1e6, "MHz")):
        if hz < limit * 0.9995:
            value = hz / divisor
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def part_of_period(fraction: float) -> str:
    """Return a fraction in words: 0.5 -> "half a period"; 0.25 -> "1/4 of a period"; 1 -> "a period"."""
    exact = Fraction(fraction).limit_denominator(1000)
    return "half a period" if exact == HALF else "a period" if exact == 1 else f"{exact} of a period"


def _name(line: ConditionRow) -> str:
    return line.label + ("*" if is_doubt(line.worst_mark) else "")


def _time(ns: int | None, *, at_most: bool = False) -> str:
    return "unbounded" if ns is None else f"≤{us(ns)}" if at_most else us(ns)


def _marked(lines: Sequence[ConditionRow]) -> list[str]:
    doubtful = [line for line in lines if is_doubt(line.worst_mark)]
    return [f"* {line.label} is marked {line.worst_mark}: see {line.record}" for line in doubtful]


def lateness_grid(table: FrequencyTable, *, first: bool = True) -> Table:
    """Return a table like the paper's tables 4, 6, 8 and 9: samples, median, 95 %, 100 %. `first`: also add
    general notes.
    """
    lost = any(line.missed for line in table.lines)
    rows: list[list[str]] = []
    for line in table.lines:
        samples = [whole(line.samples), whole(line.missed)] if lost else [whole(line.samples)]
        median = _time(line.median_ns, at_most=line.median_at_most)
        limits = [_time(limit.ns, at_most=limit.at_most) for limit in map(line.limit, HARDNESS)]
        rows.append([_name(line), *samples, median, *limits])
    at_most = any(line.median_at_most or any(limit.at_most for limit in line.limits) for line in table.lines)
    largest = "100 % is the largest sample, which grows with the number of samples"
    signed = "The median is signed, but 95 % and 100 % are quantiles of absolute values"
    counts = (
        "a missed activation counts with the latency that it would have had, and a lost answer as later than "
        "any sample."
    )
    notes = applying(
        (first, f"Times are in us. {largest}; a longer run finds a larger one."),
        (table.metric == "jitter", f"{signed}, even for a periodic task's latency."),
        (at_most, "≤: these samples are not in the file's histogram; they are at most this late."),
        (lost, f"missed: {counts}"),
    )
    missed = ["missed"] if lost else []
    columns = [*texts(""), *numbers("samples", *missed, "median", "95 %", "100 %")]
    columns = ranked(columns, "samples", *missed, "median")
    return Table(table.title, columns, rows, [*notes, *_marked(table.lines)])


def _faster(hz: float | None, line: ConditionRow) -> bool:
    return hz is not None and line.interval_ns is not None and hz > 1.001e9 / line.interval_ns


def _with_bounds(limit: Limit, line: ConditionRow) -> list[str]:
    faster = FASTER if _faster(limit.hz, line) else ""
    highest = f"{'≥' if limit.at_most else ''}{format_hz(limit.hz)}{faster}"
    if limit.hardness == 1:
        return [highest]
    return [highest, f"{format_hz(limit.low_hz)} to {format_hz(limit.high_hz)}"]


def frequency_grid(table: FrequencyTable, *, first: bool = True) -> Table:
    """Return a table like the paper's tables 5 and 7: the highest frequency at 95 % with bounds, and at 100
    %. `first`: also add general notes.
    """
    columns = ranked([*texts(""), *numbers("95 %", "95 %, bounds", "100 %")], "95 %, bounds")
    rows = [
        [_name(line), *(cell for limit in line.limits for cell in _with_bounds(limit, line))]
        for line in table.lines
    ]
    allowed = f"A lateness L allows the frequency {table.fraction:.4g} / L."
    bounds = f"Each bound has a confidence of {table.confidence:.3g}; it is calculated from order statistics"
    supposed = [line.label for line in table.lines if line.supposes_independence]
    whose = "" if len(supposed) == len(table.lines) else f"{'; '.join(supposed)}: "
    few = f"{whose}the bounds come from a single window of one run and assume independent samples"
    notes = applying(
        (
            first,
            f"{allowed} {bounds} and the differences between windows, or between runs if there are several.",
        ),
        (first, "100 % has no upper bound on the lateness, because no sample rules out a later one."),
        (supposed, f"{few}, but samples in bursts are not independent."),
    )
    if any(_faster(limit.hz, line) for line in table.lines for limit in line.limits):
        intervals = (format_duration(line.interval_ns) for line in table.lines if line.interval_ns)
        slowest = ", ".join(dict.fromkeys(intervals))
        more = "; a machine that has to act more often may have larger latencies, so measure at that period"
        notes.append(f"{FASTER} faster than measured (every {slowest}){more if first else ''}.")
    within = f"{table.metric} stays within {part_of_period(table.fraction)}"
    return Table(f"{table.title}: highest frequency for which {within}", columns, rows, notes)


def frequency_sentence(tables: Sequence[FrequencyTable]) -> str | None:
    """Return a sentence with the highest frequency for each quantity, in the condition that allows the lowest
    one; None without a table.
    """
    clauses: list[str] = []
    for table in tables:

        def highest(line: ConditionRow) -> float:
            hz = line.limit(HARDNESS[1]).hz
            return float("inf") if hz is None else hz

        worst = min(table.lines, key=highest)
        at95, at100 = (
            "at no frequency"
            if limit.hz == 0
            else f"up to {'at least ' if limit.at_most else ''}{format_hz(limit.hz)}"
            for limit in map(worst.limit, HARDNESS)
        )
        among = f", the worst of {len(table.lines)} ({worst.label})" if len(table.lines) > 1 else ""
        quantity = table.title[:1].lower() + table.title[1:]
        samples = f"all {whole(worst.samples)} samples" if worst.samples > 1 else "the only sample"
        clauses.append(f"{quantity} {at100} by {samples}, {at95} by 95 % of them{among}")
    return f"Within {part_of_period(tables[0].fraction)}: {'; '.join(clauses)}" if clauses else None


def lower_hz(jitter: float | None, lateness: float | None) -> tuple[float | None, str]:
    """Return the lower of two frequencies, and which of the two limits it. None stands for "any"."""
    if jitter is None and lateness is None:
        return None, NONE
    if lateness is None or (jitter is not None and jitter <= lateness):
        return jitter, "jitter"
    return lateness, "lateness"


def together_grid(jitter: FrequencyTable, latency: FrequencyTable) -> Table | None:
    """Return the highest frequencies of periodic tasks by jitter and by absolute lateness, which jitter
    hides; None if no line has both.
    """
    lateness = {(line.record, line.label): line for line in latency.lines}
    rows: list[list[str]] = []
    for line in jitter.lines:
        other = lateness.get((line.record, line.label))
        if other is not None:
            cells = [lower_hz(line.limit(share).hz, other.limit(share).hz) for share in HARDNESS]
            rows.append([_name(line), *(text for hz, why in cells for text in (format_hz(hz), why))])
    if not rows:
        return None
    both = f"both jitter and lateness stay within {part_of_period(jitter.fraction)}"
    title = f"Periodic: highest frequency for which {both}"
    late = "a task that is always equally late has no jitter"
    notes = [f"Jitter is measured from edge to edge, and lateness from when an edge was due; {late}."]
    columns = [*texts(""), *numbers("95 %"), *texts("limited by"), *numbers("100 %"), *texts("limited by")]
    return Table(title, columns, rows, notes)


def frequency_grids(tables: Sequence[FrequencyTable]) -> list[Table]:
    """Return every table, in the papers' order. General notes are below the first."""
    grids: list[Table] = []
    for number, table in enumerate(tables):
        grids += [lateness_grid(table, first=number == 0), frequency_grid(table, first=number == 0)]
        same = (other for other in tables if other.probe == table.probe and other.metric == "jitter")
        jitter = next(same, None)
        together = together_grid(jitter, table) if jitter is not None and table.metric == "latency" else None
        grids += [together] if together is not None else []
    return grids


def _spread(curve: SustainedCurve) -> str:
    if curve.spread_ns is None:
        return "none was sustained"
    low, high = curve.spread_ns
    return format_time(low) if low == high else f"{format_time(low)} to {format_time(high)}"


def _fails(curve: SustainedCurve) -> str:
    failing = [(result.failing_ns, result) for result in curve.found if result.failing_ns is not None]
    if not failing:
        return NONE
    longest_ns, result = max(failing, key=lambda pair: pair[0])
    return f"{format_time(longest_ns)}{' (master)' if result.by_master else ''}"


def sustained_sentence(curve: SustainedCurve) -> str:
    """Return a sentence like "response, idle: 11.9 kHz sustained (every 84.1 us); lost cycles at 77.1 us"."""
    repeats = len(curve.found)
    if curve.sustained_ns is None:
        failed = sum(result.sustained_ns is None for result in curve.found)
        where = f" in {failed} of {repeats} repeats" if repeats > 1 else ""
        return (
            f"{curve.label}: cycles were lost at every measured period{where}, so the machine sustains none "
            "of these periods"
        )
    least = "at least " if curve.no_end else ""
    varies = curve.spread_ns is not None and curve.spread_ns[0] != curve.spread_ns[1]
    among = f" in all {repeats} repeats{f', {_spread(curve)}' if varies else ''}" if repeats > 1 else ""
    failing = _fails(curve)
    ends = "" if failing == NONE else f"; lost cycles at {failing}"
    ends = "; nothing was lost at the shortest period" if curve.no_end else ends
    doubt = "; the search did not finish" if any(not result.complete for result in curve.found) else ""
    sustained = f"{format_hz(curve.sustained_hz)} sustained (every {format_time(curve.sustained_ns)})"
    return f"{curve.label}: {least}{sustained}{among}{ends}{doubt}"


def result_grid(curves: Sequence[SustainedCurve]) -> Table | None:
    """Return the shortest period that every repeat sustained, a row per search; None without a search."""
    if not curves:
        return None
    rows: list[list[str]] = []
    near = f"the search cannot distinguish periods that differ by less than {RESOLUTION - 1:.0%}"
    notes = [
        f"period: the shortest period at which, as at every longer one, no repeat lost a cycle; {near}.",
        (
            "loses: the longest period at which a cycle was lost, or (master) at which only the master was "
            "late."
        ),
    ]
    for curve in curves:
        hz = format_hz(curve.sustained_hz) if curve.sustained_hz is not None else "none"
        short = "≤ " if curve.no_end and curve.sustained_ns is not None else ""
        period = NONE if curve.sustained_ns is None else f"{short}{format_time(curve.sustained_ns)}"
        figures = [_spread(curve), _fails(curve), whole(len(curve.found)), whole(curve.cycles)]
        rows.append([curve.label, period, f"{'≥ ' if short else ''}{hz}", *figures])
        notes += [f"{curve.label}: {note}" for note in _notes(curve)]
    columns = [*texts(""), *numbers("period", "frequency", "spread", "loses", "repeats", "cycles")]
    return Table("Highest sustained frequency", columns, rows, notes)


def _notes(curve: SustainedCurve) -> list[str]:
    known = sum(result.sustained_ns is not None for result in curve.found)
    spread = f"the spread of these {known} repeats contains the median of many more repeats"
    by_master = any(result.by_master for result in curve.found)
    late = "at a shorter period only the master was late, so the slave may sustain that period"
    shortest = "nothing was lost at the shortest period either, so a shorter one may be sustained."
    unfinished = [str(result.repeat) for result in curve.found if not result.complete]
    notes = applying(
        (known > 1, f"{spread} with a probability of {curve.coverage:.0%}, if they are independent.")
    )
    if curve.loss_at_most is not None:
        bursts = (
            "losses are independent"
            if curve.burst_period_ns is None
            else f"losses come in bursts as long as the bursts at {format_time(curve.burst_period_ns)}"
        )
        notes.append(
            f"at {format_time(curve.sustained_ns)}, at most {format_share(curve.loss_at_most, up=True)} of "
            f"the cycles are lost (95 % confidence) if {bursts}; measuring more cycles lowers this limit."
        )
    return notes + applying(
        (by_master, f"{late}; measure with a master on another machine."),
        (curve.no_end, shortest),
        (unfinished, f"the search did not finish in repeat {', '.join(unfinished)}."),
    )


def _share(count: int, cycles: int) -> str:
    return "0" if not count else f"{count / cycles * 100:.3g} %"


def curve_grid(curve: SustainedCurve) -> Table:
    """Return a table with a row per period, summed over its repeats."""
    periods: dict[int, list[SustainedPoint]] = {}
    for point in curve.points:
        periods.setdefault(point.period_ns, []).append(point)
    rows: list[list[str]] = []
    columns = {"lost": "lost", "not_made": "not made", "over_half": "over half", "long": "over 1 ms"}
    notes = ["over half: cycles later than half of the period, including lost ones."]
    if any(point.not_made for point in curve.points):
        notes.insert(0, "not made: stimuli that the master did not send because it was late.")
    else:
        del columns["not_made"]
    for period, points in periods.items():
        cycles = sum(point.cycles for point in points)
        largest = max((point.max_ns for point in points if point.max_ns is not None), default=None)
        shares = [_share(sum(getattr(point, name) for point in points), cycles) for name in columns]
        rows.append([format_time(period), format_hz(1e9 / period), whole(cycles), *shares, us(largest)])
    heads = numbers("period", "frequency", "cycles", *columns.values(), "max (us)")
    return Table(f"Losses and long delays: {curve.label}", heads, rows, notes)


def sustained_grids(curves: Sequence[SustainedCurve]) -> list[Table]:
    """Return every table of the searches; empty without a curve."""
    result = result_grid(curves)
    return [] if result is None else [result, *(curve_grid(curve) for curve in curves)]


def timing_grids(
    records: Sequence[Record], gathered: Sequence[FrequencyTable], curves: Sequence[SustainedCurve]
) -> list[Table]:
    """Return every table on how often a task can run."""
    frequencies = frequency_grids(gathered)
    return [*frequencies, *presenters_grids(records), *sustained_grids(curves)]


def timing_sentences(gathered: Sequence[FrequencyTable], curves: Sequence[SustainedCurve]) -> list[str]:
    """Return the results as sentences without full stops."""
    frequencies = frequency_sentence(gathered)
    return [*map(sustained_sentence, curves), *([] if frequencies is None else [frequencies])]
