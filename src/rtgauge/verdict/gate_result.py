# SPDX-License-Identifier: MIT
"""Decides a gate from its record, and defines the document of the result."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from pydantic import Field

from rtgauge.analysis import change_words, gate_test
from rtgauge.analysis.gate_options import GateOptions, options_of
from rtgauge.analysis.gate_rate import OF_RATIOS, PairCounts, SideCounts, decide_rate, least_alarm
from rtgauge.errors import (
    EXIT_CANNOT_MEASURE,
    EXIT_CANNOT_TELL,
    EXIT_FAILS,
    EXIT_INTERRUPTED,
    EXIT_OK,
    InputError,
)
from rtgauge.record.alternation import alternation_of
from rtgauge.record.model import Exposure, Step, Verdict
from rtgauge.record.reader import Record
from rtgauge.record.strict_model import Model
from rtgauge.units import (
    format_bound,
    format_change,
    format_changes,
    format_count,
    format_duration,
    format_factor,
    format_share,
    format_size,
    format_time,
    plural,
)
from rtgauge.verdict.decision import LEAST_FOR_EVERY, judge_metric
from rtgauge.verdict.gate_pairs import CannotGate, GatePair, GateSeries, gate_series, primary
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge.verdict.run_verdict import exposure_of

LONGER = 4
"""If no number of pairs is enough, the next command measures this many times as long."""


class GateOutcome(StrEnum):
    """The possible answers of a gate."""

    NOT_WORSE = change_words.NOT_WORSE
    WORSE = change_words.WORSE
    FAILS = change_words.FAILS
    CANNOT_TELL = change_words.CANNOT_TELL
    NOT_MEASURED = change_words.NOT_MEASURED
    UNFINISHED = change_words.UNFINISHED


STATUS = {
    GateOutcome.NOT_WORSE: EXIT_OK,
    GateOutcome.WORSE: EXIT_FAILS,
    GateOutcome.FAILS: EXIT_FAILS,
    GateOutcome.NOT_MEASURED: EXIT_CANNOT_MEASURE,
    GateOutcome.CANNOT_TELL: EXIT_CANNOT_TELL,
    GateOutcome.UNFINISHED: EXIT_INTERRUPTED,
}


class PairFigures(Model):
    """One pair of a series."""

    pair: int
    first: str
    """Which side was measured first: baseline or candidate."""
    baseline_ns: int | None
    """The quantile of the baseline's run; if a bound decides, its largest value."""
    candidate_ns: int | None
    change: float | None
    """The candidate's value divided by the baseline's, minus 1: 0.1 is +10 %; None: the pair does not count,
    or a bound decides.
    """
    baseline_violations: int | None = None
    """Number of activations that may have exceeded the bound; None if no bound decides."""
    candidate_violations: int | None = None
    why_not: str | None = None
    """Why the pair does not count."""
    stolen_ns: tuple[int, int] | None = None
    """CPU time that the host took from the baseline's and the candidate's run, if this alone makes one of
    them doubtful.
    """


class SeriesChange(Model):
    """The change of one series. The primary series decides. The others are not corrected for multiple
    comparisons.
    """

    series: str
    pairs: int
    """Number of pairs that count."""
    change: float | None
    """Relative change, from the geometric mean of the pairs: 0.1 is +10 %; if a bound decides, the change of
    the rate of violations (None: the baseline had none).
    """
    baseline_ns: int | None = None
    """Geometric mean of the quantiles of the baseline's runs; None if a bound decides."""
    candidate_ns: int | None = None
    low: float | None = None
    """Lower end of the change's 95 % confidence interval, corrected for the repeated tests while the gate
    measures.
    """
    high: float | None = None
    spread: float | None = None
    """Relative standard deviation of the values of a side's runs; if a bound decides, of their rates of
    violations (None if a run has fewer than 5 independent violations).
    """


class SideExposure(Model):
    """How much of a side was measured in the pairs that count, and which rate of violations that excludes."""

    side: str
    bound_ns: int
    """The requirement's bound, or the side's largest value."""
    exposure: Exposure


class NewCulprit(Model):
    """A culprit that delayed some runs of the candidate and no run of the baseline."""

    culprit: str
    runs: int
    """Number of the candidate's runs in which this culprit took the largest part of a latency."""
    explained_runs: int
    """How many of the candidate's runs were explained."""
    latencies: int
    worst_ns: int


