# SPDX-License-Identifier: MIT
"""A study: it begins with a plan, and what it has measured says what is measured next, into the same
record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rtgauge.plan.plan import Overrides, Plan
from rtgauge.plan.study_state import StudyState, with_study
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.runner.step_loop import expected_s


class Study(Protocol):
    """What a study has to provide. `overrides` is the command line over it, which its record keeps."""

    name: str
    description: str
    chooses_deployment: bool
    """Whether the deployment that it chooses is shown before it is measured under load."""

    def begin(self, overrides: Overrides) -> Plan:
        """The steps that are measured first, whatever they show. Raises InputError."""
        ...

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        """What is measured next, from what the record holds; nothing: the study is done.

        It depends on the record alone, so that a study that was cut off resumes as if it had not been. A step
        that is in the plan already
        (measured, or left out) is not measured again: to measure one once more, give it another `repeat`. No
        step may measure longer than the
        longest of the first ones, on which the leases of other machines rest.
        """
        ...

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> Sequence[StepKey] | None:
        """What is likely to be chosen after the steps planned so far, as an estimate of how long that takes;
        None: it cannot be told.
        """
        ...


@dataclass(frozen=True)
class AdaptiveStudy:
    """A study together with its overrides: what the runner calls."""

    study: Study
    overrides: Overrides

    def plan(self) -> Plan:
        """Its first steps, in a plan that says which study it is. Raises InputError."""
        plan = replace(self.study.begin(self.overrides), name=self.study.name)
        return with_study(plan, StudyState(name=self.study.name, asked=self.overrides))

    def __call__(self, record: Record) -> Sequence[StepKey]:
        """What is measured next."""
        return self.study.next_steps(record, self.overrides)

    def later_s(self, planned: Sequence[StepKey]) -> float | None:
        """About how long what is chosen after the steps planned so far takes, in s; None: it cannot be
        told.
        """
        later = self.study.later_steps(planned, self.overrides)
        load_warm_up_ns = self.plan().load_warm_up_ns
        return None if later is None else sum(expected_s(key, load_warm_up_ns) for key in later)
