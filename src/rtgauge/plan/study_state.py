# SPDX-License-Identifier: MIT
"""The study and its overrides, stored in the record's plan so that the study can be resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.record.model import Model, Run, kept_in_plan
from rtgauge.record.reader import Record

KEY = "study"
"""The key for the study in the plan of run.json."""


class StudyState(Model):
    """The name of a study, and the overrides that the command line gave."""

    name: str
    asked: Overrides


def with_study(plan: Plan, study: StudyState) -> Plan:
    """Return the record's plan with the study added."""
    return replace(plan, written={**plan.written, KEY: study.model_dump(mode="json")})


def study_of(run: Run) -> StudyState | None:
    """Return the study that made a record; None if no study made it. Raises RecordError if the study's entry
    is damaged.
    """
    return kept_in_plan(run, KEY, StudyState, "name of the study that made the record")


def newest_record(out: Path, name: str) -> Path:
    """Return the study's newest readable record in the folder `out`. Raises InputError if there is none."""
    for path in sorted((path.parent for path in out.glob("*/run.json")), reverse=True):
        try:
            study = study_of(Record.open(path).run)
        except RecordError:
            continue
        if study is not None and study.name == name:
            return path
    raise InputError(
        f"there is nothing to resume, because {out} does not contain a record of the study {name}"
    )
