# SPDX-License-Identifier: MIT
"""Makes the tables of a comparison. Page and terminal show the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rtgauge.analysis.comparison_conclusion import finding, word
from rtgauge.analysis.comparison_document import (
    Comparison,
    ComparisonFinding,
    QuantileDifference,
)
from rtgauge.analysis.quantile_difference import QUANTILES
from rtgauge.analysis.side_labels import EMULATED
from rtgauge.probe.probe_registry import plural_of
from rtgauge.record.marks import is_doubt
from rtgauge.record.model import Distribution
from rtgauge.report.compare.extension_parts import parts_of
from rtgauge.report.table import Table, applying, numbers, ranked, texts
from rtgauge.report.text import NONE, capital, us, whole
from rtgauge.units import format_time


def _signed(ns: float) -> str:
    return f"{ns / 1_000:+,.1f}"


def _probability(p: float | None) -> str:
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _figures(figures: Distribution) -> list[str]:
    return [
        us(getattr(figures, name), lower_bound=name in figures.lower_bounds, digits=3)
        for name in ("mean_ns", "max_ns", "min_ns", "std_ns")
    ]


MEASURED_BY = {
    "priority": "priority",
    "policy": "policy",
    "dma_latency_us": "C-states (dma latency, us)",
    "c_states": "C-states",
}
"""Parameters that change how a side is measured but not what is measured, with their names for people."""


def measured_differently(result: Comparison) -> list[str]:
    """Return a note for each parameter in MEASURED_BY that differs between the sides."""
    notes: list[str] = []
    for parameter, name in MEASURED_BY.items():
        if (values := result.settings.get(f"parameter.{parameter}")) is not None:
            sides = zip(values, result.sides, strict=True)
            named = ", ".join(f"{value} ({side.label})" for value, side in sides)
            notes.append(f"The sides were not measured in the same way. {capital(name)}: {named}.")
    return notes


def figures_grid(result: Comparison) -> Table:
    """Return the papers' table: average, maximum, minimum, standard deviation."""
    rows: list[list[str]] = []
    notes = ["Times are in us. Maxima have no confidence interval, because none would be valid."]
    for side in result.sides:
        marked = "*" if side.worst_mark is not None else ""
        rows.append(
            [side.label + marked, whole(side.measured.count), whole(side.missed), *_figures(side.measured)]
        )
        if side.missed:
            rows.append(["  missed filled in", whole(side.filled.count), "", *_figures(side.filled)])
    if any(side.missed for side in result.sides):
        notes.append(
            "The second line of a side, and everything below this table, counts each missed activation with "
            "the latency that it would have had."
        )
    by_record: dict[tuple[str, str], list[str]] = {}
    for side in result.sides:
        if side.worst_mark is not None:
            by_record.setdefault((side.worst_mark.value, side.record), []).append(side.label)
    notes += [
        f"* {severity}: {'; '.join(labels)} (rtgauge show {record})"
        for (severity, record), labels in by_record.items()
    ]
    notes += measured_differently(result)
    empty = [side.label for side in result.sides if not side.filled.count]
    notes += [f"{label} has no samples, so it cannot be compared." for label in empty]
    equal = [side for side in result.sides if side.filled.count and side.filled.min_ns == side.filled.max_ns]
    notes += [
        f"All {plural_of(result.quantity)} of {side.label} are equal ({format_time(side.filled.min_ns)})."
        for side in equal
    ]
    columns = ranked(
        [*texts(""), *numbers("count", "missed", *FIGURES)], "std", "minimum", "count", "average", "missed"
    )
    return Table(capital(result.quantity), columns, rows, notes)


FIGURES = ("average", "maximum", "minimum", "std")
"""The papers' names for the columns of `_figures`."""
SETTINGS = "Settings that differ"
MOST_SETTINGS = 24
"""The most lines of settings in a terminal."""
SETTINGS_NAMED = 8
"""The most settings that a line names. The rest is counted."""
DIFFERENCES = "Differences are in us: side minus baseline"
MACHINE, CONDITION = ("host", "kernel"), ("load", "deployment", "tool", "space", "parameters")
"""The traits that describe a side's machine, and the traits that describe how it was measured."""


def emulated_note(result: Comparison) -> str | None:
    """Return a warning if sides come from emulated machines; None if no side does."""
    emulated = [side.traits["host"] for side in result.sides if side.traits.get("processor") == EMULATED]
    if not emulated:
        return None
    if len(emulated) == len(result.sides):
        differences = "The differences may come from the emulator, and say nothing about a real processor."
        return f"All sides are emulated. {differences}"
    hosts = ", ".join(dict.fromkeys(emulated))
    return f"Emulated: {hosts}. Times on an emulated processor cannot be compared with times on a real one."


