# SPDX-License-Identifier: MIT
"""The timeline of a task set (the form of Delgado et al.

2020, fig. 5) and the schedulability ratio of random sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.errors import InputError
from rtgauge.report.figures.figure import Figure, csv, layered

if TYPE_CHECKING:
    from rtgauge.schedulability.analysis.acceptance_ratio import RatioResult
    from rtgauge.schedulability.analysis.analysis_document import CpuResult, SetResult

MAX_SEGMENTS = 2_000
ROW = 46
UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def time_unit(end_ns: int) -> tuple[int, str]:
    """(ns, name) of the unit for an axis that ends there."""
    return next(unit for unit in UNITS if end_ns >= unit[0])


def timeline_figure(result: SetResult) -> Figure:
    """A chart a CPU: a row a task. Raises InputError if a CPU has no timeline or too long a one."""
    charts = [_chart(cpu) for cpu in result.cpus]
    titles = [f"CPU {cpu.cpu}, utilisation {cpu.utilisation:.2%}" for cpu in result.cpus]
    title = f"One hyperperiod of {result.name}"
    return Figure("timeline", title, title, charts, titles=titles)


def _chart(cpu: CpuResult) -> dict[str, Any]:
    drawn = cpu.timeline
    if drawn is None:
        raise InputError(cpu.no_timeline)
    if len(drawn.segments) > MAX_SEGMENTS:
        raise InputError(
            f"the timeline of CPU {cpu.cpu} has {len(drawn.segments)} segments, more than "
            f"{MAX_SEGMENTS}: no figure could show them; use --json"
        )
    divisor, unit = time_unit(drawn.end_ns)
    end = drawn.end_ns / divisor
    order = [task.name for task in cpu.tasks]
    columns = {"task": "string", "activation": "number", "start": "number", "end": "number"}
    rows = [
        (segment.task, segment.activation, segment.start_ns / divisor, segment.end_ns / divisor)
        for segment in drawn.segments
    ]
    gaps = [
        (segment.task, segment.activation, segment.start_ns / divisor, segment.end_ns / divisor)
        for segment in drawn.preemptions
    ]
    marks = [
        (
            activation.task,
            activation.activation,
            activation.release_ns / divisor,
            activation.deadline_ns / divisor,
        )
        for activation in drawn.activations
    ]
    missed = [
        (late.task, late.activation, late.deadline_ns / divisor, late.deadline_ns / divisor)
        for late in drawn.activations
        if late.missed
    ]
    scale = alt.Scale(domain=[0, end], nice=False)
    x = alt.X("start:Q", scale=scale, axis=alt.Axis(title=f"time ({unit})", tickCount=10))
    y = alt.Y(
        "task:N",
        sort=order,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(title=None, grid=False, ticks=False, domain=False, labelFontSize=12),
    )
    colour = alt.Color("task:N", sort=order, scale=alt.Scale(domain=order), legend=None)
    tooltip = [
        alt.Tooltip("task:N"),
        alt.Tooltip("activation:Q"),
        alt.Tooltip("start:Q", title=f"from ({unit})"),
        alt.Tooltip("end:Q", title=f"to ({unit})"),
    ]
    layers = [
        alt.Chart(csv(columns, gaps))
        .mark_rule(strokeDash=[4, 3], strokeWidth=1.5, style="alarm")
        .encode(x=x, x2="end:Q", y=y),
        alt.Chart(csv(columns, rows))
        .mark_bar(height=20)
        .encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tooltip),
        alt.Chart(csv(columns, marks))
        .mark_point(shape="triangle-up", filled=True, size=36, opacity=1, yOffset=16, style="ink")
        .encode(x=x, y=y),
        alt.Chart(csv(columns, missed))
        .mark_text(text="missed", align="left", dx=3, dy=-16, fontSize=10, style="alarm")
        .encode(x=x, y=y),
        alt.Chart(csv(columns, missed)).mark_tick(thickness=2, size=32, style="alarm").encode(x=x, y=y),
    ]
    responses = "; ".join(
        f"{task.name}: response {task.response_ns} ns of {task.deadline_ns} ns" for task in cpu.tasks
    )
    text = (
        f"Timeline of CPU {cpu.cpu} from 0 to {end:.6g} {unit}; releases are triangles, preemptions "
        f"dashed. {responses}"
    )
    return layered(layers, height=ROW * len(order), description=text)


def ratio_figure(result: RatioResult) -> Figure:
    """The share of schedulable sets over the utilisation: exact with its confidence interval, and the two
    bounds.
    """
    names = ["exact response-time analysis", "hyperbolic bound", "Liu-Layland bound"]
    rows = [
        (name, point.utilisation, 100 * count / point.sets)
        for point in result.points
        for name, count in zip(names, (point.exact, point.hyperbolic, point.liu_layland), strict=True)
    ]
    span = [(point.utilisation, 100 * point.exact_low, 100 * point.exact_high) for point in result.points]
    x = alt.X(
        "utilisation:Q",
        scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(title="utilisation", tickCount=10),
    )
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(title="schedulable sets (%)"))
    colour = alt.Color("test:N", sort=names, scale=alt.Scale(domain=names), legend=alt.Legend(title=None))
    dash = alt.StrokeDash(
        "test:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[[1, 0], [8, 4], [3, 3]]),
        legend=alt.Legend(title=None),
    )
    base = alt.Chart(csv({"test": "string", "utilisation": "number", "share": "number"}, rows))
    band = alt.Chart(csv({"utilisation": "number", "share": "number", "high": "number"}, span)).mark_rule(
        strokeWidth=1.5, style="muted"
    )
    layers = [
        band.encode(x=x, y=y, y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash),
    ]
    layers.append(base.mark_point(filled=True, size=30, opacity=1).encode(x=x, y=y, color=colour))
    title = f"Schedulable share of {result.sets} random sets of {result.tasks} tasks"
    text = f"{title}; vertical lines: 95 % confidence interval. " + "; ".join(
        f"{u:.3g}: {low:.1f} to {high:.1f} %" for u, low, high in span
    )
    return Figure("ratio", title, text, [layered(layers, height=320, description=text)])
