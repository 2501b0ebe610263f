# SPDX-License-Identifier: MIT
"""Imports what is needed once a step was measured while its probe warms up: before that it would only delay
the measurement, and meanwhile disturb it.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDING = ("numpy", "rtgauge.record.summary", "rtgauge.record.explain_report", "rtgauge.lab.running_guests")
"""What every step is put together with."""
SHARE = 0.25
"""Of the time of a command until its first probe is armed, which is mostly imports: no module here, with what
it imports, takes more (numpy: a fifth).
"""


def import_late(modules: Sequence[str], warm_up_s: float) -> None:
    """Import modules in the `warm_up_s` seconds that begin now.

    One that might not be ready by then is left to whoever imports it after the measurement.
    """
    end_s = time.monotonic() + warm_up_s
    at_most_s = SHARE * _age_s()
    for module in modules:
        if time.monotonic() + at_most_s > end_s:
            return
        if module not in sys.modules:
            importlib.import_module(module)


def _age_s() -> float:
    """How long this process runs (proc(5): the start is the 22nd field of stat, in ticks since boot)."""
    start_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")
