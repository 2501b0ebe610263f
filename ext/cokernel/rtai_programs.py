# SPDX-License-Identifier: MIT
"""Finds the programs that come with RTAI on a target, and says how to run them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rtgauge_ext.cokernel.rtai_modules import module_folders

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target

LATENCY, SWITCHES = "rtai-latency", "rtai-switches"
RTAIS = {LATENCY: "latency", SWITCHES: "switches"}
"""The programs that come with RTAI."""
MODULES = {
    (LATENCY, False): ("rtai_mbx", "rtai_msg"),
    (SWITCHES, False): ("rtai_msg",),
    (LATENCY, True): ("rtai_fifos",),
}
"""Maps (tool, in kernel space) to the modules that the tool needs, in addition to the scheduler."""
IN_KERNEL = "latency_rt"
"""The module that runs latency's task in the kernel. It measures while it is loaded."""
PROGRAM_FOLDERS = {
    (LATENCY, False): (("testsuite", "display"), ("testsuite/user/latency", "display")),
    (SWITCHES, False): (("testsuite", "switches"), ("testsuite/user/switches", "switches")),
    (LATENCY, True): (("testsuite/kern/latency", "display"),),
}
"""Maps (tool, in kernel space) to (folder below RTAI's prefix, a program in it that the tool needs)."""

USER_LATENCY = r"""
cd "$1" || exit
./latency </dev/null & latency=$!
# once its task has a period it measures; its line shows the period
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
    """Return the modules that a tool needs with their parameters, without RTAI's scheduler."""
    return dict.fromkeys(MODULES.get((tool, in_kernel), ()), "")


def measuring_module(tool: str, interval_ns: int | None, *, in_kernel: bool) -> dict[str, str]:
    """Return the module that measures, with its parameters; empty if the tool has no such module."""
    if (tool, in_kernel) != (LATENCY, True):
        return {}
    return {IN_KERNEL: f"period={interval_ns}"}


def rtai_argv(tool: str, folder: str, seconds: int, *, in_kernel: bool) -> list[str]:
    """Return the command with which the programs in this folder measure for `seconds`."""
    # One more second, because latency prints at the end of each second.
    return ["sh", "-c", SCRIPTS[tool, in_kernel], tool, folder, str(seconds + 1)]


def places(target: Target, tool: str, *, in_kernel: bool) -> list[str]:
    """Return the paths on this target at which the tool's program may be."""
    prefixes = dict.fromkeys(str(PurePosixPath(folder).parent) for folder in module_folders(target))
    return [
        f"{prefix}/{folder}/{program}"
        for prefix in prefixes
        for folder, program in PROGRAM_FOLDERS[tool, in_kernel]
    ]


def program_folder(target: Target, tool: str, *, in_kernel: bool) -> str | None:
    """Return the target's folder with the tool's programs; None if they, or a module that they need, are not
    installed.
    """
    existing = (
        place for place in places(target, tool, in_kernel=in_kernel) if target.which(place) is not None
    )
    folders = module_folders(target) if in_kernel else []
    listed = target.read(folders)
    if in_kernel and not any(f"{IN_KERNEL}.ko" in listed.entries(folder) for folder in folders):
        return None
    return next((str(PurePosixPath(place).parent) for place in existing), None)
