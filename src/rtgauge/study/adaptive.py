# SPDX-License-Identifier: MIT
"""A study in one record: it begins with a plan, and what it has measured says what is measured next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rtgauge.plan.plan import Overrides, Plan
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.study.study_state import Kept, with_kept


class Study(Protocol):
    """What a growing study has to know. `asked` is the command line over it, which its record keeps."""

    name: str
    description: str

    def begin(self, asked: Overrides) -> Plan:
        """The steps that are measured first, whatever they find. Raises InputError."""
        ...

    def more(self, record: Record, asked: Overrides) -> Sequence[StepKey]:
        """What is measured next, from what the record holds; nothing: the study is done.

        It knows nothing but the record, so that a study that was cut off goes on as if it had not been. A step that is asked for and already planned
        (measured, or left out) is not measured again: one that is wanted once more has another `repeat`. No step may take longer than the longest of
        the first ones, on which the leases of other machines rest.
        """
        ...


@dataclass(frozen=True)
class Growing:
    """A study together with what was asked of it: what the runner calls."""

    study: Study
    asked: Overrides

    def plan(self) -> Plan:
        """Its first steps, in a plan that says which study it is. Raises InputError."""
        plan = replace(self.study.begin(self.asked), name=self.study.name)
        return with_kept(plan, Kept(name=self.study.name, part="whole", asked=self.asked))

    def __call__(self, record: Record) -> Sequence[StepKey]:
        """What is measured next."""
        return self.study.more(record, self.asked)
