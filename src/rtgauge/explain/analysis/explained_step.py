# SPDX-License-Identifier: MIT
"""The explanations of a step of a record, and of all its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.attribution import Explanation, explain
from rtgauge.explain.analysis.culprits import RankedCulprit, ranked_culprits
from rtgauge.explain.analysis.joint_stall import with_joint_stalls
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.record.moments import MomentFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record


@dataclass(frozen=True)
class ExplainedStep:
    """A step whose largest latencies were explained, in the order of their measuring; the worst alone still has its events. None: none was frozen."""

    step: Step
    explanations: Sequence[Explanation]
    symbols: Symbols

    @property
    def culprits(self) -> list[RankedCulprit]:
        """Who took the time, the most first."""
        return ranked_culprits(self.explanations)

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
            found.append(ExplainedStep(step, *_explanations(file.path, file.path.stat().st_mtime_ns)))
    return found


@lru_cache(maxsize=16)
def _explanations(path: Path, changed_ns: int) -> tuple[tuple[Explanation, ...], Symbols]:  # noqa: ARG001 - a part of the cache's key
    """The page and the terminal show the same steps several times."""
    file = MomentFile.open(path)
    formats = TraceFormats.read(file.formats)
    explanations: list[Explanation] = []
    symbols = formats.symbols
    for document in file.moments():
        symbols = symbols.with_others(Symbols.read(document.get("symbols")))
        explanations.append(explain(read_moment(formats, document), symbols))
        worst = max(explanations, key=lambda known: known.latency_ns)
        # the events of one moment are megabytes: the figure needs those of the worst
        explanations = [known if known is worst else known.without_events() for known in explanations]
    return tuple(with_joint_stalls(explanations)), symbols
