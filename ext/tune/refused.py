# SPDX-License-Identifier: MIT
"""Finds the settings that the machine refused in a run, because a test of them shows nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from rtgauge.record.model import SettingMade, Step
from rtgauge_ext.audit.rules import tried_rules
from rtgauge_ext.tune.search import rule_id

THREAD = "thread:"


def refused_in(steps: Sequence[Step], settings: Sequence[str]) -> dict[str, str]:
    """Return each of these settings of which the machine refused everything, with the first reason.

    A setting of which some files or threads could be set counts as tried. `steps`: the steps of the run.
    """
    refused: dict[str, str] = {}
    for name in settings:
        for step in steps:
            made = [] if step.deployment is None else _made_for(name, step.deployment.settings, settings)
            errors = [each for each in made if each.error is not None]
            if errors and len(errors) == len(made):
                refused.setdefault(name, f"{errors[0].path}: {errors[0].error}")
    return refused


def _made_for(name: str, made: Sequence[SettingMade], settings: Sequence[str]) -> list[SettingMade]:
    """Return the changes that were made for one of the settings in force."""
    return [each for each in made if any(fnmatchcase(each.path, pattern) for pattern in _patterns(name))] + [
        each
        for each in made
        if each.path.startswith(THREAD) and [other for other in settings if _sets_threads(other)] == [name]
    ]


def _patterns(name: str) -> list[str]:
    """Return the patterns of the files that a setting changes."""
    rule = tried_rules().get(rule_id(name))
    if rule is None or rule.trial is None:
        return []
    return [re.sub(r"\{[^}]*\}", "*", setting.file) for setting in rule.trial.set if setting.file is not None]


def _sets_threads(name: str) -> bool:
    rule = tried_rules().get(rule_id(name))
    return rule is not None and rule.trial is not None and any(each.file is None for each in rule.trial.set)
