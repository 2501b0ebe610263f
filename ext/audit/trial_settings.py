# SPDX-License-Identifier: MIT
"""Finds the settings with which a machine meets an audit rule, from the `trial` in rules.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rtgauge.system.deployment.daemons import paused
from rtgauge.system.deployment.machine_state import THREAD_PATHS, Machine, Setting
from rtgauge.system.threads import PATHS as STAT_PATHS
from rtgauge.system.threads import STATES, Thread, threads
from rtgauge.target.file_batch import chosen, cpu_list, glob_pattern
from rtgauge.units import format_cpu_list, format_cpu_mask, parse_cpu_list, parse_cpu_mask
from rtgauge_ext.audit.cache_ways import EXCLUSIVE_WAYS, HALF_BANDWIDTH, divided
from rtgauge_ext.audit.cache_ways import PATHS as CACHE_PATHS
from rtgauge_ext.audit.protected import PATHS as PROTECTED_PATHS
from rtgauge_ext.audit.protected import is_protected

if TYPE_CHECKING:
    from rtgauge_ext.audit.rules import Trial, TrialSetting

ETHTOOL = "ethtool:"
OWN_QUEUE = "{own-queue}"
SHARES = (EXCLUSIVE_WAYS, HALF_BANDWIDTH)
IRQ_THREADS = "irq/"
"""The prefix of IRQ threads' names. These threads follow their interrupt."""
SCHEDULER = "/queue/scheduler"
RESET_BY_SCHEDULER = ("nr_requests", "iosched/*")
"""Files in the same folder that the kernel sets to its defaults when the scheduler changes."""


def trial_paths(names: Iterable[str]) -> list[str]:
    """Return the files to read for the trials of these rules."""
    paths: list[str] = []
    for trial in _trials(names):
        for setting in trial.set:
            paths += THREAD_PATHS if setting.file is None else [setting.file, *setting.siblings]
            paths += _reset_by(setting.file or "")
            paths += CACHE_PATHS if setting.to in SHARES else []
        paths += STAT_PATHS if trial.fought_by else []
        paths += PROTECTED_PATHS if any(each.file for each in trial.set) else []
    return list(dict.fromkeys(path for path in paths if "{" not in path))


def trial_settings(
    names: Iterable[str],
    machine: Machine,
    rt_cpus: str | None,
    pid: int | None = None,
    interface: str | None = None,
) -> list[Setting]:
    """Return the settings to write so that the machine meets these rules; empty if it already does, or lacks
    the files.

    `rt_cpus`: the real-time CPUs as a list. `pid`: the watched program. A trial that needs one of them has no
    settings without it. `interface`: the only network interface to change; None: every interface that has no
    route. Daemons that would change a setting back are stopped first.
    """
    cpus = set(parse_cpu_list(rt_cpus)) if rt_cpus is not None else set[int]()
    daemons: list[str] = []
    made: list[Setting] = []
    for trial in _trials(names):
        wanted = [
            each for setting in trial.set for each in _settings_of(setting, machine, cpus, pid, interface)
        ]
        made += wanted
        daemons += trial.fought_by if wanted else []
    return [*paused(daemons, machine), *made]


def side_effects(settings: Iterable[Setting], machine: Machine) -> list[str]:
    """Return the files whose values the kernel changes when it accepts these settings."""
    return [
        match[0]
        for setting in settings
        for pattern in _reset_by(setting.path)
        for match, _ in machine.files.matching(glob_pattern(pattern))
    ]


def _reset_by(path: str) -> list[str]:
    folder = path.rpartition("/")[0]
    return [f"{folder}/{name}" for name in RESET_BY_SCHEDULER] if path.endswith(SCHEDULER) else []


def _trials(names: Iterable[str]) -> list[Trial]:
    trials: list[Trial] = []
    for name in names:
        from rtgauge_ext.audit.rules import tried_rules  # few deployments meet any rule

        trial = tried_rules()[name].trial
        trials += [] if trial is None else [trial]
    return trials


def _settings_of(
    setting: TrialSetting, machine: Machine, cpus: set[int], pid: int | None, interface: str | None
) -> Iterable[Setting]:
    others = [cpu for cpu in machine.online if cpu not in cpus]
    if (setting.about_cpus and not (cpus and others)) or (setting.about_program and pid is None):
        return []
    if setting.file is None:
        return _threads(setting, machine, cpus, others, pid)
    if setting.to in SHARES:
        return divided(setting.to, machine, cpus)
    if setting.to == OWN_QUEUE:
        return _own_queues(setting.file, machine, cpus, interface)
    if setting.about_cpus:
        return _cpus_elsewhere(setting, setting.file, machine, cpus, interface)
    if setting.about_program:
        return [Setting(setting.file.replace("{pid}", str(pid)), setting.to or "", essential=False)]
    return _values(setting, setting.file, machine, interface)


