# SPDX-License-Identifier: MIT
"""Losses and long delays over the period: where a machine stops keeping up (Adam et al.

2021, sec. 7.1 to 7.3, which have the words and no figure).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from rtgauge.report.figures.figure import US_LABEL, Figure, csv, layered, log_ticks
from rtgauge.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.analysis.sustained import Curve

KINDS = {"lost": "lost", "over_half": "later than half the period", "long": "later than 1 ms"}
SMALLEST = 0.01
"""Percent. The share axis is logarithmic above this and even below, so that 0 has a place."""


def sustained_figure(curves: Sequence[Curve]) -> Figure | None:
    """A chart a curve; None where there is none."""
    if not curves:
        return None
    periods = [point.period_ns / 1_000 for curve in curves for point in curve.points]
    low, high = min(periods) * 0.8, max(periods) * 1.25
    specs = [_chart(curve, low, high) for curve in curves]
    text = " ".join(str(spec["description"]) for spec in specs)
    drawn = "A point a measurement, a line through the means. The share axis is even below 0.01 %."
    notes = [f"{drawn} The dashed line is the shortest period that every repeat sustained."]
    return Figure(
        "sustained",
        "Losses and long delays over the period",
        text,
        specs,
        [curve.label for curve in curves] if len(curves) > 1 else [],
        notes,
    )


def _chart(curve: Curve, low: float, high: float) -> dict[str, object]:
    rows = [
        (kind, point.period_ns / 1_000, getattr(point, name) / point.cycles * 100)
        for point in curve.points
        for name, kind in KINDS.items()
    ]
    x = alt.X(
        "us:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False, reverse=True),
        axis=alt.Axis(title="period (us)", values=log_ticks(low, high), labelExpr=US_LABEL),
    )
    axis = alt.Axis(title="share of the cycles (%)", values=[0, 0.01, 0.1, 1, 10, 100], format="~g")
    scale = alt.Scale(type="symlog", constant=SMALLEST, domain=[0, 100], nice=False)
    colour = alt.Color(
        "kind:N", sort=None, scale=alt.Scale(domain=list(KINDS.values())), legend=alt.Legend(title=None)
    )
    dash = alt.StrokeDash(
        "kind:N",
        sort=None,
        scale=alt.Scale(domain=list(KINDS.values()), range=[[1, 0], [6, 3], [2, 3]]),
        legend=alt.Legend(title=None),
    )
    shape = alt.Shape(
        "kind:N",
        sort=None,
        scale=alt.Scale(domain=list(KINDS.values()), range=["circle", "square", "triangle-up"]),
        legend=alt.Legend(title=None),
    )
    base = alt.Chart(csv({"kind": "string", "us": "number", "share": "number"}, rows))
    tooltip = [
        alt.Tooltip("kind:N"),
        alt.Tooltip("us:Q", title="period (us)"),
        alt.Tooltip("share:Q", title="%", format=".3g"),
    ]
    layers = [
        base.mark_line(strokeWidth=2).encode(
            x=x, y=alt.Y("mean(share):Q", scale=scale, axis=axis), color=colour, strokeDash=dash
        ),
        base.mark_point(filled=True, size=34, opacity=0.8).encode(
            x=x, y=alt.Y("share:Q", scale=scale, axis=axis), color=colour, shape=shape, tooltip=tooltip
        ),
    ]
    if curve.sustained_ns is not None:
        rule = alt.Chart(csv({"at": "number"}, [[curve.sustained_ns / 1_000]])).mark_rule(
            strokeDash=[5, 3], strokeWidth=1.5, style="alarm"
        )
        layers.append(rule.encode(x=alt.X("at:Q")))
    lost = "; ".join(
        f"{format_time(point.period_ns)}: {point.lost} of {point.cycles} lost" for point in curve.points
    )
    return layered(layers, height=240, description=f"Losses over the period, {curve.label}: {lost}")
