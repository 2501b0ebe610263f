# SPDX-License-Identifier: MIT
"""Both views of a signal: how often a time was longer than x by the instrument's clock, and by the machine's
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.report.figures.figure import US_LABEL, Figure, csv, decades, layered, log_ticks
from rtgauge.report.outer_view import view_curves, views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import Step
    from rtgauge.report.figure_data import Curve
    from rtgauge.report.record_view import RecordView

NAME = "views"


def views_figure(view: RecordView, steps: Sequence[Step]) -> Figure | None:
    """A chart a step that an instrument measured; None where none was."""
    names = view.labels
    charts = {
        names[each.step.id]: (each.outer.metric, curves)
        for each in views(steps)
        if (curves := view_curves(view, each))
    }
    if not charts:
        return None
    specs = [_chart(metric, curves) for metric, curves in charts.values()]
    notes = [
        (
            "Read from the histograms (1 % or better). The two curves use different clocks; their "
            "difference is what the machine does not see."
        )
    ]
    titles = list(charts) if len(charts) > 1 else []
    return Figure(
        NAME,
        "From outside and inside",
        " ".join(str(spec["description"]) for spec in specs),
        specs,
        titles,
        notes,
    )


def _chart(metric: str, curves: dict[str, Curve]) -> dict[str, Any]:
    low = max(0.001, min(float(curve.x_us[0]) for curve in curves.values())) * 0.9
    high = max(low * 2, max(float(curve.x_us[-1]) for curve in curves.values()) * 1.15)
    rarest = min(float(curve.share[-1]) for curve in curves.values()) * 0.6
    rows = (
        (name, float(x), float(y))
        for name, curve in curves.items()
        for x, y in zip(curve.x_us, curve.share, strict=True)
    )
    colour = alt.Color(
        "view:N", sort=None, scale=alt.Scale(domain=list(curves)), legend=alt.Legend(title=None)
    )
    dash = alt.StrokeDash(
        "view:N",
        sort=None,
        scale=alt.Scale(domain=list(curves), range=[[1, 0], [5, 3]][: len(curves)]),
        legend=alt.Legend(title=None),
    )
    lines = (
        alt.Chart(csv({"view": "string", "us": "number", "share": "number"}, rows))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X(
                "us:Q",
                scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=alt.Axis(title=f"{metric} x (us)", values=log_ticks(low, high), labelExpr=US_LABEL),
            ),
            y=alt.Y(
                "share:Q",
                scale=alt.Scale(type="log", domain=[rarest, 1], nice=False),
                axis=alt.Axis(
                    title="share longer than x",
                    values=decades(rarest, 1),
                    labelExpr="format(datum.value * 100, '~g') + ' %'",
                ),
            ),
            color=colour,
            strokeDash=dash,
        )
    )
    text = "; ".join(
        f"{name}: none longer than {float(curve.x_us[-1]):.7g} us" for name, curve in curves.items()
    )
    return layered(
        [lines],
        height=260,
        description=f"Share of samples whose {metric} is longer than x, log-log. {text}.",
    )
