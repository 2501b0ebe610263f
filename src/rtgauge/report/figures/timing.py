# SPDX-License-Identifier: MIT
"""Figures 2 to 5 of Brown & Martin (2010): linear histograms with the 95 % envelope; 95 % and 100 % on a log
axis beside times that a reader knows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from rtgauge.probe.registry import PROBES
from rtgauge.record.histogram import EDGES_NS, OVERFLOW_BIN
from rtgauge.record.windows import add_bins
from rtgauge.report.figures.figure import US_LABEL, Figure, csv, layered, log_ticks
from rtgauge.report.frequency_tables import caption_of
from rtgauge.report.text import us, whole
from rtgauge.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.analysis.frequency import Gathered, Line
    from rtgauge.analysis.sides import Side
    from rtgauge.report.known_times import Marker

COLUMNS = 150
"""About so many bins of a linear histogram."""
BEYOND = 1.15
"""A linear axis ends so far beyond the largest 95 % envelope: the rest is in the notes."""
MOST_CHARTS = 12
FIRST_NS = 10
"""A log axis cannot show less."""


def bin_width_ns(end_ns: int) -> int:
    """1 or 2 times a power of ten, so that every bin of the histogram lies in just one; at least as wide as
    those at `end_ns`.
    """
    least = max(1.0, end_ns / COLUMNS)
    power = 10 ** math.floor(math.log10(least))
    return int(next(step * power for step in (1, 2, 10) if step * power >= least))


def _name(gathered: Gathered, kind: str) -> str:
    words = (
        "timing",
        gathered.probe,
        *([] if gathered.metric == gathered.probe else [gathered.metric]),
        kind,
    )
    return "-".join(words)


def _linear(side: Side, line: Line, width: int, end: int) -> tuple[list[tuple[float, float]], int]:
    """(Left edge in us, percent) of each bin up to `end`, and how many samples lie beyond."""
    merged = side.merged
    bins, counts = add_bins(
        np.concatenate([np.abs(merged.bins), merged.missed_bins]),
        np.concatenate([merged.counts, merged.missed_counts]),
    )
    inside = (bins < OVERFLOW_BIN) & (EDGES_NS[bins] < end)
    columns, totals = add_bins(EDGES_NS[bins[inside]] // width, counts[inside])
    shares = dict(zip(columns.tolist(), (totals / line.samples * 100).tolist(), strict=True))
    outline: list[tuple[float, float]] = []
    for at in range(-(-end // width)):
        share = float(shares.get(at, 0.0))
        if not outline or outline[-1][1] != share:
            outline.append((at * width / 1_000, share))
    outline.append((end / 1_000, 0.0))
    return outline, line.samples - int(totals.sum())


def linear_figure(gathered: Gathered) -> Figure | None:
    """Figures 2 and 4: a chart a line, on common axes; None where no 95 % envelope is known."""
    table = gathered.table
    known = [line.limit(Fraction(95, 100)).ns for line in table.lines]
    reach = max((value for value in known if value is not None), default=0)
    if reach <= 0:
        return None
    width = bin_width_ns(int(reach * BEYOND))
    end = -(-int(reach * BEYOND) // width) * width
    of = {(str(side.record.path), side.label): side for side in gathered.sides}
    drawn = [(line, *_linear(of[line.record, line.label], line, width, end)) for line in table.lines]
    top = max((share for _, outline, _ in drawn for _, share in outline), default=1.0) * 1.08
    specs: list[dict[str, Any]] = []
    notes = [f"Percent of the samples in bins of {format_time(width)}. The dashed line is the 95 % envelope."]
    metric = PROBES[table.probe].metric(table.metric)
    if metric is not None and metric.signed:
        notes.append("Values without their signs.")
    x_scale, y_scale = alt.Scale(domain=[0, end / 1_000], nice=False), alt.Scale(domain=[0, top], nice=False)
    for line, outline, _ in drawn[:MOST_CHARTS]:
        area = (
            alt.Chart(csv({"us": "number", "percent": "number"}, outline))
            .mark_area(interpolate="step-after", line={"strokeWidth": 1}, opacity=0.55, clip=True)
            .encode(
                x=alt.X("us:Q", scale=x_scale, axis=alt.Axis(title=f"{table.metric} (us)", tickCount=8)),
                y=alt.Y("percent:Q", scale=y_scale, axis=alt.Axis(title="%", tickCount=4)),
            )
        )
        envelope = line.limit(Fraction(95, 100)).ns
        layers = [area]
        if envelope is not None:
            rule = alt.Chart(csv({"at": "number"}, [[envelope / 1_000]])).mark_rule(
                strokeDash=[5, 3], strokeWidth=1.5, style="alarm", clip=True
            )
            layers.append(rule.encode(x=alt.X("at:Q")))
        specs.append(layered(layers, height=110, description=caption_of(line)))
    far = [
        f"{line.label}: {whole(beyond)} (largest {us(line.limit(Fraction(1)).ns)} us)"
        for line, _, beyond in drawn
        if beyond
    ]
    if far:
        notes.append(f"Beyond the axis: {'; '.join(far)}.")
    titles = [line.label for line, *_ in drawn[:MOST_CHARTS]] if len(drawn) > 1 else []
    if len(drawn) > MOST_CHARTS:
        notes.append(f"{len(drawn) - MOST_CHARTS} more lines of the table are not drawn.")
    text = f"{table.title}: {'; '.join(caption_of(line) for line in table.lines)}"
    return Figure(
        _name(gathered, "linear"),
        f"{table.title}: {table.metric} by percent of the samples",
        text,
        specs,
        titles,
        notes,
    )


def log_figure(gathered: Gathered, markers: Sequence[Marker]) -> Figure | None:
    """Figures 3 and 5: 95 % and 100 % of every line on a log axis, and the markers."""
    table = gathered.table
    rows = [
        (line.label, f"{share:g} %", value / 1_000)
        for line in table.lines
        for share, value in ((95, line.limit(Fraction(95, 100)).ns), (100, line.limit(Fraction(1)).ns))
        if value is not None and value >= FIRST_NS
    ]
    if not rows:
        return None
    low = min([value for *_, value in rows] + [marker.ns / 1_000 for marker in markers]) * 0.7
    high = max([value for *_, value in rows] + [marker.ns / 1_000 for marker in markers]) * 1.6
    order = [line.label for line in table.lines]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X(
        "us:Q",
        scale=scale,
        axis=alt.Axis(title=f"{table.metric} (us)", values=log_ticks(low, high), labelExpr=US_LABEL),
    )
    y = alt.Y(
        "name:N",
        sort=order,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(title=None, grid=False, ticks=False, domain=False, labelFontSize=12),
    )
    base = alt.Chart(csv({"name": "string", "share": "string", "us": "number"}, rows))
    shape = alt.Shape(
        "share:N",
        sort=None,
        scale=alt.Scale(domain=["95 %", "100 %"], range=["triangle-up", "circle"]),
        legend=alt.Legend(title=None, symbolFillColor="#808890", symbolStrokeColor="#808890"),
    )
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("share:N"), alt.Tooltip("us:Q", format=",.1f")]
    layers = [
        base.mark_line(strokeWidth=2, opacity=0.6).encode(x=x, y=y, detail=alt.Detail("name:N")),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, shape=shape, tooltip=tooltip),
    ]
    for number, marker in enumerate(sorted(markers, key=lambda marker: marker.ns)):
        at = csv({"at": "number"}, [[marker.ns / 1_000]])
        rule = (
            alt.Chart(at)
            .mark_rule(strokeDash=[2, 3], strokeWidth=1.5, style="muted", clip=True)
            .encode(x=alt.X("at:Q"))
        )
        left = marker.ns / 1_000 > math.sqrt(low * high)
        name = alt.Chart(at).mark_text(
            text=f"{marker.name}: {format_time(marker.ns)}",
            align="right" if left else "left",
            baseline="bottom",
            dx=-4 if left else 4,
            style="muted",
            fontSize=11,
        )
        layers += [rule, name.encode(x=alt.X("at:Q"), y=alt.YValue(-4 - 14 * number))]
    notes = [
        f"No end, and so not drawn: {line.label} ({whole(line.missed)} of {whole(line.samples)} "
        "without an answer)."
        for line in table.lines
        if line.limits[-1].ns is None
    ]
    text = (
        f"{table.title}: {'; '.join(caption_of(line) for line in table.lines)}; markers: "
        f"{', '.join(f'{m.name} {format_time(m.ns)}' for m in markers)}"
    )
    spec = layered(layers, height=max(40, 30 * len(order)), description=text)
    return Figure(
        _name(gathered, "log"), f"{table.title}: 95 % and 100 % and known times", text, [spec], [], notes
    )


def timing_figures(gathered: Sequence[Gathered], markers: Sequence[Marker]) -> list[Figure]:
    """The figures of every part, in the papers' order: linear, then log."""
    drawn = [figure for signal in gathered for figure in (linear_figure(signal), log_figure(signal, markers))]
    return [figure for figure in drawn if figure is not None]
