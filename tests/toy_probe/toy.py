# SPDX-License-Identifier: MIT
"""toy: the time between two readings of the clock.

For tests/e2e/test_new_probe.py, which copies it to src/rtgauge/probe/.
"""

from __future__ import annotations

from rtgauge.probe.common_parameters import MeasuringParameters, MeasuringProbe
from rtgauge.probe.descriptor import Bound, Metric

PROBE = MeasuringProbe(
    name="toy",
    order=1000,
    help="time between two readings of the clock",
    about="Toy: the time between two readings of the clock.",
    examples=("--count 1000",),
    parameters=MeasuringParameters,
    method="A task reads the clock, and reads it again: this is the toy's own text of method.",
    metrics=(
        Metric(
            name="reading",
            plural="readings",
            unit="ns",
            signed=False,
            bound=Bound(example="reading<=1ms hardness=99%", preset=None),
        ),
    ),
    missed=None,
    pooled=True,
    pace=None,
    frequency=(),
    roles={},
    microbenchmark=False,
)
