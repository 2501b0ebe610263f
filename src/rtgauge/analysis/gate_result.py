# SPDX-License-Identifier: MIT
"""What a gate decides from its record, as one document."""

from __future__ import annotations

import math
import shlex
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.analysis import gate
from rtgauge.analysis.gate_pairs import CannotGate, GateSeries, gate_series, primary
from rtgauge.analysis.gate_wish import GateWish, wish_of
from rtgauge.errors import (
    EXIT_CANNOT_MEASURE,
    EXIT_CANNOT_TELL,
    EXIT_FAILS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    InputError,
)
from rtgauge.record.alternation import Alternation, alternation_of
from rtgauge.record.strict_model import Model
from rtgauge.units import plural

if TYPE_CHECKING:
    from rtgauge.record.reader import Record

SPARE = 3
"""For so many pairs that are wanted, one more is measured in the place of one that does not count."""


class GateOutcome(StrEnum):
    """The answers of a gate."""

    NO_WORSE = "no worse"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell yet"
    NOT_MEASURED = "could not measure"
    UNFINISHED = "unfinished"


STATUS = {
    GateOutcome.NO_WORSE: EXIT_OK,
    GateOutcome.WORSE: EXIT_FAILS,
    GateOutcome.NOT_MEASURED: EXIT_CANNOT_MEASURE,
    GateOutcome.CANNOT_TELL: EXIT_CANNOT_TELL,
    GateOutcome.UNFINISHED: EXIT_INTERRUPTED,
}


class PairFigures(Model):
    """One pair of a series."""

    pair: int
    first: str = Field(description="baseline or candidate: which was measured first")
    baseline_ns: int | None
    candidate_ns: int | None
    change: float | None = Field(description="candidate / baseline - 1; None: the pair does not count")
    why_not: str | None = Field(default=None, description="why the pair does not count")


class SeriesChange(Model):
    """The change of one series: the primary one decides, the others are not corrected for their number."""

    series: str
    pairs: int = Field(description="that count")
    change: float | None = Field(description="relative, from the geometric mean of the pairs: 0.1 is +10 %")
    low: float | None = Field(default=None, description="of its interval at 95 % over all looks together")
    high: float | None = None
    spread: float | None = Field(
        default=None, description="relative standard deviation between the runs of a side"
    )


class GateResult(Model):
    """The document of `rtgauge gate --json`."""

    outcome: GateOutcome
    status: int = Field(description="the exit status")
    conclusion: str
    record: str
    baseline: str
    candidate: str
    quantile: str
    larger_than: float
    max_pairs: int
    series: str | None = Field(default=None, description="the primary series, which decides")
    primary: SeriesChange | None = None
    found: float | None = Field(
        default=None, description="the least change that so many pairs find in nine of ten cases"
    )
    pairs_needed: int | None = Field(
        default=None, description="how many pairs find the wanted change in nine of ten cases; None: too many"
    )
    pairs: list[PairFigures] = Field(default_factory=list[PairFigures], description="of the primary series")
    others: list[SeriesChange] = Field(default_factory=list[SeriesChange])
    left_out: list[str] = Field(default_factory=list[str], description="what could not be measured, and why")
    accepted: str | None = Field(
        default=None, description="why a change for the worse was accepted, or muted; the status is then 0"
    )
    next: str | None = Field(default=None, description="the command that would settle it")
    next_pairs: int = Field(default=0, exclude=True)

    @staticmethod
    def of(record: Record) -> GateResult:
        """The decision of a gate's record so far. Raises InputError for the record of another run."""
        wish, alternation = wish_of(record.run), alternation_of(record.run)
        if wish is None or alternation is None:
            raise InputError(f"{record.path} is not the record of a gate")
        empty = GateResult(
            outcome=GateOutcome.NOT_MEASURED,
            status=EXIT_CANNOT_MEASURE,
            conclusion="",
            record=str(record.path),
            baseline=alternation.names[0],
            candidate=alternation.names[1],
            quantile=wish.quantile,
            larger_than=wish.larger_than,
            max_pairs=wish.max_pairs,
            left_out=[f"{left.what}: {left.reason}" for left in record.run.left_out],
        )
        try:
            series = gate_series(record, wish)
            chosen = primary(series, wish)
        except CannotGate as error:
            return empty.ending(GateOutcome.NOT_MEASURED, str(error))
        decision = _decide(chosen, wish)
        with_figures = empty.model_copy(
            update={
                "series": chosen.name,
                "primary": _change(chosen, wish),
                "pairs": _figures(chosen),
                "others": [_change(each, wish) for each in series if each is not chosen],
                "found": _found(decision),
                "pairs_needed": _needed(decision, wish),
            }
        )
        return _concluded(with_figures, record, chosen, decision, wish, alternation)

    def ending(self, outcome: GateOutcome, conclusion: str, **more: object) -> GateResult:
        """This document with its answer."""
        update = {"outcome": outcome, "status": STATUS[outcome], "conclusion": conclusion, **more}
        return self.model_copy(update=update)


