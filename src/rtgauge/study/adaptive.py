# SPDX-License-Identifier: MIT
"""Defines studies: a study begins with a plan, then chooses further steps of the record from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.plan.study_state import StudyState, with_study
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.runner.step_loop import expected_s


class Study(Protocol):
    """What a study provides. `overrides` are the command line's options; the study's record keeps them."""

    name: str
    description: str
    measured_by: str | None
    """`module:function`, an rtgauge.cli.run_command.MeasureStudy, if it shows more than its record."""

    def begin(self, overrides: Overrides) -> Plan:
        """Return the plan of the first steps. Raises InputError if an override does not fit the study."""
        ...

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        """Choose the next steps from the record; an empty list ends the study.

        The choice depends only on the record, so that an interrupted study can continue. A step that the plan
        already has, measured or left out, is not measured again. To measure it again, give it another
        `repeat`. No step may take longer than the longest of the first steps, because the leases of other
        machines are based on it.
        """
        ...

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> Sequence[StepKey] | None:
        """Guess the steps that will follow the planned ones, for the time estimate; None if they
        are unknown.
        """
        ...


@dataclass(frozen=True)
class AdaptiveStudy:
    """A study with its overrides, as the runner calls it."""

    study: Study
    overrides: Overrides

    def plan(self) -> Plan:
        """Return the plan of the first steps, which names the study. Raises InputError as `Study.begin`
        does.
        """
        plan = replace(self.study.begin(self.overrides), name=self.study.name)
        return with_study(plan, StudyState(name=self.study.name, asked=self.overrides))

    def __call__(self, record: Record) -> Sequence[StepKey]:
        """Choose the next steps from the record; an empty list ends the study."""
        return self.study.next_steps(record, self.overrides)

    def later_s(self, planned: Sequence[StepKey]) -> float | None:
        """Estimate how long (s) the steps after the planned ones will take; None if unknown."""
        later = self.study.later_steps(planned, self.overrides)
        load_warm_up_ns = self.plan().load_warm_up_ns
        return None if later is None else sum(expected_s(key, load_warm_up_ns) for key in later)
