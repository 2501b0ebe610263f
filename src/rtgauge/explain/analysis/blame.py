# SPDX-License-Identifier: MIT
"""The first culprit of a step, as the verdict's advice takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.moments import MOMENTS
from rtgauge.verdict.next_step import Blame

if TYPE_CHECKING:
    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record


def blame_of(record: Record, step: Step) -> Blame | None:
    """What took most of the step's explained latencies; None if they were not explained.

    Raises RecordError for a damaged record.
    """
    if MOMENTS not in step.checksums:
        return None
    # Only for explained steps: most records have none.
    from rtgauge.explain.analysis.culprits import mend_of
    from rtgauge.explain.analysis.explained_step import explained_steps
    from rtgauge.explain.analysis.parts import Kind
    from rtgauge.explain.analysis.sentence import culprit_name

    ranked = next(
        (ranked for explained in explained_steps(record, [step]) for ranked in explained.culprits), None
    )
    if ranked is None:
        return None
    mend = mend_of(ranked, record.system(step.key.targets.get("self", "")))
    return Blame(
        culprit_name(ranked.culprit),
        ranked.time_share,
        ranked.worst_ns,
        ranked.culprit.kind is Kind.OWN,
        None if mend is None else mend.words,
    )