def _machine_names(result: Comparison) -> list[str]:
    """Return each side's host, with the kernel if the host has several kernels."""
    kernels: dict[str, set[str]] = {}
    for side in result.sides:
        kernels.setdefault(side.traits["host"], set()).add(side.traits["kernel"])
    names: list[str] = []
    for side in result.sides:
        host, kernel = (side.traits[name] for name in MACHINE)
        names.append(host if len(kernels[host]) == 1 else f"{host}, {kernel}")
    return names


def settings_grid(result: Comparison) -> Table:
    """Return the settings that differ. Sides with the same value share a cell."""
    rows: list[list[str]] = []
    for name, values in result.settings.items():
        who: dict[str, list[str]] = {}
        for side, value in zip(_where(result, values), values, strict=True):
            if side not in who.setdefault(value, []):
                who[value].append(side)
        rows.append([name, " · ".join(f"{value} ({'; '.join(sides)})" for value, sides in who.items())])
    notes = [] if rows else ["All settings are equal: facts and parameters are the same on all sides."]
    return Table(SETTINGS, texts("", "value (where)"), rows, notes, folded=True)


def first_settings(table: Table) -> Table:
    """Return the table of settings for a terminal: the first lines."""
    rows = table.rows[:MOST_SETTINGS]
    more = len(table.rows) - len(rows)
    notes = [f"and {more} more; rtgauge compare --json shows all of them"] if more else []
    return replace(table, rows=rows, notes=[*notes, *table.notes])


def _where(result: Comparison, values: Sequence[str]) -> list[str]:
    """Return a name for each side: its machine, if there are several machines and each has one value on all
    its sides; otherwise the side's label.
    """
    names = _machine_names(result)
    values_of: dict[str, set[str]] = {}
    for name, value in zip(names, values, strict=True):
        values_of.setdefault(name, set()).add(value)
    if len(values_of) < 2 or any(len(values) > 1 for values in values_of.values()):
        return [side.label for side in result.sides]
    return names


def doubtful_sides(result: Comparison) -> str | None:
    """Return how many sides are doubtful or worse, in words; None if no side is."""
    doubtful = sum(is_doubt(side.worst_mark) for side in result.sides)
    of = (
        f"{doubtful} of {len(result.sides)} sides {'is' if doubtful == 1 else 'are'} marked doubtful or "
        f"invalid"
    )
    return f"{of}, so the difference may come from how they were measured." if doubtful else None


def folded_notes(result: Comparison) -> list[str]:
    """Return a line for each table that the terminal leaves out."""
    names = [name for name in result.settings if name not in CONDITION]
    more = f" and {len(names) - SETTINGS_NAMED} more" if len(names) > SETTINGS_NAMED else ""
    settings = f"{SETTINGS}: {', '.join(names[:SETTINGS_NAMED])}{more}."
    settings = settings if names else "Only the settings that name the sides differ."
    return [settings, *(note for part in parts_of(result) for note in part.notes())]


def _interval(row: QuantileDifference) -> str:
    if row.p_different is None:
        return NONE
    low, high = ("no limit" if ns is None else _signed(ns) for ns in (row.low_ns, row.high_ns))
    return f"{low} to {high}"


def _shows(row: QuantileDifference, result: Comparison) -> str:
    """Return the finding for one quantile, in a few words."""
    shown, within = finding(row, alpha=result.alpha), f"{result.within_ns / 1_000:g} us"
    if shown is ComparisonFinding.UNKNOWN:
        return "no interval"
    if shown is ComparisonFinding.NOT_SHOWN:
        return "nothing shown"
    if shown is ComparisonFinding.SAME:
        return f"the same within {within}"
    name = word(shown, repeated=row.repeated)
    beyond = row.p_not_beyond is not None and row.p_not_beyond < result.alpha
    return f"{name} by > {within}" if beyond else name


def _missing(quantiles: Sequence[QuantileDifference]) -> list[str]:
    """Return the reasons for missing intervals, one per line."""
    sides: dict[tuple[str, str], list[str]] = {}
    for row in quantiles:
        if row.no_interval is not None:
            sides.setdefault((row.quantile, row.no_interval), []).append(row.side)
    every = len({row.side for row in quantiles})
    places: dict[tuple[str, str], list[str]] = {}
    for (quantile, why), labels in sides.items():
        where = "" if len(labels) == every else f" for {'; '.join(labels)}"
        places.setdefault((why, where), []).append(quantile)
    return [f"No interval{whose} at {', '.join(names)}: {why}." for (why, whose), names in places.items()]


