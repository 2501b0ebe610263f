# SPDX-License-Identifier: MIT
"""Finds studies by name. Packages register studies as entry points, which are imported when used."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from rtgauge.errors import InputError
from rtgauge.plan.plan import Overrides
from rtgauge.plan.study_state import study_of
from rtgauge.record.model import Run
from rtgauge.study.adaptive import AdaptiveStudy, Study
from rtgauge.suggest import nearest

GROUP = "rtgauge.studies"
"""The entry point group. It maps a study's name to its object."""


@cache
def studies() -> dict[str, EntryPoint]:
    """Return name -> entry point of every study, sorted by name."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def adaptive_study(name: str, overrides: Overrides) -> AdaptiveStudy:
    """Return the study `name`.

    Raises InputError if no package registers it, or if its package cannot be imported.
    """
    point = studies().get(name)
    if point is None:
        raise InputError(
            f"this rtgauge has no study {name}{nearest(name, studies())}; it has {', '.join(studies())}"
        )
    try:
        study = cast("Study", point.load())
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the package that registers the study {name} cannot be used ({point.value}: {error}); update "
            f"or remove that package"
        ) from None
    return AdaptiveStudy(study, overrides)


def study_of_record(run: Run) -> AdaptiveStudy | None:
    """Return the study that made a record; None if a plan did.

    Raises InputError if the study is not registered.
    """
    state = study_of(run)
    if state is None:
        return None
    return adaptive_study(state.name, state.asked)
