# SPDX-License-Identifier: MIT
"""toy: the time between two readings of the clock.

For tests/e2e/test_new_probe.py, which copies it to src/rtgauge/probe/.
"""

from __future__ import annotations

from rtgauge.probe.common_parameters import MeasuringParameters
from rtgauge.probe.descriptor import Bound, Metric
from rtgauge.probe.simple_probe import SimpleProbe, timed

PROBE = SimpleProbe(
    name="toy",
    help="time between two readings of the clock",
    parameters=MeasuringParameters,
    lasts=timed(),
    method="A task reads the clock, and reads it again: this is the toy's own text of method.",
    metrics=(
        Metric(
            name="reading", plural="readings", bound=Bound(example="reading<=1ms hardness=99%", preset=None)
        ),
    ),
)
