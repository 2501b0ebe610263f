# SPDX-License-Identifier: MIT
"""Computes the highest frequency of a task: tables 4 to 9 of Brown & Martin (2010) for any records.

A task of period P is in time if its lateness is at most a fraction of P (half of P in the paper). So a
lateness L allows the frequency fraction / L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from pydantic import Field

from rtgauge.analysis.comparison_scope import timing_scopes
from rtgauge.analysis.quantile_interval import cautious_error_of_sum
from rtgauge.analysis.sides import Scope, Side, sides_of
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.model import Model, Severity
from rtgauge.record.reader import Record
from rtgauge.record.summary import nearest_rank
from rtgauge_ext.papers.frequency.frequency_options import HALF, FrequencyOptions
from rtgauge_ext.papers.frequency.order_statistics import Quantile, Ranked, quantile, ranked
from rtgauge_ext.papers.frequency.sustained import SustainedCurve
from rtgauge_ext.signal.period_searches import without_searches

HARDNESS = (Fraction(95, 100), Fraction(1))
"""The two shares of activations in time that the paper uses."""


def highest_hz(lateness_ns: float | None, fraction: Fraction = HALF) -> float | None:
    """Return the highest frequency (Hz) whose period, times `fraction`, is at least the lateness.

    An unlimited lateness (None) gives 0.0. A lateness of 0 or less limits nothing and gives None.
    """
    if lateness_ns is None:
        return 0.0
    return None if lateness_ns <= 0 else float(fraction * 10**9) / lateness_ns


class Limit(Model):
    """A quantile of the lateness, and the frequency that this allows. Bounds are one-sided."""

    hardness: float
    """Share of activations that are at most this late: 0.95 or 1."""
    ns: int | None
    """Largest lateness of this share of activations; None if too many answers were lost to give a value."""
    low_ns: int | None
    """Lower bound of ns at the given confidence; if hardness is 1, the largest measured lateness."""
    high_ns: int | None
    """Upper bound of ns at the given confidence; None if hardness is 1 or too little was measured."""
    hz: float | None
    """Highest frequency that ns allows; None if ns does not limit the frequency."""
    at_most: bool = False
    """Whether the value lies outside the histogram; then the lateness is at most ns, and the frequency is at
    least hz.
    """
    low_hz: float
    """Frequency that high_ns allows; 0 if even the lowest frequency is not certain."""
    high_hz: float | None


class ConditionRow(Model):
    """A line of the tables: one condition of one record."""

    label: str
    record: str
    steps: list[str]
    traits: dict[str, str]
    samples: int
    missed: int
    """The number of missed activations or lost answers; a lost answer counts as later than any other sample.
    """
    median_ns: int | None
    """Median of the lateness, which is negative for early activations; `limits` use its absolute value."""
    median_at_most: bool = False
    """Whether the median lies outside the histogram; then it may be any value up to median_ns."""
    limits: list[Limit]
    supposes_independence: bool = False
    """Whether the bounds assume that samples are independent; they do if there is only one window, which
    cannot show dependence.
    """
    interval_ns: int | None
    """The period of the measurement; None if it was random or is unknown."""
    worst_mark: Severity | None = None

    def limit(self, hardness: Fraction) -> Limit:
        """Return the limit at this share."""
        return next(limit for limit in self.limits if limit.hardness == float(hardness))


class FrequencyTable(Model):
    """The lines of one quantity: response tasks (the paper's tables 4, 5, 8), periodic tasks (6, 7, 9), or
    wakeup.
    """

    title: str
    probe: str
    metric: str
    fraction: float
    confidence: float
    lines: list[ConditionRow]


def limit_of(quantile_ns: Quantile, share: Fraction, fraction: Fraction = HALF) -> Limit:
    """Return a quantile of the lateness with the frequency that it allows."""
    return Limit(
        hardness=float(share),
        ns=quantile_ns.ns,
        low_ns=quantile_ns.low_ns,
        high_ns=quantile_ns.high_ns,
        at_most=quantile_ns.at_most,
        hz=highest_hz(quantile_ns.ns, fraction),
        low_hz=highest_hz(quantile_ns.high_ns, fraction) or 0.0,
        high_hz=highest_hz(quantile_ns.low_ns, fraction),
    )


def _interval(side: Side) -> int | None:
    parameters = side.steps[0].parameters | side.steps[0].key.parameters.values
    interval, period = parameters.get("interval_ns"), parameters.get("period_ns")
    if isinstance(interval, int) and interval > 0:
        return interval
    return period // 2 if isinstance(period, int) and period > 1 else None  # the task acts twice per period


def _rank_error(side: Side, ns: int, share: Fraction, confidence: float) -> float | None:
    """Return the distance in ranks from a quantile to its bound at `confidence` (one-sided); None for a
    single run with one window. It follows from how the share of samples above `ns` varies between runs, or
    between the windows of a single run.
    """
    from scipy.special import stdtrit

    allowed = float(1 - share)
    if len(side.runs) > 1:
        above = [float(run.counts[np.abs(side.values_ns(run.bins)) > ns].sum()) for run in side.runs]
        every = [float(run.counts.sum()) for run in side.runs]
        scores = np.array(above) - allowed * np.array(every)
        error, freedom = math.sqrt(len(scores)) * float(np.std(scores, ddof=1)), len(scores) - 1
    else:
        windows = side.window_counts
        if len(windows.counts) < 2:
            return None
        beyond = windows.counts[:, np.abs(windows.values_ns) > ns].sum(axis=1)
        error, freedom = cautious_error_of_sum(beyond - allowed * windows.counts.sum(axis=1))
    # Two-sided, because numbers of late samples in bursts are skewed.
    return error * float(stdtrit(freedom, (1 + confidence) / 2))


def _limits(side: Side, values: Ranked, options: FrequencyOptions) -> tuple[list[Limit], bool]:
    """Return the limits at each share, and whether their bounds assume independent samples."""
    limits: list[Limit] = []
    supposed = False
    for share in HARDNESS:
        error = None
        estimate = values.largest_at(nearest_rank(share, values.count))
        if share < 1 and estimate is not None:
            error = _rank_error(side, estimate, share, options.confidence)
            supposed = supposed or error is None
        bounded = quantile(values, share, options.confidence, rank_error=error or 0.0)
        limits.append(limit_of(bounded, share, options.fraction))
    return limits, supposed


def line_of(side: Side, options: FrequencyOptions) -> ConditionRow | None:
    """Return the table line of one side; None if the side has no samples."""
    values = ranked(side.merged, resolution_ns=side.resolution_ns, absolute=True)
    if not values.count:
        return None
    signed = ranked(side.merged, resolution_ns=side.resolution_ns)
    middle = nearest_rank(Fraction(1, 2), signed.count)
    limits, supposed = _limits(side, values, options)
    return ConditionRow(
        label=side.label,
        record=str(side.record.path),
        steps=[step.id for step in side.steps],
        traits=side.traits,
        samples=values.count,
        missed=side.merged.missed,
        median_ns=signed.largest_at(middle),
        median_at_most=not signed.is_known(middle),
        limits=limits,
        supposes_independence=supposed,
        interval_ns=_interval(side),
        worst_mark=side.worst,
    )


def _sides(records: Sequence[Record], scopes: Sequence[Scope]) -> list[Side]:
    """Return the sides of one quantity, role by role. If there are several roles, labels name them."""
    every: list[Side] = []
    for scope in scopes:
        sides = sides_of(records, scope, force=True, alike=False)
        if len(scopes) > 1:
            role = scope.role
            if scope.probe is not None:
                role = PROBES[scope.probe].shown.roles.get(role or "", role)
            sides = [replace(side, label=f"{side.label}, {role}") for side in sides]
        every += sides
    return every


def gather(records: Sequence[Record], options: FrequencyOptions | None = None) -> list[FrequencyTable]:
    """Return one table for each quantity that can be compared with a period. A search over the period counts
    only with its longest period.

    Raises RecordError for a damaged record.
    """
    options = options or FrequencyOptions()
    records = [without_searches(record) for record in records]
    scopes: dict[tuple[str, str], list[Scope]] = {}
    for scope in timing_scopes(records):
        scopes.setdefault((scope.probe or "", scope.metric or ""), []).append(scope)
    tables: list[FrequencyTable] = []
    for (probe, metric), of_quantity in scopes.items():
        sides = _sides(records, of_quantity)
        table = FrequencyTable(
            title=of_quantity[0].title.partition(",")[0],
            probe=probe,
            metric=metric,
            fraction=float(options.fraction),
            confidence=options.confidence,
            lines=[line for line in (line_of(side, options) for side in sides) if line is not None],
        )
        if table.lines:
            tables.append(table)
    return tables


class FrequencyDocument(Model):
    """The tables of latency, response and jitter, and the searches over the period."""

    tables: list[FrequencyTable] = Field(default_factory=list[FrequencyTable])
    sustained: list[SustainedCurve] = Field(default_factory=list[SustainedCurve])
