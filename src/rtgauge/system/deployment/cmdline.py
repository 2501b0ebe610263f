# SPDX-License-Identifier: MIT
"""What to boot with to have a deployment from the beginning (Linux, Documentation/admin-guide/kernel-parameters)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.system.deployment.ability import isolated_cpus, kept_cpus
from rtgauge.system.deployment.actions import mask
from rtgauge.system.deployment.definition import ALL
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.deployment.definition import Deployment
    from rtgauge.system.deployment.machine_state import Machine

X86 = ("x86_64", "i686", "i586", "i386")


def _c_states(deployment: Deployment, architecture: str) -> list[str]:
    """On x86 all three: with the first alone another driver takes over, as the paper saw."""
    if deployment.c_states != "off":
        return []
    return ["intel_idle.max_cstate=0", "processor.max_cstate=1", "idle=poll"] if architecture in X86 else ["cpuidle.off=1", "nohlt"]


def _cores(deployment: Deployment, machine: Machine) -> list[str]:
    """maxcpus= counts CPU numbers: the CPUs to keep have to be the first ones."""
    if deployment.cores in (None, ALL):
        return []
    kept = kept_cpus(deployment, machine)
    dropped = [core[0] for core in machine.cores if core[0] not in kept]
    if dropped and min(dropped) < max(kept):
        raise InputError(f"maxcpus= cannot keep CPU {format_cpu_list(kept)} and leave out CPU {format_cpu_list(dropped)}: it counts CPU numbers from 0")
    return [f"maxcpus={max(kept) + 1}"]


def _isolation(deployment: Deployment, machine: Machine, *, xenomai: bool) -> list[str]:
    isolated = isolated_cpus(deployment, machine)
    others = [cpu for cpu in kept_cpus(deployment, machine) if cpu not in isolated]
    if not deployment.isolates:
        return []
    if not isolated or not others:
        raise InputError(f"{deployment.name} isolates CPUs, and this machine has {len(machine.online)}: isolation needs two or more")
    cpus = format_cpu_list(isolated)
    words = [f"isolcpus=managed_irq,domain,{cpus}", f"nohz_full={cpus}", f"rcu_nocbs={cpus}", f"irqaffinity={format_cpu_list(others)}"]
    return [*words, f"xenomai.supported_cpus=0x{mask(isolated).replace(',', '')}"] if xenomai else words


def command_line(deployment: Deployment, machine: Machine, *, architecture: str, xenomai: bool = False) -> list[str]:
    """The parameters, in a fixed order; none for what the deployment leaves as it is. Raises InputError where boot parameters cannot say it."""
    words = _c_states(deployment, architecture)
    words += ["nosmt"] if deployment.smt == "off" else []
    words += _cores(deployment, machine)
    words += _isolation(deployment, machine, xenomai=xenomai)
    words += [f"cpufreq.default_governor={deployment.governor}"] if deployment.governor is not None else []
    return words


def not_by_boot(deployment: Deployment) -> list[str]:
    """What has to be done after the boot, or before it in the firmware."""
    found: list[str] = []
    if deployment.throttling == "off":
        found.append("after the boot: sysctl kernel.sched_rt_runtime_us=-1")
    if deployment.c_states == "off":
        found.append("where the firmware can switch C-states off, do it there too: some machines go around these parameters")
    if deployment.c_states == "on":
        found.append("take idle=poll, intel_idle.max_cstate= and processor.max_cstate= out of the present command line")
    if deployment.smt == "on":
        found.append("take nosmt out of the present command line, and switch hyper-threading on in the firmware")
    return found
