# SPDX-License-Identifier: MIT
"""The controller's priorities (Brown & Martin 2010, sec. 3.6).

What runs the test gets a low real-time priority so that it acts in time under load, other real-time threads are capped below the measured one,
and the IRQ threads that the measurement waits for are raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.system.deployment.stages import Action, Setting, Write
from rtgauge.system.file_batch import Files
from rtgauge.system.threads import PATHS as THREAD_PATHS
from rtgauge.system.threads import Thread, threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OWN_PRIORITY = 10
CAP = 80
RAISED = 99
IRQ_ACTIONS = "/sys/kernel/irq/[0-9]*/actions"
CONTROLLER_PATHS = [*THREAD_PATHS, IRQ_ACTIONS]
SETTABLE = ("fifo", "rr")
"""Policies of which only the priority is changed; deadline threads are left alone."""


@dataclass(frozen=True)
class Controller:
    """`raised`: devices whose IRQ threads, or kernel threads which by name, get priority 99."""

    raised: tuple[str, ...] = ()


def _wanted(thread: Thread, name: str, files: Files) -> bool:
    """Whether it is an IRQ thread of the device `name`, or a kernel thread of that name (a CPU's number behind it)."""
    if re.fullmatch(rf"{re.escape(name)}(/[0-9]+)?", thread.name):
        return True
    irq = re.match(r"irq/([0-9]{1,6})-", thread.name)
    devices = (files.text(f"/sys/kernel/irq/{irq[1]}/actions") or "").split(",") if irq else []
    return name in devices


LINE_NAMES = ("rtgauge-master", "rtgauge-slave")
"""What the engine calls the GPIO lines that it watches; their interrupts and their IRQ threads have these names."""


def line_actions(files: Mapping[str, Any]) -> list[Action]:
    """The IRQ threads of the lines that the engine watches, raised: they are there only once it is armed."""
    read = Files(files)
    found = [thread for thread in threads(read) if thread.policy in SETTABLE and any(_wanted(thread, name, read) for name in LINE_NAMES)]
    return [Write(tuple(Setting(thread.setting("policy"), f"fifo {RAISED}", essential=False) for thread in found))] if found else []


def controller_actions(controller: Controller, files: Mapping[str, Any], *, own: Iterable[int], measured: int) -> tuple[list[Action], list[str]]:
    """(what to set, the names of which no thread was found). `own`: the processes of the controller. `measured`: the priority that is measured.

    `migration/N`, which the kernel needs above all, is never touched.
    """
    read, controlling = Files(files), set(own)
    # it never forks real-time children: a load would be one
    value = f"fifo {OWN_PRIORITY} reset-on-fork"
    cap = max(1, min(CAP, measured - 1))
    settings: list[Setting] = []
    found: set[str] = set()
    for thread in threads(read):
        names = [name for name in controller.raised if _wanted(thread, name, read)]
        found.update(names)
        if thread.process in controlling:
            settings.append(Setting(thread.setting("policy"), value, essential=False))
        elif names and thread.policy in SETTABLE:
            settings.append(Setting(thread.setting("policy"), f"fifo {RAISED}", essential=False))
        elif thread.policy in SETTABLE and thread.priority > cap and not thread.name.startswith("migration/"):
            settings.append(Setting(thread.setting("policy"), f"{thread.policy} {cap}", essential=False))
    return ([Write(tuple(settings))] if settings else []), [name for name in controller.raised if name not in found]
