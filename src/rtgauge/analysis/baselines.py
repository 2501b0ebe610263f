# SPDX-License-Identifier: MIT
"""Chooses the baseline of each side of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.analysis.sides import Side
from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.record.reader import Record

USER_SPACE = "user space"
UNIPROCESSOR = "Single"
"""The deployment that the papers use as the baseline."""


def pairs(sides: Sequence[Side], baseline: str | None) -> list[tuple[Side, Side]]:
    """Return (side, its baseline) for every side that is not itself a baseline.

    `baseline`: a label, a record's folder or id, or a word of a label (a deployment, a load, a kernel). By
    default, the baseline is the deployment Single; else the first of two sides that were measured
    alternately; else the first record. Within one record it is the first machine; on one machine it is user
    space, else the first side. If several sides are baselines, each other side is compared with the baseline
    that has the same load, deployment and so on. Raises InputError if no side or every side is a baseline, or
    if several baselines suit a side equally well.
    """
    if not sides:
        raise InputError(
            "none of the records has a finished step with latencies to compare; name other records "
            "(rtgauge list)"
        )
    if len(sides) < 2:
        raise InputError(
            f"there is only one side, '{sides[0].label}': name a second record, or a record with several "
            f"loads or deployments"
        )
    chosen = _candidates(sides, baseline)
    others = [side for side in sides if side not in chosen]
    if not others:
        raise InputError(
            f"--baseline {baseline} matches every side; name one of {', '.join(side.label for side in sides)}"
        )
    return [(side, _partner(side, chosen)) for side in others]


def _candidates(sides: Sequence[Side], baseline: str | None) -> list[Side]:
    if baseline is None:
        single = [side for side in sides if side.traits["deployment"] == UNIPROCESSOR]
        if single and len(single) < len(sides):
            return single
        alternating = [side for side in sides if side.is_first_alternating]
        if alternating:
            return alternating
        first = [side for side in sides if side.record is sides[0].record]
        if len(first) == len(sides):
            # In one record of several machines, each load is compared with the same load on the first
            # machine.
            first = [side for side in sides if side.machine == sides[0].machine]
        if len(first) == len(sides):
            first = [side for side in sides if side.traits["space"] == USER_SPACE]
        return first if 0 < len(first) < len(sides) else [sides[0]]
    path = baseline.rstrip("/")
    exact = [side for side in sides if side.label == baseline]
    of_record = [side for side in sides if any(path in _record_words(record) for record in side.records)]
    by_trait = [side for side in sides if baseline in side.traits.values()]
    labels = [side.label for side in sides]
    if not (exact or of_record or by_trait):
        raise InputError(f"--baseline {baseline} does not name a side{nearest(baseline, labels)}")
    return exact or of_record or by_trait


def _record_words(record: Record) -> set[str | None]:
    """Return the words that may name a record."""
    return {record.label, record.run.id, str(record.path), record.path.resolve().name}


def _parameter_words(side: Side) -> set[str]:
    """Return the words of the side's parameters, also without the part after a colon, so that similar loops
    match.
    """
    words = side.traits["parameters"].split()
    return {*words, *(word.partition(":")[0] for word in words)}


def _partner(side: Side, chosen: Sequence[Side]) -> Side:
    alike = list(chosen)
    for trait in ("load", "deployment", "space", "tool", "parameters", "kernel", "host"):
        alike = [candidate for candidate in alike if candidate.traits[trait] == side.traits[trait]] or alike
    words = _parameter_words(side)
    shared = [len(words & _parameter_words(candidate)) for candidate in alike]
    alike = [candidate for candidate, number in zip(alike, shared, strict=True) if number == max(shared)]
    if len(alike) > 1:
        labels = ", ".join(repr(candidate.label) for candidate in alike)
        raise InputError(
            f"'{side.label}' has several possible baselines, {labels}: choose one with --baseline"
        )
    return alike[0]
