# SPDX-License-Identifier: MIT
"""Defines the quantiles of a distribution, and how many samples each of them needs."""

from __future__ import annotations

import math
from fractions import Fraction

QUANTILES = {
    "p50_ns": Fraction(50, 100),
    "p95_ns": Fraction(95, 100),
    "p99_ns": Fraction(99, 100),
    "p99_9_ns": Fraction(999, 1000),
    "p99_99_ns": Fraction(9999, 10000),
}
"""The field of a Distribution -> share of samples that do not exceed it, as a fraction, so that ranks are
exact.
"""
LEAST_BEYOND = 10
"""A quantile is shown if at least this many samples lie above it; fewer say little about it."""


def times_longer(field: str, count: int) -> int | None:
    """Return how many times as long a measurement of `count` samples must be before LEAST_BEYOND samples lie
    above a quantile. None if it is long enough, is empty, or the field of a Distribution is no quantile.
    """
    share = QUANTILES.get(field)
    if share is None or not count or math.floor((1 - share) * count) >= LEAST_BEYOND:
        return None
    return math.ceil(LEAST_BEYOND / (1 - share) / count)
