# SPDX-License-Identifier: MIT
"""Decides a gate from its record, and defines the document of the result."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from pydantic import Field

from rtgauge.analysis import gate
from rtgauge.analysis.confidence import upper_bound
from rtgauge.analysis.gate_rate import OF_RATIOS, decide_rate, least_alarm
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
from rtgauge.record.model import Exposure, Step, Verdict
from rtgauge.record.reader import Record
from rtgauge.record.strict_model import Model
from rtgauge.units import format_change, format_duration, plural
from rtgauge.verdict.decision import LEAST_FOR_EVERY, judge_metric
from rtgauge.verdict.gate_pairs import CannotGate, GateSeries, gate_series, primary
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge.verdict.run_verdict import exposure_of

SPARE = 3
"""A gate may measure one extra pair for this many requested pairs, to replace a pair that does not count."""
TRIED = 3
"""A gate stops if none of its first pairs counts, up to this many."""


class GateOutcome(StrEnum):
    """The possible answers of a gate."""

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
    first: str = Field(description="which side was measured first: baseline or candidate")
    baseline_ns: int | None = Field(
        description="the baseline's quantile; if a bound decides, its largest value"
    )
    candidate_ns: int | None
    change: float | None = Field(
        description="candidate / baseline - 1; None: the pair does not count, or a bound decides"
    )
    baseline_events: int | None = Field(
        default=None, description="stretches of time in which it exceeded the bound; None if no bound decides"
    )
    candidate_events: int | None = None
    why_not: str | None = Field(default=None, description="why the pair does not count")


class SeriesChange(Model):
    """The change of one series. The primary series decides. The others are not corrected for multiple
    comparisons.
    """

    series: str
    pairs: int = Field(description="how many pairs count")
    change: float | None = Field(
        description="relative change, from the geometric mean of the pairs: 0.1 is +10 %; if a bound "
        "decides, the change of the rate of violations (None: the baseline had none)"
    )
    low: float | None = Field(default=None, description="lower end of its 95 % interval, over all looks")
    high: float | None = None
    spread: float | None = Field(
        default=None,
        description="relative standard deviation between a side's runs; if a bound decides, between their "
        "rates (None below 5 events a run)",
    )


class SideExposure(Model):
    """How much of a side was measured in the pairs that count, and which rate of violations that excludes."""

    side: str
    bound_ns: int = Field(description="the requirement's bound, or the side's largest value")
    exposure: Exposure


class NewCulprit(Model):
    """A culprit that delayed some runs of the candidate and no run of the baseline."""

    culprit: str
    runs: int = Field(description="candidate's runs with a latency in which it took the largest part")
    explained_runs: int = Field(description="how many of the candidate's runs were explained")
    latencies: int
    worst_ns: int


class GateResult(Model):
    """The document of `rtgauge gate --json`."""

    outcome: GateOutcome
    status: int = Field(description="the exit status of the command")
    conclusion: str
    record: str
    baseline: str
    candidate: str
    quantile: str
    larger_than: float
    max_pairs: int
    require: str | None = Field(default=None, description="the bound; how often it is exceeded decides")
    series: str | None = Field(default=None, description="name of the primary series, which decides")
    primary: SeriesChange | None = None
    found: float | None = Field(
        default=None, description="smallest change that this many pairs detect in nine of ten cases"
    )
    pairs_needed: int | None = Field(
        default=None,
        description="how many pairs detect the wanted change in nine of ten cases; None: too many",
    )
    pairs: list[PairFigures] = Field(
        default_factory=list[PairFigures], description="the pairs of the primary series"
    )
    others: list[SeriesChange] = Field(default_factory=list[SeriesChange])
    events_needed: int | None = Field(
        default=None, description="if a bound decides: how many events of the candidate show that it is worse"
    )
    exposure: list[SideExposure] = Field(
        default_factory=list[SideExposure],
        description="each side's exposure in the primary series, the baseline first",
    )
    culprits: list[NewCulprit] = Field(
        default_factory=list[NewCulprit],
        description="culprits that delayed runs of the candidate and no run of the baseline",
    )
    left_out: list[str] = Field(default_factory=list[str], description="what could not be measured, and why")
    accepted: str | None = Field(
        default=None, description="why a change for the worse was accepted or muted; the status is then 0"
    )
    next: str | None = Field(default=None, description="a command that would settle the question")
    next_pairs: int = Field(default=0, exclude=True)

    @staticmethod
    def of(record: Record) -> GateResult:
        """Decide a gate from its record, finished or not. Raises InputError if the record is not a gate's."""
        wish, alternation = wish_of(record.run), alternation_of(record.run)
        if wish is None or alternation is None:
            raise InputError(f"{record.path} is not a gate's record")
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
            require=wish.require,
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
                "pairs": _figures(chosen, wish),
                "others": [_change(each, wish) for each in series if each is not chosen],
                "found": _found(decision, wish),
                "pairs_needed": _needed(decision, wish),
                "events_needed": _events_needed(chosen, decision, wish),
                "exposure": _exposure(record, chosen, wish, alternation),
            }
        )
        return _concluded(with_figures, record, chosen, decision, wish, alternation)

    def ending(self, outcome: GateOutcome, conclusion: str, **more: object) -> GateResult:
        """Return this document with its answer."""
        update = {"outcome": outcome, "status": STATUS[outcome], "conclusion": conclusion, **more}
        return self.model_copy(update=update)

    @property
    def endpoint(self) -> str:
        """What decides, in words: the quantile, or the bound."""
        return self.quantile if self.require is None else self.require


