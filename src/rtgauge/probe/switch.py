# SPDX-License-Identifier: MIT
"""switch: the cost of a task switch (Garre et al. 2014, sec. 3.1)."""

from __future__ import annotations

from pydantic import Field

from rtgauge.probe.common_parameters import FIRST_CPU, MeasuringParameters, MeasuringProbe
from rtgauge.validation import CpuList


class SwitchParameters(MeasuringParameters):
    """Parameters of `switch`."""

    cpu: CpuList | None = FIRST_CPU
    tasks: int = Field(default=2, alias="tasks", ge=2, le=64, description="tasks of equal priority that take turns on one CPU")


class Switch(MeasuringProbe):
    """Tasks that yield to each other."""

    name = "switch"
    help = "cost of a task switch: tasks of equal priority on one CPU yield to each other"
    about = "Task switch: tasks of equal priority on one CPU yield to each other."
    examples = ("--count 100000", "--policy other --tasks 4 --cpu 1")
    parameters = SwitchParameters
