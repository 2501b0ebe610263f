# SPDX-License-Identifier: MIT
"""The measured timeline of a task set over the calculated one (the form of Delgado et al. 2020, fig. 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.report.figures.figure import Figure, csv, layered
from rtgauge.schedulability.analysis.measured_set import calculated_timeline, measured_set, measured_timeline
from rtgauge.schedulability.page.schedule_figure import MAX_SEGMENTS, time_unit

if TYPE_CHECKING:
    from rtgauge.record.model import Step
    from rtgauge.schedulability.analysis.analysis_document import CpuResult, TimelineResult

ROW = 58
COLUMNS = {"task": "string", "activation": "number", "start": "number", "end": "number"}


def measured_figure(step: Step) -> Figure | None:
    """A chart a CPU, a row a task: what was measured, over what was calculated.

    None if the step has no timeline or too long a one.
    """
    measured = measured_set(step)
    charts: list[dict[str, Any]] = []
    titles: list[str] = []
    for cpu in measured.result.cpus:
        seen = measured_timeline(measured, cpu.cpu)
        if seen is None or len(seen.segments) > MAX_SEGMENTS:
            continue
        charts.append(_chart(cpu, seen, calculated_timeline(measured, cpu.cpu)))
        titles.append(f"CPU {cpu.cpu}, {step.key.load}")
    if not charts:
        return None
    title = f"The first hyperperiods of {measured.result.name}, {step.key.load}"
    notes = [
        (
            "Coloured: measured; grey beneath: calculated, without jitter and blocking. Triangles are "
            "releases, dashed is preempted."
        ),
        "Gaps shorter than a 2000th of the figure are not drawn.",
    ]
    return Figure(figure_name(step), title, title, charts, titles=titles, notes=notes)


def figure_name(step: Step) -> str:
    """What the figure of a step is called."""
    return f"timeline-{step.id}"


def _chart(cpu: CpuResult, measured: TimelineResult, calculated: TimelineResult | None) -> dict[str, Any]:
    divisor, unit = time_unit(measured.end_ns)
    end = measured.end_ns / divisor
    order = [task.name for task in cpu.tasks]

    def rows(timeline: TimelineResult | None, which: str) -> list[tuple[str, int, float, float]]:
        segments = (
            [] if timeline is None else timeline.segments if which == "segments" else timeline.preemptions
        )
        return [
            (segment.task, segment.activation, segment.start_ns / divisor, segment.end_ns / divisor)
            for segment in segments
        ]

    marks = [
        (
            activation.task,
            activation.activation,
            activation.release_ns / divisor,
            activation.deadline_ns / divisor,
        )
        for activation in measured.activations
    ]
    late = [
        activation
        for activation in measured.activations
        if activation.missed and activation.deadline_ns <= measured.end_ns
    ]
    missed = [
        (
            activation.task,
            activation.activation,
            activation.deadline_ns / divisor,
            activation.deadline_ns / divisor,
        )
        for activation in late
    ]
    x = alt.X(
        "start:Q",
        scale=alt.Scale(domain=[0, end], nice=False),
        axis=alt.Axis(title=f"time ({unit})", tickCount=10),
    )
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
    below = alt.Chart(csv(COLUMNS, rows(calculated, "segments"))).mark_bar(
        height=8, yOffset=11, style="muted", opacity=0.55
    )
    gaps = alt.Chart(csv(COLUMNS, rows(measured, "preemptions"))).mark_rule(
        strokeDash=[4, 3], strokeWidth=1.5, yOffset=-5, style="alarm"
    )
    layers = [
        below.encode(x=x, x2="end:Q", y=y, tooltip=tooltip),
        gaps.encode(x=x, x2="end:Q", y=y),
        alt.Chart(csv(COLUMNS, rows(measured, "segments")))
        .mark_bar(height=20, yOffset=-5)
        .encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tooltip),
        alt.Chart(csv(COLUMNS, marks))
        .mark_point(shape="triangle-up", filled=True, size=36, opacity=1, yOffset=21, style="ink")
        .encode(x=x, y=y),
        alt.Chart(csv(COLUMNS, missed)).mark_tick(thickness=2, size=36, style="alarm").encode(x=x, y=y),
    ]
    text = (
        f"Measured timeline of CPU {cpu.cpu} from 0 to {end:.6g} {unit}, over the calculated one; "
        f"{len(missed)} deadlines missed in it."
    )
    return layered(layers, height=ROW * len(order), description=text)
