# SPDX-License-Identifier: MIT
"""A deployment by boot parameters: the words for the kernel's command line, whether a machine can take them, and whether the kernel did what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rtgauge.errors import InputError
from rtgauge.system.deployment.ability import Cannot, c_states_cannot, isolated_cpus, kept_cpus, smt_cannot
from rtgauge.system.deployment.definition import ALL
from rtgauge.units import format_cpu_list, format_cpu_mask

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return [*words, f"xenomai.supported_cpus=0x{format_cpu_mask(isolated).replace(',', '')}"] if xenomai else words


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


def boot_words(deployment: Deployment, machine: Machine, architecture: str) -> list[str]:
    """What to boot with; `machine` as it is without any of these words. Raises InputError where boot parameters cannot say it.

    A processor that has no C-states needs no words against them: idle=poll would only keep every emulated CPU busy.
    """
    wanted = deployment if machine.idle_states else replace(deployment, c_states=None)
    return command_line(wanted, machine, architecture=architecture)


def why_not_by_boot(deployment: Deployment, machine: Machine, architecture: str) -> Cannot | None:
    """None: as far as can be seen before it is tried, the machine can take it. `machine` as it is without any of the deployment's words."""
    cannot = smt_cannot(deployment, machine) or c_states_cannot(deployment, machine)
    if cannot is not None:
        return cannot
    if deployment.cores == ALL and len(machine.cores) == 1:
        return Cannot("it has a single core", "measure Single")
    if deployment.cores not in (None, ALL) and int(deployment.cores) > len(machine.cores):
        return Cannot(f"it has {len(machine.cores)} core(s)", "ask for fewer cores")
    missing = sorted(set(isolated_cpus(deployment, machine)) - set(kept_cpus(deployment, machine)))
    if missing:
        kept = format_cpu_list(kept_cpus(deployment, machine))
        return Cannot(f"CPU {format_cpu_list(missing)}, which is to be isolated, is not online in it", f"isolate CPUs out of {kept}")
    try:
        boot_words(deployment, machine, architecture)
    except InputError as error:
        return Cannot(str(error), "write it in other words (rtgauge deploy --help)")
    return None


def left_to_set(deployment: Deployment) -> Deployment:
    """What boot parameters cannot do, or not on every kernel: it is set after the boot."""
    return replace(deployment, c_states=None, smt=None, cores=None, isolate=None)


def differs(deployment: Deployment, before: Machine, cpu: Mapping[str, Any]) -> str | None:
    """What the machine, booted for the deployment, is not; None: it is what was asked. `before`: without its words; `cpu`: that part of its facts now."""
    kept, isolated = kept_cpus(deployment, before), isolated_cpus(deployment, before)
    if deployment.smt is not None or deployment.cores is not None:
        online = str(cpu.get("online"))
        if online != format_cpu_list(kept):
            return f"CPU {online} is online, where it should be {format_cpu_list(kept)}"
    if deployment.isolate is not None:
        now = str(cpu.get("isolated"))
        if now != format_cpu_list(isolated):
            return f"CPU {now or 'none'} is isolated, where it should be {format_cpu_list(isolated) or 'none'}"
    deepest = cast("Mapping[str, Any]", cpu.get("idle") or {}).get("deepest_latency_us")
    if deployment.c_states == "off" and isinstance(deepest, int) and deepest > 0:
        return f"its processors still enter a C-state that takes {deepest} us to leave"
    return None


def not_in_effect(words: list[str], cpu: Mapping[str, Any]) -> list[str]:
    """Words that this kernel was built without, as far as that can be seen afterwards."""
    asked = next((word.partition("=")[2] for word in words if word.startswith("nohz_full=")), None)
    return [] if asked is None or cpu.get("nohz_full") == asked else [f"nohz_full={asked}"]