def _decide(series: GateSeries, wish: GateWish) -> gate.Decision:
    if wish.require is None:
        ratios = [pair.log_ratio for pair in series.counted]
        return gate.decide(ratios, larger_than=wish.larger_than, max_pairs=wish.max_pairs)
    events = [pair.events for pair in series.counted]
    return decide_rate(events, larger_than=wish.larger_than, max_pairs=wish.max_pairs)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _change(series: GateSeries, wish: GateWish) -> SeriesChange:
    decision = _decide(series, wish)
    return SeriesChange(
        series=series.name,
        pairs=decision.pairs,
        change=_finite(decision.change) if decision.pairs else None,
        low=_finite(decision.low),
        high=_finite(decision.high),
        spread=decision.spread,
    )


def _figures(series: GateSeries, wish: GateWish) -> list[PairFigures]:
    by_bound = wish.require is not None
    return [
        PairFigures(
            pair=pair.number,
            first=("baseline", "candidate")[pair.first],
            baseline_ns=pair.values_ns[0],
            candidate_ns=pair.values_ns[1],
            change=math.expm1(pair.log_ratio) if pair.why_not is None and not by_bound else None,
            why_not=pair.why_not,
            baseline_events=pair.events[0] if by_bound else None,
            candidate_events=pair.events[1] if by_bound else None,
        )
        for pair in series.pairs
    ]


def _found(decision: gate.Decision, wish: GateWish) -> float | None:
    if decision.spread is None or decision.pairs < gate.BLOCK:
        return None
    return gate.detectable(decision.spread, decision.pairs, _error(wish))


def _needed(decision: gate.Decision, wish: GateWish) -> int | None:
    if decision.spread is None:
        return None
    return gate.pairs_needed(decision.spread, wish.larger_than, _error(wish))


def _error(wish: GateWish) -> float:
    return gate.ALARM if wish.require is None else OF_RATIOS


def _events_needed(series: GateSeries, decision: gate.Decision, wish: GateWish) -> int | None:
    if wish.require is None or decision.pairs < gate.BLOCK:
        return None
    events = [pair.events for pair in series.counted[: decision.pairs]]
    return least_alarm(events, max_pairs=wish.max_pairs)


def _exposure(
    record: Record, series: GateSeries, wish: GateWish, alternation: Alternation
) -> list[SideExposure]:
    found: list[SideExposure] = []
    for name, steps in zip(alternation.names, series.steps, strict=True):
        requirement = _bound(series, steps, wish)
        if requirement is None:
            continue
        exposure = exposure_of(requirement, _judged(record, steps, requirement), record.run)
        if exposure is not None:
            found.append(SideExposure(side=name, bound_ns=requirement.bound_ns, exposure=exposure))
    return found


