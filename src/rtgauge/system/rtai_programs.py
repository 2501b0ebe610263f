# SPDX-License-Identifier: MIT
"""The programs of RTAI's testsuite that measure a step again: where they are on a target, and the commands
that run them.

RTAI has them in testsuite/ (5.3) or in testsuite/user/ and testsuite/kern/ (3.9 to 5.2) of its prefix."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rtgauge.system.rtai_modules import module_folders

if TYPE_CHECKING:
    from rtgauge.target.target import Target

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
FOLDERS = {
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
        f"{prefix}/{folder}/{program}" for prefix in prefixes for folder, program in FOLDERS[tool, in_kernel]
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
