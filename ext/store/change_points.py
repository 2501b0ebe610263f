# SPDX-License-Identifier: MIT
"""Finds where a series of runs or boots changes its level, by a self-normalised test of all places at once.

The statistic is the largest squared difference between the values before and after a place, divided by the
spread of the partial sums on both sides (Shao and Zhang, Testing for change points in time series, Journal of
the American Statistical Association 105, 2010, eq. 4). It needs no estimate of the variance or of the range
of dependence. It is computed twice: from the values, which show a large change within a few boots, and from
the ranks, in which a few slow boots cannot hide a change. `bench/critical_values.py` simulated the critical
values for dependent values (AR(1), 0.5): they give one false mark in 500 series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

LEAST = 5
"""The fewest values on each side of a change."""
LENGTHS = (20, 30, 50, 100, 200, 500, 1000)
CRITICAL_VALUES = (252.3, 219.3, 181.6, 147.4, 130.9, 122.3, 120.1)
"""The critical value for each of LENGTHS. Between them it is interpolated over the logarithm of the length.
"""
CRITICAL_OF_RANKS = (254.0, 249.3, 204.6, 152.3, 132.2, 127.2, 117.6)
NEAR, AROUND = 10, 30
"""A change is placed within NEAR values of the largest statistic, by the ranks of AROUND values on each side.
"""
OF_PARTS = 1.7
"""A change is found if the largest ratio of statistic to critical value among all parts exceeds this."""


def critical_value(length: int, critical: Sequence[float] = CRITICAL_VALUES) -> float:
    """Return the statistic that one in 500 series of this length exceeds without a change; infinite if the
    series is too short to show a change. `critical`: the critical values for LENGTHS.
    """
    if length < LENGTHS[0]:
        return math.inf
    return math.exp(float(np.interp(math.log(length), np.log(LENGTHS), np.log(critical))))


def statistics(values: Doubles) -> Doubles:
    """Return the statistic at each place of each series. `values` has the shape (series, length), and the
    result has the shape (series, length - 2 LEAST + 1). Place i lies between the values i + LEAST - 1 and i +
    LEAST.
    """
    length = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    before = _spread_of_sums(centred)
    after = _spread_of_sums(centred[:, ::-1])[:, ::-1]
    difference = np.cumsum(centred, axis=1)[:, LEAST - 1 : length - LEAST] ** 2 / length
    spread = (before[:, LEAST - 1 : length - LEAST] + after[:, LEAST : length - LEAST + 1]) / length**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(difference / np.maximum(spread, 0), nan=0.0, posinf=math.inf)


def ranks(values: Doubles) -> Doubles:
    """Return the rank of each value in its series. The lowest rank is 1/2, and equal values share their mean
    rank. `values` and the result have the shape (series, length).
    """
    doubled = np.empty_like(values)
    for row, series in zip(doubled, values, strict=True):
        ordered = np.sort(series)
        row[:] = np.searchsorted(ordered, series, "left") + np.searchsorted(ordered, series, "right")
    return doubled / 2


def largest(values: Doubles) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """Return the largest ratio of statistic to critical value over the parts of each series, and the place of
    this ratio; both have the shape (series,). `values` has the shape (series, length).

    A place is the number of values before it. Parts are tested because one change can hide another.
    """
    length = values.shape[1]
    ratios: list[Doubles] = []
    places: list[npt.NDArray[np.int64]] = []
    for first, end in _parts(length):
        part = values[:, first:end]
        for shown, critical in ((part, CRITICAL_VALUES), (ranks(part), CRITICAL_OF_RANKS)):
            statistic = statistics(shown)
            ratios.append(statistic.max(axis=1) / critical_value(end - first, critical))
            places.append(statistic.argmax(axis=1) + first + LEAST)
    best = np.argmax(ratios, axis=0)
    each = np.arange(len(values))
    return np.asarray(ratios)[best, each], np.asarray(places)[best, each]


def change_points(
    values: Sequence[float], resolution: float | Sequence[float] = 0.0, least: float = 0.0
) -> list[int]:
    """Return the places of changes in ascending order, each as the number of values before it.

    A series is cut at a change, and both parts are tested again. A series that is too short for the test, or
    has a value that is not finite, has no changes. `resolution`: the step in which the values are known, for
    all or for each. `least`: a smaller change of the mean is no change.

    Values that are rounded to a few steps have too little spread, and a long run of equal values none, so
    that any other value would look like a change. So each value is first moved within its step, by a fixed
    sequence of uniform numbers.
    """
    series = np.asarray(values, dtype=np.float64)
    if len(series) < LENGTHS[0] or not np.isfinite(series).all():
        return []
    moved = series + (np.random.default_rng(0).random(len(series)) - 0.5) * np.asarray(resolution)
    return _large(series, _cut(moved, 0), least)


def _cut(series: Doubles, before: int) -> list[int]:
    """Return the places of changes in a part of a series that has `before` values before it."""
    # Values that differ only by rounding have no spread and no change.
    if len(series) < LENGTHS[0] or np.ptp(series) < 1e-9 * np.abs(series).max():
        return []
    (ratio,), (place,) = largest(series[None, :])
    if ratio <= OF_PARTS:
        return []
    at = _placed(series, int(place))
    return [*_cut(series[:at], before), before + at, *_cut(series[at:], before + at)]


def _large(series: Doubles, places: list[int], least: float) -> list[int]:
    """Leave out the places with the smallest changes, until every change of the mean is at least `least`."""
    while places:
        ends = [0, *places, len(series)]
        means = [float(series[a:b].mean()) for a, b in pairwise(ends)]
        changes = np.abs(np.diff(means))
        smallest = int(changes.argmin())
        if changes[smallest] >= least:
            break
        places = [*places[:smallest], *places[smallest + 1 :]]
    return places


def _placed(values: Doubles, near: int) -> int:
    """Return the place near `near` at which the ranks on both sides differ most, because the largest
    statistic is often one or two places off.
    """
    first, end = max(0, near - AROUND), min(len(values), near + AROUND)
    order = ranks(values[None, first:end])[0]
    before = np.arange(1, len(order))
    score = np.cumsum(order - order.mean())[:-1] ** 2 / (before * (len(order) - before))
    places = before + first
    allowed = (np.abs(places - near) <= NEAR) & (places >= LEAST) & (places <= len(values) - LEAST)
    return int(places[np.where(allowed, score, -1.0).argmax()])


def _parts(length: int) -> list[tuple[int, int]]:
    """Return the parts (start, end) to test: the whole, its halves, its middle half, and its first and last
    two thirds, if they are long enough.
    """
    half, quarter, third = length // 2, length // 4, length // 3
    parts = [(0, length), (0, half), (half, length)]
    parts += [(quarter, length - quarter), (0, 2 * third), (third, length)]
    return [(first, end) for first, end in parts if end - first >= LENGTHS[0]]


def _spread_of_sums(values: Doubles) -> Doubles:
    """Return for each k the sum over t <= k of (S_t - t/k S_k)²; S_t is the sum of the first t values."""
    numbers = np.arange(1, values.shape[1] + 1, dtype=np.float64)
    sums = np.cumsum(values, axis=1)
    squares, mixed = np.cumsum(sums**2, axis=1), np.cumsum(numbers * sums, axis=1)
    slope = sums / numbers
    return squares - 2 * slope * mixed + slope**2 * np.cumsum(numbers**2)
