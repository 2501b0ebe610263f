# SPDX-License-Identifier: MIT
"""The studies by name."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from rtgauge.errors import InputError
from rtgauge.plan.plan import Overrides
from rtgauge.plan.study_state import study_of
from rtgauge.record.model import Run
from rtgauge.study.adaptive import AdaptiveStudy, Study
from rtgauge.suggest import nearest

STUDIES: dict[str, str] = {
    "adam2021": "rtgauge.study.adam2021",
    "delgado2020": "rtgauge.study.delgado2020",
    "garre2014": "rtgauge.study.garre2014",
    "sustained": "rtgauge.study.sustained",
    "tire-search": "rtgauge.tire.study",
}
"""Name -> the module that holds the study as `STUDY`, imported when it is used."""


def adaptive_study(name: str, overrides: Overrides) -> AdaptiveStudy:
    """The study of that name. Raises InputError if there is none."""
    if name not in STUDIES:
        raise InputError(
            f"this rtgauge has no study {name}{nearest(name, STUDIES)}; it has {', '.join(STUDIES)}"
        )
    return AdaptiveStudy(cast("Study", import_module(STUDIES[name]).STUDY), overrides)


def study_of_record(run: Run) -> AdaptiveStudy | None:
    """The study that a record was begun by; None for the record of a plan.

    Raises InputError for a study that is not there.
    """
    state = study_of(run)
    if state is None:
        return None
    return adaptive_study(state.name, state.asked)
