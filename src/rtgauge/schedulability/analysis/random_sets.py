# SPDX-License-Identifier: MIT
"""Random task sets: their ranges as people write them (0.5:1.0:0.05, 10ms:1s), and how sets are drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.sensitivity import PARTS
from rtgauge.units import format_duration, parse_duration_ns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STEP = "0.05"
MAX_POINTS = 1_000


@dataclass(frozen=True)
class ManySets:
    """Many task sets of one size, [task, set], on one CPU, highest priority first, deadline = period."""

    period_ns: Ints
    execution_ns: Ints


def uunifast_discard(sets: int, tasks: int, utilisation: float, generator: np.random.Generator) -> Floats:
    """[task, set]: utilisations that add up to `utilisation`, evenly spread over all such, none above 1.

    UUniFast: Bini and Buttazzo, Measuring the performance of schedulability tests, Real-Time Systems 30
    (2005); sets with a task above 1 are discarded: Davis and Burns, RTSS 2009. numpy's dirichlet draws from
    the same distribution, but the sets of a seed would change. Raises ValueError if nearly all would be
    discarded.
    """
    if not 0 < utilisation <= max(1.0, tasks / 2):
        raise ValueError(f"a utilisation of {utilisation} is not in 0 ... {max(1.0, tasks / 2)}")
    accepted: list[Floats] = []
    missing = sets
    while missing > 0:
        rest = np.full(missing, utilisation)
        drawn = np.empty((tasks, missing))
        for i in range(tasks - 1):
            following = rest * generator.random(missing) ** (1 / (tasks - 1 - i))
            drawn[i] = rest - following
            rest = following
        drawn[tasks - 1] = rest
        fit = drawn[:, (drawn <= 1).all(axis=0)]
        accepted.append(fit)
        missing -= fit.shape[1]
    return np.concatenate(accepted, axis=1)


def random_sets(
    sets: int, tasks: int, utilisation: float, periods_ns: tuple[int, int], generator: np.random.Generator
) -> ManySets:
    """Periods log-uniform between `periods_ns` (Emberson, Stafford and Davis, WATERS 2010), rate-monotonic;
    execution times cut to whole ns, at least 1.
    """
    shares = uunifast_discard(sets, tasks, utilisation, generator)
    low, high = np.log(periods_ns[0]), np.log(periods_ns[1])
    period = np.rint(np.exp(generator.uniform(low, high, (tasks, sets)))).astype(np.int64)
    order = np.argsort(period, axis=0, kind="stable")
    period = np.take_along_axis(period, order, axis=0)
    execution = np.maximum(1, np.floor(np.take_along_axis(shares, order, axis=0) * period).astype(np.int64))
    return ManySets(period, execution)


def parse_utilisations(text: str) -> list[float]:
    """`"0.5:1.0"` -> [0.5, 0.55, ...

    1.0]; a third number is the step, one number alone is one utilisation. Raises InputError.
    """
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", part.strip()) for part in parts):
        raise InputError(f"--utilisation {text}: write LOW:HIGH or LOW:HIGH:STEP, for example 0.5:1.0:0.05")
    low, high, step = (
        Decimal(parts[0]),
        Decimal(parts[1] if len(parts) > 1 else parts[0]),
        Decimal(parts[2] if len(parts) > 2 else STEP),
    )
    if not 0 < low <= high <= 1:
        raise InputError(
            f"--utilisation {text}: a CPU has a utilisation of more than 0 and at most 1, and LOW comes first"
        )
    if step <= 0 or (high - low) / step >= MAX_POINTS:
        raise InputError(f"--utilisation {text}: the step must give at most {MAX_POINTS} points")
    return [float(low + i * step) for i in range(int((high - low) / step) + 1)]


def parse_periods(text: str, tasks: int) -> tuple[int, int]:
    """`"10ms:1s"` -> (10000000, 1000000000).

    `tasks`: of each set; more of them allow shorter periods only. Raises InputError.
    """
    low, sign, high = text.partition(":")
    try:
        shortest_ns, longest_ns = parse_duration_ns(low), parse_duration_ns(high if sign else low)
    except ValueError as error:
        raise InputError(f"--periods {text}: {error}") from None
    largest_ns = (2**63 - 1) // (4 * PARTS * tasks)
    if not 1_000 <= shortest_ns <= longest_ns <= largest_ns:
        raise InputError(
            f"--periods {text}: write LOW:HIGH, at least 1us and for {tasks} tasks at most "
            f"{format_duration(largest_ns // 10**9 * 10**9)}"
        )
    return shortest_ns, longest_ns
