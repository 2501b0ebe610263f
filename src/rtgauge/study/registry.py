# SPDX-License-Identifier: MIT
"""The studies by name: what packages register as entry points in the group `rtgauge.studies` (a study's name
= the study), imported when it is used.
"""

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
"""The group of entry points in which a package registers its studies."""


@cache
def studies() -> dict[str, EntryPoint]:
    """Name -> what holds the study, in the order of the names."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def adaptive_study(name: str, overrides: Overrides) -> AdaptiveStudy:
    """The study of that name.

    Raises InputError if there is none, or the package that registers it cannot be imported.
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
            f"study {name}: the package that registers it cannot be used ({point.value}: {error}); update or "
            "remove that package"
        ) from None
    return AdaptiveStudy(study, overrides)


def study_of_record(run: Run) -> AdaptiveStudy | None:
    """The study that a record was begun by; None for the record of a plan.

    Raises InputError for a study that is not there.
    """
    state = study_of(run)
    if state is None:
        return None
    return adaptive_study(state.name, state.asked)
