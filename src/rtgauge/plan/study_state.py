# SPDX-License-Identifier: MIT
"""What the record of a study keeps in its plan, so that the study can be resumed: which study it is, and what
the command line said over it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.plan import Overrides, Plan
from rtgauge.record.model import Model, Run
from rtgauge.record.reader import Record

KEY = "study"
"""Where in the plan of run.json."""


class StudyState(Model):
    """`asked`: the command line over the study."""

    name: str
    asked: Overrides


def with_study(plan: Plan, study: StudyState) -> Plan:
    """The plan, which its record then keeps together with `study`."""
    return replace(plan, written={**plan.written, KEY: study.model_dump(mode="json")})


def study_of(run: Run) -> StudyState | None:
    """The study of a record; None for the record of another run. Raises RecordError if it is damaged."""
    written = run.plan.get(KEY)
    if written is None:
        return None
    try:
        return StudyState.model_validate(written)
    except ValidationError:
        raise RecordError(
            f"the record {run.id} is damaged: its plan does not say which study it is of"
        ) from None


def newest_record(out: Path, name: str) -> Path:
    """The newest record in the folder `out` of the study `name`; what cannot be read is no such record.

    Raises InputError if there is none.
    """
    for path in sorted((path.parent for path in out.glob("*/run.json")), reverse=True):
        try:
            study = study_of(Record.open(path).run)
        except RecordError:
            continue
        if study is not None and study.name == name:
            return path
    raise InputError(f"nothing to resume: {out} holds no record of the study {name}")
