# SPDX-License-Identifier: MIT
"""Finds RTAI's own kernel modules on a target."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rtgauge.record.facts import Facts
from rtgauge.system.loadable_modules import LIST, ModuleKernel, NoModules
from rtgauge_ext.cokernel.rtai_facts import SCHEDULER, loaded_calibration

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target


NEEDED = ("rtai_hal", "rtai_sched")
ORDER = (
    "rtai_hal",
    "rtai_malloc",
    "rtai_sched",
    "rtai_sem",
    "rtai_mbx",
    "rtai_msg",
    "rtai_fifos",
    "latency_rt",
)
"""The order in which the modules are loaded.

All other modules are part of rtai_hal and rtai_sched, unless RTAI was built with separate ones.
"""
ALWAYS = ("rtai_hal", "rtai_malloc", "rtai_sched", "rtai_sem")
FOLDERS = ("/usr/realtime/modules", "/opt/rtai/modules")
"""RTAI's own default prefix, and the other usual prefix."""
CONFIG = "rtai-config"
CONFIG_S = 10.0
PIPELINE = "/proc/ipipe/version"


class TimerLead(NamedTuple):
    """How early RTAI's timers fire in user and in kernel space."""

    user_ns: int
    kernel_ns: int


def rtai_modules(
    target: Target, lead: TimerLead | None, more: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return the RTAI modules to load on this target, as `FILE PARAMETERS`; empty if all are loaded.

    `lead`: None lets RTAI calibrate itself. `more`: further modules with their parameters, if these are
    separate from the scheduler. Raises NoModules if RTAI is not installed, or if the kernel is not RTAI's.
    """
    loaded = {line.split(" ")[0] for line in (target.read([LIST]).text(LIST) or "").splitlines()}
    if loaded.issuperset((*NEEDED, *more)):
        return []
    if not target.read([PIPELINE]).exists(PIPELINE):
        raise NoModules(
            f"this is not an RTAI kernel, because it lacks the I-pipe ({PIPELINE})",
            "boot the kernel that RTAI was built for, or leave --rt rtai out",
        )
    ModuleKernel.of(target, "leave --rt rtai out")
    needed = [*more] if loaded.issuperset(NEEDED) else [*ALWAYS, *more]
    folder, present = _folder(target)
    missing = [name for name in ORDER if name in needed and f"{name}.ko" in present and name not in loaded]
    parameters = {**more, "rtai_sched": _parameters(lead)}
    return [f"{folder}/{name}.ko {parameters.get(name, '')}".rstrip() for name in missing]


def check_loaded(target: Target, lead: TimerLead) -> None:
    """Raise NoModules if RTAI's scheduler is loaded already with another timer lead, which only loading it
    can change.
    """
    files = target.read([LIST, SCHEDULER])
    if not any(line.startswith("rtai_sched ") for line in (files.text(LIST) or "").splitlines()):
        return
    current = loaded_calibration(files)
    if (current.user_latency_ns, current.kernel_latency_ns) != lead:
        raise NoModules(
            f"RTAI's modules are loaded already with the latencies {_words(current.user_latency_ns)} and "
            f"{_words(current.kernel_latency_ns)}, not {_words(lead.user_ns)} and {_words(lead.kernel_ns)}",
            "unload the modules (rmmod rtai_sched), or leave rtai-latency out",
        )


def _words(time_ns: int | None) -> str:
    return "unknown" if time_ns is None else f"{time_ns} ns"


def module_folders(target: Target) -> list[str]:
    """Return the target's folders that may have RTAI's modules: the folder that rtai-config names, and the
    usual ones.
    """
    config = target.which(CONFIG)
    configured = target.run([config, "--module-dir"], CONFIG_S).stdout.strip() if config is not None else ""
    return [*([configured] if configured.startswith("/") and "\n" not in configured else []), *FOLDERS]


def _folder(target: Target) -> tuple[str, list[str]]:
    """Return RTAI's module folder on the target, and its files. Raises NoModules if it does not exist."""
    folders = module_folders(target)
    listed = target.read(folders)
    for folder in folders:
        present = listed.entries(folder)
        if all(f"{name}.ko" in present for name in NEEDED):
            return folder, present
    raise NoModules(
        f"RTAI's modules {' and '.join(NEEDED)} are neither loaded nor in "
        f"{', '.join(dict.fromkeys(folders))}",
        f"install RTAI there, add the folder of its {CONFIG} to PATH, or load the modules "
        "(ext/cokernel/README.md)",
    )


def _parameters(lead: TimerLead | None) -> str:
    """Return the parameters for the module rtai_sched."""
    if lead is None:
        return ""
    user_ns, kernel_ns = (max(number, 1) for number in lead)  # 0 would tell RTAI to calibrate
    return f"kernel_latency={kernel_ns} user_latency={user_ns}"


def calibration_for(given: str | None, facts: Facts) -> TimerLead | None:
    """Return the timer lead from `given`, a step's `rtai_latency`, or else from the calibration that RTAI
    made when it was loaded; None if there is neither.
    """
    if given is not None:
        user, kernel = (int(part.removesuffix("ns")) for part in given.split(","))
        return TimerLead(user, kernel)
    calibration = facts.kernel.extension.calibration
    user, kernel = calibration.user_latency_ns, calibration.kernel_latency_ns
    return None if user is None or kernel is None else TimerLead(user, kernel)
