# SPDX-License-Identifier: MIT
"""Finds how far a step is from its requirement: in the black to off the map (Brown & Martin 2010, 5.2)."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from pydantic import Field

from rtgauge.record.facts import Facts
from rtgauge.record.merged_windows import merge
from rtgauge.record.model import Model, Step, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.verdict.decision import judge, judged_series
from rtgauge.verdict.next_step import PastRun
from rtgauge.verdict.requirement import Requirement
from rtgauge_ext.papers.advise.flowchart_file import Thresholds
from rtgauge_ext.papers.frequency.order_statistics import quantile, ranked


class Margin(StrEnum):
    """The paper's margins from good to bad, and "cannot tell". Only `judge` decides whether a step that holds
    is marginal; a step that fails is marginal up to a ratio of lateness to bound.
    """

    BLACK = "clearly in the black"
    MARGINAL = "marginal"
    TROUBLE = "in trouble"
    OFF = "off the map"
    CANNOT_TELL = "cannot tell"


ORDER = [Margin.BLACK, Margin.CANNOT_TELL, Margin.MARGINAL, Margin.TROUBLE, Margin.OFF]
"""The margins, the most decisive last. If several steps are evidence for a way, the most decisive margin
counts: a failure stays a failure.
"""


class Evidence(Model):
    """A step as evidence: its record, its verdict and its margin."""

    record: str
    step: str
    load: str
    deployment: str
    kernel: str
    margin: Margin
    verdict: VerdictWord
    reason: str
    next: str
    lateness_ns: int | None = Field(
        description="time that the required share of activations stays within; "
        "None: it has no upper limit, or is unknown"
    )
    times_the_bound: float | None
    interval_ns: int | None
    marks: list[str] = Field(default_factory=list)


class _Lateness(NamedTuple):
    """The lateness at the required hardness, and its ratio to the bound; None if unbounded or unknown."""

    ns: int | None
    times_the_bound: float | None


def _lateness(requirement: Requirement, record: Record, step: Step) -> _Lateness:
    numbers = [
        summary.series for summary in judged_series(step, requirement.metric) if summary.series is not None
    ]
    merged = merge(record.windows(step), numbers)
    values = ranked(merged, resolution_ns=int(step.parameters.get("resolution_ns") or 1), absolute=True)
    if not values.count:
        return _Lateness(None, None)
    lateness = quantile(values, requirement.hardness, float(requirement.confidence)).ns
    return _Lateness(lateness, None if lateness is None else lateness / requirement.bound_ns)


def _margin(word: VerdictWord, ratio: float | None, thresholds: Thresholds) -> Margin:
    match word:
        case VerdictWord.HOLDS:
            return Margin.BLACK
        case VerdictWord.CANNOT_TELL:
            return Margin.CANNOT_TELL
        case VerdictWord.MARGINAL:
            return Margin.MARGINAL
        case VerdictWord.FAILS:
            # A missed activation fails whatever its lateness. The margin is then marginal at best.
            if ratio is None or ratio > thresholds.trouble:
                return Margin.OFF
            return Margin.MARGINAL if ratio <= thresholds.marginal else Margin.TROUBLE


def evidence(
    requirement: Requirement,
    record: Record,
    step: Step,
    kernel: str,
    facts: Facts,
    thresholds: Thresholds,
    past_run: PastRun,
) -> Evidence:
    """Judge one step and return it as evidence. Raises RecordError for a damaged record.

    `kernel`: the kernel's release. `facts`: the target's system.json. `thresholds`: ratios of lateness to
    bound. `past_run`: what the step's run measured.
    """
    judgement = judge(
        requirement,
        step,
        record.windows(step),
        facts,
        margin=Fraction(thresholds.black).limit_denominator(10_000),
        past_run=past_run,
    )
    lateness, ratio = _lateness(requirement, record, step)
    interval = judgement.evidence.get("interval_ns")
    return Evidence(
        record=str(record.path),
        step=step.id,
        load=step.key.load,
        deployment=step.key.deployment,
        kernel=kernel,
        margin=_margin(judgement.word, ratio, thresholds),
        verdict=judgement.word,
        reason=judgement.reason,
        next=judgement.next,
        lateness_ns=lateness,
        times_the_bound=ratio,
        interval_ns=interval if isinstance(interval, int) else None,
        marks=[f"{mark.severity}: {mark.name}" for mark in step.marks],
    )
