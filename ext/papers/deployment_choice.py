# SPDX-License-Identifier: MIT
"""Chooses the deployment whose idle latencies are most like Single's (Delgado & Choi 2020, sec. IV)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rtgauge.analysis.baselines import UNIPROCESSOR, pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.side_labels import EMULATED
from rtgauge.analysis.sides import Side, sides_of
from rtgauge.errors import MeasureError
from rtgauge.record.reader import Record
from rtgauge.report.compare.extension_parts import with_parts
from rtgauge_ext.papers.comparison_part import PapersComparison, papers_comparison
from rtgauge_ext.papers.selection import ChiSquarePair

IDLE = "idle"


@dataclass(frozen=True)
class ChosenDeployment:
    """The chosen deployment and the reason."""

    deployment: str
    reason: str


@dataclass(frozen=True)
class ComparedDeployments:
    """The deployments of a record, their comparison (None for a single deployment), and the choice."""

    sides: list[Side]
    pairs: list[tuple[Side, Side]]
    comparison: Comparison | None
    choice: ChosenDeployment


def _least(tested: list[ChiSquarePair]) -> ChiSquarePair | None:
    """Return the pair with the smallest statistic, rejected or not."""
    return min(
        (pair for pair in tested if pair.paper.statistic is not None),
        key=lambda pair: pair.paper.statistic or 0.0,
        default=None,
    )


def choose(comparison: Comparison, tested: PapersComparison) -> ChosenDeployment:
    """Choose the deployment with the smallest statistic among the deployments that the test against Single
    does not reject (sec. IV).

    If all are rejected, choose the one with the smallest statistic anyway, and say so in the reason. Raises
    MeasureError if no deployment could be tested.
    """
    deployments = {side.label: side.traits["deployment"] for side in comparison.sides}
    (paper,) = tested.selections
    if paper.best is not None:
        return ChosenDeployment(
            deployments[paper.best],
            "this deployment does not differ significantly from Single, and has the smallest chi-square "
            "statistic",
        )
    least = _least(tested.pairs)
    if least is None:
        causes = "; ".join(f"{pair.side}: {pair.paper.cannot}" for pair in tested.pairs)
        raise MeasureError(f"cannot choose a deployment ({causes})")
    reason = (
        "every deployment differs significantly from Single; the chosen one differs least (chi-square "
        f"statistic {least.paper.statistic:.1f}, critical value {least.paper.critical:.1f})"
    )
    return ChosenDeployment(deployments[least.side], reason)


def choose_deployment(record: Record) -> ComparedDeployments:
    """Compare the idle deployments of a record and choose one. Raises MeasureError if none can be chosen."""
    idle = replace(record, steps=[step for step in record.steps if step.key.load == IDLE])
    if UNIPROCESSOR not in {step.key.deployment for step in idle.steps}:
        raise MeasureError(
            f"cannot choose a deployment: the baseline, {UNIPROCESSOR}, could not be measured on this machine"
        )
    sides = sides_of([idle])
    if len(sides) == 1:
        return ComparedDeployments(
            sides,
            [],
            None,
            ChosenDeployment(UNIPROCESSOR, "Single is the only deployment that this machine supports"),
        )
    compared = pairs(sides, UNIPROCESSOR)
    options = ComparisonOptions()
    tested = papers_comparison(sides, compared, options.alpha)
    comparison = with_parts(compare(sides, compared, options), [tested])
    choice = choose(comparison, tested)
    if any(side.traits["processor"] == EMULATED for side in sides):
        choice = replace(
            choice,
            reason=f"{choice.reason}; because the processor is emulated, the choice says nothing about "
            "a real machine",
        )
    return ComparedDeployments(sides, compared, comparison, choice)
