# SPDX-License-Identifier: MIT
"""The course of maxima: the largest value over time, with the steps and their phases behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from rtgauge.report.figure_data import ALL, Course, course
from rtgauge.report.figures.figure import US_LABEL, Figure, bound_layer, csv, layered, log_ticks
from rtgauge.report.record_view import SEVERAL, common_quantity, has_distribution
from rtgauge.units import format_duration

if TYPE_CHECKING:
    from rtgauge.report.figures.source import Source
    from rtgauge.report.record_view import RecordView

POINTS = 40_000
"""About this many points for all CPUs together."""
NAMED_STEPS = 8
"""With more steps than this, their names would cover each other; the colours still tell them."""


def course_figure(source: Source) -> Figure | None:
    """The largest value of every second, or of longer stretches where there are many; None where the record
    has no course.
    """
    timeline = course(source.view.record, max(150, min(900, POINTS // (len(source.cpus) + 1))))
    if timeline is None:
        return None
    quantity = common_quantity(
        step for condition in source.conditions.values() for step in condition.steps if has_distribution(step)
    )
    values = [point.max_us for point in timeline.points if point.max_us is not None]
    low = max(0.1, min(values, default=1.0))
    high = max([*values, source.bound_us or 0.0, low * 10])
    top = high * 2.2
    load_of = {step.id: label for label, condition in source.conditions.items() for step in condition.steps}
    names = source.view.labels

    x = alt.X(
        "start:Q",
        axis=alt.Axis(title="time (s)", grid=False, tickCount=8),
        scale=alt.Scale(nice=False, domainMin=0, domainMax=max(phase.end_s for phase in timeline.phases)),
    )
    y = alt.Y(
        "us:Q",
        scale=alt.Scale(type="log", domain=[low * 0.7, top], nice=False),
        axis=alt.Axis(
            title=f"largest {quantity} (us)", values=log_ticks(low * 0.7, high * 1.2), labelExpr=US_LABEL
        ),
    )
    colour = alt.Color(
        "load:N",
        sort=None,
        scale=alt.Scale(domain=source.labels),
        legend=alt.Legend(title=None, symbolType="circle", symbolOpacity=1),
    )

    phases = csv(
        {"load": "string", "name": "string", "phase": "string", "start": "number", "end": "number"},
        ((load_of[p.step], names[p.step], p.kind, p.start_s, p.end_s) for p in timeline.phases),
    )
    opacity = alt.Opacity(
        "phase:O", sort=None, scale=alt.Scale(domain=["measure", "warm-up"], range=[0.16, 0.06]), legend=None
    )
    layers: list[alt.Chart] = [
        alt.Chart(phases).mark_rect().encode(x=x, x2=alt.X2("end:Q"), color=colour, opacity=opacity)
    ]
    points = csv(
        {
            "load": "string",
            "cpu": "string",
            "phase": "string",
            "start": "number",
            "end": "number",
            "us": "number",
            "missed": "number",
            "step": "string",
        },
        (
            (load_of[p.step], p.cpu, p.kind, p.start_s, p.end_s, p.max_us, p.missed, p.step)
            for p in timeline.points
        ),
    )
    shown = (
        alt.Chart(points)
        .transform_filter("datum.cpu === cpu")
        .transform_calculate(middle="(datum.start + datum.end) / 2")
    )
    valid = shown.transform_filter("isValid(datum.us)")
    tooltip = [
        alt.Tooltip("load:N"),
        alt.Tooltip("phase:N"),
        alt.Tooltip("start:Q", title="from (s)"),
        alt.Tooltip("us:Q", title="max (us)"),
        alt.Tooltip("missed:Q"),
    ]
    layers += [
        valid.mark_line(strokeWidth=1, opacity=0.55, style="muted", clip=True).encode(
            x=alt.X("middle:Q"), y=y, detail=alt.Detail("step:N")
        ),
        valid.transform_filter("datum.phase === 'measure'")
        .mark_point(filled=True, size=26, opacity=1)
        .encode(x=alt.X("middle:Q"), y=y, color=colour, tooltip=tooltip),
        valid.transform_filter("datum.phase !== 'measure'")
        .mark_point(filled=False, size=22, strokeWidth=1.2, opacity=0.9)
        .encode(x=alt.X("middle:Q"), y=y, color=colour, tooltip=tooltip),
    ]
    any_missed = any(point.missed for point in timeline.points)
    if any_missed:
        missed = shown.transform_filter("datum.missed > 0").mark_tick(
            orient="vertical", height=9, width=2, thickness=2, style="alarm", yOffset=-5
        )
        layers.append(missed.encode(x=alt.X("middle:Q"), y=alt.YValue("height"), tooltip=tooltip))
    names_layer, marks_layer = _names(timeline, source.view)
    layers += [names_layer] if len(source.view.steps) <= NAMED_STEPS else []
    # Without a mark the layer would have nothing to scale, and the browser would complain of it.
    layers += [marks_layer] if any(step.marks for step in source.view.steps) else []
    layers += bound_layer(source.bound_us, vertical=False)
    text = f"Largest {quantity} over time, a band a step. " + "; ".join(
        f"{label}: up to {part[ALL].max_ns or 0} ns" for label, part in source.measured.items()
    )
    return Figure(
        "course",
        "Course of maxima",
        text,
        [layered(layers, height=280, description=text)],
        notes=_notes(
            timeline,
            source,
            quantity,
            any_missed=any_missed,
            any_marked=any(step.marks for step in source.view.steps),
        ),
    )


def _names(timeline: Course, view: RecordView) -> tuple[alt.Chart, alt.Chart]:
    """The name of each step at the head of its band, and a triangle where it is marked."""
    labels = view.labels
    rows: list[tuple[object, ...]] = []
    for step in view.steps:
        starts = [phase.start_s for phase in timeline.phases if phase.step == step.id]
        if starts:
            rows.append(
                (
                    labels[step.id],
                    min(starts),
                    ", ".join(f"{mark.severity}: {mark.name}" for mark in step.marks),
                )
            )
    data = csv({"name": "string", "start": "number", "marks": "string"}, rows)
    text = (
        alt.Chart(data)
        .mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=11, style="ink", clip=True)
        .encode(x=alt.X("start:Q"), y=alt.YValue(0), text=alt.Text("name:N"))
    )
    marked = (
        alt.Chart(data)
        .transform_filter("isValid(datum.marks)")
        .mark_point(
            shape="triangle-up", size=50, filled=True, xOffset=9, yOffset=26, style="alarm", opacity=1
        )
    )
    return text, marked.encode(
        x=alt.X("start:Q"), y=alt.YValue(0), tooltip=[alt.Tooltip("name:N"), alt.Tooltip("marks:N")]
    )


def _notes(
    timeline: Course, source: Source, quantity: str, *, any_missed: bool, any_marked: bool
) -> list[str]:
    each = format_duration(round(timeline.bucket_s * 1e9))
    notes = [
        (
            f"Each point is the largest {quantity} of {each}. Pale bands and hollow points: warm-up, which "
            f"no other figure includes."
        )
    ]
    if quantity == SEVERAL:
        notes.append(
            "Each step has its own quantity: "
            f"{', '.join(name for name in source.quantities if source.only(name).measured)}."
        )
    if any_missed:
        notes.append("Red ticks at the foot: activations were missed there.")
    if any_marked:
        notes.append("A red triangle at the head of a band: that step is marked.")
    if not timeline.continuous:
        notes.append("The steps do not share one stretch of time; they are drawn one after another.")
    return notes
