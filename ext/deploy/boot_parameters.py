# SPDX-License-Identifier: MIT
"""Turns a deployment into boot parameters, and checks whether a machine supports them and uses them.

Source: Linux, Documentation/admin-guide/kernel-parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.record.facts import Processors
from rtgauge.system.cpus import CPU
from rtgauge.system.deployment.definition import (
    ALL,
    Cannot,
    Deployment,
    c_states_cannot,
    isolated_cpus,
    kept_cpus,
    smt_cannot,
)
from rtgauge.system.deployment.extension_auditor import audit_rules
from rtgauge.units import format_cpu_list, format_cpu_mask, name_cpus, plural

if TYPE_CHECKING:
    from rtgauge.system.deployment.machine_state import Machine
    from rtgauge.target.file_batch import Files

X86 = ("x86_64", "i686", "i586", "i386")
OF_DEPLOYMENTS = {
    *("intel_idle.max_cstate", "processor.max_cstate", "cpuidle.off", "nohlt", "nosmt", "maxcpus"),
    *("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "cpufreq.default_governor"),
    "xenomai.supported_cpus",
}
"""Parameters that make up a deployment. idle=poll counts too, but only if one of these is present."""


def _c_states(deployment: Deployment, architecture: str) -> list[str]:
    """Return three parameters on x86. With only the first, another driver took over in the paper."""
    if deployment.c_states != "off":
        return []
    if architecture in X86:
        return ["intel_idle.max_cstate=0", "processor.max_cstate=1", "idle=poll"]
    return ["cpuidle.off=1", "nohlt"]


def _cores(deployment: Deployment, machine: Machine) -> list[str]:
    """Return maxcpus=. It counts CPU numbers, so the CPUs to keep must be the lowest."""
    if deployment.cores in (None, ALL):
        return []
    kept = kept_cpus(deployment, machine)
    dropped = [core[0] for core in machine.cores if core[0] not in kept]
    if dropped and min(dropped) < max(kept):
        raise InputError(
            f"maxcpus= cannot keep CPU {format_cpu_list(kept)} and leave out CPU "
            f"{format_cpu_list(dropped)}, because it keeps the lowest CPU numbers"
        )
    return [f"maxcpus={max(kept) + 1}"]


def _isolation(deployment: Deployment, machine: Machine, *, xenomai: bool, tickless: bool) -> list[str]:
    isolated = isolated_cpus(deployment, machine)
    others = [cpu for cpu in kept_cpus(deployment, machine) if cpu not in isolated]
    if not deployment.isolates:
        return []
    if not isolated or not others:
        raise InputError(
            f"{deployment.name} isolates CPUs, but this machine has only "
            f"{plural(len(machine.online), 'CPU')}, and one must remain for everything else"
        )
    cpus = format_cpu_list(isolated)
    words = [f"isolcpus=managed_irq,domain,{cpus}"]
    words += [f"nohz_full={cpus}"] if tickless else []
    words += [f"rcu_nocbs={cpus}", f"irqaffinity={format_cpu_list(others)}"]
    mask = format_cpu_mask(isolated).replace(",", "")
    return [*words, f"xenomai.supported_cpus=0x{mask}"] if xenomai else words


def command_line(
    deployment: Deployment,
    machine: Machine,
    *,
    architecture: str,
    xenomai: bool = False,
    tickless: bool = True,
) -> list[str]:
    """Return a deployment's boot parameters in a fixed order; unchanged settings get none.

    `architecture`: the output of `uname -m`. `xenomai`: whether the kernel has Cobalt, which also gets the
    isolated CPUs. `tickless`: whether the kernel supports nohz_full=. Raises InputError if boot parameters
    cannot make this deployment.
    """
    words = _c_states(deployment, architecture)
    words += ["nosmt"] if deployment.smt == "off" else []
    words += _cores(deployment, machine)
    words += _isolation(deployment, machine, xenomai=xenomai, tickless=tickless)
    words += [f"cpufreq.default_governor={deployment.governor}"] if deployment.governor is not None else []
    return list(dict.fromkeys([*words, *_of_rules(deployment)]))


def _of_rules(deployment: Deployment) -> list[str]:
    names = deployment.boot.split(",") if deployment.boot else []
    return [word for name in names for word in audit_rules()[name].boot]


def not_by_boot(deployment: Deployment) -> list[str]:
    """Return what the user must still do after the boot, or in the firmware."""
    hints: list[str] = []
    if deployment.throttling == "off":
        hints.append("after the boot, run: sysctl kernel.sched_rt_runtime_us=-1")
    if deployment.c_states == "off":
        hints.append(
            "also disable C-states in the firmware if possible, because some machines bypass these parameters"
        )
    if deployment.c_states == "on":
        hints.append(
            "remove idle=poll, intel_idle.max_cstate= and processor.max_cstate= from the command line"
        )
    if deployment.smt == "on":
        hints.append("remove nosmt from the command line, and enable hyper-threading in the firmware")
    return hints


def boot_words(deployment: Deployment, machine: Machine, architecture: str) -> list[str]:
    """Return a deployment's boot parameters for a guest. `machine`: the guest's state without them.

    Raises InputError if boot parameters cannot make this deployment. If the processor has no C-states, no
    parameters disable them: idle=poll would only keep every emulated CPU busy.
    """
    adapted = deployment if machine.idle_states else replace(deployment, c_states=None)
    return command_line(adapted, machine, architecture=architecture)


def other_words(words: Sequence[str]) -> list[str]:
    """Return the guest's own boot parameters, which every deployment keeps."""
    left = [word for word in words if word.partition("=")[0] not in OF_DEPLOYMENTS]
    return left if len(left) == len(words) else [word for word in left if word != "idle=poll"]


