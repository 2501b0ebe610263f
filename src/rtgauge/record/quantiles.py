# SPDX-License-Identifier: MIT
"""Defines the quantiles of a distribution, their fields, and how many samples each of them needs.

A further quantile is one name here, and a field of `record.model.Distribution` and of
`store.document.SeriesPoint` with a migration of the store.
"""

from __future__ import annotations

import math
from fractions import Fraction

NAMES = ("p50", "p95", "p99", "p99.9", "p99.99", "p99.999")


def field_of(name: str) -> str:
    """Return the field of a Distribution for a quantile: "p99.9" -> "p99_9_ns"."""
    return f"{name.replace('.', '_')}_ns"


def share_of(name: str) -> Fraction:
    """Return the share of samples that do not exceed a quantile: "p99.9" -> 999/1000."""
    return Fraction(name.removeprefix("p")) / 100


QUANTILES = {field_of(name): share_of(name) for name in NAMES}
"""The field of a Distribution -> share of samples that do not exceed it, as a fraction, so that ranks are
exact.
"""
TITLES = {
    "min_ns": "min",
    "mean_ns": "mean",
    "std_ns": "std",
    **{field_of(name): name for name in NAMES},
    "max_ns": "max",
}
"""The field of a Distribution -> the title of its column, in the order of the columns."""
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
