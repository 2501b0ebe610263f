# SPDX-License-Identifier: MIT
"""Finds the daemons that would set a value back, and the settings that stop them meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from rtgauge.system.deployment.machine_state import Machine, Setting
from rtgauge.system.threads import COMM_BYTES, Thread, threads

FOUGHT_BY = {
    "isolate": ("irqbalance",),
    "c_states": ("tuned",),
    "governor": ("tuned", "power-profiles-daemon", "thermald"),
}
"""Maps a setting to the daemons that would change it back."""


def paused(daemons: Iterable[str], machine: Machine) -> list[Setting]:
    """Return the settings that stop these daemons, if they run (needs the machine's THREAD_PATHS)."""
    return [
        Setting(thread.setting("state"), "stopped", essential=False) for thread in running(daemons, machine)
    ]


def running(daemons: Iterable[str], machine: Machine) -> list[Thread]:
    """Return these daemons' main threads, if they run (needs the machine's THREAD_PATHS)."""
    names = {name[:COMM_BYTES] for name in daemons}
    return [
        thread
        for thread in (threads(machine.files) if names else ())
        if thread.tid == thread.process and thread.name in names and not thread.kernel
    ]
