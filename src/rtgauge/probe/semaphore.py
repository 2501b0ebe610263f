# SPDX-License-Identifier: MIT
"""semaphore: from one task's post to the other's return from wait (Garre et al. 2014, sec. 3.1, IPC), also by other means than a semaphore."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rtgauge.probe.common_parameters import FIRST_CPU, MeasuringParameters, MeasuringProbe
from rtgauge.validation import CpuList


class SemaphoreParameters(MeasuringParameters):
    """Parameters of `semaphore`."""

    cpu: CpuList | None = FIRST_CPU
    method: Literal["semaphore", "mutex", "condition", "eventfd", "pipe", "mqueue", "signal"] = Field(
        default="semaphore", alias="method", description="how a task waits for the other"
    )
    placement: Literal["same-cpu", "same-core", "other-core"] = Field(default="same-cpu", alias="placement", description="where the second task runs")


class Semaphore(MeasuringProbe):
    """Two tasks that wake each other in turn."""

    name = "semaphore"
    help = "from one task's post to the other's return from wait; also by mutex, pipe, signal and others"
    about = "Semaphore: from one task's post to the other's return from wait, and the same by other means."
    examples = ("--count 100000", "--method pipe --placement other-core")
    parameters = SemaphoreParameters
