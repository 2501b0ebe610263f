# SPDX-License-Identifier: MIT
"""The controller's priorities (Brown & Martin 2010, sec. 3.6).

What runs the test gets a low real-time priority so that it acts in time under load, other real-time threads are capped below the measured one,
and the IRQ threads that the measurement waits for are raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.system.deployment.actions import Action, Setting, Write
from rtgauge.system.file_batch import Files, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OWN_PRIORITY = 10
CAP = 80
RAISED = 99
THREADS = "/proc/[0-9]*/task/[0-9]*/stat"
IRQ_ACTIONS = "/sys/kernel/irq/[0-9]*/actions"
CONTROLLER_PATHS = [THREADS, IRQ_ACTIONS]
POLICIES = {1: "fifo", 2: "rr"}
PRIORITY, POLICY, START = 40 - 3, 41 - 3, 22 - 3
"""Places in /proc/PID/stat (proc_pid_stat(5)), counted from the state, which follows the name."""


@dataclass(frozen=True)
class Controller:
    """`raised`: devices whose IRQ threads, or kernel threads which by name, get priority 99."""

    raised: tuple[str, ...] = ()


@dataclass(frozen=True)
class Thread:
    """A thread: `name` is the kernel's, at most 15 characters for a user's; `policy` is None where it is not real-time."""

    process: int
    tid: int
    start: int
    name: str
    policy: str | None
    priority: int

    @property
    def setting(self) -> str:
        """Its policy, as the engine's `set` calls it."""
        return f"thread:{self.tid}:{self.start}:policy"


def threads(files: Files) -> Iterator[Thread]:
    """Every thread of a batch of THREADS; those that ended meanwhile are not there."""
    for match, text in files.matching(r"/proc/([0-9]{1,9})/task/([0-9]{1,9})/stat"):
        before, _, after = text.rpartition(")")
        fields = after.split()
        numbers = [integer(fields[place]) if len(fields) > place else None for place in (START, PRIORITY, POLICY)]
        start, priority, policy = numbers
        if "(" in before and start is not None and priority is not None and policy is not None:
            yield Thread(int(match[1]), int(match[2]), start, before.partition("(")[2], POLICIES.get(policy), priority)


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
    found = [thread for thread in threads(read) if thread.policy is not None and any(_wanted(thread, name, read) for name in LINE_NAMES)]
    return [Write(tuple(Setting(thread.setting, f"fifo {RAISED}", essential=False) for thread in found))] if found else []


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
            settings.append(Setting(thread.setting, value, essential=False))
        elif names and thread.policy is not None:
            settings.append(Setting(thread.setting, f"fifo {RAISED}", essential=False))
        elif thread.policy is not None and thread.priority > cap and not thread.name.startswith("migration/"):
            settings.append(Setting(thread.setting, f"{thread.policy} {cap}", essential=False))
    return ([Write(tuple(settings))] if settings else []), [name for name in controller.raised if name not in found]
