# SPDX-License-Identifier: MIT
"""Runs the search on a record: it replays the record's runs, and requests the next ones. So an interrupted
tuning can continue.

Each run has a number, which is the `repeat` of its steps, in the order of the search.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.explain.analysis.ranking import RankedCulprit
from rtgauge.record.marks import Severity
from rtgauge.record.model import Distribution, SettingMade, Step, StepKey
from rtgauge.record.quantiles import QUANTILES, times_longer
from rtgauge.record.reader import Record
from rtgauge.system.deployment.definition import AS_IS, parse_deployment
from rtgauge.units import NS_PER_S, format_duration, format_span
from rtgauge.verdict.decision import judged_series
from rtgauge.verdict.requirement import Requirement
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.search import TuningSearch, Visit, VisitResult, rule_id
from rtgauge_ext.tune.suspects import culprits_of, suspects
from rtgauge_ext.tune.tuning_options import KEY, TuningOptions, options_of, plain

THREAD = "thread:"


@dataclass(frozen=True)
class Played:
    """A search after all runs of a record. `next`: the runs that it requests next; empty if it is done."""

    options: TuningOptions
    search: TuningSearch
    culprits: Sequence[RankedCulprit]
    runs: Sequence[Visit]
    """The runs, in order. The first run has the number 1."""
    next: Sequence[Visit]

    @property
    def awaits_boot(self) -> bool:
        """Whether the confirmation comes next, and must wait for another boot."""
        begins = self.next and self.next[0].loads == self.options.confirm_loads
        begun = any(visit.loads == self.options.confirm_loads for visit in self.runs)
        return self.options.confirm_after_boot and bool(begins) and not begun


def play(record: Record) -> Played:
    """Replay the search of a record. Raises InputError if the record is not of a tuning, RecordError if it is
    damaged.
    """
    options = options_of(record.run)
    search = TuningSearch(options.search(record.run.seed or 0))
    planned = {key.repeat for key in record.run.planned}
    steps: dict[int, list[Step]] = defaultdict(list)
    for step in record.steps:
        steps[step.key.repeat].append(step)
    culprits: list[RankedCulprit] = []
    runs: list[Visit] = []
    visits = search.visits()
    visits_due = next(visits)
    while True:
        numbers = range(len(runs) + 1, len(runs) + 1 + len(visits_due))
        if not planned & set(numbers):
            return Played(options, search, culprits, runs, visits_due)
        if not runs:
            culprits = culprits_of(record, steps[1])
            search.suspects = suspects(culprits, {choice.rule for choice in options.choices})
        results = [
            replace(
                visit_result(steps[number], visit, options.bound),
                refused=refused_in(steps[number], visit.settings),
            )
            for number, visit in zip(numbers, visits_due, strict=True)
        ]
        runs += visits_due
        try:
            visits_due = visits.send(results)
        except StopIteration:
            return Played(options, search, culprits, runs, ())


def with_more_budget(record: Record, budget_ns: int | None) -> dict[str, object]:
    """Let the record's search take a larger budget, and return the keys of the plan that this changes; none
    without a budget.

    Raises InputError if the budget is not larger, or if the runs after the old budget's end do not fit in.
    """
    options = options_of(record.run)
    if budget_ns is None:
        return {}
    most_runs = int(budget_ns / NS_PER_S / options.run_s)
    if most_runs <= options.most_runs:
        raise InputError(
            f"--budget {format_duration(budget_ns)} is not more than the record's "
            f"{format_span(options.most_runs * options.run_s)}; only more can be given"
        )
    more = options.model_copy(update={"most_runs": most_runs})
    replaced_keys: dict[str, object] = {KEY: more.model_dump(mode="json")}
    record.run.plan.update(replaced_keys)
    runs = play(record).runs
    for key in record.run.planned:
        visit = runs[key.repeat - 1]
        if key.deployment != deployment(visit.settings, more) or key.load not in visit.loads:
            raise InputError(
                "this tuning has confirmed what it kept when its budget ran out, so it cannot search on; "
                "start a new one with a larger --budget"
            )
    return replaced_keys


def next_runs(record: Record, *, booted: bool = False) -> Sequence[StepKey]:
    """Return the steps of the next runs; empty if the search is done, cannot continue, or waits for a boot.

    `booted`: whether the machine was booted after the search.
    """
    played = play(record)
    if played.awaits_boot and not booted:
        return []
    first = next(key for key in record.run.planned if key.repeat == 1)
    number = len(played.runs)
    return [
        plain(first).model_copy(
            update={"load": load, "deployment": deployment(visit.settings, played.options), "repeat": at}
        )
        for at, visit in enumerate(played.next, number + 1)
        for load in visit.loads
    ]


def deployment(settings: Sequence[str], options: TuningOptions) -> str:
    """Return the name of the deployment with these settings."""
    parts = {choice.rule: choice.part for choice in options.choices} | {
        setting: part for parts in options.fewer.values() for setting, part in parts.items()
    }
    return deployment_name([parts[name] for name in settings], options.cpus, options.pid, options.interface)


def deployment_name(
    parts: Sequence[str], cpus: str | None, pid: int | None = None, interface: str | None = None
) -> str:
    """Return the name of the deployment with these parts, or `as-is` without parts. Raises InputError."""
    if not parts:
        return AS_IS
    rules, boots = (
        [part.removeprefix(key) for part in parts if part.startswith(key)] for key in ("settings=", "boot=")
    )
    words = [part for part in dict.fromkeys(parts) if not part.startswith(("settings=", "boot="))]
    words += [f"settings={','.join(rules)}"] if rules else []
    words += [f"boot={','.join(boots)}"] if boots else []
    trials = [tried_rules()[rule].trial for rule in rules if rule in tried_rules()]
    if any(trial is not None and trial.needs_cpus for trial in trials):
        words.append(f"rt-cpus={cpus}")
    if rules and pid is not None:
        words.append(f"rt-pid={pid}")
    if rules and interface is not None:
        words.append(f"interface={interface}")
    return parse_deployment(",".join(words)).name


def visit_result(steps: Sequence[Step], visit: Visit, requirement: Requirement) -> VisitResult:
    """Return what a run showed under its worst load. A run with a missing or invalid load does not count."""
    by_load = {step.key.load: step for step in steps}
    values = [value_ns(by_load[load], requirement) if load in by_load else None for load in visit.loads]
    if any(value is None for value in values):
        return VisitResult(None)
    worst = max(value for value in values if value is not None)
    return VisitResult(float(max(worst, 1)), worst <= requirement.bound_ns)


def refused_in(steps: Sequence[Step], settings: Sequence[str]) -> dict[str, str]:
    """Return each of these settings of which the machine refused everything, with the first reason.

    A setting of which some files or threads could be set counts as tried. `steps`: the steps of the run.
    """
    refused: dict[str, str] = {}
    for name in settings:
        for step in steps:
            made = [] if step.deployment is None else _made_for(name, step.deployment.settings, settings)
            errors = [each for each in made if each.error is not None]
            if errors and len(errors) == len(made):
                refused.setdefault(name, f"{errors[0].path}: {errors[0].error}")
    return refused


def _made_for(name: str, made: Sequence[SettingMade], settings: Sequence[str]) -> list[SettingMade]:
    """Return the changes that were made for one of the settings in force."""
    return [each for each in made if any(fnmatchcase(each.path, pattern) for pattern in _patterns(name))] + [
        each
        for each in made
        if each.path.startswith(THREAD) and [other for other in settings if _sets_threads(other)] == [name]
    ]


def _patterns(name: str) -> list[str]:
    """Return the patterns of the files that a setting changes."""
    rule = tried_rules().get(rule_id(name))
    if rule is None or rule.trial is None:
        return []
    return [re.sub(r"\{[^}]*\}", "*", setting.file) for setting in rule.trial.set if setting.file is not None]


def _sets_threads(name: str) -> bool:
    rule = tried_rules().get(rule_id(name))
    return rule is not None and rule.trial is not None and any(each.file is None for each in rule.trial.set)


def value_ns(step: Step, requirement: Requirement) -> int | None:
    """Return the value (ns) that at least the required share of a step's activations stay within; the worst
    thread's, if there are several. None if the step does not count.
    """
    if any(mark.severity is Severity.INVALID for mark in step.marks):
        return None
    pooled = step.total is not None and step.total.metric == requirement.metric
    series = [step.total] if pooled else judged_series(step, requirement.metric)
    values = [_kept_ns(each.filled, requirement.hardness) for each in series if each is not None]
    return max((value for value in values if value is not None), default=None)


def _kept_ns(figures: Distribution, hardness: Fraction) -> int | None:
    """Return a record's first quantile at or above the share, or the maximum if too few samples lie
    beyond.
    """
    for name, share in QUANTILES.items():
        value: int | None = getattr(figures, name)
        if value is not None and share >= hardness and times_longer(name, figures.count) is None:
            return value
    return figures.max_ns if figures.count else None
