# SPDX-License-Identifier: MIT
"""Finds the worst of several verdicts, and a run's exit status."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK
from rtgauge.record.model import Severity, Step, Verdict, VerdictWord

ORDER = (VerdictWord.HOLDS, VerdictWord.MARGINAL, VerdictWord.CANNOT_TELL, VerdictWord.FAILS)


def _badness(verdict: Verdict) -> tuple[int, float, float, float]:
    """Return the sort key of a verdict; the largest decides.

    Of two failures, the worse has the larger lateness or, below hardness 100 %, the larger share of
    violations. Of two verdicts "cannot tell", the worse is the invalid one, else the one that takes longer to
    decide.
    """
    evidence = verdict.evidence
    activations = int(evidence.get("activations") or 0)
    share = int(evidence.get("violations_certain") or 0) / activations if activations else 0.0
    largest = evidence.get("max_ns")
    # The overflow of a foreign histogram is later than any known value.
    lateness = float(largest) if isinstance(largest, int) else math.inf if share else 0.0
    order = ORDER.index(verdict.word)
    if verdict.word == VerdictWord.CANNOT_TELL:
        return (
            order,
            float(evidence.get("invalid") is True),
            float(evidence.get("duration_needed_ns") or 0),
            lateness,
        )
    by_share = evidence.get("hardness") not in (None, 1.0)
    return (order, share, lateness, 0.0) if by_share else (order, lateness, share, 0.0)


def worst(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict that decides: "fails" comes before "cannot tell", "marginal" and "holds". Of equal
    words, the verdict with the worst figures decides. None if there are no verdicts.
    """
    return max(verdicts, key=_badness, default=None)


def exit_status(verdicts: Sequence[Verdict], steps: Sequence[Step]) -> int:
    """Return the exit status: 0 if the requirement holds or none was given, 1 if it fails, 3 if a measurement
    is invalid, 4 if the verdict is "marginal" or "cannot tell".

    A measured failure comes first.
    """
    decisive = worst(verdicts)
    if decisive is not None and decisive.word == VerdictWord.FAILS:
        return EXIT_FAILS
    if any(step.worst == Severity.INVALID for step in steps):
        return EXIT_CANNOT_MEASURE
    return EXIT_OK if decisive is None or decisive.word == VerdictWord.HOLDS else EXIT_CANNOT_TELL
