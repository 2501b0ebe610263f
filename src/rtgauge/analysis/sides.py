# SPDX-License-Identifier: MIT
"""Makes the sides of a comparison. A side is one condition of a record, or of all records with a label."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.quantile_interval import WindowCounts, values_ns, window_counts
from rtgauge.analysis.record_names import record_names
from rtgauge.analysis.side_labels import EMULATED, different_parameters, labels_of, traits_of
from rtgauge.errors import InputError
from rtgauge.probe.probe_registry import operation_of
from rtgauge.record.alternation import Alternation, alternation_of, pair_of, side_of
from rtgauge.record.histogram import Histogram, Integers, add_bins, lower_ns, signed_bin_of
from rtgauge.record.merged_windows import Merged, merge
from rtgauge.record.model import SEGMENT, Distribution, SeriesSummary, Severity, Step, worst_severity
from rtgauge.record.probe_parameters import LIMITS
from rtgauge.record.reader import Record
from rtgauge.record.summary import distribution, filled_distribution
from rtgauge.record.watched_loop import definitions_of
from rtgauge.record.windows import UNKNOWN, Windows
from rtgauge.units import format_duration


@dataclass(frozen=True)
class Scope:
    """The steps and series to compare; by default the main quantity of every step.

    `task` and `metric` choose from a task set, and `operation` from operations. `probe`, `metric` and
    `role` choose from periodic tasks, response tasks and wakeup.
    """

    title: str = ""
    task: str | None = None
    metric: str | None = None
    operation: str | None = None
    probe: str | None = None
    role: str | None = None

    def has(self, step: Step) -> bool:
        """Return whether the step is in the scope."""
        if step.total is None:
            return False
        if self.operation is not None:
            return operation_of(step) == self.operation
        if self.probe is not None:
            return step.key.probe == self.probe and bool(self.series(step))
        return self.task is None or any(counts.task == self.task for counts in step.tasks)

    def quantity(self, step: Step) -> str:
        """Return the metric of the step to compare."""
        return self.metric or (step.total.metric if step.total is not None else "none")

    def series(self, step: Step) -> list[SeriesSummary]:
        """Return the series of the step to compare."""
        if self.task is None and self.metric is None:
            return step.main_series
        metric = self.quantity(step)
        series = [each for each in step.series if each.metric == metric]
        if self.task is not None:
            series = [each for each in series if each.labels.get("task") == self.task]
        if self.probe is not None:
            whole = (each for each in series if SEGMENT not in each.labels)
            series = [each for each in whole if each.labels.get("role") == self.role]
        return series


EVERYTHING = Scope()


@dataclass(frozen=True, eq=False)
class SideRun:
    """A run of a side: a repeat or a whole record, with missed activations filled in."""

    number: int
    """The pair's number if the record measured both sides alternately, else the run's."""
    figures: Distribution
    bins: Integers
    counts: Integers


@dataclass(frozen=True, eq=False)
class Side:
    """One condition of one record, or of several records with the same label.

    `traits`: host, kernel, deployment, load, ...; `label`: the traits that differ between the sides.
    `limits_ns`: series -> the end of its imported histogram.
    """

    label: str
    records: tuple[Record, ...]
    steps: tuple[Step, ...]
    traits: dict[str, str]
    windows: Windows
    """The measured windows of the side's series."""
    block: Integers
    """For each window, the number of its block of time, which all CPUs share."""
    run: Integers
    """For each window, the number of its run."""
    merged: Merged
    resolution_ns: int
    quantity: str = "latency"
    limits_ns: Mapping[int, int] | None = None

    @property
    def record(self) -> Record:
        """The side's first record."""
        return self.records[0]

    @property
    def machine(self) -> tuple[str, str]:
        """The host and the kernel."""
        return self.traits["host"], self.traits["kernel"]

    @property
    def is_first_alternating(self) -> bool:
        """Whether the record measured two sides alternately and this is the first."""
        return alternation_of(self.record.run) is not None and side_of(self.steps[0].key.repeat) == 0

    @cached_property
    def plain(self) -> Distribution:
        """The figures of the measured activations."""
        return distribution(self.merged, resolution_ns=self.resolution_ns)

    @cached_property
    def filled(self) -> Distribution:
        """The figures with missed activations filled in."""
        return filled_distribution(self.merged, resolution_ns=self.resolution_ns)

    @cached_property
    def worst(self) -> Severity | None:
        """The severity of the worst mark on any of the side's steps."""
        return worst_severity(step.worst for step in self.steps)

    @cached_property
    def histogram(self) -> Histogram:
        """The bins and counts of all activations, missed ones included. Samples in no bin count at the start
        of their range.
        """
        return _histogram(self.merged)

    @cached_property
    def runs(self) -> list[SideRun]:
        """The runs that measured something, in order."""
        runs: list[SideRun] = []
        numbers: list[int] = np.unique(self.run).tolist()
        for number in numbers:
            part = self.merged
            if len(numbers) > 1:
                part = merge(self.windows.chosen(self.run == number), limits_ns=self.limits_ns)
            figures = filled_distribution(part, resolution_ns=self.resolution_ns)
            if figures.count:
                runs.append(SideRun(number, figures, *_histogram(part)))
        return runs

    def values_ns(self, bins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the value (ns) of each bin: the largest it can hold, at the tool's resolution."""
        return values_ns(bins, self.resolution_ns)

    def bin_ends_ns(self, ns: int) -> tuple[int, int]:
        """Return both ends (ns) of the bin that contains `ns`, at the tool's resolution."""
        low = int(lower_ns(signed_bin_of(ns))) // self.resolution_ns * self.resolution_ns
        return low, max(low, ns) + self.resolution_ns - 1

    @cached_property
    def window_counts(self) -> WindowCounts:
        """The histogram of each window, with missed activations filled in."""
        return window_counts(self.windows, self.block, self.resolution_ns, self.filled)

    @cached_property
    def maxima(self) -> tuple[list[int], list[int], list[int]]:
        """For each block of time, the largest latency (ns, unsigned), the number of activations, and the
        run.

        Stretches with less than half the median number of activations are left out.
        """
        _, first, block = np.unique(self.block, return_index=True, return_inverse=True)
        most = np.full(len(first), UNKNOWN)
        number = np.zeros(len(first), dtype=np.int64)
        least = np.where(self.windows.min_ns == UNKNOWN, UNKNOWN, -self.windows.min_ns)
        np.maximum.at(most, block, np.maximum(self.windows.max_ns, least))
        np.add.at(number, block, self.windows.count + self.windows.missed)
        measured = most != UNKNOWN
        whole = measured & (2 * number >= np.median(number[measured])) if measured.any() else measured
        return most[whole].tolist(), number[whole].tolist(), self.run[first][whole].tolist()


def _histogram(merged: Merged) -> Histogram:
    bins = np.array([int(signed_bin_of(group.from_ns)) for group in merged.unplaced], dtype=np.int64)
    counts = np.array([group.count for group in merged.unplaced], dtype=np.int64)
    return add_bins(
        np.concatenate([merged.bins, merged.missed_bins, bins]),
        np.concatenate([merged.counts, merged.missed_counts, counts]),
    )


def _identity(step: Step, alternation: Alternation | None) -> str:
    key = step.key.model_dump(exclude={"repeat"})
    if alternation is not None:
        key["side"] = side_of(step.key.repeat)
    return json.dumps(key, sort_keys=True)


def _windows(steps: Sequence[tuple[Record, Step]], scope: Scope) -> tuple[Windows, Integers, Integers]:
    """Return the windows of all steps in sequence, and for each window the numbers of its block of time and
    its run. A run is a record if there are several, else a step.
    """
    numbers = {path: number for number, path in enumerate(dict.fromkeys(record.path for record, _ in steps))}
    parts: list[Windows] = []
    blocks: list[Integers] = []
    runs: list[Integers] = []
    offset = 0
    for number, (record, step) in enumerate(steps):
        series = [summary.series for summary in scope.series(step) if summary.series is not None]
        windows = record.windows(step)
        if len(numbers) > 1:
            run = numbers[record.path]
        else:
            run = number if alternation_of(record.run) is None else pair_of(step.key.repeat)
        parts.append(windows.chosen(windows.are_of(series)))
        blocks.append(parts[-1].index + offset)
        runs.append(np.full(len(parts[-1]), run))
        offset = int(blocks[-1].max(initial=offset - 1)) + 1
    return Windows.together(parts), np.concatenate(blocks), np.concatenate(runs)


def _limits(step: Step) -> dict[int, int]:
    limits: Mapping[str, int | None] = step.parameters.get(LIMITS) or {}
    return {int(series): limit for series, limit in limits.items() if limit is not None}


@dataclass(frozen=True)
class _Condition:
    """The steps of one side, each with its record."""

    name: str
    steps: list[tuple[Record, Step]]

    @property
    def record(self) -> Record:
        return self.steps[0][0]

    @property
    def step(self) -> Step:
        return self.steps[0][1]


def _conditions(records: Sequence[Record], scope: Scope) -> list[_Condition]:
    """Return the conditions of each record, or of all records with the same label, idle first. Raises
    InputError if a record has no finished step with latencies.
    """
    by_name: dict[str, dict[str, list[tuple[Record, Step]]]] = {}
    for record, name in zip(records, record_names(records), strict=True):
        groups = by_name.setdefault(record.label or name, {})
        steps = [step for step in record.steps if scope.has(step)]
        if not steps and scope is EVERYTHING:
            raise InputError(f"{record.path} does not contain a finished step with latencies to compare")
        for step in steps:
            groups.setdefault(_identity(step, alternation_of(record.run)), []).append((record, step))
    return [
        _Condition(name, steps)
        for name, groups in by_name.items()
        for steps in sorted(groups.values(), key=lambda steps: steps[0][1].key.load != "idle")
    ]


def sides_of(
    records: Sequence[Record], scope: Scope = EVERYTHING, *, force: bool = False, alike: bool = True
) -> list[Side]:
    """Make one side for each condition in the scope, of each record or of all records with a label, idle
    first.

    `force`: allow emulated and real machines together. `alike`: refuse sides that differ in probe, quantity,
    unit or interval; False for tables that compare nothing. Raises InputError if two sides cannot be
    compared, RecordError for a damaged record.
    """
    if len({record.path.resolve() for record in records}) < len(records):
        raise InputError("a record is named twice; name each record once")
    conditions = _conditions(records, scope)
    if not conditions:
        return []
    steps = [condition.step for condition in conditions]
    different = different_parameters(steps)
    traits = [traits_of(condition.record, condition.step, different) for condition in conditions]
    names = [condition.name for condition in conditions]
    labels = labels_of(traits, names, named=any(record.label for record in records))
    if not force:
        _check_emulated(dict(zip(labels, traits, strict=True)))
    if alike and scope.operation is None:
        check_comparable(list(zip(labels, steps, strict=True)))
    every = zip(labels, traits, conditions, strict=True)
    return [_side(label, of_side, condition.steps, scope) for label, of_side, condition in every]


def _side(label: str, traits: dict[str, str], measured: list[tuple[Record, Step]], scope: Scope) -> Side:
    windows, block, run = _windows(measured, scope)
    step = measured[0][1]
    limits = _limits(step)
    return Side(
        label=label,
        records=tuple({record.path: record for record, _ in measured}.values()),
        steps=tuple(step for _, step in measured),
        traits=traits,
        windows=windows,
        block=block,
        run=run,
        merged=merge(windows, limits_ns=limits),
        resolution_ns=int(step.parameters.get("resolution_ns") or 1),
        quantity=scope.quantity(step),
        limits_ns=limits,
    )


def _check_emulated(sides: Mapping[str, Mapping[str, str]]) -> None:
    """Raise InputError if one machine is emulated and another is not."""
    emulated = [label for label, traits in sides.items() if traits["processor"] == EMULATED]
    others = [label for label in sides if label not in emulated]
    if emulated and others:
        raise InputError(
            f"these sides cannot be compared, because '{emulated[0]}' has an emulated processor and "
            f"'{others[0]}' has a real one; to compare them anyway, add --force"
        )


def check_comparable(steps: Sequence[tuple[str, Step]]) -> None:
    """Raise InputError with the first difference in probe, quantity, unit or interval."""
    first_label, first = steps[0]
    for label, step in steps[1:]:
        of_first, of_other = _measured(first), _measured(step)
        different = next((name for name in of_first if of_first[name] != of_other[name]), None)
        if different is not None:
            raise InputError(
                f"these sides cannot be compared, because the {different} is {of_first[different]} in "
                f"'{first_label}', but {of_other[different]} in '{label}'; measure both in the same way"
            )


def _measured(step: Step) -> dict[str, str]:
    """Return in words what was measured. Compared steps have the same words."""
    total = step.total
    interval = (step.parameters | step.key.parameters.values).get("interval_ns")
    return {
        "probe": step.key.probe,
        "quantity": "none" if total is None else total.metric,
        "unit": "none" if total is None else total.unit,
        "interval": format_duration(interval) if isinstance(interval, int) else "unknown",
        "definition of a release (version)": str(definitions_of(step)),
    }
