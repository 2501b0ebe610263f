# SPDX-License-Identifier: MIT
"""Draws the figures of a comparison: exceedance curves, and Q-Q plots against the baseline for a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.comparison_document import QuantileDifference
from rtgauge.analysis.sides import Side
from rtgauge.record.reader import Record
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figure_data import Measured
from rtgauge.report.figures import vega
from rtgauge.report.figures.exceedance import named_chart
from rtgauge.report.figures.factors import Factor, factors_figure
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import applying

BODY = 199
"""Number of points in a Q-Q plot at equal steps of probability. The regression line ignores the tail."""


@dataclass(frozen=True)
class Line:
    """A least-squares line."""

    slope: float
    intercept: float
    r2: float


def regression(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> Line | None:
    """Return the least-squares line of y on x; None if x does not vary or has fewer than two values."""
    if len(x) < 2 or float(np.ptp(x)) == 0:
        return None
    slope, intercept = (float(part) for part in np.polyfit(x, y, 1))
    spread = float(((y - y.mean()) ** 2).sum())
    rest = float(((y - slope * x - intercept) ** 2).sum())
    return Line(slope, intercept, 1.0 if spread == 0 else 1 - rest / spread)


def quantiles_us(side: Side, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest-rank quantile (us) of a non-empty side for each of `shares` (0 to 1)."""
    bins, counts = side.histogram
    cumulative = np.cumsum(counts)
    ranks = np.maximum(1, np.ceil(shares * cumulative[-1] - 1e-9))
    values = side.values_ns(bins)[np.searchsorted(cumulative, ranks)]
    return (values if side.filled.max_ns is None else np.minimum(values, side.filled.max_ns)) / 1_000


def _exceedance(sides: Sequence[Side]) -> Figure | None:
    drawn = {side.label: Measured(side.histogram, max_ns=side.filled.max_ns) for side in sides}
    chart = named_chart(drawn, sides[0].quantity)
    return None if chart is None else Figure.described("exceedances", "Exceedance", {"": chart}, [])


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


def _qq(pairs: Sequence[tuple[Side, Side]]) -> Figure | None:
    drawn = [_qq_spec(side, other) for side, other in pairs if side.filled.count and other.filled.count]
    if not drawn:
        return None
    note = (
        "Each point is a quantile: first at equal steps of probability, then in the tail up to the largest "
        "value. The regression line is the least-squares fit to the quantiles before the tail."
    )
    specs, titles = [spec for spec, _ in drawn], [title for _, title in drawn]
    return Figure("qq", "Q-Q plots against the baseline", "; ".join(titles), specs, titles, [note])


def _factors(quantiles: Sequence[QuantileDifference]) -> Figure | None:
    known = [
        row for row in quantiles if row.difference_ns is not None and row.side_ns > 0 and row.baseline_ns > 0
    ]
    several = len({(row.side, row.baseline) for row in known}) > 1
    rows: list[Factor] = []
    for row in known:
        base = row.baseline_ns
        runs = zip(row.side_runs_ns, row.baseline_runs_ns, strict=True) if row.paired else ()
        tested = row.p_different is not None
        rows.append(
            Factor(
                f"{row.side}, {row.quantile}" if several else row.quantile,
                row.side_ns / base,
                [ours / theirs for ours, theirs in runs if ours > 0 < theirs],
                1 + row.low_ns / base if tested and row.low_ns is not None else None,
                1 + row.high_ns / base if tested and row.high_ns is not None else None,
                (base, row.side_ns),
            )
        )
    of = known[0] if known and not several else None
    title = "side / baseline" if of is None else f"{of.side} / {of.baseline}"
    notes = applying(
        (any(row.runs for row in rows), "Each ring is a pair of runs."),
        (
            any((row.low, row.high) != (None, None) for row in rows),
            "Each bar shows the confidence interval of the difference, divided by the baseline's value.",
        ),
    )
    return factors_figure(rows, title, notes)


def comparison_figures(
    sides: Sequence[Side], part: str = "", quantiles: Sequence[QuantileDifference] = ()
) -> list[Figure]:
    """Return the figures of the chapter with the title `part`; empty if every side is empty."""
    filled = [side for side in sides if side.filled.count]
    drawn = (_factors(quantiles), _exceedance(filled) if filled else None)
    return [_of_part(figure, part) for figure in drawn if figure is not None]


def paper_figures(pairs: Sequence[tuple[Side, Side]]) -> list[Figure]:
    """Return the Q-Q plots of Delgado & Choi (2020) of each side with its baseline; empty without samples."""
    figure = _qq(pairs)
    return [] if figure is None else [figure]


def _of_part(figure: Figure, title: str) -> Figure:
    """Return the figure with the chapter's title in its name and title: "task-switch-exceedances"."""
    if not title:
        return figure
    word = re.sub(r"[^\w]+", "-", title.lower()).strip("-")
    return replace(
        figure, name=f"{word}-{figure.name}", title=f"{title}: {figure.title[:1].lower()}{figure.title[1:]}"
    )


def lines_of_all(records: Iterable[Record]) -> list[str]:
    """Return the system line of every target of the records, without duplicates."""
    return list(dict.fromkeys(line for record in records for line in system_lines(record)))
