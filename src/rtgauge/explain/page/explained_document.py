# SPDX-License-Identifier: MIT
"""Defines the JSON document of `rtgauge show --why --json`.

Times are in ns of the target's CLOCK_MONOTONIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from rtgauge.explain.analysis.culprits import ExplainedStep
from rtgauge.explain.analysis.explanation import SIDES, Culprit, Explanation, culprit_name, sentence
from rtgauge.record.model import Model, SystemText

VERSION = 1


class CulpritEntry(Model):
    """A culprit that took time."""

    culprit: str
    """The culprit in words."""
    kind: str
    name: str
    number: int | None
    side: str | None = Field(
        description=f"for a path through a network, one of: {'; '.join(SIDES)}; otherwise null"
    )


class RankedEntry(CulpritEntry):
    """A culprit with its figures over all explained latencies of its step."""

    outliers: int
    """Number of latencies in which this culprit took more time than any other."""
    outlier_share: float
    ns: int
    time_share: float
    worst_ns: int
    rules: list[str]
    """Names of the audit rules that apply to this kind of culprit."""


class PartEntry(CulpritEntry):
    """A part of one latency."""

    ns: int
    priority: int | None
    pid: int | None
    functions: list[str]
    cpus: list[int]


class ChainEntry(Model):
    """A thread that a sleep waited for, or the one that slept."""

    thread: int
    name: str
    phase: str
    """Blocked: it slept; at the origin also running, ready or unknown."""
    call: str
    """The system call in which it slept; empty if unknown."""
    ns: int


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
    chain: list[ChainEntry] = Field(default_factory=list[ChainEntry])
    """Of the longest sleep that a task ended: the thread, who woke it, whom that one waited for, up to the
    origin; empty if there is none, or if the thread waited for a lock.
    """


class BlockedEntry(LatencyEntry):
    """One sleep that another thread ended, explained like a latency."""

    owners: list[str]
    lent: str
    """Priority that the lock's owner inherited; empty if it inherited none."""


class TriggeredEntry(LatencyEntry):
    """The time before one trigger of a recorder, explained like a latency."""

    trigger: str
    """The trigger's name and its line."""
    cause: str
    """What kept the thread longest."""


class ExplainedStepEntry(Model):
    """One explained step."""

    step: str
    """The step's id."""
    culprits: list[RankedEntry]
    """The culprits, ranked by the time that they took."""
    latencies: list[LatencyEntry]
    blocked: list[BlockedEntry]
    """Explained sleeps that another thread ended: waits for a lock whose owner had a lower priority, and the
    longest of the other sleeps.
    """
    triggered: list[TriggeredEntry] = Field(default_factory=list[TriggeredEntry])
    """The 100 ms before each trigger of a recorder."""


class ExplainDocument(Model):
    """The document that `rtgauge show --why --json` prints."""

    version: int = VERSION
    record: SystemText
    steps: list[ExplainedStepEntry]


def explained_document(record: str, steps: Sequence[ExplainedStep]) -> ExplainDocument:
    """Return the ranked culprits and the latencies of each step. `record` is the record's folder."""
    return ExplainDocument(record=record, steps=[_step(step) for step in steps])


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
        triggered=[
            TriggeredEntry(
                **_latency(known),
                trigger=known.moment.trigger,
                cause=known.trigger_words,
            )
            for known in explained.triggered
        ],
    )


def _culprit(culprit: Culprit) -> dict[str, Any]:
    return {
        "culprit": culprit_name(culprit),
        "kind": str(culprit.kind),
        "name": culprit.name,
        "number": culprit.number,
        "side": culprit.side or None,
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
        "chain": [
            ChainEntry(thread=link.thread, name=link.name, phase=str(link.phase), call=link.call, ns=link.ns)
            for link in explanation.chain
        ],
    }