class GateResult(Model):
    """The document of `rtgauge gate --json`."""

    outcome: GateOutcome
    status: int
    """The exit status of the command."""
    conclusion: str
    values: str | None = None
    """The values of both sides as a sentence; None if the gate counts violations."""
    record: str
    baseline: str
    candidate: str
    quantile: str
    larger_than: float
    max_pairs: int
    rare: float | None = None
    """Share of the boots: the gate passes only after enough pairs to catch a state of the machine that occurs
    in only this share of them.
    """
    rarest_shown: float | None = None
    """A state of the machine that occurs in this share of the boots, or runs, would have occurred in these
    pairs with a probability of 99 %.
    """
    require: str | None = None
    """The requirement, whose bound decides: the gate compares how often the sides exceed it."""
    series: str | None = None
    """Name of the primary series, which decides."""
    primary: SeriesChange | None = None
    found: float | None = None
    """Smallest change that this many pairs detect in nine of ten cases."""
    pairs_needed: int | None = None
    """How many pairs detect the wanted change in nine of ten cases; None: too many."""
    pairs: list[PairFigures] = Field(default_factory=list[PairFigures])
    """The pairs of the primary series."""
    largest_ns: tuple[int | None, int | None] = (None, None)
    """Largest value of the baseline's and of the candidate's runs in the primary series; it does not decide.
    """
    others: list[SeriesChange] = Field(default_factory=list[SeriesChange])
    violations_needed: int | None = None
    """If a bound decides, how many violations on the candidate's side would show that it is worse."""
    exposure: list[SideExposure] = Field(default_factory=list[SideExposure])
    """How much was measured on each side in the primary series, the baseline first."""
    culprits: list[NewCulprit] = Field(default_factory=list[NewCulprit])
    """Culprits that delayed runs of the candidate and no run of the baseline."""
    left_out: list[str] = Field(default_factory=list[str])
    """What could not be measured, and why."""
    accepted: str | None = None
    """Reason that the user gave for accepting or muting a change for the worse; the status is then 0."""
    next: str | None = None
    """A command that would settle the question."""
    next_pairs: int = Field(default=0, exclude=True)

    @staticmethod
    def of(record: Record) -> GateResult:
        """Decide a gate from its record, finished or not. Raises InputError if the record is not a gate's."""
        options, alternation = options_of(record.run), alternation_of(record.run)
        if options is None or alternation is None:
            raise InputError(f"rtgauge gate did not make {record.path}; give a record that it made")
        empty = GateResult(
            outcome=GateOutcome.NOT_MEASURED,
            status=EXIT_CANNOT_MEASURE,
            conclusion="",
            record=str(record.path),
            baseline=alternation.names[0],
            candidate=alternation.names[1],
            quantile=options.quantile,
            larger_than=options.larger_than,
            max_pairs=options.max_pairs,
            rare=options.rare,
            require=options.require,
            left_out=[f"{left.what}: {left.reason}" for left in record.run.left_out],
        )
        try:
            series = gate_series(record, options)
            chosen = primary(series, options)
        except CannotGate as error:
            return empty.ending(GateOutcome.NOT_MEASURED, str(error))
        decision = _decide(chosen, options)
        with_figures = empty.model_copy(
            update={
                "series": chosen.name,
                "primary": _change(chosen, options),
                "pairs": _figures(chosen, options),
                "others": [_change(each, options) for each in series if each is not chosen],
                "found": _smallest_detectable(decision, options),
                "pairs_needed": _needed(decision, options),
                "violations_needed": _violations_needed(chosen, decision, options),
                "rarest_shown": gate_test.rarest_shown(decision.pairs) if decision.pairs else None,
                "largest_ns": _largest_ns(chosen.counted[: decision.pairs]),
                "exposure": _exposure(record, chosen, options, empty),
            }
        )
        return _concluded(with_figures, record, chosen, decision, options)

    @staticmethod
    def final(record: Record) -> GateResult:
        """Decide a gate that measures no more. An open result means that it was interrupted. Raises
        InputError as `of` does.
        """
        result = GateResult.of(record)
        if result.outcome is GateOutcome.UNFINISHED and record.run.state == "complete":
            why = "; ".join(result.left_out) or "the steps of the next pair were left out"
            why = f"the next pair could not be measured: {why}"
            return result.ending(GateOutcome.NOT_MEASURED, why, next=None)
        return result

    def ending(self, outcome: GateOutcome, conclusion: str, **more: object) -> GateResult:
        """Return this document with its answer."""
        update = {"outcome": outcome, "status": STATUS[outcome], "conclusion": conclusion, **more}
        return self.model_copy(update=update)

    @property
    def endpoint(self) -> str:
        """What decides, in words: the quantile, or the bound."""
        return self.quantile if self.require is None else self.require


