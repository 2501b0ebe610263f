# SPDX-License-Identifier: MIT
"""The probes by name."""

from __future__ import annotations

from rtgauge.errors import InputError
from rtgauge.probe.calibrate import Calibrate
from rtgauge.probe.descriptor import Probe
from rtgauge.probe.inversion import Inversion
from rtgauge.probe.noise import Noise
from rtgauge.probe.periodic import Periodic
from rtgauge.probe.preempt import Preempt
from rtgauge.probe.response import Response
from rtgauge.probe.semaphore import Semaphore
from rtgauge.probe.switch import Switch
from rtgauge.probe.taskset import Taskset
from rtgauge.probe.tire import Tire
from rtgauge.probe.wakeup import Wakeup
from rtgauge.suggest import nearest

PROBES: dict[str, Probe] = {
    probe.name: probe for probe in (Wakeup(), Periodic(), Response(), Noise(), Switch(), Preempt(), Semaphore(), Inversion(), Taskset(), Tire(), Calibrate())
}


def get(name: str) -> Probe:
    """The probe of that name. Raises InputError with the nearest one."""
    if name not in PROBES:
        raise InputError(f"unknown probe '{name}'{nearest(name, PROBES)}")
    return PROBES[name]
