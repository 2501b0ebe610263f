# SPDX-License-Identifier: MIT
"""Forms the pairs of a gate's record: a value for each run of each series, or why a run does not count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.analysis.quantile_interval import too_few_beyond
from rtgauge.analysis.violation_bounds import lower_bound
from rtgauge.probe import probe_registry as probes
from rtgauge.record.alternation import BLOCK, Alternation, alternation_of, pair_of, side_of
from rtgauge.record.facts import UNKNOWN
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Distribution, Run, Severity, Step, StepKey
from rtgauge.record.quantiles import field_of, share_of
from rtgauge.record.reader import Record
from rtgauge.system.step_changes import NS_PER_TICK
from rtgauge.verdict.decision import judged_series
from rtgauge.verdict.requirement import Requirement, parse_requirement
from rtgauge.verdict.violations import count_violations

NOT_AS_REQUESTED = (MarkKind.DEPLOYMENT_INCOMPLETE, MarkKind.STARTING_STATE)
"""Marks that show that a run was not in the requested deployment."""

STEAL_LEVEL = 0.01
"""The chance that runs count as unlike although the host takes CPU time from both at the same rate."""


class CannotGate(Exception):  # noqa: N818 - it is not a fault of the program
    """The record cannot decide anything, with any number of pairs. The message gives reason and remedy."""


class RunValue(NamedTuple):
    """The value (ns) of one run, how many activations may have broken the bound, the variance of that number,
    and why the run does not count; None if it does.
    """

    value_ns: int | None = None
    violations: int = 0
    variance: float = 0.0
    why_not: str | None = None
    doubtful: tuple[str, ...] = ()
    """The doubtful marks, if only these keep the run from counting."""


@dataclass(frozen=True)
class GatePair:
    """One pair of a series, with times in ns. `why_not`: why the pair does not count; None if it counts."""

    number: int
    first: int
    """The side that was measured first: 0 the baseline, 1 the candidate."""
    values_ns: tuple[int | None, int | None]
    """Each side's quantile, or the largest value if a bound decides."""
    why_not: str | None = None
    doubtful: tuple[str, ...] = ()
    """The doubtful marks, if only these keep the pair from counting."""
    violations: tuple[int, int] = (0, 0)
    """How many activations of each side broke the bound, if a bound decides."""
    variances: tuple[float, float] = (0.0, 0.0)
    """The variances of these numbers, as the windows within the runs show them."""
    stolen_ns: tuple[int, int] | None = None
    """The CPU time that the host took from each side, if this alone makes a run doubtful."""

    @property
    def log_ratio(self) -> float:
        """ln(candidate / baseline), for a pair that counts."""
        baseline, candidate = self.values_ns
        if not baseline or not candidate:
            raise ValueError(f"pair {self.number} has no values")
        return math.log(candidate / baseline)


@dataclass
class GateSeries:
    """One series of a gate: the same planned step on both sides."""

    name: str
    pairs: list[GatePair] = field(default_factory=list[GatePair])
    steps: tuple[list[Step], list[Step]] = field(default_factory=lambda: (list["Step"](), list["Step"]()))
    """Each side's steps in the pairs that count."""

    @property
    def counted(self) -> list[GatePair]:
        """The pairs that count."""
        return [pair for pair in self.pairs if pair.why_not is None]

    @property
    def level(self) -> tuple[int, float]:
        """How high the values of both sides together are in the first BLOCK pairs that count, which does not
        show which side is higher: the number of violations, and the mean of ln(ns).
        """
        first = self.counted[:BLOCK]
        logs = [math.log(ns) for pair in first for ns in pair.values_ns if ns and ns > 0]
        return sum(sum(pair.violations) for pair in first), sum(logs) / len(logs) if logs else -math.inf


def gate_series(record: Record, options: GateOptions) -> list[GateSeries]:
    """Return every series of the record, with its measured pairs.

    Raises CannotGate if the record cannot decide anything.
    """
    alternation = alternation_of(record.run)
    if alternation is None:
        raise CannotGate("the record has no pairs, so rtgauge gate did not make it; give one that it made")
    _check_kernels(record, options, alternation)
    _check_both_have_all(record.run, alternation)
    steps: dict[tuple[str, int], Step] = {}
    names: dict[str, None] = {}
    for conditions in _conditions(record.run.planned).values():
        by_key = {step.key.model_dump_json(): step for step in record.steps}
        for name, key in conditions.items():
            step = by_key.get(key.model_dump_json())
            names.setdefault(name)
            if step is not None:
                steps[name, key.repeat] = step
    order = list(dict.fromkeys(key.repeat for key in record.run.planned))
    series = [GateSeries(name) for name in names]
    for each in series:
        for number in range(1, max(map(pair_of, order), default=0) + 1):
            repeats = [repeat for repeat in order if pair_of(repeat) == number]
            of_pair = tuple(steps.get((each.name, 2 * number - 1 + side)) for side in (0, 1))
            pair = _pair(record, number, side_of(repeats[0]), of_pair, options)
            each.pairs.append(pair)
            for side, step in enumerate(of_pair):
                if pair.why_not is None and step is not None:
                    each.steps[side].append(step)
    return series


