# SPDX-License-Identifier: MIT
"""Sets the controller's priorities (Brown & Martin 2010, sec. 3.6).

The process that runs the test gets a low real-time priority, so that it runs under load. Other real-time
threads are capped below the measured thread. IRQ threads that the measurement waits for are raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rtgauge.system.deployment.stages import Action, Setting, Write
from rtgauge.system.threads import PATHS as THREAD_PATHS
from rtgauge.system.threads import Thread, threads
from rtgauge.target.file_batch import Files

OWN_PRIORITY = 10
CAP = 80
RAISED = 99
IRQ_ACTIONS = "/sys/kernel/irq/[0-9]*/actions"
CONTROLLER_PATHS = [*THREAD_PATHS, IRQ_ACTIONS]
SETTABLE = ("fifo", "rr")
"""Policies whose priority is changed. Deadline threads are left alone."""


@dataclass(frozen=True)
class Controller:
    """Which threads get priority 99. `raised` names kernel threads, or devices with IRQ threads."""

    raised: tuple[str, ...] = ()


def _belongs_to(thread: Thread, name: str, files: Files) -> bool:
    """Return whether the thread is an IRQ thread of the device `name`, or a kernel thread with that name."""
    if re.fullmatch(rf"{re.escape(name)}(/[0-9]+)?", thread.name):
        return True
    irq = re.match(r"irq/([0-9]{1,6})-", thread.name)
    devices = (files.text(f"/sys/kernel/irq/{irq[1]}/actions") or "").split(",") if irq else []
    return name in devices


LINE_NAMES = ("rtgauge-master", "rtgauge-slave")
"""The labels of the GPIO lines that the engine watches. Their interrupts and IRQ threads have these names."""


def line_actions(files: Files) -> list[Action]:
    """Return actions that raise the IRQ threads of LINE_NAMES, which exist only while the engine is armed."""
    irq_threads = [
        thread
        for thread in threads(files)
        if thread.policy in SETTABLE and any(_belongs_to(thread, name, files) for name in LINE_NAMES)
    ]
    raised = [Setting(thread.setting("policy"), f"fifo {RAISED}", essential=False) for thread in irq_threads]
    return [Write(tuple(raised))] if raised else []


class ControllerActions(NamedTuple):
    """The actions to carry out, and the names that match no thread."""

    actions: list[Action]
    missing: list[str]


def controller_actions(
    controller: Controller, files: Files, *, own: Iterable[int], measured: int
) -> ControllerActions:
    """Return the actions that make the controller real-time, raise the threads that `controller` names, and
    cap the other real-time threads at `CAP` and below the measured thread.

    `own`: the process ids of the controller. `measured`: the priority of the measured thread. `migration/N`
    is never changed, because the kernel needs it above everything else.
    """
    controlling = set(own)
    # With reset-on-fork, its children (the loads) do not become real-time.
    value = f"fifo {OWN_PRIORITY} reset-on-fork"
    cap = max(1, min(CAP, measured - 1))
    settings: list[Setting] = []
    matched: set[str] = set()
    for thread in threads(files):
        names = [name for name in controller.raised if _belongs_to(thread, name, files)]
        matched.update(names)
        if thread.process in controlling:
            settings.append(Setting(thread.setting("policy"), value, essential=False))
        elif names and thread.policy in SETTABLE:
            settings.append(Setting(thread.setting("policy"), f"fifo {RAISED}", essential=False))
        elif thread.policy in SETTABLE and thread.priority > cap and not thread.name.startswith("migration/"):
            settings.append(Setting(thread.setting("policy"), f"{thread.policy} {cap}", essential=False))
    return ControllerActions(
        [Write(tuple(settings))] if settings else [],
        [name for name in controller.raised if name not in matched],
    )