def _unit_notes(tested: Sequence[QuantileDifference]) -> list[str]:
    """Return notes on the data behind the intervals."""
    notes: list[str] = []
    repeated = [row for row in tested if row.repeated]
    if repeated:
        numbers = sorted({len(runs) for row in repeated for runs in (row.side_runs_ns, row.baseline_runs_ns)})
        runs = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        paired = all(row.paired for row in repeated)
        intervals = (
            "The intervals are calculated from the pairs of runs"
            if paired
            else "The intervals are calculated from the runs (Welch), which must be independent,"
        )
        means = f"Each value is the mean of {runs} runs per side"
        notes.append(f"{DIFFERENCES}. {means}. {intervals} and include the width of the bins.")
    single = any(len(row.side_runs_ns) == len(row.baseline_runs_ns) == 1 for row in tested)
    uneven = any(not row.repeated and len(row.side_runs_ns) != len(row.baseline_runs_ns) for row in tested)
    endless = any(row.low_ns is None or row.high_ns is None for row in tested)
    within = "The intervals cover the variation within a run, not the variation from run to run."
    assumed = (
        "rtgauge assumes that a single run varies like the runs of the other side; it has not measured this."
    )
    few = "no limit: too few independent samples lie beyond that quantile; measure for longer."
    return notes + applying(
        (single, f"{DIFFERENCES}, between two single runs. {within}"),
        (uneven, f"{DIFFERENCES}; {assumed}"),
        (endless, few),
    )


def quantile_grid(result: Comparison) -> Table:
    """Return the table of quantile differences, with intervals and findings."""
    confidence = f"{(1 - result.alpha) * 100:g} % interval"
    rows: list[list[str]] = []
    notes: list[str] = []
    for row in result.quantiles:
        ours = us(row.side_ns, lower_bound=row.side_is_at_least)
        theirs = us(row.baseline_ns, lower_bound=row.baseline_is_at_least)
        difference = NONE if row.difference_ns is None else _signed(row.difference_ns)
        statistics = [_interval(row), _probability(row.p_different), _shows(row, result)]
        rows.append([row.side, row.quantile, ours, theirs, difference, *statistics])
    notes += _missing(result.quantiles)
    tested = [row for row in result.quantiles if row.p_different is not None]
    if tested:
        notes += _unit_notes(tested)
        notes.append(
            f"p and the findings allow for all {len(tested)} comparisons (Holm's correction); the intervals "
            "do not."
        )
    wide = [row for row in tested if row.bin_ns > result.within_ns]
    if wide:
        where = ", ".join(quantile for quantile in QUANTILES if any(row.quantile == quantile for row in wide))
        widest = format_time(max(row.bin_ns for row in wide))
        bins = f"At {where}, histogram bins are up to {widest} wide"
        within = f"within {result.within_ns / 1_000:g} us"
        notes.append(f"{bins}, so this comparison cannot show that two sides are the same {within}.")
    if any(finding(row, alpha=result.alpha) is ComparisonFinding.NOT_SHOWN for row in tested):
        notes.append(
            f"nothing shown: the sides may still differ by more than {result.within_ns / 1_000:g} us; longer "
            "or more runs may show it."
        )
    if any(row.side_is_at_least or row.baseline_is_at_least for row in result.quantiles):
        notes.append("≥: samples lie above the histogram, so the value may be larger.")
    figures = numbers("side", "baseline", "difference", confidence, "p")
    columns = [*texts("", "quantile"), *figures, *texts("what it shows")]
    single_pair = len({(row.side, row.baseline) for row in result.quantiles}) == 1
    name = [columns[0].title] if single_pair else []  # the title of the page names it
    columns = ranked(columns, "p", confidence, "difference", *name, "baseline")
    return Table("Differences of quantiles", columns, rows, notes)


def grids(result: Comparison) -> list[Table]:
    """Return a comparison's tables in order, the folded ones last."""
    note = emulated_note(result)
    tables = [quantile_grid(result)] if result.quantiles else []
    tables.append(figures_grid(result))
    if note is not None:
        tables[0].notes.append(note)
    added = [table for part in parts_of(result) for table in part.tables(result)]
    last = [settings_grid(result), *(table for table in added if table.folded)]
    return [*tables, *(table for table in added if not table.folded), *last]