def _values(setting: TrialSetting, file: str, machine: Machine, interface: str | None) -> Iterable[Setting]:
    for match, text in machine.files.matching(glob_pattern(file)):
        folder = match[0].rpartition("/")[0]
        value = setting.to if setting.to_file is None else machine.text(f"{folder}/{setting.to_file}")
        if (
            value is None
            or " ".join((chosen(text) or "").split()) == value
            or is_protected(match[0], machine.files, interface)
        ):
            continue
        if match[0].startswith(ETHTOOL) and text == "0":
            continue  # a driver without the setting says 0 too
        if setting.offered_by is None or value in words_of(machine.text(f"{folder}/{setting.offered_by}")):
            yield Setting(match[0], value, essential=False)


def words_of(text: str | None) -> list[str]:
    """Return the words of a list, without the brackets around the selected word."""
    return re.sub(r"[][()]", "", text or "").split()


def _cpus_elsewhere(
    setting: TrialSetting, file: str, machine: Machine, cpus: set[int], interface: str | None
) -> Iterable[Setting]:
    """Remove the real-time CPUs from every file that lists one of them."""
    is_mask = "{other-mask}" in (setting.to or "")
    for match, text in machine.files.matching(glob_pattern(file)):
        now = _mask(text) if is_mask else cpu_list(text)
        if not now or not cpus & set(now) or is_protected(match[0], machine.files, interface):
            continue
        left = sorted(set(now) - cpus) or [cpu for cpu in machine.online if cpu not in cpus]
        yield Setting(match[0], format_cpu_mask(left) if is_mask else format_cpu_list(left), essential=False)


def _own_queues(file: str, machine: Machine, cpus: set[int], interface: str | None) -> Iterable[Setting]:
    """Give the real-time CPUs send queues of their own, on each interface that has several."""
    interfaces: dict[str, dict[str, set[int]]] = {}
    for match, text in machine.files.matching(glob_pattern(file)):
        if not is_protected(match[0], machine.files, interface):
            interfaces.setdefault(match[0].partition("/queues/")[0], {})[match[0]] = set(_mask(text) or ())
    for queues in interfaces.values():
        for path, left in apart(queues, cpus).items():
            yield Setting(path, format_cpu_mask(sorted(left)), essential=False)


def apart(queues: Mapping[str, set[int]], cpus: set[int]) -> dict[str, set[int]]:
    """Separate the send queues of the real-time CPUs from the ones of the other CPUs (XPS). Return queue ->
    CPUs for the queues that must change. `queues`: all queues of one interface, with their CPUs.

    A CPU that is in no queue's mask may use every queue, so each of the other CPUs has to keep one.

    The real-time CPUs `cpus` leave the queues that they share. If no queue is theirs alone, they get the last
    shared queue. Empty if they share no queue, or if there are too few queues.
    """
    shared = [queue for queue, users in queues.items() if users & cpus and users - cpus]
    if not shared:
        return {}
    new = {queue: queues[queue] - cpus for queue in shared}
    if any(users and users <= cpus for users in queues.values()):
        return new
    given = shared[-1]
    others = [queue for queue in queues if queue != given]
    if not others:
        return {}
    left = new[given].difference(*(queues[queue] for queue in others))
    if left:
        new[others[0]] = queues[others[0]] - cpus | left
    return new | {given: cpus}


def _mask(text: str) -> list[int] | None:
    try:
        return parse_cpu_mask(text)
    except ValueError:
        return None


def _threads(
    setting: TrialSetting, machine: Machine, cpus: set[int], others: list[int], pid: int | None
) -> Iterable[Setting]:
    """Set the CPUs, the policy or the state of the setting's threads."""
    to = setting.to or ""
    if setting.about_cpus:
        for thread, allowed in machine.movable_threads():
            if _is_meant(setting, thread, pid) and allowed & cpus:
                left = format_cpu_list(sorted(allowed - cpus) or others)
                yield Setting(thread.setting("affinity"), left, essential=False)
        return
    for thread in threads(machine.files):
        if not _is_meant(setting, thread, pid):
            continue
        now = "other" if thread.policy is None else f"{thread.policy} {thread.priority}"
        if to not in STATES and thread.policy is None:
            continue  # A thread without a real-time policy never gets one.
        if to not in STATES and now != to:
            yield Setting(thread.setting("policy"), to, essential=False)
        elif to in STATES and thread.tid == thread.process and not thread.kernel:
            yield Setting(thread.setting("state"), to, essential=False)


def _is_meant(setting: TrialSetting, thread: Thread, pid: int | None) -> bool:
    real_time = thread.policy in ("fifo", "rr")
    if setting.threads == "program":
        return thread.process == pid and real_time
    if setting.threads == "other-real-time":
        return real_time and not thread.name.startswith(IRQ_THREADS) and thread.process != pid
    return fnmatchcase(thread.name, setting.threads or "")
