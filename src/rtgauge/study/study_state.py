# SPDX-License-Identifier: MIT
"""What each record of a study keeps in its plan, so that the study can be gone on with: which part it is, and what was asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.plan.plan import Overrides, Plan
from rtgauge.record.model import Model, Run
from rtgauge.record.reader import Record

KEY = "study"
"""Where in the plan of run.json."""


class Kept(Model):
    """`part`: which of the study's records this is. `first`: the id of its first record, None in that one. `asked`: the command line over the study."""

    name: str
    part: Literal["idle", "load", "whole"]
    first: str | None = None
    asked: Overrides


def with_kept(plan: Plan, kept: Kept) -> Plan:
    """The plan, which its record then keeps together with `kept`."""
    return replace(plan, written={**plan.written, KEY: kept.model_dump(mode="json")})


def kept_of(run: Run) -> Kept | None:
    """What a record of a study kept; None for the record of another run. Raises RecordError where it is damaged."""
    found = run.plan.get(KEY)
    if found is None:
        return None
    try:
        return Kept.model_validate(found)
    except ValidationError:
        raise RecordError(f"the record {run.id} is damaged: its plan does not say which part of which study it is") from None


def _studies(out: Path) -> list[tuple[Path, Run, Kept]]:
    """Every record of a study in a folder, the oldest first; what cannot be read is no such record."""
    found: list[tuple[Path, Run, Kept]] = []
    for path in sorted(path.parent for path in out.glob("*/run.json")):
        try:
            run = Record.open(path).run
            kept = kept_of(run)
        except RecordError:
            continue
        if kept is not None:
            found.append((path, run, kept))
    return found


def newest_of(out: Path, name: str) -> Path:
    """The newest record of the study `name`. Raises InputError where there is none."""
    found = [path for path, _, kept in _studies(out) if kept.name == name]
    if not found:
        raise InputError(f"nothing to resume: {out} holds no record of the study {name}")
    return found[-1]


def follower(first: Path, run: Run) -> tuple[Path, Run] | None:
    """The newest record that went on from the first one, beside it; None where there is none yet."""
    return next(((path, other) for path, other, kept in reversed(_studies(first.parent)) if kept.first == run.id), None)


def leader(second: Path, first: str) -> Path | None:
    """The first record, beside the one that went on from it; None where it is there no more."""
    return next((path for path, run, _ in _studies(second.parent) if run.id == first), None)
