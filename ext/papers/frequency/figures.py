# SPDX-License-Identifier: MIT
"""Draws how often a task can run: 95 % and 100 % on a log axis with a familiar time, as figures 3 and 5 of
Brown & Martin (2010) do. It also draws losses and long delays over the period (Adam et al. 2021, sec. 7.1 to
7.3, which describe them without a figure).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.text import whole
from rtgauge.units import format_time
from rtgauge_ext.papers.frequency.frequency import HARDNESS, ConditionRow, FrequencyTable
from rtgauge_ext.papers.frequency.sustained import SustainedCurve

FIRST_NS = 10
"""The smallest value on a log axis."""
SERIAL_NS = round(12 * 10 / 115_200 * 10**9)
"""The time in figures 3 and 5 of Brown & Martin (2010): 12 bytes of 10 bits each, 1041.7 us."""
SERIAL = f"12 serial bytes at 115200 baud: {format_time(SERIAL_NS)}"


def caption_of(line: ConditionRow) -> str:
    """Describe a line in words, for a reader who does not see the figure."""
    at95, at100 = (line.limit(share) for share in HARDNESS)
    return f"{line.label}: 95 % within {format_time(at95.ns)}, 100 % within {format_time(at100.ns)}"


def _name(table: FrequencyTable, kind: str) -> str:
    return "-".join(dict.fromkeys(("timing", table.probe, table.metric, kind)))


def log_figure(table: FrequencyTable) -> Figure | None:
    """Return a figure like the paper's figures 3 and 5: 95 % and 100 % of every line on a log axis, with the
    time of 12 serial bytes; None if nothing can be drawn.
    """
    rows = [
        (line.label, f"{share:g} %", value / 1_000)
        for line in table.lines
        for share, value in ((95, line.limit(Fraction(95, 100)).ns), (100, line.limit(Fraction(1)).ns))
        if value is not None and value >= FIRST_NS
    ]
    if not rows:
        return None
    serial_us = SERIAL_NS / 1_000
    low = min(serial_us, *(value for *_, value in rows)) * 0.7
    high = max(serial_us, *(value for *_, value in rows)) * 1.6
    order = [line.label for line in table.lines]
    place = {
        "x": vega.log_axis("us:Q", low, high, f"{table.metric} (us)"),
        "y": vega.names_axis("name:N", order, labelFontSize=12),
    }
    data = vega.csv("name share us:Q", rows)
    shape = vega.kinds("share:N", ("95 %", "100 %"), ("triangle-up", "circle"), legend=vega.GREY_LEGEND)
    tooltip = vega.tips("name:N", "share:N", ("us:Q", "us", ",.1f"))
    points = vega.mark("point", filled=True, size=70, opacity=1)
    layers = [
        vega.layer(data, vega.mark("line", strokeWidth=2, opacity=0.6), **place, detail=vega.shown("name:N")),
        vega.layer(data, points, **place, shape=shape, tooltip=tooltip),
    ]
    left = serial_us > math.sqrt(low * high)
    side = {"align": "right" if left else "left", "dx": -4 if left else 4}
    name = vega.mark("text", text=SERIAL, baseline="bottom", style="muted", fontSize=11, **side)
    layers += [
        vega.rule("x", serial_us, dash=(2, 3), style="muted"),
        vega.layer(vega.csv("at:Q", [[serial_us]]), name, x=vega.shown("at:Q"), y=vega.fixed(-4)),
    ]
    endless = [line for line in table.lines if line.limits[-1].ns is None]
    unanswered = [f"{whole(line.missed)} of {whole(line.samples)} without an answer" for line in endless]
    undrawn = [f"{line.label} ({share})" for line, share in zip(endless, unanswered, strict=True)]
    notes = [f"Not drawn, because a lost answer has no upper limit: {what}." for what in undrawn]
    text = f"{table.title}: {'; '.join(map(caption_of, table.lines))}; {SERIAL}"
    title, height = f"{table.title}: 95 % and 100 % and known times", max(40, 30 * len(order))
    return Figure.single(_name(table, "log"), title, text, layers, height, notes)


def timing_figures(tables: Sequence[FrequencyTable], curves: Sequence[SustainedCurve]) -> list[Figure]:
    """Return the figures in the papers' order: one for each part, then the searches."""
    drawn = [log_figure(table) for table in tables]
    return [figure for figure in (*drawn, sustained_figure(curves)) if figure is not None]


KINDS = {"lost": "lost", "over_half": "later than half the period", "long": "later than 1 ms"}
SMALLEST = 0.01
"""The share axis is logarithmic above this share (percent), and linear below, so that it can show 0."""


def sustained_figure(curves: Sequence[SustainedCurve]) -> Figure | None:
    """Return a chart per curve; None if there is no curve."""
    if not curves:
        return None
    periods = [point.period_ns / 1_000 for curve in curves for point in curve.points]
    low, high = min(periods) * 0.8, max(periods) * 1.25
    specs = [_sustained_chart(curve, low, high) for curve in curves]
    text = " ".join(str(spec["description"]) for spec in specs)
    titles = [curve.label for curve in curves] if len(curves) > 1 else []
    drawn = "Each measurement is a point, and a line joins the means. The share axis is linear below 0.01 %."
    notes = [f"{drawn} The dashed line is the shortest period that every repeat sustained."]
    return Figure("sustained", "Losses and long delays against the period", text, specs, titles, notes)


def _sustained_chart(curve: SustainedCurve, low: float, high: float) -> vega.Part:
    rows = [
        (kind, point.period_ns / 1_000, getattr(point, name) / point.cycles * 100)
        for point in curve.points
        for name, kind in KINDS.items()
    ]
    x = vega.log_axis("us:Q", low, high, "period (us)")
    x["scale"] = {**x["scale"], "reverse": True}
    axis = {"title": "share of the cycles (%)", "values": [0, 0.01, 0.1, 1, 10, 100], "format": "~g"}
    scale = {"type": "symlog", "constant": SMALLEST, "domain": [0, 100], "nice": False}
    names = [*KINDS.values()]
    colour = vega.kinds("kind:N", names)
    dash = vega.kinds("kind:N", names, [[1, 0], [6, 3], [2, 3]])
    shape = vega.kinds("kind:N", names, ["circle", "square", "triangle-up"])
    data = vega.csv("kind us:Q share:Q", rows)
    means, shares = (vega.shown(what, scale=scale, axis=axis) for what in ("mean(share):Q", "share:Q"))
    tooltip = vega.tips("kind:N", ("us:Q", "period (us)"), ("share:Q", "%", ".3g"))
    points = vega.mark("point", filled=True, size=34, opacity=0.8)
    layers = [
        vega.layer(data, vega.mark("line", strokeWidth=2), x=x, y=means, color=colour, strokeDash=dash),
        vega.layer(data, points, x=x, y=shares, color=colour, shape=shape, tooltip=tooltip),
    ]
    if curve.sustained_ns is not None:
        layers.append(vega.rule("x", curve.sustained_ns / 1_000, clip=False))
    lost = "; ".join(
        f"{format_time(point.period_ns)}: {point.lost} of {point.cycles} lost" for point in curve.points
    )
    return vega.layered(layers, height=240, description=f"Losses over the period, {curve.label}: {lost}")
