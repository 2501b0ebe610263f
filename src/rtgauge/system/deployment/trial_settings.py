# SPDX-License-Identifier: MIT
"""Finds the settings to write so that a machine keeps a rule of the audit: the `trial` in rules.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.system.deployment.machine_state import THREAD_PATHS
from rtgauge.system.file_batch import chosen, cpu_list
from rtgauge.system.rules import glob_pattern, tried_rules
from rtgauge.units import format_cpu_list, format_cpu_mask, parse_cpu_list, parse_cpu_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.system.deployment.machine_state import Machine
    from rtgauge.system.rules import TrialSetting

IRQ_THREADS = "irq/"
"""The prefix of the names of IRQ threads, which follow their interrupt."""


@dataclass(frozen=True)
class Setting:
    """A value to write. The deployment fails if an `essential` one is refused; others are counted."""

    path: str
    value: str
    essential: bool = True


def trial_paths(names: Iterable[str]) -> list[str]:
    """Return the files that the trials of these rules look at, to be read with the machine."""
    paths: list[str] = []
    for setting in _settings(names):
        paths += THREAD_PATHS if setting.file is None else [setting.file]
    return list(dict.fromkeys(paths))


def trial_settings(names: Iterable[str], machine: Machine, rt_cpus: str | None) -> list[Setting]:
    """Return the settings to write so that the machine keeps these rules; empty if it does, or lacks the
    files.

    `rt_cpus`: the real-time CPUs as a list; without it, trials that are about them have no settings.
    """
    cpus = set(parse_cpu_list(rt_cpus)) if rt_cpus is not None else set[int]()
    others = [cpu for cpu in machine.online if cpu not in cpus]
    made: list[Setting] = []
    for setting in _settings(names):
        about_cpus = setting.file is None or "{" in setting.to
        if about_cpus and not (cpus and others):
            continue
        if setting.file is None:
            made += _threads_elsewhere(machine, cpus, others)
        elif about_cpus:
            made += _cpus_elsewhere(setting, setting.file, machine, cpus)
        else:
            made += [
                Setting(match[0], setting.to, essential=False)
                for match, text in machine.files.matching(glob_pattern(setting.file))
                if chosen(text) != setting.to
            ]
    return made


def _settings(names: Iterable[str]) -> list[TrialSetting]:
    rules = (tried_rules()[name] for name in names)
    return [setting for rule in rules if rule.trial is not None for setting in rule.trial.set]


def _cpus_elsewhere(setting: TrialSetting, file: str, machine: Machine, cpus: set[int]) -> list[Setting]:
    """Take the real-time CPUs out of every file of CPUs that includes one."""
    made: list[Setting] = []
    is_mask = "{other-mask}" in setting.to
    for match, text in machine.files.matching(glob_pattern(file)):
        now = _mask(text) if is_mask else cpu_list(text)
        if not now or not cpus & set(now):
            continue
        left = sorted(set(now) - cpus) or [cpu for cpu in machine.online if cpu not in cpus]
        made.append(
            Setting(match[0], format_cpu_mask(left) if is_mask else format_cpu_list(left), essential=False)
        )
    return made


def _mask(text: str) -> list[int] | None:
    try:
        return parse_cpu_mask(text)
    except ValueError:
        return None


def _threads_elsewhere(machine: Machine, cpus: set[int], others: list[int]) -> list[Setting]:
    """Move every movable real-time thread away from the real-time CPUs."""
    return [
        Setting(
            thread.setting("affinity"), format_cpu_list(sorted(allowed - cpus) or others), essential=False
        )
        for thread, allowed in machine.movable_threads()
        if thread.policy in ("fifo", "rr") and allowed & cpus and not thread.name.startswith(IRQ_THREADS)
    ]
