# SPDX-License-Identifier: MIT
"""Draws the figures of task sets. Timelines (as in Delgado et al. 2020, fig. 5) are calculated, or measured
over calculated.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.errors import InputError
from rtgauge.record.model import Step
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge_ext.schedulability.analysis.analyse import CpuResult, SetResult
from rtgauge_ext.schedulability.analysis.measured_set import (
    calculated_timeline,
    measured_set,
    measured_timeline,
)
from rtgauge_ext.schedulability.analysis.timeline import Activation, Segment, Timeline

MAX_SEGMENTS = 2_000
ROW, MEASURED_ROW = 46, 58
UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
COLUMNS = "task activation:Q start:Q end:Q"


def time_unit(end_ns: int) -> tuple[int, str]:
    """Return (ns, name) of the time unit for an axis that ends at `end_ns`."""
    return next(unit for unit in UNITS if end_ns >= unit[0])


def timeline_figure(result: SetResult) -> Figure:
    """Return a figure with a chart for each CPU, which has a row for each task. Raises InputError if a CPU's
    timeline is missing or too long.
    """
    charts = [_chart(cpu) for cpu in result.cpus]
    titles = [f"CPU {cpu.cpu}, utilisation {cpu.utilisation:.2%}" for cpu in result.cpus]
    title = f"One hyperperiod of {result.name}"
    return Figure("timeline", title, title, charts, titles=titles)


def _chart(cpu: CpuResult) -> vega.Part:
    drawn = cpu.timeline
    if drawn is None:
        raise InputError(cpu.no_timeline)
    if len(drawn.segments) > MAX_SEGMENTS:
        segments = f"{len(drawn.segments)} segments, more than {MAX_SEGMENTS}"
        timeline = f"the timeline of CPU {cpu.cpu} has {segments}"
        raise InputError(f"{timeline}, too many for a figure; use --json")
    axes = _Axes(cpu, drawn)
    missed = axes.deadlines([late for late in drawn.activations if late.missed])
    text = vega.mark("text", text="missed", align="left", dx=3, dy=-16, fontSize=10, style="alarm")
    layers = [
        axes.gaps(drawn),
        axes.bars(drawn, height=20),
        axes.releases(drawn, yOffset=16),
        axes.at(missed, text),
        axes.at(missed, vega.mark("tick", thickness=2, size=32, style="alarm")),
    ]
    responses = "; ".join(
        f"{task.name}: response {task.response_ns} ns of {task.deadline_ns} ns" for task in cpu.tasks
    )
    span = f"Timeline of CPU {cpu.cpu} from 0 to {axes.end:.6g} {axes.unit}"
    described = f"{span}; triangles are releases, dashes are preemptions. {responses}"
    return vega.layered(layers, height=ROW * len(cpu.tasks), description=described)


class _Axes:
    """The axes of a timeline, with a row per task over time, and the layers drawn on them."""

    def __init__(self, cpu: CpuResult, timeline: Timeline) -> None:
        self.divisor, self.unit = time_unit(timeline.end_ns)
        self.end = timeline.end_ns / self.divisor
        order = [task.name for task in cpu.tasks]
        axis = {"title": f"time ({self.unit})", "tickCount": 10}
        self.place = {
            "x": vega.shown("start:Q", scale={"domain": [0, self.end], "nice": False}, axis=axis),
            "y": vega.names_axis("task:N", order, labelFontSize=12),
        }
        self.colour = vega.kinds("task:N", order, sort=order, legend=None)
        times = (("start:Q", f"from ({self.unit})"), ("end:Q", f"to ({self.unit})"))
        self.tooltip = vega.tips("task:N", "activation:Q", *times)

    def at(self, data: vega.Data, drawn: vega.Part, **encoding: object) -> vega.Part:
        """Return a layer with data from COLUMNS at their places."""
        return vega.layer(data, drawn, **self.place, **encoding)

    def _spans(self, segments: Sequence[Segment]) -> vega.Data:
        ns = self.divisor
        return vega.csv(COLUMNS, ((s.task, s.activation, s.start_ns / ns, s.end_ns / ns) for s in segments))

    def bars(self, timeline: Timeline | None, *, coloured: bool = True, **look: object) -> vega.Part:
        """Return a layer with a bar for each interval in which a task ran."""
        more = {"color": self.colour} if coloured else {}
        data = self._spans([] if timeline is None else timeline.segments)
        end = vega.shown("end")
        return self.at(data, vega.mark("bar", **look), x2=end, tooltip=self.tooltip, **more)

    def gaps(self, timeline: Timeline, **look: object) -> vega.Part:
        """Return a layer with a dashed line for each interval in which a task was preempted."""
        drawn = vega.mark("rule", strokeDash=[4, 3], strokeWidth=1.5, style="alarm", **look)
        return self.at(self._spans(timeline.preemptions), drawn, x2=vega.shown("end"))

    def releases(self, timeline: Timeline, **look: object) -> vega.Part:
        """Return a layer with a triangle for each release."""
        ns = self.divisor
        activations = timeline.activations
        rows = (
            (activation.task, activation.activation, activation.release_ns / ns, activation.deadline_ns / ns)
            for activation in activations
        )
        shape = {"shape": "triangle-up", "filled": True, "size": 36, "opacity": 1, "style": "ink"}
        return self.at(vega.csv(COLUMNS, rows), vega.mark("point", **shape, **look))

    def deadlines(self, activations: Sequence[Activation]) -> vega.Data:
        """Return the deadlines of these activations, as data to draw."""
        rows = (
            (activation.task, activation.activation, *[activation.deadline_ns / self.divisor] * 2)
            for activation in activations
        )
        return vega.csv(COLUMNS, rows)


def measured_figure(step: Step) -> Figure | None:
    """Return a figure with a chart for each CPU, which has a row for each task: the measured schedule over
    the calculated one.

    A CPU without a timeline, or with too many segments, has no chart. Returns None if there is no chart.
    """
    measured = measured_set(step)
    charts: dict[str, vega.Part] = {}
    for cpu in measured.result.cpus:
        timeline = measured_timeline(measured, cpu.cpu)
        if timeline is None or len(timeline.segments) > MAX_SEGMENTS:
            continue
        calculated = calculated_timeline(measured, cpu.cpu)
        charts[f"CPU {cpu.cpu}, {step.key.load}"] = _measured_chart(cpu, timeline, calculated)
    if not charts:
        return None
    title = f"The first hyperperiods of {measured.result.name}, {step.key.load}"
    looks = (
        "Coloured bars are measured; the grey bars below them are calculated, without jitter and blocking."
    )
    notes = [f"{looks} Triangles are releases; in dashed parts, a task is preempted."]
    notes.append("The figure leaves out gaps shorter than 1/2000 of its width.")
    return Figure(figure_name(step), title, title, [*charts.values()], [*charts], notes)


def figure_name(step: Step) -> str:
    """Return the name of a step's figure."""
    return f"timeline-{step.id}"


def _measured_chart(cpu: CpuResult, measured: Timeline, calculated: Timeline | None) -> vega.Part:
    axes = _Axes(cpu, measured)
    late = [
        activation
        for activation in measured.activations
        if activation.missed and activation.deadline_ns <= measured.end_ns
    ]
    layers = [
        axes.bars(calculated, coloured=False, height=8, yOffset=11, style="muted", opacity=0.55),
        axes.gaps(measured, yOffset=-5),
        axes.bars(measured, height=20, yOffset=-5),
        axes.releases(measured, yOffset=21),
        axes.at(axes.deadlines(late), vega.mark("tick", thickness=2, size=36, style="alarm")),
    ]
    span = f"Measured timeline of CPU {cpu.cpu} from 0 to {axes.end:.6g} {axes.unit}"
    text = f"{span}, above the calculated one. Missed deadlines: {len(late)}."
    return vega.layered(layers, height=MEASURED_ROW * len(cpu.tasks), description=text)
