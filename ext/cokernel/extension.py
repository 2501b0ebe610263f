# SPDX-License-Identifier: MIT
"""What this extension adds to rtgauge."""

from __future__ import annotations

from rtgauge.extension import Extension

EXTENSION = Extension(
    name="cokernel",
    line="Measures on co-kernels: Xenomai 3 (Cobalt) and RTAI.",
    runtimes={
        "cobalt": "rtgauge_ext.cokernel.cobalt:COBALT",
        "rtai": "rtgauge_ext.cokernel.rtai:RTAI",
    },
    presenters={"calibrate": "rtgauge_ext.cokernel.gravity:GRAVITY_PRESENTER"},
    measurers={"autotune": "rtgauge_ext.cokernel.autotune"},
)