def why_not_by_boot(deployment: Deployment, machine: Machine, architecture: str) -> Cannot | None:
    """Return why boot parameters cannot apply this deployment, if this is known before the boot, or None.

    `machine`: the machine's state without the parameters.
    """
    cannot = smt_cannot(deployment, machine) or c_states_cannot(deployment, machine)
    if cannot is not None:
        return cannot
    if deployment.cores == ALL and len(machine.cores) == 1:
        return Cannot("the machine has a single core", "measure Single")
    if deployment.cores not in (None, ALL) and int(deployment.cores) > len(machine.cores):
        return Cannot(f"the machine has only {plural(len(machine.cores), 'core')}", "request fewer cores")
    missing = sorted(set(isolated_cpus(deployment, machine)) - set(kept_cpus(deployment, machine)))
    if missing:
        kept = format_cpu_list(kept_cpus(deployment, machine))
        return Cannot(
            f"{name_cpus(missing)} should be isolated, but {'is' if len(missing) == 1 else 'are'} "
            "offline in this deployment",
            f"isolate only CPUs that stay online: {kept}",
        )
    try:
        boot_words(deployment, machine, architecture)
    except InputError as error:
        return Cannot(str(error), "use other settings (rtgauge deploy --help)")
    return None


def left_to_set(deployment: Deployment) -> Deployment:
    """Return the rest of the deployment, to be set after the boot: not every kernel has parameters for it."""
    return replace(deployment, c_states=None, smt=None, cores=None, isolate=None, boot=None)


def differs(deployment: Deployment, before: Machine, cpu: Processors) -> str | None:
    """Return how the booted machine differs from the deployment; None if it does not.

    `before`: the machine's state without the parameters. `cpu`: the present facts of its processors.
    """
    kept, isolated = kept_cpus(deployment, before), isolated_cpus(deployment, before)
    if deployment.smt is not None or deployment.cores is not None:
        if not cpu.online:
            return "rtgauge cannot tell which CPUs are online"
        if cpu.online != format_cpu_list(kept):
            return f"the CPUs {cpu.online} are online, but the deployment needs {format_cpu_list(kept)}"
    if deployment.isolate is not None:
        if cpu.isolated is None:
            return "rtgauge cannot tell which CPUs are isolated"
        if cpu.isolated != format_cpu_list(isolated):
            now = f"the isolated CPUs are {cpu.isolated}" if cpu.isolated else "no CPU is isolated"
            cpus = format_cpu_list(isolated)
            return f"{now}, but the deployment {f'isolates {cpus}' if cpus else 'does not isolate any'}"
    deepest = cpu.idle.deepest_latency_us
    if deployment.c_states == "off" and isinstance(deepest, int) and deepest > 0:
        return f"its processors still enter a C-state with an exit latency of {deepest} us"
    return None


def not_in_effect(words: list[str], cpu: Processors) -> list[str]:
    """Return `nohz_full=CPUS` from the parameters `words` if the facts show other CPUs; otherwise nothing."""
    requested = next((word.partition("=")[2] for word in words if word.startswith("nohz_full=")), None)
    return [] if requested is None or cpu.nohz_full == requested else [f"nohz_full={requested}"]


def knows_nohz_full(files: Files) -> bool:
    """Return whether the kernel has CONFIG_NO_HZ_FULL, judging by a file in sysfs; True if sysfs is
    unreadable.
    """
    return files.exists(f"{CPU}/nohz_full") or not files.exists(f"{CPU}/online")
