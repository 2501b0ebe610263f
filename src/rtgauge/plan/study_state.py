# SPDX-License-Identifier: MIT
"""The study and its overrides, which the study's record keeps in its plan so that it can be resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.plan import Overrides, Plan
from rtgauge.record.model import Model, Run, kept_in_plan
from rtgauge.record.reader import Record

KEY = "study"
"""The key in the plan of run.json."""


class StudyState(Model):
    """The name of a study, and the overrides that the command line gave."""

    name: str
    asked: Overrides


def with_study(plan: Plan, study: StudyState) -> Plan:
    """Return the plan with `study` added to what its record keeps."""
    return replace(plan, written={**plan.written, KEY: study.model_dump(mode="json")})


def study_of(run: Run) -> StudyState | None:
    """Return the study that a record was made by; None if no study made it. Raises RecordError if it is
    damaged.
    """
    return kept_in_plan(run, KEY, StudyState, "which study it belongs to")


def newest_record(out: Path, name: str) -> Path:
    """Return the newest record of the study `name` in the folder `out`. Records that cannot be read are left
    out.

    Raises InputError if there is none.
    """
    for path in sorted((path.parent for path in out.glob("*/run.json")), reverse=True):
        try:
            study = study_of(Record.open(path).run)
        except RecordError:
            continue
        if study is not None and study.name == name:
            return path
    raise InputError(f"nothing to resume: {out} has no record of the study {name}")
