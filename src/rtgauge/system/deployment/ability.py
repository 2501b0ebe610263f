# SPDX-License-Identifier: MIT
"""Whether a machine can take a deployment, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.system.deployment.definition import ALL, Deployment
from rtgauge.units import format_cpu_list, parse_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.deployment.machine_state import Machine

ISOLATED = "rtgauge-isolated"
OTHERS = "rtgauge-others"


@dataclass(frozen=True)
class Cannot:
    """Why a machine cannot take a deployment, and what to do."""

    reason: str
    remedy: str


def kept_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """The CPUs that stay online when the deployment is applied, of those that are online now."""
    cores = machine.cores
    if deployment.cores not in (None, ALL):
        cores = cores[: int(deployment.cores)]
    if deployment.smt == "off":
        cores = [core[:1] for core in cores]
    return sorted(cpu for core in cores for cpu in core)


def isolated_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """The CPUs that are set aside; with `all` the first one is left for everything else (Delgado & Choi 2020, sec. III-B)."""
    kept = kept_cpus(deployment, machine)
    if not deployment.isolates or deployment.isolate is None:
        return []
    return kept[1:] if deployment.isolate == ALL else parse_cpu_list(deployment.isolate)


def smt_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """Hyper-threads are wanted where there are none; None: not so."""
    if deployment.smt != "on" or machine.has_smt or machine.smt_control == "off":
        return None
    if machine.smt_control == "forceoff":
        return Cannot("SMT (hyper-threading) was switched off at boot for good", "boot without nosmt=force, or switch it on in the firmware")
    remedy = "measure the deployment without H: M for HM, MI for HMI; a custom set without smt=on leaves SMT as it is"
    return Cannot("its cores have no second thread (no SMT)", remedy)


def c_states_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """C-states are wanted where there are none; None: not so."""
    if deployment.c_states != "on" or machine.idle_states:
        return None
    return Cannot("the kernel offers no C-state, so that this is the same as with C-states off", "measure HM in place of CHM, or boot with a cpuidle driver")


def _cores(deployment: Deployment, machine: Machine) -> Cannot | None:
    more = machine.offline and machine.smt_control not in ("off", "forceoff")
    if deployment.cores == ALL and len(machine.cores) == 1 and not more and machine.smt_control != "off":
        return Cannot("it has a single core", "measure Single")
    if deployment.cores not in (None, ALL) and int(deployment.cores) > len(machine.cores):
        return Cannot(f"it has {len(machine.cores)} core(s) online", "ask for fewer cores")
    leaving = set(machine.online) - set(kept_cpus(deployment, machine))
    # with its control file the kernel switches the threads itself
    stuck = sorted(leaving - machine.hotpluggable) if deployment.cores not in (None, ALL) or machine.smt_control is None else []
    if stuck:
        return Cannot(
            f"CPU {format_cpu_list(stuck)} cannot be switched off",
            f"build the kernel with CONFIG_HOTPLUG_CPU=y, or boot with maxcpus={len(machine.online) - len(leaving)}",
        )
    return None


def _isolation(deployment: Deployment, machine: Machine) -> Cannot | None:
    if not deployment.isolates:
        return None
    kept, isolated = kept_cpus(deployment, machine), isolated_cpus(deployment, machine)
    # CPUs that are about to come online are not known yet
    if not (machine.offline and deployment.cores == ALL):
        missing = sorted(set(isolated) - set(kept))
        if missing:
            return Cannot(f"CPU {format_cpu_list(missing)}, which is to be isolated, is not online in it", f"isolate CPUs out of {format_cpu_list(kept)}")
        if not isolated or len(isolated) == len(kept):
            return Cannot("no CPU would be left for everything else: isolation needs two or more CPUs", "isolate fewer CPUs")
    if machine.cpuset is None:
        return Cannot("there is no cpuset control group to isolate with", "mount one (CONFIG_CPUSETS=y), or boot with what `rtgauge deploy cmdline` prints")
    busy = [group for group, cpus in machine.cpuset_groups.items() if cpus & set(isolated)]
    ours = [group for group in busy if group.rsplit("/", 1)[1] in (ISOLATED, OTHERS)]
    if ours:
        return Cannot(f"the group {ours[0]} of an earlier deployment is there", "put it back: rtgauge deploy restore")
    if busy:
        name = busy[-1].removeprefix(machine.cpuset.mount)
        return Cannot(f"the cpuset {name} uses CPU {format_cpu_list(isolated)}", f"end what runs in {name}, or take these CPUs from it")
    return None


def why_not(deployment: Deployment, machine: Machine) -> Cannot | None:
    """None: as far as can be seen before it is tried, the machine can take it."""
    for check in (smt_cannot, c_states_cannot, _cores, _isolation):
        cannot = check(deployment, machine)
        if cannot is not None:
            return cannot
    return None
