# SPDX-License-Identifier: MIT
"""Defines the JSON documents of `rtgauge show --why --json` and `rtgauge selftest --json`.

Times are in ns of the target's CLOCK_MONOTONIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import Field

from rtgauge.explain.analysis.culprits import ExplainedStep
from rtgauge.explain.analysis.explanation import Culprit, Explanation, culprit_name, sentence
from rtgauge.explain.analysis.selftest import KindResult, SelfTest, verdict_words
from rtgauge.record.model import Model, SystemText

VERSION = 1


class CulpritEntry(Model):
    """A culprit that took time."""

    culprit: str = Field(description="the culprit in words")
    kind: str
    name: str
    number: int | None


class RankedEntry(CulpritEntry):
    """A culprit with its figures over all explained latencies of its step."""

    outliers: int = Field(
        description="number of latencies in which this culprit took more time than any other"
    )
    outlier_share: float
    ns: int
    time_share: float
    worst_ns: int
    rules: list[str] = Field(description="names of the audit rules that apply to this kind of culprit")


class PartEntry(CulpritEntry):
    """A part of one latency."""

    ns: int
    priority: int | None
    pid: int | None
    functions: list[str]
    cpus: list[int]


class LatencyEntry(Model):
    """One explained latency. Its parts add up to `latency_ns`."""

    number: int
    series: int
    cpu: int
    thread: int
    release_ns: int
    latency_ns: int
    sentence: str
    doubts: list[str]
    parts: list[PartEntry]


class BlockedEntry(LatencyEntry):
    """One sleep that another thread ended, explained like a latency."""

    owners: list[str]
    lent: str = Field(description="priority that the lock's owner inherited; empty if it inherited none")


class ExplainedStepEntry(Model):
    """One explained step."""

    step: str = Field(description="the step's id")
    culprits: list[RankedEntry] = Field(description="the culprits, ranked by the time that they took")
    latencies: list[LatencyEntry]
    blocked: list[BlockedEntry] = Field(
        description="explained sleeps that another thread ended: waits for a lock whose owner had a "
        "lower priority, and the longest of the other sleeps"
    )


class ExplainDocument(Model):
    """The document that `rtgauge show --why --json` prints."""

    version: int = VERSION
    record: SystemText
    steps: list[ExplainedStepEntry]


class SelfTestDocument(Model):
    """The document that `rtgauge selftest --json` prints.

    `passed`: of each kind, stalls came and all were found, 95 % were named, 95 % of these have the right
    size, and the median unattributed time is at most 5 us. `too_busy`: the machine was too busy to tell.
    """

    record: SystemText
    passed: bool
    conclusion: str = Field(default="", description="first line of the output on the terminal")
    too_busy: bool = False
    kinds: list[KindResult] = Field(default_factory=list[KindResult])
    others: int = Field(default=0, description="number of explained latencies that a stall did not cause")
    not_tried: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why it was not tried"
    )
    invalid: dict[str, str] = Field(
        default_factory=dict[str, str], description="kind of stall -> why its measurement does not count"
    )


def explained_document(record: str, steps: Sequence[ExplainedStep]) -> ExplainDocument:
    """Return the ranked culprits and the latencies of each step. `record` is the record's folder."""
    return ExplainDocument(record=record, steps=[_step(step) for step in steps])


def selftest_document(record: str, result: SelfTest | None) -> SelfTestDocument:
    """Return the judgement as a document. A `result` of None (nothing explained) has not passed."""
    if result is None:
        return SelfTestDocument(record=record, passed=False)
    outcome = {
        "passed": result.passed,
        "too_busy": result.too_busy,
        "conclusion": verdict_words(result),
    }
    return SelfTestDocument.model_validate({"record": record, **outcome, **asdict(result)})


def _step(explained: ExplainedStep) -> ExplainedStepEntry:
    return ExplainedStepEntry(
        step=explained.step.id,
        culprits=[
            RankedEntry(
                **_culprit(ranked.culprit),
                outliers=ranked.outliers,
                outlier_share=ranked.outlier_share,
                ns=ranked.ns,
                time_share=ranked.time_share,
                worst_ns=ranked.worst_ns,
                rules=list(ranked.rules),
            )
            for ranked in explained.culprits
        ],
        latencies=[LatencyEntry(**_latency(known)) for known in explained.explanations],
        blocked=[
            BlockedEntry(**_latency(known), owners=list(known.owners), lent=known.lent)
            for known in explained.blocked
        ],
    )


def _culprit(culprit: Culprit) -> dict[str, Any]:
    return {
        "culprit": culprit_name(culprit),
        "kind": str(culprit.kind),
        "name": culprit.name,
        "number": culprit.number,
    }


def _latency(explanation: Explanation) -> dict[str, Any]:
    moment = explanation.moment
    return {
        "number": moment.number,
        "series": moment.series,
        "cpu": moment.cpu,
        "thread": moment.thread,
        "release_ns": moment.release_ns,
        "latency_ns": moment.latency_ns,
        "sentence": sentence(explanation),
        "doubts": explanation.doubts,
        "parts": [
            PartEntry(
                **_culprit(part.culprit),
                ns=part.ns,
                priority=part.culprit.priority,
                pid=part.culprit.pid,
                functions=sorted(part.where),
                cpus=sorted(part.cpus),
            )
            for part in explanation.parts
        ],
    }
