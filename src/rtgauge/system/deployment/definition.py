# SPDX-License-Identifier: MIT
"""Parses a deployment, given by name (`HMI`) or by settings (`c-states=off,isolate=2-3`), and checks whether
a machine supports it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge.system.deployment.extension_auditor import audit_rules, needed_auditor
from rtgauge.units import format_cpu_list, name_cpus, parse_cpu_list, plural

if TYPE_CHECKING:
    from rtgauge.system.deployment.machine_state import Machine


AS_IS = "as-is"
ALL = "all"
EXAMPLE = "c-states=off,smt=off,cores=all,isolate=1"


@dataclass(frozen=True)
class Deployment:
    """Settings of the cores; None leaves a setting unchanged.

    `c_states`, `smt`, `throttling`: on or off. `cores`: a number, or all. `isolate`: off, all (except the
    first CPU), or a CPU list. `settings`: audit rules to meet, separated by commas. `rt_cpus`: the real-time
    CPUs, and `rt_pid`: the process id of a real-time program, which some rules need. `interface`: the only
    network interface whose settings change. `boot`: rules to meet with their remedy's boot parameters.
    """

    name: str
    c_states: str | None = None
    smt: str | None = None
    cores: str | None = None
    isolate: str | None = None
    governor: str | None = None
    throttling: str | None = None
    rt_cpus: str | None = None
    rt_pid: str | None = None
    interface: str | None = None
    settings: str | None = None
    boot: str | None = None

    @property
    def words(self) -> str:
        """The settings as text; empty for `as-is`."""
        given = {key: value for key, value in asdict(self).items() if key != "name" and value is not None}
        return ",".join(f"{key.replace('_', '-')}={value}" for key, value in given.items())

    @property
    def rules(self) -> list[str]:
        """The ids of the audit rules to meet with settings."""
        return self.settings.split(",") if self.settings else []

    @property
    def isolates(self) -> bool:
        """Whether the deployment isolates CPUs for the measurement."""
        return self.isolate not in (None, "off")


COMMON = {"governor": "performance", "throttling": "off"}
"""Settings that all six named deployments share. The paper varies only four features."""
NAMED: dict[str, Deployment] = {
    "CHM": Deployment("CHM", c_states="on", smt="on", cores=ALL, isolate="off", **COMMON),
    "HM": Deployment("HM", c_states="off", smt="on", cores=ALL, isolate="off", **COMMON),
    "HMI": Deployment("HMI", c_states="off", smt="on", cores=ALL, isolate=ALL, **COMMON),
    "M": Deployment("M", c_states="off", smt="off", cores=ALL, isolate="off", **COMMON),
    "MI": Deployment("MI", c_states="off", smt="off", cores=ALL, isolate=ALL, **COMMON),
    "Single": Deployment("Single", c_states="off", smt="off", cores="1", isolate="off", **COMMON),
}
"""The deployments of Delgado & Choi 2020, table 1."""


_ON_OFF = ("on|off", "on or off")
_PATTERNS = {
    "c-states": _ON_OFF,
    "smt": _ON_OFF,
    "cores": ("all|[1-9][0-9]{0,3}", "all or a number of at least 1"),
    "governor": ("[a-z][a-z_]{0,30}", "a frequency governor such as performance"),
    "throttling": _ON_OFF,
    "rt-pid": ("[1-9][0-9]{0,6}", "a process ID"),
    "interface": ("[A-Za-z0-9][A-Za-z0-9_.@-]{0,14}", "a network interface such as eth1"),
}
"""Setting -> the pattern of its values, and what they are."""


def _matching(key: str, value: str) -> str:
    pattern, what = _PATTERNS[key]
    if not re.fullmatch(pattern, value):
        raise InputError(f"deployment: {key} must be {what}, not '{value}'")
    return value


def _cpus(key: str, value: str) -> str:
    if key == "isolate" and value in ("off", ALL):
        return value
    try:
        return format_cpu_list(parse_cpu_list(value))
    except ValueError:
        others = "off, all (which leaves out the first CPU) or " if key == "isolate" else ""
        raise InputError(f"deployment: {key} must be {others}CPUs like 1 or 2-3, not '{value}'") from None


def _settings(key: str, value: str) -> str:
    """Check the names of rules, and sort them."""
    rules = needed_auditor(f"a deployment with {key}").rules()
    return _rules(key, value, [name for name, rule in rules.items() if rule.has_settings])


def _boot(key: str, value: str) -> str:
    """Check the names of rules that need a boot, and sort them."""
    rules = needed_auditor(f"a deployment with {key}").rules()
    return _rules(key, value, [name for name, rule in rules.items() if rule.boot])


def _rules(key: str, value: str, known: Sequence[str]) -> str:
    names = {name.strip() for name in value.split(",")}
    for name in sorted(names - {*known}):
        raise InputError(
            f"deployment: {key} cannot contain '{name}'; see the names with: rtgauge tune "
            f"--dry-run{nearest(name, known)}"
        )
    return ",".join(name for name in known if name in names)


def _check_has_subject(checked: Mapping[str, str]) -> None:
    """Raise InputError if a rule is about CPUs or a program that the user did not name."""
    for name in filter(None, checked["settings"].split(",")):
        rule = audit_rules()[name]
        if rule.needs_cpus and "rt_cpus" not in checked:
            raise InputError(
                f"deployment: {name} applies to the real-time CPUs; name them, for example with rt-cpus=1"
            )
        if rule.needs_program and "rt_pid" not in checked:
            raise InputError(
                f"deployment: {name} applies to a real-time program; name it, for example with rt-pid=1234"
            )


CHECKS = {
    **dict.fromkeys(_PATTERNS, _matching),
    **dict.fromkeys(("isolate", "rt-cpus"), _cpus),
    "settings": _settings,
    "boot": _boot,
}
"""Setting -> the function that checks its value, and returns it in its usual form."""


def parse_deployment(text: str) -> Deployment:
    """Parse `"HMI"`, `"as-is"` or `"c-states=off,isolate=1"`. A custom deployment's name is its settings in a
    fixed order.

    Raises InputError for an unknown name or setting, or an invalid value.
    """
    text = text.strip()
    if text == AS_IS:
        return Deployment(AS_IS)
    if "=" not in text:
        for name, deployment in NAMED.items():
            if name.lower() == text.lower():
                return deployment
        hint = nearest(text, [*NAMED, AS_IS])
        raise InputError(f"unknown deployment '{text}'; name one, or give settings, e.g. {EXAMPLE}{hint}")
    settings: dict[str, str] = {}
    # A CPU list has commas too, so a part without = belongs to the setting before it.
    for part in text.split(","):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign and settings:
            last = next(reversed(settings))
            settings[last] += f",{key}"
            continue
        if key not in CHECKS:
            raise InputError(f"deployment: unknown setting '{key}'{nearest(key, CHECKS)}")
        if key in settings:
            raise InputError(f"deployment: {key} is given twice; separate several deployments by semicolons")
        settings[key] = value
    checked = {key.replace("-", "_"): CHECKS[key](key, value) for key, value in settings.items()}
    if "settings" in checked:
        _check_has_subject(checked)
    return Deployment(Deployment("", **checked).words, **checked)


def split_deployments(text: str) -> list[str]:
    """Split `"HM,MI;c-states=off,cores=1"` into HM, MI and a custom deployment."""
    deployments: list[str] = []
    for chunk in text.split(";"):
        settings: list[str] = []
        for part in (part.strip() for part in chunk.split(",")):
            known = part == AS_IS or part.lower() in {name.lower() for name in NAMED}
            if "=" in part or (settings and not known):
                settings.append(part)
            elif part:
                deployments.append(part)
        if settings:
            deployments.append(",".join(settings))
    return deployments


ISOLATED = "rtgauge-isolated"
OTHERS = "rtgauge-others"


@dataclass(frozen=True)
class Cannot:
    """Why a machine does not support a deployment, and the remedy."""

    reason: str
    remedy: str


def kept_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """Return the online CPUs that the deployment leaves online."""
    cores = machine.cores
    if deployment.cores not in (None, ALL):
        cores = cores[: int(deployment.cores)]
    if deployment.smt == "off":
        cores = [core[:1] for core in cores]
    return sorted(cpu for core in cores for cpu in core)


def isolated_cpus(deployment: Deployment, machine: Machine) -> list[int]:
    """Return the isolated CPUs. `all` leaves the first CPU for everything else (Delgado & Choi
    2020, III-B).
    """
    kept = kept_cpus(deployment, machine)
    if not deployment.isolates or deployment.isolate is None:
        return []
    return kept[1:] if deployment.isolate == ALL else parse_cpu_list(deployment.isolate)


def smt_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """Return why the machine has no SMT if the deployment needs it, otherwise None."""
    if deployment.smt != "on" or machine.has_smt or machine.smt_control == "off":
        return None
    if machine.smt_control == "forceoff":
        return Cannot(
            "SMT (hyper-threading) was disabled permanently at boot",
            "boot without nosmt=force, or enable hyper-threading in the firmware",
        )
    remedy = "measure M instead of HM, or MI instead of HMI; leave smt=on out of settings of your own"
    return Cannot("each core of this machine has only one thread (no SMT)", remedy)


def c_states_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    """Return why the machine has no C-states if the deployment needs them, otherwise None."""
    if deployment.c_states != "on" or machine.idle_states:
        return None
    return Cannot(
        "this kernel has no C-states, so enabling them would change nothing",
        "measure HM instead of CHM, or boot with a cpuidle driver",
    )


def _cores_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    more = machine.offline and machine.smt_control not in ("off", "forceoff")
    if deployment.cores == ALL and len(machine.cores) == 1 and not more and machine.smt_control != "off":
        return Cannot("the machine has a single core", "measure Single")
    if deployment.cores not in (None, ALL) and int(deployment.cores) > len(machine.cores):
        return Cannot(f"it has only {plural(len(machine.cores), 'core')} online", "request fewer cores")
    leaving = set(machine.online) - set(kept_cpus(deployment, machine))
    # If smt/control exists, the kernel itself switches the threads.
    stuck = (
        sorted(leaving - machine.hotpluggable)
        if deployment.cores not in (None, ALL) or machine.smt_control is None
        else []
    )
    if stuck:
        return Cannot(
            f"{name_cpus(stuck)} cannot be taken offline",
            "build the kernel with CONFIG_HOTPLUG_CPU=y, or boot with "
            f"maxcpus={len(machine.online) - len(leaving)}",
        )
    return None


def _isolation_cannot(deployment: Deployment, machine: Machine) -> Cannot | None:
    if not deployment.isolates:
        return None
    kept, isolated = kept_cpus(deployment, machine), isolated_cpus(deployment, machine)
    # It is unknown which CPUs will come online.
    if not (machine.offline and deployment.cores == ALL):
        missing = sorted(set(isolated) - set(kept))
        if missing:
            return Cannot(
                f"{name_cpus(missing)} should be isolated, but {'is' if len(missing) == 1 else 'are'} "
                "offline in this deployment",
                f"isolate only CPUs that stay online: {format_cpu_list(kept)}",
            )
        if not isolated or len(isolated) == len(kept):
            return Cannot(
                "every CPU would be isolated, so none would remain for other tasks",
                "isolate fewer CPUs",
            )
    if machine.cpuset is None:
        return Cannot(
            "isolation needs the cpuset controller, which is not mounted",
            "mount the controller (the kernel needs CONFIG_CPUSETS=y), or boot with the parameters of "
            "`rtgauge deploy cmdline`",
        )
    busy = [group for group, cpus in machine.cpuset_groups.items() if cpus & set(isolated)]
    ours = [group for group in busy if group.rsplit("/", 1)[1] in (ISOLATED, OTHERS)]
    if ours:
        return Cannot(
            f"the control group {ours[0]} of an earlier deployment still exists",
            "undo that deployment with: rtgauge restore --applied",
        )
    if busy:
        name = busy[-1].removeprefix(machine.cpuset.mount)
        return Cannot(
            f"the cpuset {name} uses CPU {format_cpu_list(isolated)}",
            f"stop the tasks in {name}, or remove these CPUs from it",
        )
    return None


def why_not(deployment: Deployment, machine: Machine) -> Cannot | None:
    """Return why the machine does not support the deployment, if this is known before applying it; otherwise
    None.
    """
    if deployment.boot is not None:
        return Cannot(
            f"{deployment.boot} takes effect only after a boot",
            "measure a lab guest with --boot each-deployment, or boot with the parameters of `rtgauge deploy "
            "cmdline`",
        )
    for check in (smt_cannot, c_states_cannot, _cores_cannot, _isolation_cannot):
        cannot = check(deployment, machine)
        if cannot is not None:
            return cannot
    return None
