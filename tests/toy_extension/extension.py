# SPDX-License-Identifier: MIT
"""The smallest extension: a command, a load and a probe with its page."""

from rtgauge.core_extension import MEASURE
from rtgauge.extension import Command, Extension

EXTENSION = Extension(
    name="toy",
    line="A toy.",
    commands={"toy": Command(MEASURE, "Say what a toy is.", "rtgauge_ext.toy.command:toy")},
    probes={"toy": "rtgauge_ext.toy.probe:PROBE"},
    loads={"toy": "rtgauge_ext.toy.load:Toy"},
)
