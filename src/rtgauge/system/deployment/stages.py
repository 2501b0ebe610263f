# SPDX-License-Identifier: MIT
"""Defines the stages that apply a deployment's settings. Each stage sees the machine as the previous one left
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rtgauge.system.deployment.daemons import FOUGHT_BY, paused
from rtgauge.system.deployment.definition import ALL, ISOLATED, OTHERS, Deployment, isolated_cpus, kept_cpus
from rtgauge.system.deployment.extension_auditor import needed_auditor
from rtgauge.system.deployment.machine_state import (
    CPU,
    RT_RUNTIME,
    SMT_CONTROL,
    TIMER_MIGRATION,
    Cpuset,
    Machine,
    Setting,
)
from rtgauge.system.interrupts import DEFAULT, WORKQUEUES
from rtgauge.units import format_cpu_list, format_cpu_mask


@dataclass(frozen=True)
class Note:
    """Paths that other settings (hotplug, moves between groups) change too. They are restored last."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Write:
    """Settings to write with one call, in this order."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Gather:
    """Moves the tasks of the parent group into this group, if the kernel allows it."""

    group: str


Action = Note | Write | Gather


DEFAULT_RT_RUNTIME = "950000"
"""The kernel's default real-time runtime, in us per second."""


def _write(machine: Machine, settings: Iterable[Setting]) -> list[Action]:
    """Write only settings that differ from the machine's."""
    changed = tuple(setting for setting in settings if machine.text(setting.path) != setting.value)
    return [Write(changed)] if changed else []


def notes(deployment: Deployment, machine: Machine) -> list[Action]:
    """Stop the daemons that would interfere, and note what hotplug and moving tasks change as a side effect.

    This is restored last, in reverse order: CPUs, groups from the top down, interrupts, threads, daemons.
    """
    given = [key for key in FOUGHT_BY if getattr(deployment, key) not in (None, "off", "on")]
    given += ["c_states"] if deployment.c_states is not None else []
    daemons = paused([name for key in given for name in FOUGHT_BY[key]], machine)
    stops: list[Action] = [Write(tuple(daemons))] if daemons else []
    leaving = set(machine.online) - set(kept_cpus(deployment, machine))
    paths: list[str] = []
    if leaving or (deployment.isolates and machine.cpuset is not None and machine.cpuset.version == 1):
        paths += [thread.name for thread in machine.bound_threads()]
    if leaving:
        paths += [path for path, cpus in machine.irqs.items() if cpus & leaving]
        if machine.cpuset is not None and machine.cpuset.version == 1:
            paths += [
                f"{group}/{machine.cpuset.prefix}cpus"
                for group, cpus in machine.cpuset_groups.items()
                if cpus & leaving
            ]
    if deployment.smt is not None and machine.smt_control in ("on", "off"):
        paths += [f"{CPU}/cpu{cpu}/online" for cpu in sorted(machine.hotpluggable)]
    return [*stops, *([Note(tuple(paths))] if paths else [])]


def smt(deployment: Deployment, machine: Machine) -> list[Action]:
    """Set SMT with smt/control. If that file is missing, take all but the first CPU of each core offline."""
    if deployment.smt is not None and machine.smt_control in ("on", "off"):
        return _write(machine, [Setting(SMT_CONTROL, deployment.smt)])
    if deployment.smt == "off":
        others = [cpu for core in machine.cores for cpu in core[1:]]
        return _write(machine, [Setting(f"{CPU}/cpu{cpu}/online", "0") for cpu in others])
    return []


def cores(deployment: Deployment, machine: Machine) -> list[Action]:
    """Set the number of cores by hotplug."""
    if deployment.cores == ALL:
        if machine.smt_control in ("off", "forceoff"):
            return []  # the offline CPUs are SMT siblings, which the kernel keeps offline
        siblings = machine.offline if deployment.smt != "off" or not machine.has_smt else []
        return _write(machine, [Setting(f"{CPU}/cpu{cpu}/online", "1") for cpu in siblings])
    leaving = sorted(set(machine.online) - set(kept_cpus(deployment, machine)))
    return _write(machine, [Setting(f"{CPU}/cpu{cpu}/online", "0") for cpu in leaving])


def tuning(deployment: Deployment, machine: Machine) -> list[Action]:
    """Set C-states, frequency governor and real-time throttling."""
    settings: list[Setting] = []
    if deployment.c_states is not None:
        settings += [
            Setting(state.disable, "1" if deployment.c_states == "off" else "0")
            for state in machine.idle_states
        ]
    if deployment.governor is not None:
        paths = [f"{CPU}/cpu{cpu}/cpufreq/scaling_governor" for cpu in machine.online]
        settings += [
            Setting(path, deployment.governor, essential=False)
            for path in paths
            if machine.text(path) is not None
        ]
    runtime = machine.text(RT_RUNTIME)
    if deployment.throttling == "off" and runtime is not None:
        settings.append(Setting(RT_RUNTIME, "-1", essential=False))
    if deployment.throttling == "on" and runtime == "-1":
        settings.append(Setting(RT_RUNTIME, DEFAULT_RT_RUNTIME, essential=False))
    return _write(machine, settings)