def percent(change: float) -> str:
    """A relative change with its sign: "+12.3 %"."""
    return f"{change * 100:+.1f} %"


def _decide(series: GateSeries, wish: GateWish) -> gate.Decision:
    ratios = [pair.log_ratio for pair in series.counted]
    return gate.decide(ratios, larger_than=wish.larger_than, max_pairs=wish.max_pairs)


def _change(series: GateSeries, wish: GateWish) -> SeriesChange:
    decision = _decide(series, wish)
    return SeriesChange(
        series=series.name,
        pairs=decision.pairs,
        change=decision.change if decision.pairs else None,
        low=decision.low,
        high=decision.high,
        spread=decision.spread,
    )


def _figures(series: GateSeries) -> list[PairFigures]:
    return [
        PairFigures(
            pair=pair.number,
            first=("baseline", "candidate")[pair.first],
            baseline_ns=pair.values_ns[0],
            candidate_ns=pair.values_ns[1],
            change=math.expm1(pair.log_ratio) if pair.why_not is None else None,
            why_not=pair.why_not,
        )
        for pair in series.pairs
    ]


def _found(decision: gate.Decision) -> float | None:
    if decision.spread is None or decision.pairs < gate.BLOCK:
        return None
    return gate.detectable(decision.spread, decision.pairs)


def _needed(decision: gate.Decision, wish: GateWish) -> int | None:
    return None if decision.spread is None else gate.pairs_needed(decision.spread, wish.larger_than)


def _interval(decision: gate.Decision) -> str:
    change = percent(decision.change)
    if decision.low is None or decision.high is None:
        return change
    return f"{change} (95 %: {percent(decision.low)} to {percent(decision.high)})"


def _concluded(
    result: GateResult,
    record: Record,
    series: GateSeries,
    decision: gate.Decision,
    wish: GateWish,
    alternation: Alternation,
) -> GateResult:
    baseline, candidate = alternation.names
    wanted = percent(wish.larger_than)
    seen = f"{wish.quantile} of {series.name}: {_interval(decision)} in {plural(decision.pairs, 'pair')}"
    if decision.outcome is gate.Outcome.WORSE:
        return result.ending(GateOutcome.WORSE, f"{candidate} is worse than {baseline}. {seen}")
    if decision.outcome is gate.Outcome.PASS:
        return result.ending(
            GateOutcome.NO_WORSE, f"{candidate} is no worse than {baseline} by {wanted}. {seen}"
        )
    if decision.outcome is gate.Outcome.CANNOT_TELL:
        return result.ending(
            GateOutcome.CANNOT_TELL, f"cannot tell yet. {seen}", next=_larger_gate(record, result)
        )
    planned, aside = len(series.pairs), [pair for pair in series.pairs if pair.why_not is not None]
    limit = wish.max_pairs + wish.max_pairs // SPARE
    look = next(pairs for pairs in gate.looks(wish.max_pairs) if pairs > len(series.counted))
    more = min(look - len(series.counted), limit - planned)
    if more <= 0:
        return result.ending(
            GateOutcome.NOT_MEASURED,
            f"{plural(len(aside), 'pair')} of {planned} do not count: {aside[0].why_not}",
        )
    return result.ending(
        GateOutcome.UNFINISHED,
        f"unfinished after {plural(len(series.counted), 'pair')} that count",
        next=f"rtgauge gate --resume {shlex.quote(str(record.path))}",
        next_pairs=more,
    )


def _larger_gate(record: Record, result: GateResult) -> str:
    """The command of the record with as many pairs as it needs."""
    words = list(record.run.command)
    needed = result.pairs_needed
    if needed is None or needed <= result.max_pairs:
        needed = min(2 * result.max_pairs, gate.MOST_PAIRS)
    for at, word in enumerate(words):
        if word == "--max-pairs":
            del words[at : at + 2]
        elif word.startswith("--max-pairs="):
            del words[at]
    return shlex.join([*words, "--max-pairs", str(needed)])
