# SPDX-License-Identifier: MIT
"""Defines the documents of a comparison. `rtgauge compare --json` prints them, and tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field, RootModel, SerializeAsAny

from rtgauge.analysis import change_words
from rtgauge.record.model import Distribution, Model, Severity, Verdict

SCHEMA_VERSION = 1


class ComparisonFinding(StrEnum):
    """What a difference of quantiles, or a whole comparison, shows. The values are the words for repeated
    runs.
    """

    WORSE = change_words.WORSE
    MIXED = change_words.MIXED
    BETTER = change_words.BETTER
    SAME = change_words.SAME
    NOT_SHOWN = change_words.NOT_SHOWN
    UNKNOWN = change_words.CANNOT_TELL


class SideFigures(Model):
    """The figures of one side, as measured and with missed activations filled in."""

    label: str
    record: str
    """Folder of the first record on this side."""
    records: list[str] = Field(default_factory=list[str])
    """Folders of the records on this side; records with the same label form one side."""
    runs: int = 1
    """Number of records on this side; if there is only one record, the number of its repeats."""
    steps: list[str]
    traits: dict[str, str]
    baseline: str | None
    """The label of the baseline; None if this side is a baseline."""
    missed: int
    worst_mark: Severity | None
    measured: Distribution
    filled: Distribution


class QuantileDifference(Model):
    """A quantile of a side minus the same quantile of its baseline (ns).

    The p-values are corrected for the number of comparisons in the document (Holm); the interval is not. If
    both sides have several runs, each figure is a mean over runs. Otherwise the difference says nothing about
    other runs.
    """

    side: str
    baseline: str
    quantile: str
    side_runs_ns: list[int] = Field(default_factory=list[int])
    """Value of the quantile in each run on this side."""
    baseline_runs_ns: list[int] = Field(default_factory=list[int])
    paired: bool = False
    """Whether the sides were measured in turn, so that their runs form pairs."""
    side_ns: int
    side_is_at_least: bool = False
    """Whether side_ns is only a lower bound, because some samples were too large for the histogram."""
    baseline_ns: int
    baseline_is_at_least: bool = False
    difference_ns: int | None
    """side_ns minus baseline_ns; None if one of them is only a lower bound."""
    bin_ns: int = 0
    """The two quantiles lie in histogram bins; this is the larger bin width. The difference cannot be more
    precise.
    """
    no_interval: str | None = None
    """Why no interval could be calculated; None if there is one."""
    low_ns: int | None = None
    """Lower end of the interval, after widening it by the bin widths; None if there is no interval or it has
    no lower end.
    """
    high_ns: int | None = None
    p_different: float | None = None
    p_not_within: float | None = None
    p_not_beyond: float | None = None
    says: str

    @property
    def repeated(self) -> bool:
        """Whether both sides have several runs. Only then does the difference hold for further runs."""
        return min(len(self.side_runs_ns), len(self.baseline_runs_ns)) > 1


class Comparison(Model):
    """The document that `rtgauge compare --json` prints."""

    schema_version: int = SCHEMA_VERSION
    quantity: str = "latency"
    """Quantity that is compared, such as latency, switch or (for a task set) response."""
    task: str | None = None
    """Task that is compared, if the records have task sets."""
    title: str = ""
    """What distinguishes this document from others in a list: its task, or its quantity and who observed it.
    """
    alpha: float
    within_ns: int
    outcome: ComparisonFinding | None = None
    """The conclusion in a word; `cannot tell` if the runs show no difference, or if each side has a single
    run.
    """
    conclusion: str = ""
    """The conclusion in one sentence."""
    values: str | None = None
    """Values of both sides at the quantile where they differ most, in words; None if the sides do not clearly
    differ.
    """
    next: str | None = None
    """What the user can do to find out more."""
    worse: list[str] = Field(default_factory=list[str])
    """Sides that are worse than their baseline at any quantile, as repeated runs show."""
    undetermined: list[str] = Field(default_factory=list[str])
    """Sides that may be worse: they have only one run, or every quantile lacks an interval."""
    verdicts: dict[str, Verdict] = Field(default_factory=dict[str, Verdict])
    """The verdict on each record, if a requirement was given."""
    sides: list[SideFigures]
    settings: dict[str, list[str]]
    """The settings that differ: name -> its value on each side, in the order of `sides`."""
    quantiles: list[QuantileDifference]
    extensions: dict[str, SerializeAsAny[BaseModel]] = Field(
        default_factory=dict[str, SerializeAsAny[BaseModel]]
    )
    """What each extension adds, by its name."""


class ComparisonList(RootModel[list[Comparison]]):
    """One comparison for each probe, task, or quantity and observer; `title` distinguishes them."""


class OperationsAndComparisons(Model):
    """The tables of operations that an extension makes, and comparisons of everything else."""

    operations: SerializeAsAny[BaseModel]
    comparisons: list[Comparison]


def compared_document(
    operations: BaseModel | None, comparisons: Sequence[Comparison], *, single: bool
) -> BaseModel:
    """Return the document to print. `single`: whether a single comparison covers everything."""
    if operations is None:
        return comparisons[0] if single else ComparisonList(list(comparisons))
    if not comparisons:
        return operations
    return OperationsAndComparisons(operations=operations, comparisons=list(comparisons))