def _groups_v1(cpuset: Cpuset, machine: Machine, isolated: list[int], others: list[int]) -> list[Action]:
    """Create an exclusive cpuset without load balancing (cgroup v1), and a second one for everything else."""
    mems = machine.text(f"{cpuset.mount}/{cpuset.prefix}mems") or "0"
    actions: list[Action] = []
    for name, cpus, more in (
        (ISOLATED, isolated, (("cpu_exclusive", "1"), ("sched_load_balance", "0"))),
        (OTHERS, others, ()),
    ):
        group = f"{cpuset.mount}/{name}"
        values = (("mems", mems), ("cpus", format_cpu_list(cpus)), *more)
        actions.append(Write((Setting(f"group:{group}", "present"),)))
        actions.append(Write(tuple(Setting(f"{group}/{cpuset.prefix}{key}", value) for key, value in values)))
    actions.append(Write((Setting(f"{cpuset.mount}/{cpuset.prefix}sched_load_balance", "0"),)))
    return [*actions, Gather(f"{cpuset.mount}/{OTHERS}")]


def _groups_v2(cpuset: Cpuset, isolated: list[int]) -> list[Action]:
    """Create an isolated partition (cgroup v2). The kernel removes its CPUs from every other group."""
    group = f"{cpuset.mount}/{ISOLATED}"
    values = (("cpus", format_cpu_list(isolated)), ("cpus.partition", "isolated"))
    return [
        Write((Setting(f"controller:cpuset:{cpuset.mount}", "on"),)),
        Write((Setting(f"group:{group}", "present"),)),
        Write(tuple(Setting(f"{group}/{cpuset.prefix}{key}", value) for key, value in values)),
    ]


def isolation(deployment: Deployment, machine: Machine) -> list[Action]:
    """Isolate CPUs: move interrupts, workqueues and timers away from them, then create control groups.

    If a kernel has the file cpuset.cpus.isolated (since Linux 6.8), it removes a v2 partition's CPUs from the
    unbound workqueues by itself, and adds them again (kernel/cgroup/cpuset.c).
    """
    isolated = isolated_cpus(deployment, machine)
    if not isolated or machine.cpuset is None:
        return []
    others = [cpu for cpu in machine.online if cpu not in isolated]
    groups = (
        _groups_v1(machine.cpuset, machine, isolated, others)
        if machine.cpuset.version == 1
        else _groups_v2(machine.cpuset, isolated)
    )
    lists = [
        Setting(path, format_cpu_list(others), essential=False)
        for path, cpus in machine.irqs.items()
        if cpus & set(isolated)
    ]
    by_kernel = machine.text(f"{machine.cpuset.mount}/{machine.cpuset.prefix}cpus.isolated") is not None
    masks = [
        Setting(path, format_cpu_mask(others), essential=False)
        for path in ((DEFAULT,) if by_kernel else (DEFAULT, WORKQUEUES))
        if machine.text(path) is not None
    ]
    timers = (
        [Setting(TIMER_MIGRATION, "0", essential=False)] if machine.text(TIMER_MIGRATION) is not None else []
    )
    return [*_write(machine, [*lists, *masks, *timers]), *groups]


def rules_kept(deployment: Deployment, machine: Machine) -> list[Action]:
    """Apply the audit rules that the deployment meets."""
    if not deployment.rules:
        return []
    known = needed_auditor(f"the settings {', '.join(deployment.rules)}")
    pid = None if deployment.rt_pid is None else int(deployment.rt_pid)
    settings = known.trial_settings(deployment.rules, machine, deployment.rt_cpus, pid, deployment.interface)
    also = known.side_effects(settings, machine)
    return [*([Note(tuple(also))] if also else []), *_write(machine, settings)]


STAGES: tuple[Callable[[Deployment, Machine], list[Action]], ...] = (
    notes,
    smt,
    cores,
    tuning,
    isolation,
    rules_kept,
)


def preview(deployment: Deployment, machine: Machine) -> list[Action]:
    """Predict the actions of all stages. It is unknown which CPUs will come online."""
    before = [action for stage in (notes, smt, cores) for action in stage(deployment, machine)]
    after = machine.expecting(kept_cpus(deployment, machine))
    return before + [
        action for stage in (tuning, isolation, rules_kept) for action in stage(deployment, after)
    ]
