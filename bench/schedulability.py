# SPDX-License-Identifier: MIT
"""How long the exact analysis of random task sets takes, on one core: 10,000 sets of 20 tasks, without and
with the growth of execution times.
"""

from __future__ import annotations

import os
import time

import numpy as np
from figures import Figure, Findings
from programs import say

SETS, TASKS, UTILISATION = 10_000, 20, 0.95
PERIODS_NS = (10_000_000, 1_000_000_000)
TIMES = 5
SECONDS_LIMIT, GROWTH_SECONDS_LIMIT = 1.0, 10.0


def measure(cpu: int) -> Findings:
    from rtgauge.schedulability.analysis.random_sets import largest_growth, random_sets, schedulable

    sets = random_sets(SETS, TASKS, UTILISATION, PERIODS_NS, np.random.default_rng(1))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    plain: list[float] = []
    growth: list[float] = []
    try:
        for _ in range(TIMES):
            begin = time.perf_counter()
            passed = schedulable(sets)
            plain.append(time.perf_counter() - begin)
        for number in range(TIMES):
            begin = time.perf_counter()
            factors = largest_growth(sets)
            growth.append(time.perf_counter() - begin)
            say(f"  {number + 1} of {TIMES}: {growth[-1]:.2f} s")
    finally:
        os.sched_setaffinity(0, before)
    notes = [f"{int(passed.sum())} of {SETS} sets are schedulable at a utilisation of {UTILISATION}"]
    if ((factors >= 1_000_000) != passed).any():
        notes.append("the growth and the analysis do not agree: one of them is wrong")
    name = f"analysis of {SETS} random sets of {TASKS} tasks, one core"
    return Findings(
        [
            Figure(name, plain, "s", at_most=SECONDS_LIMIT),
            Figure(f"{name}, with growth", growth, "s", at_most=GROWTH_SECONDS_LIMIT),
        ],
        notes=notes,
    )
