# SPDX-License-Identifier: MIT
"""switch: the cost of a task switch (Garre et al. 2014, sec. 3.1)."""

from __future__ import annotations

from pydantic import Field

from rtgauge.probe.common_parameters import MeasuringParameters, SingleCpuParameters
from rtgauge.probe.descriptor import Metric
from rtgauge.probe.simple_probe import timed
from rtgauge_ext.microbenchmarks.microbenchmark import CostColumn, Microbenchmark


class SwitchParameters(SingleCpuParameters, MeasuringParameters):
    """Parameters of `switch`."""

    tasks: int = Field(
        default=2, ge=2, le=64, description="number of tasks of equal priority that take turns on one CPU"
    )


def _operation(parameters: SwitchParameters) -> str:
    return "task switch" if parameters.tasks == 2 else f"task switch ({parameters.tasks} tasks)"


PROBE = Microbenchmark(
    name="switch",
    order=50,
    help="time that a task switch takes when tasks of equal priority on one CPU yield to each other",
    about="Task switch: how long does a switch take when tasks of equal priority on one CPU yield to "
    "each other?",
    examples=("--count 100000", "--policy other --tasks 4 --cpu 1"),
    parameters=SwitchParameters,
    lasts=timed(),
    method=(
        "Tasks of equal priority take turns on one CPU: each reads the clock and yields. The value is the "
        "time from one reading to the next one, by another task. It includes a yield, a switch and one "
        "reading of the clock."
    ),
    metrics=(Metric(name="switch", plural="switches"),),
    cross_checked=frozenset({"xenomai-switchtest", "rtai-switches"}),
    operation=_operation,
    cost=CostColumn(
        name="task switch",
        result="yields",
        met="switched",
        tries=("switched", "kept_the_cpu"),
        met_name="switched",
        note="The count of switches leaves out the warm-up. If a yield does not lead to a switch, it "
        "is not a sample.",
    ),
)
