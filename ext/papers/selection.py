# SPDX-License-Identifier: MIT
"""Selects the side nearest to a baseline by the chi-square test of Delgado and Choi (2020, sec. IV)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from rtgauge.analysis.quantile_difference import QUANTILES
from rtgauge.analysis.sides import Side
from rtgauge.record.model import Distribution, Model
from rtgauge.record.quantiles import field_of
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import NONE, whole
from rtgauge.units import plural
from rtgauge_ext.papers.chi_square import ChiSquareTest, microseconds, paper_test

SELECTION = "Selection (chi-square)"


class ChiSquarePair(Model):
    """A comparison of one side with its baseline."""

    side: str
    baseline: str
    paper: ChiSquareTest


class Selection(Model):
    """The side nearest to a baseline by the paper's test; `best` is None if every side was rejected or
    could not be tested.
    """

    baseline: str
    best: str | None
    rejected_but_lower: list[str] = Field(
        default_factory=list[str],
        description="sides that differ significantly from the baseline, and have lower values than `best` at "
        "every quantile, or than the baseline if `best` is None",
    )


def tested_pair(side: Side, baseline: Side, *, alpha: float) -> ChiSquarePair:
    """Test a side against its baseline at the level `alpha`."""
    side_us, baseline_us = (microseconds(*each.histogram) for each in (side, baseline))
    return ChiSquarePair(
        side=side.label,
        baseline=baseline.label,
        paper=paper_test(side_us, baseline_us, alpha=alpha),
    )


def selections_of(pairs: Sequence[ChiSquarePair], sides: Mapping[str, Distribution]) -> list[Selection]:
    """Return the selection of each baseline. `sides`: label -> figures with missed activations filled in."""
    selections: list[Selection] = []
    for baseline in dict.fromkeys(pair.baseline for pair in pairs):
        tests = {pair.side: pair.paper for pair in pairs if pair.baseline == baseline}
        rejected = [side for side, test in tests.items() if test.rejected]
        kept = {
            side: test.statistic
            for side, test in tests.items()
            if test.statistic is not None and side not in rejected
        }
        best = min(kept, key=lambda label: kept[label], default=None)
        lower = [side for side in rejected if _is_lower(sides[side], sides[best or baseline])]
        selections.append(Selection(baseline=baseline, best=best, rejected_but_lower=lower))
    return selections


def _is_lower(figures: Distribution, than: Distribution) -> bool:
    """Return whether every quantile of `figures` is lower than in `than`."""
    if not figures.count or not than.count or figures.lower_bounds:
        return False
    names = map(field_of, QUANTILES)
    return all(getattr(figures, name) < getattr(than, name) for name in names)


def _test(test: ChiSquareTest) -> list[str]:
    if test.cannot is not None:
        return [NONE, NONE, NONE, "cannot be tested"]
    assert test.statistic is not None and test.critical is not None  # noqa: S101 - set together
    figures = [f"{test.statistic:.2f}", whole(test.degrees_of_freedom), f"{test.critical:.3f}"]
    return [*figures, "rejected" if test.rejected else "not rejected"]


def selection_notes(selections: Sequence[Selection], pairs: Sequence[ChiSquarePair]) -> list[str]:
    """Return a sentence for each selection with what it chose."""
    notes: list[str] = []
    for chosen in selections:
        tests = {pair.side: pair.paper for pair in pairs if pair.baseline == chosen.baseline}
        statistics = {side: test.statistic for side, test in tests.items() if test.statistic is not None}
        least, several = min(statistics, key=lambda side: statistics[side], default=None), len(statistics) > 1
        if least is None:
            nearest = f"none of the sides could be tested against {chosen.baseline}"
        elif chosen.best is None:
            nearest = f"every side differs significantly from {chosen.baseline}; the nearest is {least}"
            nearest = nearest if several else f"{least} differs significantly from {chosen.baseline}"
        else:
            nearest = f"the side nearest to {chosen.baseline} is {chosen.best}"
            same = f"{chosen.best} does not differ significantly from {chosen.baseline}"
            nearest = nearest if several else same
        lower = ", ".join(chosen.rejected_but_lower)
        but = "these sides differ significantly, but are lower at every quantile"
        lower = f"; {but}: {lower}" if lower else ""
        notes.append(f"By the convention of Delgado and Choi (2020), {nearest}{lower}.")
    return notes


def selection_grid(pairs: Sequence[ChiSquarePair], selections: Sequence[Selection], alpha: float) -> Table:
    """Return the chi-square tests against the baseline, and the selected side."""
    several = len({pair.baseline for pair in pairs}) > 1
    rows: list[list[str]] = []
    for pair in pairs:
        name = f"{pair.side} : {pair.baseline}" if several else pair.side
        rows.append([name, *_test(pair.paper)])
    notes: list[str] = []
    for pair in pairs:
        if pair.paper.cannot is not None:
            notes.append(f"{pair.side}: {pair.paper.cannot}.")
        if pair.paper.empty_bins_merged:
            bins = plural(pair.paper.empty_bins_merged, "empty bin")
            notes.append(
                f"{pair.side}: {bins} of the baseline "
                f"{'was' if pair.paper.empty_bins_merged == 1 else 'were'} merged with the next lower bin "
                "that has samples."
            )
    notes += selection_notes(selections, pairs)
    notes += [
        "The test uses bins of 1 us, reshaped to the baseline's range, with one degree of freedom per bin.",
        (
            "Its input is in percent, so the critical value is a fixed threshold for the size of a "
            "difference, without a significance level."
        ),
    ]
    figures = numbers("chi-square", "DOF", f"critical ({alpha:g})")
    columns = [*texts(""), *figures, *texts("result")]
    return Table(SELECTION, columns, rows, list(dict.fromkeys(notes)), folded=True)


def folded_selection(pairs: Sequence[ChiSquarePair], selections: Sequence[Selection]) -> list[str]:
    """Return what stands for the table if it is left out."""
    if len(selections) == 1:
        notes = selection_notes(selections, pairs)
        return [f"{SELECTION}: {note[:1].lower()}{note[1:]}" for note in notes]
    rejected = [pair.side for pair in pairs if pair.paper.rejected]
    tested = sum(pair.paper.cannot is None for pair in pairs)
    whose = f": {'; '.join(rejected)}" if rejected else ""
    differ = "differs" if len(rejected) == 1 else "differ"
    share = f"{len(rejected)} of {plural(tested, 'side')} {differ} significantly from the baseline"
    return [f"{SELECTION}: by the convention of Delgado and Choi (2020), {share}{whose}."]
