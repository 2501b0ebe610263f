# SPDX-License-Identifier: MIT
"""Draws the Q-Q plots of Delgado & Choi (2020): each deployment against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.sides import Side
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure

BODY = 199
"""Number of points in a Q-Q plot at equal steps of probability. The regression line ignores the tail."""


class LeastSquaresLine(NamedTuple):
    """A least-squares line."""

    slope: float
    intercept: float
    r2: float


def regression(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> LeastSquaresLine | None:
    """Return the least-squares line of y on x; None if x does not vary or has fewer than two values."""
    if len(x) < 2 or float(np.ptp(x)) == 0:
        return None
    slope, intercept = (float(part) for part in np.polyfit(x, y, 1))
    spread = float(np.var(y))
    rest = float(np.mean((y - slope * x - intercept) ** 2))
    return LeastSquaresLine(slope, intercept, 1.0 if spread == 0 else 1 - rest / spread)


def quantiles_us(side: Side, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest-rank quantile (us) of a non-empty side for each of `shares` (0 to 1)."""
    bins, counts = side.histogram
    cumulative = np.cumsum(counts)
    ranks = np.maximum(1, np.ceil(shares * cumulative[-1] - 1e-9))
    values = side.values_ns(bins)[np.searchsorted(cumulative, ranks)]
    return (values if side.filled.max_ns is None else np.minimum(values, side.filled.max_ns)) / 1_000


def _qq_spec(side: Side, baseline: Side) -> tuple[vega.Part, str]:
    body = np.arange(1, BODY + 1) / (BODY + 1)
    smallest = min(side.filled.count, baseline.filled.count)
    tail = 1 - 10.0 ** -np.arange(2.5, max(2.5, np.log10(smallest)) + 1e-9, 0.25)
    shares = np.concatenate([body, tail, [1.0]])
    x, y = quantiles_us(baseline, shares), quantiles_us(side, shares)
    line = regression(x[:BODY], y[:BODY])
    low, high = max(0.01, float(min(x.min(), y.min()))) * 0.9, float(max(x.max(), y.max())) * 1.1
    ends = np.geomspace(low, high, 60)
    lines = [("equal", float(v), float(v)) for v in ends]
    if line is not None:
        fits = ((float(v), line.slope * float(v) + line.intercept) for v in ends)
        lines += [("regression", v, fit) for v, fit in fits if low <= fit <= high]
    title = f"{side.label} (us)"
    points = zip(x.tolist(), y.tolist(), shares.tolist(), strict=True)
    data = vega.csv("x:Q y:Q share:Q", points)
    ruled = vega.csv("kind x:Q y:Q", lines)
    dash = vega.kinds("kind:N", ("regression", "equal"), [[1, 0], [4, 4]])
    text = f"Q-Q plot of {side.label} against {baseline.label}"
    if line is not None:
        text += (
            f": the regression line has slope {line.slope:.3f}, intercept {line.intercept:+.2f} us and r² "
            f"{line.r2:.4f}"
        )
    ruler = vega.mark("line", strokeWidth=1.3, style="muted", clip=True)
    x_axis = vega.log_axis("x:Q", low, high, f"{baseline.label} (us)")
    y_axis = vega.log_axis("y:Q", low, high, title if len(title) < 50 else "side (us)")
    point = vega.mark("point", filled=True, size=22, opacity=0.8)
    tooltip = vega.tips(("share:Q", "quantile"), ("x:Q", "baseline (us)"), ("y:Q", "side (us)"))
    layers = [
        vega.layer(ruled, ruler, x=x_axis, y=vega.shown("y:Q"), strokeDash=dash),
        vega.layer(data, point, x=vega.shown("x:Q"), y=y_axis, tooltip=tooltip),
    ]
    return vega.layered(layers, height=320, description=text), text.removeprefix("Q-Q plot of ")


def qq_figures(pairs: Sequence[tuple[Side, Side]]) -> list[Figure]:
    """Return the Q-Q plots of Delgado & Choi (2020) of each side with its baseline; empty without samples."""
    drawn = [_qq_spec(side, other) for side, other in pairs if side.filled.count and other.filled.count]
    if not drawn:
        return []
    note = (
        "Each point is a quantile: first at equal steps of probability, then in the tail up to the largest "
        "value. The regression line is the least-squares fit to the quantiles before the tail."
    )
    specs, titles = [spec for spec, _ in drawn], [title for _, title in drawn]
    return [Figure("qq", "Q-Q plots against the baseline", "; ".join(titles), specs, titles, [note])]
