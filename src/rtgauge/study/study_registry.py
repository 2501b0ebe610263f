# SPDX-License-Identifier: MIT
"""Finds studies by name, and imports them when used."""

from __future__ import annotations

from typing import cast

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.known_extensions import from_where
from rtgauge.nearest_name import nearest
from rtgauge.plan.make_plan import Overrides
from rtgauge.plan.study_state import study_of
from rtgauge.record.model import Run
from rtgauge.study.adaptive import AdaptiveStudy, Study


def studies() -> list[str]:
    """Return the names of all studies, sorted."""
    return sorted(extension.registered("studies"))


def adaptive_study(name: str, overrides: Overrides) -> AdaptiveStudy:
    """Return the study `name`.

    Raises InputError if no extension registers it, or if it cannot be imported.
    """
    if name not in studies():
        choice = f"choose one of {', '.join(studies())}" if studies() else "it has none"
        instead = f"{nearest(name, studies())}; {choice}"
        raise InputError(f"'{name}' is not a study of this rtgauge{from_where('plans', name) or instead}")
    return AdaptiveStudy(cast("Study", extension.load("studies", name, object)), overrides)


def study_of_record(run: Run) -> AdaptiveStudy | None:
    """Return the study that made a record; None if a plan did.

    Raises InputError if the study is not registered.
    """
    state = study_of(run)
    if state is None:
        return None
    return adaptive_study(state.name, state.asked)
