# SPDX-License-Identifier: MIT
"""Knows the kernel files that deployments and audit rules write, and the values that each file can get.

A list of settings that somebody else may have made can contain any path. rtgauge writes and reads only these.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from rtgauge.system.deployment.machine_state import CPU, RT_RUNTIME, SMT_CONTROL, TIMER_MIGRATION
from rtgauge.system.interrupts import DEFAULT, WORKQUEUES
from rtgauge.target.file_batch import glob_pattern
from rtgauge_ext.audit.rules import TrialSetting, tried_rules
from rtgauge_ext.audit.trial_settings import OWN_QUEUE, SHARES

NUMBER = r"-?[0-9]{1,19}"
WORD = r"[a-z0-9_-]{1,31}"
CPUS = r"[0-9]{1,4}(?:[,-][0-9]{1,4}){0,99}"
MASK = r"[0-9a-f]{1,8}(?:,[0-9a-f]{8}){0,255}"
SAFE = re.compile(r"/(?:proc|sys)/[A-Za-z0-9_.:/-]{1,255}")


class _Kind(NamedTuple):
    """Patterns of a file's path, of the values that rtgauge writes, and of its possible earlier values."""

    path: str
    wanted: str
    old: str


OF_DEPLOYMENTS = (
    _Kind(f"{CPU}/cpu[0-9]*/online", "[01]", "[01]"),
    _Kind(SMT_CONTROL, "on|off", "on|off"),
    _Kind(f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*/disable", "[01]", "[01]"),
    _Kind(f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor", WORD, WORD),
    _Kind(RT_RUNTIME, NUMBER, NUMBER),
    _Kind(TIMER_MIGRATION, "[01]", "[01]"),
    _Kind("/proc/irq/[0-9]*/smp_affinity_list", CPUS, CPUS),
    _Kind(DEFAULT, MASK, MASK),
    _Kind(WORKQUEUES, MASK, MASK),
)
"""The files that deployments write (stages.py)."""


def _of_rule(setting: TrialSetting) -> list[_Kind]:
    path, to = setting.file or "", setting.to or ""
    if not path.startswith("/") or setting.about_program or to in SHARES:
        return []  # it does not exist after the next boot, or is no file
    if setting.to_file is not None:
        return [_Kind(path, NUMBER, NUMBER)]
    if setting.about_cpus:
        kind = MASK if "{other-mask}" in to or to == OWN_QUEUE else CPUS
        return [_Kind(path, kind, kind)]
    return [_Kind(path, re.escape(to), NUMBER if re.fullmatch(NUMBER, to) else WORD)]


@cache
def _kinds() -> list[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]]:
    rules = [rule.trial for rule in tried_rules().values() if rule.trial is not None]
    kinds = [
        *OF_DEPLOYMENTS,
        *(kind for trial in rules for setting in trial.set for kind in _of_rule(setting)),
    ]
    return [
        (re.compile(glob_pattern(kind.path)), re.compile(kind.wanted), re.compile(kind.old)) for kind in kinds
    ]


def is_writable(path: str, value: str, old: str) -> bool:
    """Return whether a deployment or a rule can write the value `wanted` to this file, and `old` can be the
    file's earlier value.
    """
    if SAFE.fullmatch(path) is None or ".." in path.split("/"):
        return False
    return any(
        known.fullmatch(path) and values.fullmatch(value) and earlier.fullmatch(old)
        for known, values, earlier in _kinds()
    )
