# SPDX-License-Identifier: MIT
"""Draws the course: the largest value over time, with steps and phases in the background."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rtgauge.record.windows import UNKNOWN, Windows
from rtgauge.report.figure_data import ALL, Course, Source, course
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import SEVERAL, RecordView, RequiredBound, common_quantity, has_distribution
from rtgauge.report.table import applying
from rtgauge.units import format_count, format_duration, format_time

COLUMNS = "load cpu phase start:Q end:Q us:Q missed:Q step"
POINTS = 40_000
"""The approximate number of points, for all CPUs together."""
MOST_NAMED = 4_000
"""The approximate number of points in a chart of named lines."""
NAMED_STEPS = 8
"""The most steps that the figure names. More names would overlap; colours still distinguish the steps."""


def course_figure(source: Source) -> Figure | None:
    """Return a figure of the largest value in each second, or in longer intervals; None if the record has no
    course.
    """
    timeline = course(source.view.record, max(150, min(900, POINTS // (len(source.cpus) + 1))))
    if timeline is None:
        return None
    steps = (step for condition in source.conditions.values() for step in condition.steps)
    quantity = common_quantity(step for step in steps if has_distribution(step))
    values = [point.max_us for point in timeline.points if point.max_us is not None]
    low = max(0.1, min(values, default=1.0))
    high = max([*values, 0.0 if source.bound is None else source.bound.us, low * 10])
    top = high * 2.2
    load_of = {step.id: label for label, condition in source.conditions.items() for step in condition.steps}
    names = source.view.labels

    end = max(phase.end_s for phase in timeline.phases)
    time_axis = {"title": "time (s)", "grid": False, "tickCount": 8}
    x = vega.shown("start:Q", axis=time_axis, scale={"nice": False, "domainMin": 0, "domainMax": end})
    middle = vega.shown("middle:Q")
    ticks = vega.log_ticks(low * 0.7, high * 1.2)
    axis = {"title": f"largest {quantity} (us)", "values": ticks, "labelExpr": vega.US_LABEL}
    y = vega.shown("us:Q", scale=vega.log_scale(low * 0.7, top), axis=axis)
    colour = vega.name_colours("load:N", source.labels, symbolType="circle", symbolOpacity=1)
    phases = vega.csv(
        "load name phase start:Q end:Q",
        ((load_of[p.step], names[p.step], p.kind, p.start_s, p.end_s) for p in timeline.phases),
    )
    opacity = vega.kinds("phase:O", ("measure", "warm-up"), (0.16, 0.06), legend=None)
    layers = [vega.layer(phases, vega.mark("rect"), x=x, x2=vega.shown("end"), color=colour, opacity=opacity)]
    rows = [
        (load_of[p.step], p.cpu, p.kind, p.start_s, p.end_s, p.max_us, p.missed, p.step)
        for p in timeline.points
    ]
    points = vega.csv(COLUMNS, rows)
    ways = [vega.where("datum.cpu === cpu"), vega.calculated("middle", "(datum.start + datum.end) / 2")]
    valid = [*ways, vega.where("isValid(datum.us)")]
    tooltip = vega.tips("load:N", "phase:N", ("start:Q", "from (s)"), ("us:Q", "max (us)"), "missed:Q")
    drawn = {"x": middle, "y": y, "color": colour, "tooltip": tooltip}
    line = vega.mark("line", strokeWidth=1, opacity=0.55, style="muted", clip=True)
    solid = vega.mark("point", filled=True, size=26, opacity=1)
    hollow = vega.mark("point", filled=False, size=22, strokeWidth=1.2, opacity=0.9)
    layers += [
        vega.layer(points, line, *valid, x=middle, y=y, detail=vega.shown("step:N")),
        vega.layer(points, solid, *valid, vega.where("datum.phase === 'measure'"), **drawn),
        vega.layer(points, hollow, *valid, vega.where("datum.phase !== 'measure'"), **drawn),
    ]
    if any(point.missed for point in timeline.points):
        tick = vega.mark("tick", orient="vertical", height=9, width=2, thickness=2, style="alarm", yOffset=-5)
        foot = {"x": middle, "y": vega.fixed("height"), "tooltip": tooltip}
        layers.append(vega.layer(points, tick, *ways, vega.where("datum.missed > 0"), **foot))
    names_layer, marks_layer = _names(timeline, source.view)
    layers += [names_layer] if len(source.view.steps) <= NAMED_STEPS else []
    # A layer without data gives the scales nothing to fit, and the browser logs a warning.
    layers += [marks_layer] if any(step.marks for step in source.view.steps) else []
    layers += vega.bound_layers(source.bound, vertical=False)
    text = f"Largest {quantity} over time, with a band for each step. " + "; ".join(
        f"{label}: up to {format_time(part[ALL].max_ns)}, {format_count(part[ALL].missed.total)} missed"
        for label, part in source.measured.items()
    )
    return Figure.single("course", "Course of maxima", text, layers, 280, _notes(timeline, source, quantity))


def named_course(
    windows: Windows, names: Mapping[int, str], quantity: str, bound: RequiredBound | None = None
) -> vega.Part | None:
    """Return a chart with the largest value in each window over time, with a line for each name; None if
    nothing was measured. `names`: by series number. If there are too many windows to draw, a point is the
    largest value in several of them.
    """
    rows: list[tuple[str, float, float]] = []
    begin_ns = windows.start_ns.min(initial=np.iinfo(np.int64).max)
    for series, name in names.items():
        own = windows.are_of(series) & (windows.max_ns != UNKNOWN)
        starts, maxima = windows.start_ns[own], windows.max_ns[own]
        together = max(1, -(-len(starts) * len(names) // MOST_NAMED))
        firsts = np.arange(0, len(starts), together)
        largest = np.maximum.reduceat(maxima, firsts) if len(starts) else maxima
        rows += [
            (name, float(start - begin_ns) / 1e9, float(value) / 1_000)
            for start, value in zip(starts[firsts], largest, strict=True)
            if value > 0
        ]
    if not rows:
        return None
    values = [us for *_, us in rows]
    inside = values if bound is None else [*values, bound.us]
    low, high = min(inside) * 0.8, max(inside) * 1.5
    encoding = {
        "x": vega.shown("start:Q", axis={"title": "time (s)", "grid": False, "tickCount": 8}),
        "y": vega.log_axis("us:Q", low, high, f"largest {quantity} (us)"),
        "color": vega.name_colours("name:N", dict.fromkeys(names.values())),
    }
    data, tooltip = vega.csv("name start:Q us:Q", rows), vega.tips("name:N", "start:Q", "us:Q")
    layers = [
        vega.layer(data, vega.mark("line", strokeWidth=1, opacity=0.55), **encoding),
        vega.layer(data, vega.mark("point", filled=True, size=20, opacity=1), tooltip=tooltip, **encoding),
        *vega.bound_layers(bound, vertical=False),
    ]
    most: dict[str, float] = {}
    for name, _, us in rows:
        most[name] = max(us, most.get(name, 0.0))
    each = "; ".join(f"{name}: up to {format_time(us * 1_000)}" for name, us in most.items())
    return vega.layered(layers, height=150, description=f"Largest {quantity} over time. {each}")


def _names(timeline: Course, view: RecordView) -> tuple[vega.Part, vega.Part]:
    """Return two layers: each step's name at the top of its band, and a triangle there for each step that has
    a mark.
    """
    labels = view.labels
    rows: list[tuple[object, ...]] = []
    for step in view.steps:
        starts = [phase.start_s for phase in timeline.phases if phase.step == step.id]
        if starts:
            marks = ", ".join(f"{mark.severity}: {mark.name}" for mark in step.marks)
            rows.append((labels[step.id], min(starts), marks))
    data = vega.csv("name start:Q marks", rows)
    place = {"x": vega.shown("start:Q"), "y": vega.fixed(0)}
    text = vega.mark("text", align="left", baseline="top", dx=4, dy=4, fontSize=11, style="ink", clip=True)
    look = {"filled": True, "xOffset": 9, "yOffset": 26, "style": "alarm", "opacity": 1}
    triangle = vega.mark("point", shape="triangle-up", size=50, **look)
    named = vega.layer(data, text, **place, text=vega.shown("name:N"))
    marked = vega.where("isValid(datum.marks)")
    return named, vega.layer(data, triangle, marked, **place, tooltip=vega.tips("name:N", "marks:N"))


def _notes(timeline: Course, source: Source, quantity: str) -> list[str]:
    each = format_duration(round(timeline.bucket_s * 1e9))
    hollow = "Pale bands and hollow points show the warm-up, which no other figure includes."
    own = ", ".join(name for name in source.quantities if source.only(name).measured)
    missed = any(point.missed for point in timeline.points)
    marked = any(step.marks for step in source.view.steps)
    apart = "The steps were measured at different times; they are drawn one after another."
    return applying(
        (True, f"Each point is the largest {quantity} in {each}. {hollow}"),
        (quantity == SEVERAL, f"Each step has its own quantity: {own}."),
        (missed, "Red ticks at the bottom show where activations were missed."),
        (marked, "A red triangle at the top of a band shows that the step has a mark."),
        (not timeline.continuous, apart),
    )
