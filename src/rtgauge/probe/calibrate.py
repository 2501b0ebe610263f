# SPDX-License-Identifier: MIT
"""calibrate: resolution of each clock and the cost of reading it (Garre et al. 2014, sec. 3.4)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from rtgauge.probe.descriptor import Parameters, Probe


class CalibrateParameters(Parameters):
    """Parameters of `calibrate`."""

    count: int = Field(default=100_000, alias="count", ge=1, le=100_000_000, description="readings of each clock")


class Calibrate(Probe):
    """Resolution and reading cost of every clock."""

    def arguments(self, parameters: dict[str, Any], samples_dir: str | None) -> list[str]:  # noqa: ARG002 - the same for every probe
        """The engine's command line."""
        return [self.name, f"--count={parameters['count']}"]

    def expected_ns(self, parameters: dict[str, Any]) -> int:  # noqa: ARG002 - the same for every probe
        """At most 0.2 s a clock."""
        return 1_000_000_000


PROBE = Calibrate(
    name="calibrate",
    order=110,
    help="resolution of each clock and the distribution of the cost of reading it",
    about="Clocks: the resolution of each, and what it costs to read it.",
    examples=("--count 1000000",),
    parameters=CalibrateParameters,
    method=(
        "Every clock that the machine has is read again and again in a loop; the cost of a reading is the difference between two that follow one another, "
        "and the smallest step is the smallest difference that is not 0. The resolution is what the kernel says (clock_getres)."
    ),
    metrics=(),
    missed=None,
    pooled=False,
    pace=None,
    frequency=(),
    roles={},
    microbenchmark=False,
    presenter="rtgauge.report.calibrations:CALIBRATIONS",
    prints_alone=True,
    takes_load=False,
)
