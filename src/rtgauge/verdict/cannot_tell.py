# SPDX-License-Identifier: MIT
"""Makes the verdict "cannot tell" of a step without figures to judge."""

from __future__ import annotations

from typing import Any

from rtgauge.record.model import Step, Verdict, VerdictWord
from rtgauge.verdict.requirement import Requirement


def cannot_tell(
    requirement: Requirement, step: Step, reason: str, following: str, **evidence: Any
) -> Verdict:
    """Return "cannot tell" on a step, with the reason and what to do (`following`)."""
    return Verdict(
        word=VerdictWord.CANNOT_TELL,
        requirement=str(requirement),
        reason=reason,
        next=following,
        step=step.id,
        evidence={"metric": requirement.metric, **evidence},
    )
