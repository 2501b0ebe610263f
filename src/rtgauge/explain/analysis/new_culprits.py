# SPDX-License-Identifier: MIT
"""Finds culprits that only one side of a gate's record has."""

from __future__ import annotations

from collections import defaultdict

from rtgauge.record.alternation import side_of
from rtgauge.record.moments import MOMENTS
from rtgauge.record.reader import Record
from rtgauge.verdict.gate_result import NewCulprit

CHANCE = 0.05
"""The probability of naming any culprit if the sides are alike."""


def new_culprits(record: Record) -> list[NewCulprit]:
    """Return the culprits that took the largest part of a latency in runs of the candidate but in no run of
    the baseline, more often than by chance. The culprit with the most runs comes first.

    If the sides are alike, the probability that a run with a culprit is the candidate's equals the
    candidate's share of the explained runs. Raises RecordError for a damaged record.
    """
    steps = [step for step in record.steps if MOMENTS in step.checksums]
    if not steps:
        return []
    # Imported here, because most records have no explained steps.
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.explain.analysis.explanation import Culprit, culprit_name
    from rtgauge.explain.analysis.ranking import general

    times_of_sides: tuple[dict[Culprit, list[tuple[int, int]]], ...] = (defaultdict(list), defaultdict(list))
    runs: tuple[set[int], set[int]] = (set(), set())
    for explained in explained_steps(record, steps):
        repeat = explained.step.key.repeat
        side = side_of(repeat)
        runs[side].add(repeat)
        for explanation in explained.explanations:
            culprit = general(explanation.main.culprit)
            times_of_sides[side][culprit].append((repeat, explanation.latency_ns))
    share = len(runs[1]) / max(1, len(runs[0]) + len(runs[1]))
    culprits = {**times_of_sides[0], **times_of_sides[1]}
    named: list[NewCulprit] = []
    for culprit, latencies in times_of_sides[1].items():
        having = len({repeat for repeat, _ in latencies})
        if culprit in times_of_sides[0] or not runs[0] or share**having * len(culprits) > CHANCE:
            continue
        named.append(
            NewCulprit(
                culprit=culprit_name(culprit),
                runs=having,
                explained_runs=len(runs[1]),
                latencies=len(latencies),
                worst_ns=max(ns for _, ns in latencies),
            )
        )
    return sorted(named, key=lambda each: -each.runs)
