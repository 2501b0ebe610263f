# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="labgrid",
    line="Measures boards that labgrid manages, over the network or a serial console.",
    targets={"labgrid": "rtgauge_ext.labgrid.labgrid_target:LABGRID"},
)
