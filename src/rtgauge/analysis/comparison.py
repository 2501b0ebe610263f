# SPDX-License-Identifier: MIT
"""Compares sides by figures, settings and quantile differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtgauge.analysis.comparison_conclusion import conclude, repeat_command, undetermined, worse
from rtgauge.analysis.comparison_document import Comparison, QuantileDifference, SideFigures
from rtgauge.analysis.differing_settings import differences
from rtgauge.analysis.quantile_difference import (
    QUANTILES,
    Interval,
    RunFigures,
    between_pairs,
    between_runs,
    between_two_runs,
    holm,
    typical_ns,
)
from rtgauge.analysis.quantile_interval import too_few_beyond, why_no_interval
from rtgauge.analysis.sides import Side
from rtgauge.record.alternation import alternation_of
from rtgauge.record.histogram import lower_ns, signed_bin_of, upper_ns
from rtgauge.record.quantiles import field_of, share_of


@dataclass(frozen=True)
class ComparisonOptions:
    """`alpha`: the level of every test. `within_ns`: a difference up to this counts as the same. `intervals`:
    whether to estimate intervals.
    """

    alpha: float = 0.05
    within_ns: int = 2_000
    intervals: bool = True


def _finding_text(
    corrected: tuple[float, float, float], options: ComparisonOptions, row: QuantileDifference
) -> str:
    different, not_within, not_beyond = corrected
    within = f"{options.within_ns / 1_000:g} us"
    where = row.quantile if row.repeated else f"{row.quantile} in these runs"
    if not_within < options.alpha:
        return f"the same within {within} at {where}"
    if not_beyond < options.alpha:
        return f"differs by more than {within} at {where}"
    if different < options.alpha:
        return f"differs at {where}, but perhaps by less than {within}"
    return f"does not clearly differ at {where}, but may differ by more than {within}"


def _why_no_interval(side: Side, quantile: str, *, alone: bool) -> str | None:
    """Return why there can be no interval; None if there can be one. `alone`: each side has one run."""
    name, share = field_of(quantile), share_of(quantile)
    if any(name in run.figures.lower_bounds for run in side.runs):
        return "the quantile lies beyond the end of a histogram"
    if alone:
        return why_no_interval(side.window_counts, share)
    why = too_few_beyond(min(run.figures.count for run in side.runs), share)
    return why if why is None or len(side.runs) == 1 else f"{why} in each run"


def _figures(side: Side, quantile: str) -> tuple[list[int], int]:
    """Return the quantile of each run, and their geometric mean. If a run has only a bound, return the
    quantile of all runs together instead of the mean.
    """
    name = field_of(quantile)
    runs_ns = [ns for run in side.runs if (ns := getattr(run.figures, name)) is not None]
    if any(name in run.figures.lower_bounds for run in side.runs):
        return runs_ns, getattr(side.filled, name)
    return runs_ns, typical_ns(runs_ns)


def _is_paired(side: Side, baseline: Side) -> bool:
    """Return whether both sides were measured alternately in one record, in several complete pairs."""
    return (
        side.record is baseline.record
        and alternation_of(side.record.run) is not None
        and len(side.runs) > 1
        and [run.number for run in side.runs] == [run.number for run in baseline.runs]
    )


def _bin_width(side: Side, ns: int) -> int:
    """Return the width (ns) of a value's bin, or the tool's resolution if that is wider."""
    bin_number = signed_bin_of(ns)
    return max(int(upper_ns(bin_number) - lower_ns(bin_number)) + 1, side.resolution_ns)


def _row(side: Side, baseline: Side, quantile: str, options: ComparisonOptions) -> QuantileDifference:
    """Return the figures of one quantile, without an interval."""
    name = field_of(quantile)
    of_side, side_ns = _figures(side, quantile)
    of_baseline, baseline_ns = _figures(baseline, quantile)
    open_side, open_baseline = name in side.filled.lower_bounds, name in baseline.filled.lower_bounds
    reasons: dict[str, list[str]] = {}
    for each in (side, baseline):
        why = _why_no_interval(each, quantile, alone=len(of_side) == len(of_baseline) == 1)
        if why is not None:
            reasons.setdefault(why, []).append(each.label)
    texts = [why if len(labels) > 1 else f"{labels[0]}: {why}" for why, labels in reasons.items()]
    return QuantileDifference(
        side=side.label, baseline=baseline.label, quantile=quantile, side_runs_ns=of_side,
        baseline_runs_ns=of_baseline, paired=_is_paired(side, baseline),
        side_ns=side_ns, side_is_at_least=open_side, baseline_ns=baseline_ns,
        baseline_is_at_least=open_baseline,
        difference_ns=None if open_side or open_baseline else side_ns - baseline_ns,
        bin_ns=max(_bin_width(side, side_ns), _bin_width(baseline, baseline_ns)),
        no_interval="intervals were switched off" if not options.intervals else "; ".join(texts) or None,
        says=f"no interval at {quantile}",
    )  # fmt: skip


def _interval(side: Side, baseline: Side, row: QuantileDifference, options: ComparisonOptions) -> Interval:
    if len(row.side_runs_ns) == len(row.baseline_runs_ns) == 1:
        difference = between_two_runs(side.window_counts, baseline.window_counts, share_of(row.quantile))
    else:
        between = between_pairs if row.paired else between_runs
        difference = between(_bounds(side, row.side_runs_ns), _bounds(baseline, row.baseline_runs_ns))
    return difference.interval(alpha=options.alpha, within_ns=options.within_ns)


def _bounds(side: Side, runs_ns: Sequence[int]) -> RunFigures:
    ends = [side.bin_ends_ns(ns) for ns in runs_ns]
    return RunFigures([low for low, _ in ends], [high for _, high in ends])


def quantile_differences(
    pairs: Sequence[tuple[Side, Side]],
    options: ComparisonOptions,
    progress: Callable[[int, int], None] | None = None,
) -> list[QuantileDifference]:
    """Return each quantile of each side minus its baseline's, with an interval if possible.

    `pairs`: (side, its baseline). Calls `progress(done, total)` before each pair.
    """
    rows: list[QuantileDifference] = []
    intervals: list[tuple[QuantileDifference, Interval]] = []
    for number, (side, baseline) in enumerate(pairs):
        if progress is not None:
            progress(number, len(pairs))
        if not side.filled.count or not baseline.filled.count:
            continue
        for quantile in QUANTILES:
            row = _row(side, baseline, quantile, options)
            if row.no_interval is None:
                intervals.append((row, _interval(side, baseline, row, options)))
            rows.append(row)
    names = ("p_different", "p_not_within", "p_not_beyond")
    columns = [holm([getattr(interval, name) for _, interval in intervals]) for name in names]
    for (row, interval), corrected in zip(intervals, zip(*columns, strict=True), strict=True):
        row.low_ns, row.high_ns = interval.low_ns, interval.high_ns
        row.p_different, row.p_not_within, row.p_not_beyond = corrected
        row.says = _finding_text(corrected, options, row)
    return rows


def compare(
    sides: Sequence[Side],
    pairs: Sequence[tuple[Side, Side]],
    options: ComparisonOptions,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare the sides.

    `pairs`: (side, its baseline). Calls `progress("intervals", done, total)`.
    """

    def count_pairs(completed: int, total: int) -> None:
        if progress is not None:
            progress("intervals", completed, total)

    baselines = {side.label: baseline.label for side, baseline in pairs}
    quantiles = quantile_differences(pairs, options, count_pairs)
    alpha, within_ns = options.alpha, options.within_ns
    loads = {side.traits.get("load") or None for side in sides}
    load = loads.pop() if len(loads) == 1 else None
    concluded = conclude(quantiles, alpha=alpha, within_ns=within_ns, load=load, repeat=repeat_command(pairs))
    return Comparison(
        quantity=sides[0].quantity,
        alpha=alpha,
        within_ns=within_ns,
        outcome=concluded.outcome,
        conclusion=concluded.text,
        values=concluded.values,
        next=concluded.next,
        worse=worse(quantiles, alpha=alpha),
        undetermined=undetermined([side.label for side, _ in pairs], quantiles),
        sides=[
            SideFigures(
                label=side.label, record=str(side.record.path),
                records=[str(record.path) for record in side.records], runs=len(side.runs),
                steps=[step.id for step in side.steps], traits=side.traits,
                baseline=baselines.get(side.label),
                missed=side.merged.missed, worst_mark=side.worst, measured=side.plain, filled=side.filled,
            )
            for side in sides
        ],
        settings=differences(sides),
        quantiles=quantiles,
    )  # fmt: skip