def _decide(series: GateSeries, options: GateOptions) -> gate_test.Decision:
    if options.require is None:
        decide = partial(gate_test.decide, [pair.log_ratio for pair in series.counted])
    else:
        decide = partial(decide_rate, _counts(series.counted))
    return decide(
        larger_than=options.larger_than,
        max_pairs=options.max_pairs,
        rare=options.rare,
        before=options.extended_from,
    )


def _counts(pairs: Sequence[GatePair]) -> PairCounts:
    return PairCounts.of([pair.violations for pair in pairs], [pair.variances for pair in pairs])


def _largest_ns(pairs: Sequence[GatePair]) -> tuple[int | None, int | None]:
    """Return the largest value of each side's runs."""
    baseline, candidate = (
        max((ns for pair in pairs if (ns := pair.values_ns[side]) is not None), default=None)
        for side in (0, 1)
    )
    return baseline, candidate


def _mean_ns(pairs: Sequence[GatePair], side: int) -> int | None:
    """Return the geometric mean of one side's values; None without values above 0."""
    logs = [math.log(ns) for pair in pairs if (ns := pair.values_ns[side])]
    return round(math.exp(sum(logs) / len(logs))) if logs else None


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _change(series: GateSeries, options: GateOptions) -> SeriesChange:
    decision = _decide(series, options)
    used_pairs = series.counted[: decision.pairs] if options.require is None else []
    return SeriesChange(
        series=series.name,
        baseline_ns=_mean_ns(used_pairs, 0),
        candidate_ns=_mean_ns(used_pairs, 1),
        pairs=decision.pairs,
        change=_finite(decision.change) if decision.pairs else None,
        low=_finite(decision.low),
        high=_finite(decision.high),
        spread=decision.spread,
    )


def _figures(series: GateSeries, options: GateOptions) -> list[PairFigures]:
    by_bound = options.require is not None
    return [
        PairFigures(
            pair=pair.number,
            first=("baseline", "candidate")[pair.first],
            baseline_ns=pair.values_ns[0],
            candidate_ns=pair.values_ns[1],
            change=math.expm1(pair.log_ratio) if pair.why_not is None and not by_bound else None,
            why_not=pair.why_not,
            stolen_ns=pair.stolen_ns,
            baseline_violations=pair.violations[0] if by_bound else None,
            candidate_violations=pair.violations[1] if by_bound else None,
        )
        for pair in series.pairs
    ]


def _smallest_detectable(decision: gate_test.Decision, options: GateOptions) -> float | None:
    if decision.spread is None or decision.pairs < gate_test.BLOCK:
        return None
    return gate_test.detectable(decision.spread, decision.pairs, _error(options))


def _needed(decision: gate_test.Decision, options: GateOptions) -> int | None:
    if decision.spread is None:
        return None
    return gate_test.pairs_needed(decision.spread, options.larger_than, _error(options))


def _error(options: GateOptions) -> float:
    return gate_test.ALARM if options.require is None else OF_RATIOS


def _violations_needed(series: GateSeries, decision: gate_test.Decision, options: GateOptions) -> int | None:
    if options.require is None or decision.pairs < gate_test.BLOCK:
        return None
    return least_alarm(
        _counts(series.counted[: decision.pairs]), max_pairs=options.max_pairs, before=options.extended_from
    )


def _exposure(
    record: Record, series: GateSeries, options: GateOptions, result: GateResult
) -> list[SideExposure]:
    exposures: list[SideExposure] = []
    for name, steps in zip((result.baseline, result.candidate), series.steps, strict=True):
        requirement = _bound(series, steps, options)
        if requirement is None:
            continue
        exposure = exposure_of(requirement, _judged(record, steps, requirement), record.run)
        if exposure is not None:
            exposures.append(SideExposure(side=name, bound_ns=requirement.bound_ns, exposure=exposure))
    return exposures


def _bound(series: GateSeries, steps: Sequence[Step], options: GateOptions) -> Requirement | None:
    """Return the gate's bound or, without one, the side's largest value. A sample limits the share of values
    above its largest value as well as above a bound chosen in advance (Wilks, Determination of sample sizes
    for setting tolerance limits, 1941).
    """
    if options.require is not None:
        return parse_requirement(options.require)
    largest_ns = max((step.total.filled.max_ns or 0 for step in steps if step.total is not None), default=0)
    return Requirement(series.name.split("/")[1], largest_ns) if largest_ns > 0 else None


