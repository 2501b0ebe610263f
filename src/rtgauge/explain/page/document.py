# SPDX-License-Identifier: MIT
"""The JSON document of `rtgauge explain --json`. Times in ns of the target's CLOCK_MONOTONIC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.explain.analysis.sentence import culprit_name, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.explain.analysis.attribution import Culprit, Explanation
    from rtgauge.explain.analysis.explained_step import ExplainedStep

VERSION = 1


def explained_document(record: str, steps: Sequence[ExplainedStep]) -> dict[str, Any]:
    """Of each step its culprits, ranked, and its latencies with their parts, which add up to `latency_ns`; `blocked`: sleeps for locks likewise."""
    return {"version": VERSION, "record": record, "steps": [_step(step) for step in steps]}


def _step(explained: ExplainedStep) -> dict[str, Any]:
    return {
        "step": explained.step.id,
        "culprits": [
            _culprit(ranked.culprit)
            | {
                "outliers": ranked.outliers,
                "outlier_share": ranked.outlier_share,
                "ns": ranked.ns,
                "time_share": ranked.time_share,
                "worst_ns": ranked.worst_ns,
                "rules": list(ranked.rules),
            }
            for ranked in explained.culprits
        ],
        "latencies": [_latency(known) for known in explained.explanations],
        "blocked": [_latency(known) | {"owners": list(known.owners), "lent": known.lent} for known in explained.blocked],
    }


def _culprit(culprit: Culprit) -> dict[str, Any]:
    return {"culprit": culprit_name(culprit), "kind": str(culprit.kind), "name": culprit.name, "number": culprit.number}


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
            _culprit(part.culprit)
            | {"ns": part.ns, "priority": part.culprit.priority, "pid": part.culprit.pid, "functions": sorted(part.where), "cpus": sorted(part.cpus)}
            for part in explanation.parts
        ],
    }
