# SPDX-License-Identifier: MIT
"""Whether a machine supports a deployment, and if not, why."""

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
    """Why a machine does not support a deployment, and the remedy."""

    reason: str
    remedy: str


def kept_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """The online CPUs that stay online with the deployment."""
    cores = machine.cores
    if deployment.cores not in (None, ALL):
        cores = cores[: int(deployment.cores)]
    if deployment.smt == "off":
        cores = [core[:1] for core in cores]
    return sorted(cpu for core in cores for cpu in core)


def isolated_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """The isolated CPUs; `all` leaves the first one for everything else (Delgado & Choi 2020, sec. III-B)."""
    kept = kept_cpus(deployment, machine)
    if not deployment.isolates or deployment.isolate is None:
        return []
    return kept[1:] if deployment.isolate == ALL else parse_cpu_list(deployment.isolate)


def smt_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """The deployment needs SMT and the machine has none; None: it is fine."""
    if deployment.smt != "on" or machine.has_smt or machine.smt_control == "off":
        return None
    if machine.smt_control == "forceoff":
        return Cannot(
            "SMT (hyper-threading) was disabled permanently at boot",
            "boot without nosmt=force, or enable it in the firmware",
        )
    remedy = (
        "measure the deployment without H: M for HM, MI for HMI; custom settings without smt=on leave "
        "SMT unchanged"
    )
    return Cannot("its cores have no second thread (no SMT)", remedy)


def c_states_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """The deployment needs C-states and the machine has none; None: it is fine."""
    if deployment.c_states != "on" or machine.idle_states:
        return None
    return Cannot(
        "the kernel offers no C-states, so this equals C-states off",
        "measure HM instead of CHM, or boot with a cpuidle driver",
    )


def _cores(deployment: Deployment, machine: Machine) -> Cannot | None:
    more = machine.offline and machine.smt_control not in ("off", "forceoff")
    if deployment.cores == ALL and len(machine.cores) == 1 and not more and machine.smt_control != "off":
        return Cannot("it has a single core", "measure Single")
    if deployment.cores not in (None, ALL) and int(deployment.cores) > len(machine.cores):
        return Cannot(f"it has {len(machine.cores)} core(s) online", "request fewer cores")
    leaving = set(machine.online) - set(kept_cpus(deployment, machine))
    # with smt/control the kernel itself switches the threads
    stuck = (
        sorted(leaving - machine.hotpluggable)
        if deployment.cores not in (None, ALL) or machine.smt_control is None
        else []
    )
    if stuck:
        return Cannot(
            f"CPU {format_cpu_list(stuck)} cannot be taken offline",
            "build the kernel with CONFIG_HOTPLUG_CPU=y, or boot with "
            f"maxcpus={len(machine.online) - len(leaving)}",
        )
    return None


def _isolation(deployment: Deployment, machine: Machine) -> Cannot | None:
    if not deployment.isolates:
        return None
    kept, isolated = kept_cpus(deployment, machine), isolated_cpus(deployment, machine)
    # CPUs that will come online are not known yet
    if not (machine.offline and deployment.cores == ALL):
        missing = sorted(set(isolated) - set(kept))
        if missing:
            return Cannot(
                f"CPU {format_cpu_list(missing)}, which should be isolated, is offline in this deployment",
                f"isolate CPUs of {format_cpu_list(kept)}",
            )
        if not isolated or len(isolated) == len(kept):
            return Cannot(
                "no CPU would be left for everything else: isolation needs at least two CPUs",
                "isolate fewer CPUs",
            )
    if machine.cpuset is None:
        return Cannot(
            "there is no cpuset controller for isolation",
            "mount it (CONFIG_CPUSETS=y), or boot with the parameters of `rtgauge deploy cmdline`",
        )
    busy = [group for group, cpus in machine.cpuset_groups.items() if cpus & set(isolated)]
    ours = [group for group in busy if group.rsplit("/", 1)[1] in (ISOLATED, OTHERS)]
    if ours:
        return Cannot(
            f"the group {ours[0]} of an earlier deployment still exists", "undo it: rtgauge restore --applied"
        )
    if busy:
        name = busy[-1].removeprefix(machine.cpuset.mount)
        return Cannot(
            f"the cpuset {name} uses CPU {format_cpu_list(isolated)}",
            f"stop the tasks of {name}, or remove these CPUs from it",
        )
    return None


def why_not(deployment: Deployment, machine: Machine) -> Cannot | None:
    """Why the machine does not support the deployment, as far as can be seen beforehand; None: it does."""
    for check in (smt_cannot, c_states_cannot, _cores, _isolation):
        cannot = check(deployment, machine)
        if cannot is not None:
            return cannot
    return None