def _judged(record: Record, steps: Sequence[Step], requirement: Requirement) -> list[tuple[Step, Verdict]]:
    return [(step, judge_metric(requirement, step, record.windows(step))) for step in steps]


@dataclass(frozen=True)
class _Own:
    """How the candidate stands to the gate's requirement by its own runs."""

    meets: bool = False
    fails: bool = False


def _own(record: Record, series: GateSeries, decision: gate_test.Decision, options: GateOptions) -> _Own:
    """Return whether the candidate meets or certainly fails the requirement. It meets it if each of its runs
    does, and their upper bound. It meets hardness 100 % by a large sample without a violation, and fails it
    by one.
    """
    if options.require is None or decision.pairs < gate_test.BLOCK:
        return _Own()
    requirement = parse_requirement(options.require)
    evidence = [each.evidence for _, each in _judged(record, series.steps[1], requirement)]
    names = ("violations_certain", "violations_possible", "activations")
    counts = np.array([[each.get(name) for name in names] for each in evidence], dtype=np.float64)
    if np.isnan(counts).any():
        return _Own()
    certain, possible, every = counts.T
    if not requirement.allowed:
        enough = decision.outcome is gate_test.Outcome.CANNOT_TELL and every.sum() >= LEAST_FOR_EVERY
        return _Own(meets=enough and not possible.any(), fails=bool(certain.any()))
    side = SideCounts(certain, possible, np.array([pair.variances[1] for pair in series.counted]), every)
    level = gate_test.OVERLOOK / len(gate_test.looks(options.max_pairs, options.extended_from))
    return _Own(
        meets=len(evidence) >= gate_test.first_pass(options.max_pairs, options.rare, options.extended_from)
        and side.meets(float(requirement.allowed), 1 - level),
        fails=side.share_at_least(float(requirement.confidence)) > requirement.allowed,
    )


def _times(change: float | None) -> str:
    return "any number of" if change is None or not math.isfinite(change) else format_factor(1 + change)


def _under(series: str) -> str:
    """Return a series in words: "wakeup/latency/idle" is "under idle", and of another metric "of gap under
    idle".
    """
    metric, _, load = series.partition("/")[2].partition("/")
    if not load:
        return f"of {series}"
    return f"under {load}" if metric == "latency" else f"of {metric} under {load}"


def _change_text(
    result: GateResult, series: GateSeries, decision: gate_test.Decision, options: GateOptions
) -> str:
    """Return the candidate's change: "policy=other: p99 under idle 18 times as large (95 %: 5.0 to 68 times),
    in 6 of 6 pairs".
    """
    pairs = series.counted[: decision.pairs]
    if options.require is None:
        larger = sum(pair.log_ratio > 0 for pair in pairs)
        series_text = f"{result.candidate}: {options.quantile} {_under(series.name)}"
        in_pairs = (
            f"in {larger} of {plural(len(pairs), 'pair')}"
            if decision.outcome is gate_test.Outcome.WORSE
            else f"in {plural(len(pairs), 'pair')}"
        )
        if decision.low is None or decision.high is None:
            return f"{series_text} {format_size(decision.change)}, {in_pairs}"
        interval = format_changes(decision.low, decision.high)
        return f"{series_text} {format_size(decision.change)} (95 %: {interval}), {in_pairs}"
    requirement = parse_requirement(options.require)
    baseline, candidate = (sum(pair.violations[side] for pair in pairs) for side in (0, 1))
    text = (
        f"{result.candidate}: {plural(candidate, 'activation')} {_under(series.name)} later than "
        f"{format_bound(requirement.bound_ns)}, against {format_count(baseline)} of {result.baseline}"
    )
    if decision.low is not None:
        text += f" (95 %: {_times(decision.low)} to {_times(decision.high)} times as often)"
    return f"{text}, in {plural(decision.pairs, 'pair')}"


def _values(
    result: GateResult, series: GateSeries, decision: gate_test.Decision, options: GateOptions
) -> str | None:
    """Return both sides' values: "policy=fifo 650 us -> policy=other 9.70 ms"."""
    if options.require is not None:
        return None
    means = [_mean_ns(series.counted[: decision.pairs], side) for side in (0, 1)]
    if None in means:
        return None
    names = (result.baseline, result.candidate)
    return " -> ".join(f"{name} {format_time(ns)}" for name, ns in zip(names, means, strict=True))


