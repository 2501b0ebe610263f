# SPDX-License-Identifier: MIT
"""Makes tables 4 to 9 of Brown & Martin (2010): lateness, frequencies, and both jitter and lateness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from rtgauge.analysis.dependent_quantile import LEAST_WINDOWS
from rtgauge.analysis.frequency import HALF, HARDNESS, Limit, Line, Options
from rtgauge.analysis.frequency import Table as FrequencyTable
from rtgauge.errors import InputError
from rtgauge.record.marks import is_doubt
from rtgauge.report.table import Table, applying, numbers, texts
from rtgauge.report.text import NONE, us, whole
from rtgauge.units import format_duration, format_time, parse_duration_ns

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


def _name(line: Line) -> str:
    return line.label + ("*" if is_doubt(line.worst_mark) else "")


def _time(ns: int | None, *, at_most: bool = False) -> str:
    return "unbounded" if ns is None else f"≤{us(ns)}" if at_most else us(ns)


def _marked(lines: Sequence[Line]) -> list[str]:
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
    largest = "100 % is the largest sample: it grows with the number of samples"
    signed = "The median is signed; 95 % and 100 % are of absolute values"
    counts = (
        "a missed activation counts with the latency it would have had, a lost answer as later than any "
        "sample."
    )
    notes = applying(
        (first, f"In us. {largest}, so a longer run finds a larger one."),
        (table.metric == "jitter", f"{signed}, also for a periodic task's latency."),
        (at_most, "≤: these samples are not in the file's histogram, but they are at most this late."),
        (lost, f"missed: {counts}"),
    )
    missed = ["missed"] if lost else []
    columns = [*texts(""), *numbers("samples", *missed, "median", "95 %", "100 %")]
    return Table(table.title, columns, rows, [*notes, *_marked(table.lines)])


def _faster(hz: float | None, line: Line) -> bool:
    return hz is not None and line.interval_ns is not None and hz > 1.001e9 / line.interval_ns


def _with_bounds(limit: Limit, line: Line) -> list[str]:
    faster = FASTER if _faster(limit.hz, line) else ""
    highest = f"{'≥' if limit.at_most else ''}{format_hz(limit.hz)}{faster}"
    if limit.hardness == 1:
        return [highest]
    return [highest, f"{format_hz(limit.low_hz)} to {format_hz(limit.high_hz)}"]


def _extreme(line: Line, activations: int) -> str:
    extreme = next((extreme for extreme in line.extremes if extreme.activations == activations), None)
    return NONE if extreme is None else format_hz(extreme.hz)


def frequency_grid(table: FrequencyTable, *, first: bool = True) -> Table:
    """Return a table like the paper's tables 5 and 7: the highest frequency at 95 % with bounds, at 100 %,
    and from the extreme-value estimate, if there is one. `first`: also add general notes.
    """
    every = sorted({extreme.activations for line in table.lines for extreme in line.extremes})
    rare = every[-1] if every else None
    rarely = [f"once in {rare:.0e}".replace("e+0", "e")] if rare else []
    columns = [*texts(""), *numbers("95 %", "95 %, bounds", "100 %", *rarely)]
    rows: list[list[str]] = []
    for line in table.lines:
        limits = [cell for limit in line.limits for cell in _with_bounds(limit, line)]
        rows.append([_name(line), *limits, *([_extreme(line, rare)] if rare else [])])
    allowed = f"A lateness L allows the frequency {table.fraction:.4g} / L."
    bounds = f"Bounds: each with confidence {table.confidence:.3g}, by order statistics"
    supposed = [line.label for line in table.lines if line.supposes_independence]
    whose = "" if len(supposed) == len(table.lines) else f"{'; '.join(supposed)}: "
    few = f"{whose}one run of fewer than {LEAST_WINDOWS} windows: the bounds assume independent samples"
    rarely_noted = (
        "once in ...: the lateness that the extreme-value estimate expects to be exceeded once in that many "
        "activations."
    )
    notes = applying(
        (
            first,
            f"{allowed} {bounds} and the differences between windows, or between runs if there are several.",
        ),
        (first, "100 % has no lower bound on the lateness: no sample rules out a later one."),
        (supposed, f"{few}, but samples in bursts are not independent."),
        (rare and first, rarely_noted),
    )
    for line in table.lines:
        of_rare = (extreme for extreme in line.extremes if extreme.activations == rare)
        doubtful = next((extreme for extreme in of_rare if extreme.disagree), None)
        if doubtful is not None:
            notes.append(
                f"{line.label}: a second estimate (peaks over a threshold) gives "
                f"{format_hz(doubtful.peaks_hz)} once in {rare:.0e}: rely on neither, or take "
                "the lower one, and measure longer.".replace("e+0", "e")
            )
    reasons: dict[str, list[str]] = {}
    for line in table.lines:
        if line.no_extremes:
            reasons.setdefault(line.no_extremes, []).append(line.label)
    for why, labels in reasons.items():
        whose = f" of {'; '.join(labels)}" if len(reasons) > 1 or rare else ""
        notes.append(f"No extreme-value estimate{whose}: {why}.")
    if any(_faster(limit.hz, line) for line in table.lines for limit in line.limits):
        intervals = (format_duration(line.interval_ns) for line in table.lines if line.interval_ns)
        slowest = ", ".join(dict.fromkeys(intervals))
        more = ": a machine that has to act more often may have larger latencies, so measure at that period"
        notes.append(f"{FASTER} faster than measured (every {slowest}){more if first else ''}.")
    within = f"{table.metric} stays within {part_of_period(table.fraction)}"
    return Table(f"{table.title}: highest frequency for which {within}", columns, rows, notes)


def conclusion(tables: Sequence[FrequencyTable]) -> str | None:
    """Return the condition that allows the lowest frequency, for each quantity; None without a table."""
    clauses: list[str] = []
    for table in tables:

        def highest(line: Line) -> float:
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
    notes = [f"Jitter is measured from edge to edge, and lateness from when an edge was due: {late}."]
    columns = [*texts(""), *numbers("95 %"), *texts("limited by"), *numbers("100 %"), *texts("limited by")]
    return Table(title, columns, rows, notes)


def grids(tables: Sequence[FrequencyTable]) -> list[Table]:
    """Return every table, in the papers' order. General notes are below the first."""
    grids: list[Table] = []
    for number, table in enumerate(tables):
        grids += [lateness_grid(table, first=number == 0), frequency_grid(table, first=number == 0)]
        same = (other for other in tables if other.probe == table.probe and other.metric == "jitter")
        jitter = next(same, None)
        together = together_grid(jitter, table) if jitter is not None and table.metric == "latency" else None
        grids += [together] if together is not None else []
    return grids