def primary(series: Sequence[GateSeries], options: GateOptions) -> GateSeries:
    """Return the series that decides. Raises CannotGate if it was not measured."""
    if options.series is None:
        return max(series, key=lambda candidate: candidate.level)
    for candidate in series:
        if candidate.name == options.series:
            return candidate
    names = ", ".join(candidate.name for candidate in series)
    raise CannotGate(f"the series {options.series} was not measured; the record has only {names}")


def run_value(record: Record, options: GateOptions) -> RunValue:
    """Return the value of a record with one run, or why the run does not count.

    The series is the one that the options name, or the only one. Raises CannotGate if it is missing or
    ambiguous.
    """
    (conditions,) = _conditions(record.run.planned).values()
    if options.series is None and len(conditions) > 1:
        raise CannotGate(f"name the series that decides: give --series with one of {', '.join(conditions)}")
    name = options.series or next(iter(conditions))
    if name not in conditions:
        raise CannotGate(f"the series {name} was not measured; the record has only {', '.join(conditions)}")
    key_json = conditions[name].model_dump_json()
    step = next((step for step in record.steps if step.key.model_dump_json() == key_json), None)
    if step is None:
        return RunValue(why_not="not measured")
    return _measured(record, step, options)


def series_names(steps: Sequence[StepKey]) -> list[str]:
    """Return the series names of a plan, from the steps of one run: PROBE/METRIC/LOAD."""
    (conditions,) = _conditions(steps).values()
    return list(conditions)


def _conditions(planned: Sequence[StepKey]) -> dict[int, dict[str, StepKey]]:
    """Return each run's steps by run number and series name."""
    runs: dict[int, dict[str, StepKey]] = {}
    repeats: Counter[tuple[int, str]] = Counter()
    for key in sorted(planned, key=lambda key: key.model_dump_json(exclude={"repeat", "targets"})):
        metrics = [metric.name for metric in probes.get(key.probe).metrics]
        metric = "latency" if "latency" in metrics or not metrics else metrics[0]
        name = f"{key.probe}/{metric}/{key.load}" + ("" if key.tool == "rtgauge" else f"/{key.tool}")
        repeats[key.repeat, name] += 1
        count = repeats[key.repeat, name]
        runs.setdefault(key.repeat, {})[name if count == 1 else f"{name}#{count}"] = key
    return runs


def _check_kernels(record: Record, options: GateOptions, alternation: Alternation) -> None:
    changed = next((mark for mark in record.run.marks if mark.kind is MarkKind.KERNEL_CHANGED), None)
    if changed is not None:
        raise CannotGate(f"{changed.detail}; start a new gate")
    for key in record.run.planned:
        side = side_of(key.repeat)
        required_release, target = options.kernels[side], key.targets["self"]
        if required_release is None or target not in record.systems:
            continue
        kernel = record.system(target).kernel.release or UNKNOWN
        if required_release not in kernel:
            raise CannotGate(
                f"{alternation.names[side]} runs the kernel {kernel} instead of {required_release}; "
                "boot the right one, and start a new gate"
            )


def _check_both_have_all(run: Run, alternation: Alternation) -> None:
    runs = _conditions(run.planned)
    of_sides = [runs.get(number, {}) for number in (1, 2)]
    for side in (0, 1):
        missing = [name for name in of_sides[1 - side] if name not in of_sides[side]]
        if missing or not of_sides[side]:
            why = "; ".join(f"{left.what}: {left.reason}; {left.remedy}" for left in run.left_out)
            raise CannotGate(f"{alternation.names[side]} lacks {', '.join(missing) or 'every step'}: {why}")


