# SPDX-License-Identifier: MIT
"""The studies by name."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from rtgauge.errors import InputError
from rtgauge.plan.plan import Overrides
from rtgauge.record.model import Run
from rtgauge.study.adaptive import Growing, Study
from rtgauge.study.study_state import kept_of

TWO_RECORDS = ("delgado2020",)
"""Studies whose second part is a record of its own."""
GROWING: dict[str, str] = {
    "adam2021": "rtgauge.study.adam2021",
    "garre2014": "rtgauge.study.garre2014",
    "sustained": "rtgauge.study.sustained",
    "tire-search": "rtgauge.tire.study",
}
"""Studies in one record: name -> the module that holds it as `STUDY`, imported when it is asked for."""


def names() -> list[str]:
    """Every study."""
    return sorted([*TWO_RECORDS, *GROWING])


def growing(name: str, asked: Overrides) -> Growing:
    """The growing study of that name. Raises InputError where there is none."""
    if name not in GROWING:
        raise InputError(f"this rtgauge has no study {name}; it has {', '.join(names())}")
    return Growing(cast("Study", import_module(GROWING[name]).STUDY), asked)


def growing_of(run: Run) -> Growing | None:
    """The study that a record was begun by; None for the record of a plan. Raises InputError for a study that is not there."""
    kept = kept_of(run)
    return None if kept is None else growing(kept.name, kept.asked)
