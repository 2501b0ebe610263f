# SPDX-License-Identifier: MIT
"""toy: the time between two readings of the clock."""

from rtgauge.probe.common_parameters import MeasuringParameters
from rtgauge.probe.descriptor import Bound, Metric
from rtgauge.probe.simple_probe import SimpleProbe, timed

BOUND = Bound(example="reading<=1ms hardness=99%", preset=None)
PROBE = SimpleProbe(
    name="toy",
    help="time between two readings of the clock",
    parameters=MeasuringParameters,
    lasts=timed(),
    method="A task reads the clock, and reads it again: this is the toy's own text of method.",
    metrics=(Metric(name="reading", plural="readings", bound=BOUND),),
)
