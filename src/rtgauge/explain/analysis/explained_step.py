# SPDX-License-Identifier: MIT
"""The explanations of a step of a record, and of all its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.culprits import RankedCulprit, ranked_culprits
from rtgauge.explain.analysis.parts import Culprit, Explanation, Kind
from rtgauge.explain.analysis.stall import with_joint_stalls
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.system.starvation import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.facts import Facts
    from rtgauge.record.model import Step
    from rtgauge.record.moments import MomentFile
    from rtgauge.record.reader import Record

WATCH = "watch"
"""The probe whose threads are a program's own: what they do themselves is named after them."""


@dataclass(frozen=True)
class ExplainedStep:
    """A step whose largest latencies were explained, in the order of their measuring; the worst alone still
    has its events.

    None: none was frozen.

    `blocked`: of a program of the user's own, likewise sleeps that another thread ended: for locks whose
    owner has a lower priority, and the longest others.
    """

    step: Step
    explanations: Sequence[Explanation]
    symbols: Symbols
    blocked: Sequence[Explanation] = ()

    @property
    def culprits(self) -> list[RankedCulprit]:
        """Who took the time, the most first."""
        return ranked_culprits([*self.explanations, *self.blocked])

    @property
    def worst(self) -> Explanation | None:
        """The explanation of the largest latency."""
        return max(self.explanations, key=lambda known: known.latency_ns, default=None)


def explained_steps(record: Record, steps: Sequence[Step] | None = None) -> list[ExplainedStep]:
    """Those of the steps that were explained. Raises RecordError for a damaged record."""
    found: list[ExplainedStep] = []
    for step in record.steps if steps is None else steps:
        file = record.moments(step)
        if file is not None:
            known, symbols = _explanations(file)
            facts = record.system(step.key.targets.get("self", "local"))
            told = [_told(explanation, step.key.probe, facts) for explanation in known]
            blocked = [
                explanation
                for explanation in told
                if explanation.moment.is_wait and explanation.latency_ns > 0
            ]
            found.append(
                ExplainedStep(
                    step,
                    [explanation for explanation in told if not explanation.moment.is_wait],
                    symbols,
                    blocked,
                )
            )
    return found


def _told(explanation: Explanation, probe: str, facts: Facts) -> Explanation:
    """With what the trace does not tell: the only mechanism on this machine that can have given the CPU to a
    lower task; of a program its thread's name.
    """
    return replace(
        explanation,
        parts=[
            replace(part, culprit=_told_culprit(part.culprit, explanation, probe, facts))
            for part in explanation.parts
        ],
    )


def _told_culprit(culprit: Culprit, explanation: Explanation, probe: str, facts: Facts) -> Culprit:
    if culprit.kind is Kind.OWN and probe == WATCH:
        return replace(culprit, name=explanation.path.name)
    if culprit.kind is not Kind.THROTTLED or culprit.mechanism:
        return culprit
    possible = (
        [limit.name for limit in limits(facts)] if {"scheduling", "kernel"} <= facts.model_fields_set else []
    )
    return replace(culprit, mechanism=possible[0]) if len(possible) == 1 else culprit


@lru_cache(maxsize=16)
def _explanations(file: MomentFile) -> tuple[tuple[Explanation, ...], Symbols]:
    """The page and the terminal show the same steps several times."""
    formats = TraceFormats.read(file.formats)
    explanations: list[Explanation] = []
    symbols = formats.symbols
    for document in file.moments():
        symbols = symbols.with_others(Symbols.read(document.get("symbols")))
        explanations.append(explain(read_moment(formats, document), symbols))
        worst = max(explanations, key=lambda known: (not known.moment.is_wait, known.latency_ns))
        # the events of one moment are megabytes: the figure needs those of the worst
        explanations = [known if known is worst else known.without_events() for known in explanations]
    return tuple(with_joint_stalls(explanations)), symbols