def _pair(
    record: Record, number: int, first: int, steps: tuple[Step | None, ...], options: GateOptions
) -> GatePair:
    missing = RunValue(why_not="not measured")
    baseline, candidate = runs = [
        missing if step is None else _measured(record, step, options) for step in steps
    ]
    aside = [run for run in runs if run.why_not is not None]
    if baseline.why_not == candidate.why_not:
        reasons = [] if baseline.why_not is None else [f"both runs: {baseline.why_not}"]
    else:
        reasons = [
            run.why_not if step is None else f"{step.id}: {run.why_not}"
            for step, run in zip(steps, runs, strict=True)
            if run.why_not is not None
        ]
    stolen = None
    if aside and all(run.doubtful == (MarkKind.STEAL.label,) for run in aside):
        before, after = (stolen_ns(step) for step in steps if step is not None)
        stolen = before, after
        of_each = f"{before / 1e6:.0f} ms of the baseline's run and {after / 1e6:.0f} ms of the candidate's"
        reasons = [] if taken_alike(before, after) else [f"steal: the host took {of_each}"]
    return GatePair(
        number,
        first,
        (baseline.value_ns, candidate.value_ns),
        "; ".join(reasons) or None,
        tuple(dict.fromkeys(name for run in aside for name in run.doubtful))
        if all(run.doubtful for run in aside)
        else (),
        (baseline.violations, candidate.violations),
        (baseline.variance, candidate.variance),
        stolen,
    )


def _measured(record: Record, step: Step, options: GateOptions) -> RunValue:
    """Return a run's value. Raises CannotGate if no run would count."""
    if any(mark.kind is MarkKind.STOPPED for mark in step.marks):
        # It says nothing about longer runs, and is measured again.
        return RunValue(why_not="it was stopped early")
    unlike = [
        mark
        for mark in step.marks
        if mark.kind in NOT_AS_REQUESTED and mark.name not in options.allowed_marks
    ]
    if unlike:
        raise CannotGate(
            f"{step.id} was not measured as requested ({unlike[0].detail}); to count such runs, give "
            f"--allow-mark {unlike[0].name}"
        )
    if step.total is None or not step.total.filled.count:
        return RunValue(why_not="nothing was measured")
    if options.require is None:
        value = RunValue(_quantile_ns(step, step.total.filled, options))
    else:
        value = RunValue(
            step.total.filled.max_ns, *_violations(record, step, parse_requirement(options.require))
        )
    doubts = [
        mark
        for mark in step.marks
        if mark.severity is Severity.INVALID
        or (mark.severity is Severity.DOUBTFUL and mark.name not in options.allowed_marks)
    ]
    if doubts:
        only = all(mark.severity is Severity.DOUBTFUL for mark in doubts)
        return value._replace(
            why_not=f"{doubts[0].name} ({doubts[0].severity}): {doubts[0].detail}",
            doubtful=tuple(dict.fromkeys(mark.name for mark in doubts)) if only else (),
        )
    return value


def _violations(record: Record, step: Step, requirement: Requirement) -> tuple[int, float]:
    """Count the activations of a run that may have broken the bound. The variance of this number comes from
    its windows, so that a burst weighs as much as a few single violations.
    """
    series = [
        figure.series for figure in judged_series(step, requirement.metric) if figure.series is not None
    ]
    if not series:
        raise CannotGate(f"{step.id} did not measure {requirement.metric}")
    violations = count_violations(record.windows(step), requirement.bound_ns, series=series)
    if violations.by_window is None or len(violations.by_window[0]) < 2:
        return violations.possible, float(violations.possible)
    broken, every = violations.by_window
    scores = broken - broken.sum() / every.sum() * every
    return violations.possible, float(scores @ scores) * len(every) / (len(every) - 1)


def _quantile_ns(step: Step, figures: Distribution, options: GateOptions) -> int:
    field_name = field_of(options.quantile)
    value_ns: int | None = getattr(figures, field_name)
    short = too_few_beyond(figures.count, share_of(options.quantile))
    if short is not None:
        raise CannotGate(
            f"{step.id} has too few activations for {options.quantile} ({figures.count}: {short}); give a "
            f"longer --duration, or a lower --quantile"
        )
    if field_name in figures.lower_bounds or value_ns is None:
        raise CannotGate(
            f"{step.id}: {options.quantile} is above the end of {step.tool}'s histogram, so its value is "
            "unknown; give a lower --quantile"
        )
    if value_ns <= 0:
        raise CannotGate(f"{step.id}: {options.quantile} is {value_ns} ns, but a ratio needs values above 0")
    return value_ns


def stolen_ns(step: Step) -> int:
    """Return the time (ns) that the host took from the CPUs that the step measured."""
    times = step.changes.cpu_time_ns
    return sum(times.get(str(cpu), {}).get("steal") or 0 for cpu in step.cpus)


def taken_alike(first_ns: int, second_ns: int) -> bool:
    """Return whether chance explains the difference between the times that the host took from two runs of
    the same length.

    The kernel counts steal in ticks. If the host takes ticks from both runs at the same rate, each tick
    belongs to either run with chance 1/2 (Przyborowski and Wilenski 1940).
    """
    ticks = [round(ns / NS_PER_TICK) for ns in (first_ns, second_ns)]
    return not any(ticks) or lower_bound(max(ticks), sum(ticks), 1 - STEAL_LEVEL / 2) <= 1 / 2
