# SPDX-License-Identifier: MIT
"""Draws how often a task can run, as figures 2 to 5 of Brown & Martin (2010) do: linear histograms with the
95 % envelope, and 95 % and 100 % on a log axis with familiar times. It also draws losses and long delays over
the period (Adam et al. 2021, sec. 7.1 to 7.3, which describe them without a figure).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from rtgauge.analysis.frequency import HARDNESS, Gathered, Line, Options, Table
from rtgauge.analysis.sides import Side
from rtgauge.analysis.sustained import Curve
from rtgauge.errors import InputError
from rtgauge.probe.registry import PROBES
from rtgauge.record.histogram import EDGES_NS, OVERFLOW_BIN
from rtgauge.record.windows import add_bins
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import applying
from rtgauge.report.text import us, whole
from rtgauge.units import format_time, parse_duration_ns

COLUMNS = 150
"""The approximate number of bins of a linear histogram."""
BEYOND = 1.15
"""The end of a linear axis, relative to the largest 95 % envelope. The notes count the samples beyond it."""
MOST_CHARTS = 12
FIRST_NS = 10
"""The smallest value on a log axis."""
LONGEST_NAME = 60
MOST_MARKERS = 20


@dataclass(frozen=True)
class Marker:
    """A time (ns) that has a name."""

    name: str
    ns: int


SERIAL = Marker("12 serial bytes at 115200 baud", round(12 * 10 / 115_200 * 10**9))
"""The marker in figures 3 and 5 of Brown & Martin (2010): 12 bytes of 10 bits each, 1041.7 us."""


def parse_marker(text: str) -> Marker:
    """Parse a marker like `"CAN frame=130us"`. Raises InputError if it is not NAME=TIME."""
    name, sign, value = text.rpartition("=")
    name = name.strip()
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    shown, value = text[:80], text.rpartition("=")[2]
    if not sign or not name:
        raise InputError(f"--marker '{shown}': give NAME=TIME, such as \"CAN frame=130us\"")
    if len(name) > LONGEST_NAME or not name.isprintable() or len(value) > LONGEST_NAME:
        raise InputError(
            f"--marker '{shown}': a name and a time have at most {LONGEST_NAME} printable characters each"
        )
    try:
        ns = parse_duration_ns(value)
    except ValueError as error:
        raise InputError(f"--marker '{shown}': {error}") from None
    if ns <= 0:
        raise InputError(f"--marker '{shown}': the time must be longer than 0")
    return Marker(name, ns)


def parse_markers(texts: Sequence[str] | None) -> tuple[Marker, ...]:
    """Return the paper's marker and the given markers; if two have the same name, the last one counts. Raises
    InputError if a marker is invalid or there are too many.
    """
    named = {marker.name: marker for marker in (SERIAL, *map(parse_marker, texts or ()))}
    if len(named) > MOST_MARKERS:
        raise InputError(
            f"there are {len(named)} markers, but a figure can show at most {MOST_MARKERS}; give fewer"
        )
    return tuple(named.values())


@dataclass(frozen=True)
class Timing:
    """Options for the tables of timing_tables.py, and the markers in the figures."""

    options: Options = field(default_factory=Options)
    markers: tuple[Marker, ...] = (SERIAL,)


def caption_of(line: Line) -> str:
    """Describe a line in words, for a reader who does not see the figure."""
    at95, at100 = (line.limit(share) for share in HARDNESS)
    return f"{line.label}: 95 % within {format_time(at95.ns)}, 100 % within {format_time(at100.ns)}"


def bin_width_ns(end_ns: int) -> int:
    """Return the bin width (ns) of a histogram that ends at `end_ns`, with about COLUMNS bins. It is 1 or 2
    times a power of ten, and at least the record's bin width there, so that no bin is split.
    """
    least = max(1.0, end_ns / COLUMNS)
    power = 10 ** math.floor(math.log10(least))
    return int(next(step * power for step in (1, 2, 10) if step * power >= least))


def _name(table: Table, kind: str) -> str:
    return "-".join(dict.fromkeys(("timing", table.probe, table.metric, kind)))


def _linear(side: Side, line: Line, width: int, end: int) -> tuple[list[tuple[float, float]], int]:
    """Return (outline, samples beyond `end`). The outline has (left edge in us, percent) for each bin."""
    merged = side.merged
    signed, counted = np.concatenate([merged.bins, merged.missed_bins]), [merged.counts, merged.missed_counts]
    bins, counts = add_bins(np.abs(signed), np.concatenate(counted))
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
    """Return a figure like the paper's figures 2 and 4, with a chart per line on shared axes; None if no 95 %
    envelope is known.
    """
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
    specs: list[vega.Part] = []
    metric = PROBES[table.probe].metric(table.metric)
    bins = f"Percentage of the samples in bins of {format_time(width)}. The dashed line is the 95 % envelope."
    notes = applying((True, bins), (metric is not None and metric.signed, "Values are absolute."))
    reach_axis = {"title": f"{table.metric} (us)", "tickCount": 8}
    x = vega.shown("us:Q", scale={"domain": [0, end / 1_000], "nice": False}, axis=reach_axis)
    percent = {"title": "%", "tickCount": 4}
    y = vega.shown("percent:Q", scale={"domain": [0, top], "nice": False}, axis=percent)
    area = vega.mark("area", interpolate="step-after", line={"strokeWidth": 1}, opacity=0.55, clip=True)
    for line, outline, _ in drawn[:MOST_CHARTS]:
        layers = [vega.layer(vega.csv("us:Q percent:Q", outline), area, x=x, y=y)]
        envelope = line.limit(Fraction(95, 100)).ns
        if envelope is not None:
            layers.append(vega.rule("x", envelope / 1_000))
        specs.append(vega.layered(layers, height=110, description=caption_of(line)))
    far = "; ".join(
        f"{line.label}: {whole(beyond)} (largest {us(line.limit(Fraction(1)).ns)} us)"
        for line, _, beyond in drawn
        if beyond
    )
    more = len(drawn) - MOST_CHARTS
    undrawn = f"Lines of the table that are not drawn: {more}."
    notes += applying((far, f"Beyond the axis: {far}."), (more > 0, undrawn))
    titles = [line.label for line, *_ in drawn[:MOST_CHARTS]] if len(drawn) > 1 else []
    text = f"{table.title}: {'; '.join(caption_of(line) for line in table.lines)}"
    title = f"{table.title}: {table.metric}, as percentages of the samples"
    return Figure(_name(table, "linear"), title, text, specs, titles, notes)


def log_figure(gathered: Gathered, markers: Sequence[Marker]) -> Figure | None:
    """Return a figure like the paper's figures 3 and 5: 95 % and 100 % of every line on a log axis, with the
    markers; None if nothing can be drawn.
    """
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
    for number, marker in enumerate(sorted(markers, key=lambda marker: marker.ns)):
        at = vega.csv("at:Q", [[marker.ns / 1_000]])
        left = marker.ns / 1_000 > math.sqrt(low * high)
        side = {"align": "right" if left else "left", "dx": -4 if left else 4}
        text = f"{marker.name}: {format_time(marker.ns)}"
        name = vega.mark("text", text=text, baseline="bottom", style="muted", fontSize=11, **side)
        layers.append(vega.rule("x", marker.ns / 1_000, dash=(2, 3), style="muted"))
        layers.append(vega.layer(at, name, x=vega.shown("at:Q"), y=vega.fixed(-4 - 14 * number)))
    endless = [line for line in table.lines if line.limits[-1].ns is None]
    unanswered = [f"{whole(line.missed)} of {whole(line.samples)} without an answer" for line in endless]
    undrawn = [f"{line.label} ({share})" for line, share in zip(endless, unanswered, strict=True)]
    notes = [f"Not drawn, because it is unbounded: {what}." for what in undrawn]
    known = ", ".join(f"{marker.name} {format_time(marker.ns)}" for marker in markers)
    text = f"{table.title}: {'; '.join(map(caption_of, table.lines))}; markers: {known}"
    title, height = f"{table.title}: 95 % and 100 % and known times", max(40, 30 * len(order))
    return Figure.single(_name(table, "log"), title, text, layers, height, notes)


def timing_figures(
    gathered: Sequence[Gathered], markers: Sequence[Marker], curves: Sequence[Curve]
) -> list[Figure]:
    """Return the figures in the papers' order: for each part linear, then log; then the searches."""
    drawn = [figure for signal in gathered for figure in (linear_figure(signal), log_figure(signal, markers))]
    return [figure for figure in (*drawn, sustained_figure(curves)) if figure is not None]


KINDS = {"lost": "lost", "over_half": "later than half the period", "long": "later than 1 ms"}
SMALLEST = 0.01
"""The share axis is logarithmic above this share (percent), and linear below, so that it can show 0."""


def sustained_figure(curves: Sequence[Curve]) -> Figure | None:
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


def _sustained_chart(curve: Curve, low: float, high: float) -> vega.Part:
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