def _concluded(
    result: GateResult,
    record: Record,
    series: GateSeries,
    decision: gate_test.Decision,
    options: GateOptions,
) -> GateResult:
    baseline, candidate = result.baseline, result.candidate
    least_change = format_change(options.larger_than)
    change_text = _change_text(result, series, decision, options)
    if series.counted and decision.outcome is not gate_test.Outcome.GO_ON:
        result = result.model_copy(update={"values": _values(result, series, decision, options)})
    if decision.outcome is gate_test.Outcome.WORSE:
        return result.ending(GateOutcome.WORSE, change_text)
    own = _own(record, series, decision, options)
    if decision.outcome is gate_test.Outcome.PASS and own.fails:
        return result.ending(
            GateOutcome.FAILS,
            f"{candidate} fails {parse_requirement(options.require or '')}, although it is not worse than "
            f"{baseline} by {least_change} or more; {change_text.removeprefix(f'{candidate}: ')}",
        )
    if decision.outcome is gate_test.Outcome.PASS:
        return result.ending(
            GateOutcome.NOT_WORSE, f"{change_text}; {candidate} is not worse by {least_change} or more"
        )
    if own.meets:
        rest = format_share(gate_test.rarest_shown(decision.pairs), up=True)
        return result.ending(
            GateOutcome.NOT_WORSE,
            f"{candidate}: each of {plural(decision.pairs, 'run')} met {options.require}, so at most {rest} "
            f"of further runs would fail it (99 % confidence); {change_text.removeprefix(f'{candidate}: ')}",
        )
    if decision.outcome is gate_test.Outcome.CANNOT_TELL:
        few = f"{change_text}; these are too few pairs to tell whether {candidate} is worse by {least_change}"
        return result.ending(GateOutcome.CANNOT_TELL, few, next=_larger_gate(record, series, result))
    counted, planned = len(series.counted), len(series.pairs)
    more = gate_test.pairs_to_measure(counted, planned, options.max_pairs, options.extended_from)
    if not more:
        return _too_many_aside(result, record, series, planned)
    return result.ending(
        GateOutcome.UNFINISHED,
        f"unfinished after {plural(counted, 'pair')} that count",
        next=f"rtgauge resume {shlex.quote(str(record.path))}",
        next_pairs=more,
    )


def _too_many_aside(result: GateResult, record: Record, series: GateSeries, planned: int) -> GateResult:
    """Return the answer if too many pairs do not count. If only doubtful marks are to blame, the next command
    counts such runs.
    """
    aside = [pair for pair in series.pairs if pair.why_not is not None]
    doubtful = list(dict.fromkeys(name for pair in aside for name in pair.doubtful))
    conclusion = f"{plural(len(aside), 'pair')} of {planned} do not count: {aside[0].why_not}"
    if not all(pair.doubtful for pair in aside):
        return result.ending(GateOutcome.NOT_MEASURED, conclusion)
    allowed = [word for name in doubtful for word in ("--allow-mark", name)]
    return result.ending(
        GateOutcome.NOT_MEASURED,
        f"{conclusion}; if this is usual on this machine, count such runs ({shlex.join(allowed)})",
        next=_command(record, allowed),
    )


def _larger_gate(record: Record, series: GateSeries, result: GateResult) -> str:
    """Return the command that gives the gate as many pairs as it needs, or the record's command with longer
    runs if no number of pairs is enough.
    """
    spread = None if result.primary is None else result.primary.spread
    duration_ns = next((step.key.parameters.get("duration_ns") for step in series.steps[0]), None)
    if (spread is not None and result.pairs_needed is None) or result.max_pairs >= gate_test.MOST_PAIRS:
        longer = format_duration(LONGER * duration_ns) if isinstance(duration_ns, int) else "TIME"
        return _command(record, ["--duration", longer])
    needed = result.pairs_needed
    if needed is None or needed <= result.max_pairs:
        needed = min(2 * result.max_pairs, gate_test.MOST_PAIRS)
    return f"rtgauge resume {shlex.quote(str(record.path))} --max-pairs {needed}"


def _command(record: Record, options: Sequence[str]) -> str:
    """Return the record's command with these options, instead of its own; --allow-mark is added."""
    words = list(record.run.command)
    for option in options[::2]:
        for at, word in enumerate(words):
            if option == "--allow-mark":
                break
            if word == option:
                del words[at : at + 2]
            elif word.startswith(f"{option}="):
                del words[at]
    return shlex.join([*words, *options])
