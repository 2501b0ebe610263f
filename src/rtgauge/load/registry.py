# SPDX-License-Identifier: MIT
"""Finds loads by name."""

from __future__ import annotations

from rtgauge.errors import InputError
from rtgauge.load.brown2010 import Brown2010
from rtgauge.load.copy import Copy
from rtgauge.load.cpu import Cpu
from rtgauge.load.idle import Idle
from rtgauge.load.load import Load
from rtgauge.load.memory import Memory
from rtgauge.load.network import Network
from rtgauge.load.papers import Papers
from rtgauge.load.read_device import Read
from rtgauge.load.scheduler import Scheduler
from rtgauge.load.stall import Stall
from rtgauge.load.swarm import Swarm
from rtgauge.suggest import nearest

LOADS: dict[str, type[Load]] = {
    load.name: load
    for load in (Idle, Cpu, Memory, Network, Scheduler, Copy, Read, Swarm, Papers, Brown2010, Stall)
}


def names() -> list[str]:
    """Return the names of all loads."""
    return list(LOADS)


def get(name: str) -> Load:
    """Return the load with this name. Some names take a parameter after a colon (`swarm:100`).

    Raises InputError, with the nearest name, if there is no such load.
    """
    head, colon, word = name.partition(":")
    kind = LOADS.get(head)
    if kind is not None and not colon:
        return kind()
    if kind is not None and kind.parameter and word:
        return kind(word)  # type: ignore[call-arg] - its constructor takes what `parameter` says
    if kind is not None:
        raise InputError(
            f"load '{name[:100]}': write {f'{head}:{kind.parameter}' if kind.parameter else head}"
        )
    raise InputError(f"unknown load '{name}'{nearest(head, LOADS)}")
