# SPDX-License-Identifier: MIT
"""RTAI's own modules and programs on a target: which a step needs, where they are, and how they are run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rtgauge.system.kernel_modules import LIST, Kernel, NoModules

if TYPE_CHECKING:
    from rtgauge.record.facts import Facts
    from rtgauge.target.target import Target


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
"""In which they are loaded.

All that RTAI has are part of rtai_hal and rtai_sched, unless it was configured to have them apart.
"""
ALWAYS = ("rtai_hal", "rtai_malloc", "rtai_sched", "rtai_sem")
FOLDERS = ("/usr/realtime/modules", "/opt/rtai/modules")
"""RTAI's own default prefix, and the usual other one."""
CONFIG = "rtai-config"
CONFIG_S = 10.0
PIPELINE = "/proc/ipipe/version"


class TimerLead(NamedTuple):
    """By how much RTAI's timers fire early in user and in kernel space."""

    user_ns: int
    kernel_ns: int


def rtai_modules(
    target: Target, lead: TimerLead | None, more: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """What has to be loaded for RTAI on this target, as `FILE PARAMETERS`; nothing if all is loaded.

    `lead`: None lets RTAI calibrate itself. `more`: further modules, if they are apart from the scheduler ->
    their parameters. Raises NoModules.
    """
    listed = target.read([LIST])[LIST]
    loaded = {line.split(" ")[0] for line in str(listed.get("text", "")).splitlines()}
    if loaded.issuperset((*NEEDED, *more)):
        return []
    Kernel.of(target)
    if "text" not in target.read([PIPELINE])[PIPELINE]:
        raise NoModules(
            f"this kernel is not RTAI's: it has no I-pipe ({PIPELINE})",
            "boot the one that RTAI was built for, or leave rt rtai out",
        )
    wanted = [*more] if loaded.issuperset(NEEDED) else [*ALWAYS, *more]
    folder, there = _folder(target)
    missing = [name for name in ORDER if name in wanted and f"{name}.ko" in there and name not in loaded]
    parameters = {**more, "rtai_sched": _parameters(lead)}
    return [f"{folder}/{name}.ko {parameters.get(name, '')}".rstrip() for name in missing]


def module_folders(target: Target) -> list[str]:
    """Where RTAI's modules may be on the target: where its rtai-config says, then the usual places."""
    config = target.which(CONFIG)
    told = target.run([config, "--module-dir"], CONFIG_S).stdout.strip() if config is not None else ""
    return [*([told] if told.startswith("/") and "\n" not in told else []), *FOLDERS]


def _folder(target: Target) -> tuple[str, list[str]]:
    """Where they are on the target, and the files there. Raises NoModules."""
    folders = module_folders(target)
    listed = target.read(folders)
    for folder in folders:
        there = list(listed.get(folder, {}).get("directory", []))
        if all(f"{name}.ko" in there for name in NEEDED):
            return folder, there
    raise NoModules(
        f"RTAI's modules {' and '.join(NEEDED)} are not loaded, and not in "
        f"{', '.join(dict.fromkeys(folders))}",
        f"install RTAI there, put its {CONFIG} into PATH, or load them (docs/cokernels.md)",
    )


def _parameters(lead: TimerLead | None) -> str:
    """Those of rtai_sched."""
    if lead is None:
        return ""
    user_ns, kernel_ns = (max(number, 1) for number in lead)  # 0 would mean: calibrate
    return f"kernel_latency={kernel_ns} user_latency={user_ns}"


def calibration_for(given: str | None, facts: Facts) -> TimerLead | None:
    """A step's parameter `rtai_latency`, or what RTAI found when it was loaded for this run, or None."""
    if given is not None:
        user, kernel = (int(part.removesuffix("ns")) for part in given.split(","))
        return TimerLead(user, kernel)
    found = facts.kernel.extension.calibration
    user, kernel = found.user_latency_ns, found.kernel_latency_ns
    return None if user is None or kernel is None else TimerLead(user, kernel)


LATENCY, SWITCHES = "rtai-latency", "rtai-switches"
RTAIS = {LATENCY: "latency", SWITCHES: "switches"}
"""RTAI's own programs."""
MODULES = {
    (LATENCY, False): ("rtai_mbx", "rtai_msg"),
    (SWITCHES, False): ("rtai_msg",),
    (LATENCY, True): ("rtai_fifos",),
}
"""(tool, in kernel space) -> what it needs beyond the scheduler."""
IN_KERNEL = "latency_rt"
"""A module that has latency's task in the kernel, which measures as long as it is loaded."""
PROGRAM_FOLDERS = {
    (LATENCY, False): (("testsuite", "display"), ("testsuite/user/latency", "display")),
    (SWITCHES, False): (("testsuite", "switches"), ("testsuite/user/switches", "switches")),
    (LATENCY, True): (("testsuite/kern/latency", "display"),),
}
"""(tool, in kernel space) -> (folder below RTAI's prefix, a program there that it cannot do without)."""

USER_LATENCY = r"""
cd "$1" || exit
./latency </dev/null & latency=$!
# once its task has a period it measures; its line tells which
until grep "^[0-9][0-9]*  *[1-9].* $latency  *[0-9a-f]\{8,\} " /proc/rtai/scheduler; do
  kill -0 $latency 2>/dev/null || break
  sleep 0.1
done
if kill -0 $latency 2>/dev/null; then sleep "$2" | ./display; fi  # which ends latency when its input ends
wait $latency
"""
KERNEL_LATENCY = r"""
cd "$1" || exit
cat /proc/rtai/*latency_calibrate
./display & display=$!
sleep "$2"
kill -INT $display; wait $display
"""
SCRIPTS = {
    (LATENCY, False): USER_LATENCY,
    (SWITCHES, False): 'cd "$1" && exec ./switches',
    (LATENCY, True): KERNEL_LATENCY,
}


def modules_of(tool: str, *, in_kernel: bool) -> dict[str, str]:
    """The modules that a tool needs beyond RTAI's scheduler -> their parameters."""
    return dict.fromkeys(MODULES.get((tool, in_kernel), ()), "")


def measuring_module(tool: str, interval_ns: int | None, *, in_kernel: bool) -> dict[str, str]:
    """The module that measures by itself, for a tool that is one -> its parameters."""
    if (tool, in_kernel) != (LATENCY, True):
        return {}
    return {IN_KERNEL: f"period={interval_ns}"}


def rtai_argv(tool: str, folder: str, seconds: int, *, in_kernel: bool) -> list[str]:
    """The command that lets the programs in this folder measure for so many seconds."""
    # a second more: latency prints after each that is over
    return ["sh", "-c", SCRIPTS[tool, in_kernel], tool, folder, str(seconds + 1)]


def places(target: Target, tool: str, *, in_kernel: bool) -> list[str]:
    """Where the program may be on this target."""
    prefixes = dict.fromkeys(str(PurePosixPath(folder).parent) for folder in module_folders(target))
    return [
        f"{prefix}/{folder}/{program}"
        for prefix in prefixes
        for folder, program in PROGRAM_FOLDERS[tool, in_kernel]
    ]


def program_folder(target: Target, tool: str, *, in_kernel: bool) -> str | None:
    """The folder with the programs; None where they are not installed."""
    there = (place for place in places(target, tool, in_kernel=in_kernel) if target.which(place) is not None)
    if in_kernel and not any(f"{IN_KERNEL}.ko" in names for names in _listed(target)):
        return None
    return next((str(PurePosixPath(place).parent) for place in there), None)


def _listed(target: Target) -> list[list[str]]:
    folders = target.read(module_folders(target))
    return [[str(name) for name in entry.get("directory", [])] for entry in folders.values()]
