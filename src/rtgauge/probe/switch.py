# SPDX-License-Identifier: MIT
"""switch: the cost of a task switch (Garre et al. 2014, sec. 3.1)."""

from __future__ import annotations

from pydantic import Field

from rtgauge.probe.measuring import MeasuringParameters, MeasuringProbe


class SwitchParameters(MeasuringParameters):
    """Parameters of `switch`."""

    tasks: int = Field(default=2, alias="tasks", ge=2, le=64, description="tasks of equal priority that take turns on one CPU")


class Switch(MeasuringProbe):
    """Tasks that yield to each other."""

    name = "switch"
    help = "cost of a task switch: tasks of equal priority on one CPU yield to each other"
    parameters = SwitchParameters