def _bound(series: GateSeries, steps: Sequence[Step], wish: GateWish) -> Requirement | None:
    """Return the gate's bound or, without one, the side's largest value. A sample limits the share of values
    above its largest value as well as above a bound chosen in advance (Wilks, Determination of sample sizes
    for setting tolerance limits, 1941).
    """
    if wish.require is not None:
        return parse_requirement(wish.require)
    largest_ns = max((step.total.filled.max_ns or 0 for step in steps if step.total is not None), default=0)
    return Requirement(series.name.split("/")[1], largest_ns) if largest_ns > 0 else None


def _judged(record: Record, steps: Sequence[Step], requirement: Requirement) -> list[tuple[Step, Verdict]]:
    return [(step, judge_metric(requirement, step, record.windows(step))) for step in steps]


def _keeps(record: Record, series: GateSeries, decision: gate.Decision, wish: GateWish) -> bool:
    """Return whether the candidate certainly meets the requirement, by its share of violations or because it
    has none.
    """
    if wish.require is None or decision.pairs < gate.BLOCK:
        return False
    requirement = parse_requirement(wish.require)
    evidence = [each.evidence for _, each in _judged(record, series.steps[1], requirement)]
    counts = np.array([(each.get("violations_possible"), each.get("activations")) for each in evidence])
    if None in counts:
        return False
    broken, every = counts.sum(axis=0).tolist()
    if not requirement.allowed:
        return decision.outcome is gate.Outcome.CANNOT_TELL and not broken and every >= LEAST_FOR_EVERY
    level = 1 - gate.OVERLOOK / len(gate.looks(wish.max_pairs))
    between = counts[:, 0].var(ddof=1) / max(counts[:, 0].mean(), 1)
    effect = max(float(between), *(float(each["design_effect"]) for each in evidence))
    return upper_bound(broken / effect, every / effect, level) <= float(requirement.allowed)


def _times(change: float | None) -> str:
    return "any number of" if change is None or not math.isfinite(change) else f"{1 + change:.2g}"


def _seen(result: GateResult, series: GateSeries, decision: gate.Decision, wish: GateWish) -> str:
    in_pairs = f"in {plural(decision.pairs, 'pair')}"
    if wish.require is None:
        return f"{wish.quantile} of {series.name}: {_interval(decision)} {in_pairs}"
    requirement = parse_requirement(wish.require)
    events = [pair.events for pair in series.counted[: decision.pairs]]
    baseline, candidate = (sum(pair[side] for pair in events) for side in (0, 1))
    text = (
        f"{series.name} exceeded {format_duration(requirement.bound_ns)} {plural(candidate, 'time')} on "
        f"{result.candidate} and {plural(baseline, 'time')} on {result.baseline} {in_pairs}"
    )
    if decision.low is None:
        return text
    return f"{text} (95 %: {_times(decision.low)} to {_times(decision.high)} times as often)"


def _interval(decision: gate.Decision) -> str:
    change = format_change(decision.change)
    if decision.low is None or decision.high is None:
        return change
    return f"{change} (95 %: {format_change(decision.low)} to {format_change(decision.high)})"


def _concluded(
    result: GateResult,
    record: Record,
    series: GateSeries,
    decision: gate.Decision,
    wish: GateWish,
    alternation: Alternation,
) -> GateResult:
    baseline, candidate = alternation.names
    wanted = format_change(wish.larger_than)
    seen = _seen(result, series, decision, wish)
    if decision.outcome is gate.Outcome.WORSE:
        return result.ending(GateOutcome.WORSE, f"{candidate} is worse than {baseline}. {seen}")
    if decision.outcome is gate.Outcome.PASS:
        return result.ending(
            GateOutcome.NO_WORSE, f"{candidate} is not worse than {baseline} by {wanted} or more. {seen}"
        )
    if _keeps(record, series, decision, wish):
        return result.ending(GateOutcome.NO_WORSE, f"{candidate} meets {wish.require}. {seen}")
    if decision.outcome is gate.Outcome.CANNOT_TELL:
        return result.ending(GateOutcome.CANNOT_TELL, seen, next=_larger_gate(record, result))
    planned, aside = len(series.pairs), [pair for pair in series.pairs if pair.why_not is not None]
    limit = wish.max_pairs + wish.max_pairs // SPARE
    look = next(pairs for pairs in gate.looks(wish.max_pairs) if pairs > len(series.counted))
    if not series.counted:
        limit = TRIED
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
    """Return the record's command with as many pairs as the gate needs."""
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
