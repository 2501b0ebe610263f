# SPDX-License-Identifier: MIT
"""Imports what is needed once a step was measured while its probe warms up: before that it would only delay
the measurement, and meanwhile disturb it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARE = 0.25
"""Of the time of a command until its first probe is armed, which is mostly imports: no import here takes
more (numpy: a fifth).
"""


def _import_numpy() -> object:
    import numpy as np

    return np


def _import_summary() -> object:
    from rtgauge.record.summary import summarise_step

    return summarise_step


def _import_explain_report() -> object:
    from rtgauge.record.explain_report import explain_report

    return explain_report


def _import_running_guests() -> object:
    from rtgauge.lab.running_guests import all_running

    return all_running


RECORDING = (_import_numpy, _import_summary, _import_explain_report, _import_running_guests)
"""What every step is put together with."""


def import_late(imports: Sequence[Callable[[], object]], warm_up_s: float) -> None:
    """Call `imports`, each of which imports something, in the `warm_up_s` seconds that begin now.

    One that might not be ready by then is left to whoever imports it after the measurement.
    """
    end_s = time.monotonic() + warm_up_s
    at_most_s = SHARE * _age_s()
    for import_it in imports:
        if time.monotonic() + at_most_s > end_s:
            return
        import_it()


def _age_s() -> float:
    """How long this process runs (proc(5): the start is the 22nd field of stat, in ticks since boot)."""
    start_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")