def caption_of(line: Line) -> str:
    """Describe a line in words, for a reader who does not see the figure."""
    at95, at100 = (line.limit(share) for share in HARDNESS)
    return f"{line.label}: 95 % within {format_time(at95.ns)}, 100 % within {format_time(at100.ns)}"


LONGEST_NAME = 60
MOST = 20


@dataclass(frozen=True)
class Marker:
    """A time (ns) that has a name."""

    name: str
    ns: int


SERIAL = Marker("12 serial bytes at 115200 baud", round(12 * 10 / 115_200 * 10**9))
"""The marker in figures 3 and 5 of Brown & Martin (2010): 12 bytes of 10 bits each, 1041.7 us."""


def parse_marker(text: str) -> Marker:
    """Parse a marker like `"CAN frame=130us"`. Raises InputError if it is not NAME=TIME."""
    name, sign, value = text.rpartition("=")
    name = name.strip()
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    shown, value = text[:80], text.rpartition("=")[2]
    if not sign or not name:
        raise InputError(f"--marker '{shown}': write NAME=TIME, like \"CAN frame=130us\"")
    if len(name) > LONGEST_NAME or not name.isprintable() or len(value) > LONGEST_NAME:
        raise InputError(
            f"--marker '{shown}': a name and a time have at most {LONGEST_NAME} printable characters each"
        )
    try:
        ns = parse_duration_ns(value)
    except ValueError as error:
        raise InputError(f"--marker '{shown}': {error}") from None
    if ns <= 0:
        raise InputError(f"--marker '{shown}': the time must be longer than 0")
    return Marker(name, ns)


def parse_markers(texts: Sequence[str] | None) -> tuple[Marker, ...]:
    """Return the paper's marker and the given markers; if two have the same name, the last one counts. Raises
    InputError if a marker is invalid or there are too many.
    """
    named = {marker.name: marker for marker in (SERIAL, *map(parse_marker, texts or ()))}
    if len(named) > MOST:
        raise InputError(f"{len(named)} markers: more than {MOST} cannot be distinguished in a figure")
    return tuple(named.values())


@dataclass(frozen=True)
class Timing:
    """Options for the tables, and the markers in the figures."""

    options: Options = field(default_factory=Options)
    markers: tuple[Marker, ...] = (SERIAL,)
