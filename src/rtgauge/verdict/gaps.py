# SPDX-License-Identifier: MIT
"""Judges the gaps in a task that only reads the clock, from the probe noise and from tools such as oslat.

Gaps are not activations: without a gap nothing is counted, and that is the best result. So the evidence is
the time that was observed, and the bound is a rate (Poisson, exact).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rtgauge.record.model import SeriesSummary, Step, Verdict, VerdictWord
from rtgauge.units import (
    NS_PER_S,
    format_count,
    format_duration,
    format_multiple,
    format_span,
    format_time,
    plural,
    round_up,
)
from rtgauge.verdict.next_step import NextStep
from rtgauge.verdict.requirement import Requirement, format_percent
from rtgauge.verdict.violations import TOO_COARSE, Violations

GAP = "gap"
LEAST_OBSERVED_S = 5
"""If the CPUs were observed for a shorter time than this, nothing holds."""
NS_PER_HOUR = 3600 * NS_PER_S


def observed_ns(step: Step) -> int | None:
    """Return for how long the step looked for gaps, all CPUs together; None if unknown."""
    own = [result.values.get("observed_ns") for result in step.results]
    known = [value for value in own if isinstance(value, int)]
    if known:
        return sum(known)
    duration = step.parameters.get("duration_ns")
    if not isinstance(duration, int) or duration <= 0:
        return None
    window, width = step.parameters.get("window_ns"), step.parameters.get("width_ns")
    if isinstance(window, int) and isinstance(width, int) and window > 0:
        return duration * width // window  # hwlatdetect observes one CPU after the other
    return duration * max(1, len({series.labels.get("cpu") for series in step.series}))


def judge_gaps(
    requirement: Requirement,
    step: Step,
    series: Sequence[SeriesSummary],
    violations: Violations,
    close: Violations,
    following: NextStep,
) -> Verdict:
    """Judge a step by its longest gap.

    `violations`, `close`: the gaps that break the bound, and the gaps that break the margin of it. The
    verdict is "cannot tell" if gaps that break the bound were not recorded, because they are below the
    tool's threshold, or if the CPUs were observed for less than LEAST_OBSERVED_S. With a certain violation it
    is "fails".
    """
    observed = observed_ns(step)
    longest = max((each.max_ns for each in series if each.max_ns is not None), default=None)
    measured = plural(violations.activations, "gap")
    if observed is not None:
        measured += f" in {format_span(observed / NS_PER_S)}"
    if longest is not None:
        measured += (
            f"; the longest took {format_time(longest)} (bound {format_duration(requirement.bound_ns)})"
        )
    evidence: dict[str, Any] = {
        "metric": GAP,
        "bound_ns": requirement.bound_ns,
        "hardness": 1.0,
        "confidence": float(requirement.confidence),
        "gaps": violations.activations,
        "observed_ns": observed,
        "violations_certain": violations.certain,
        "violations_possible": violations.possible,
        "max_ns": longest,
        "marks": [f"{mark.severity}: {mark.name}" for mark in step.marks],
    }
    if violations.certain:
        word, advice = VerdictWord.FAILS, following.for_failure()
        reason = f"{measured}: {format_count(violations.certain)} took longer"
    elif not isinstance(enough := _enough_ns(requirement, step, violations, measured, following), int):
        word, (reason, advice) = VerdictWord.CANNOT_TELL, enough
    else:
        rate = -math.log1p(-float(requirement.confidence)) * NS_PER_HOUR / enough
        evidence["per_hour_at_most"] = rate
        reason = (
            f"{measured}; at {format_percent(requirement.confidence)} confidence, at most "
            f"{format_multiple(round_up(rate))} longer gaps come per hour on each CPU if gaps are independent"
        )
        word = VerdictWord.MARGINAL if close.possible else VerdictWord.HOLDS
        advice = following.when_close() if close.possible else following.when_held()
    return Verdict(
        word=word,
        requirement=str(requirement),
        reason=reason,
        next=advice,
        step=step.id,
        evidence=evidence,
    )


def _enough_ns(
    requirement: Requirement, step: Step, violations: Violations, measured: str, following: NextStep
) -> int | tuple[str, str]:
    """Return for how long a step without a certain violation observed the CPUs (ns) or, if it does not show
    whether the bound was broken, why not, and what to do.
    """
    observed, threshold = observed_ns(step), step.parameters.get("threshold_ns")
    if violations.possible:
        reason = f"{measured}; {TOO_COARSE}"
    elif isinstance(threshold, int) and threshold > requirement.bound_ns:
        advice = following.again({"threshold": format_duration(requirement.bound_ns)})
        return f"{measured}; gaps shorter than {format_duration(threshold)} were not recorded", advice
    elif observed is None:
        reason = f"{measured}; the file does not say for how long the CPUs were observed"
    elif observed < LEAST_OBSERVED_S * NS_PER_S:
        reason = f"the measurement is too short: {measured}; at least {LEAST_OBSERVED_S} s are needed"
    else:
        return observed
    return reason, following.with_more(None)
