# SPDX-License-Identifier: MIT
"""semaphore: from one task's post to the other's return from wait (Garre et al. 2014, sec. 3.1, IPC), also by other means than a semaphore."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rtgauge.probe.measuring import MeasuringParameters, MeasuringProbe


class SemaphoreParameters(MeasuringParameters):
    """Parameters of `semaphore`."""

    method: Literal["semaphore", "mutex", "condition", "eventfd", "pipe", "mqueue", "signal"] = Field(
        default="semaphore", alias="method", description="how a task waits for the other"
    )
    placement: Literal["same-cpu", "same-core", "other-core"] = Field(default="same-cpu", alias="placement", description="of the second task")


class Semaphore(MeasuringProbe):
    """Two tasks that wake each other in turn."""

    name = "semaphore"
    help = "from one task's post to the other's return from wait; also by mutex, pipe, signal and others"
    parameters = SemaphoreParameters
