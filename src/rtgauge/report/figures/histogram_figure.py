# SPDX-License-Identifier: MIT
"""Draws histograms like OSADL's latency plots: 1 us bins, counts on a log axis, a line per CPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rtgauge.report.figure_data import ALL, CpuHistograms, Outline, Source, outlines
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import LATENCY
from rtgauge.report.table import applying
from rtgauge.report.text import capital, us, whole

CORNERS = 40_000
"""The most corners in all histograms together. Beyond it, bins become wider to keep the page small."""
LINEAR_TO_US = 1_000
"""A maximum above this gets a log axis; on a linear one the bulk would be a single thin line."""
FLOOR = 0.6
"""The start of the log count axis. Empty bins lie below it, out of sight."""
FIRST_US = 0.5
"""The start of the bin [0, 1) us on a log axis."""


@dataclass(frozen=True)
class _Frame:
    """Axes that all charts of one record share, so that they can be compared by eye."""

    low_us: float
    high_us: float
    most: int
    least_us: float = 0.0
    """The start of the linear axis: 0, or the smallest signed value."""

    @property
    def axes(self) -> dict[str, vega.Part]:
        """The page's two choices of axes, as Vega-Lite scales and the axis properties that depend on them."""
        low, high = self.low_us * 0.9, max(self.high_us, self.low_us) * 1.1
        span = (self.high_us - self.least_us) * 0.02 or 1.0
        ends = [self.least_us - span if self.least_us < 0 else 0, self.high_us + span]
        return {
            "linear": {"scale": {"type": "linear", "domain": ends, "nice": False}, "axis": {"tickCount": 8}},
            "log": {"scale": vega.log_scale(low, high), "axis": {"values": vega.log_ticks(low, high)}},
        }

    @property
    def chosen(self) -> str:
        return "log" if self.high_us > LINEAR_TO_US else "linear"


def histogram(source: Source) -> Figure | None:
    """Return a chart per condition, with shared axes for each quantity; None if nothing was measured."""
    every = [(label, cpu, part) for label, cpus in source.measured.items() for cpu, part in cpus.items()]
    width, drawn = outlines({(label, cpu): part.plain for label, cpu, part in every if cpu != ALL}, CORNERS)
    charts: dict[str, vega.Part] = {}
    frames: list[_Frame] = []
    names: list[str] = []
    for quantity in source.quantities:
        part = source.only(quantity)
        mine: dict[str, dict[str, Outline]] = {label: {} for label in part.measured}
        for (label, cpu), outline in drawn.items():
            if label in mine:
                mine[label][cpu] = outline
        frame = _frame(part, mine)
        if frame is None:
            continue
        charts |= {label: _spec(part, label, cpus, frame, quantity) for label, cpus in mine.items()}
        frames.append(frame)
        names.append(quantity)
    if not frames:
        return None
    many = len(names) > 1
    text = f"Number of samples by {', '.join(names)}, per CPU, with a logarithmic count axis. "
    text += "; ".join(f"{label}: {_largest(cpus)}" for label, cpus in source.measured.items())
    title = "Histograms" if many else f"{capital(names[0])} histogram"
    unplaced = sum(cpus[ALL].unplaced for cpus in source.measured.values() if ALL in cpus)
    in_no_bin = f"Not drawn, because the other tool's histogram has no bin for them: {whole(unplaced)}."
    notes = _notes(width, frames, latency=LATENCY in names)
    notes += applying((unplaced, in_no_bin), (many, "All charts of one quantity share their axes."))
    return Figure("histogram", title, text, [*charts.values()], [*charts], notes)


def _frame(source: Source, outlines: dict[str, dict[str, Outline]]) -> _Frame | None:
    filled = [o for cpus in outlines.values() for o in cpus.values() if len(o.x_us)]
    if not filled:
        return None
    return _Frame(
        low_us=max(FIRST_US, min(float(o.x_us[0]) for o in filled)),
        # The linear axis contains 0 even if every value is early.
        high_us=max(
            [float(o.x_us[-1]) for o in filled] + [0.0 if source.bound is None else source.bound.us * 1.05]
        ),
        least_us=min(0.0, *(float(o.x_us[0]) for o in filled)),
        most=max(int(o.count.max()) for o in filled),
    )


def _notes(width: int, frames: list[_Frame], *, latency: bool) -> list[str]:
    missed = " Missed activations have no latency and are not shown." if latency else ""
    wider = any(frame.high_us > 10_000 for frame in frames)
    below = any(frame.low_us <= FIRST_US for frame in frames)
    return applying(
        (True, f"The bins are {width} us wide; each CPU has a line.{missed}"),
        (width > 1, f"There are too many bins of 1 us to draw, so counts are sums over {width} us."),
        (wider, "Beyond 10 ms the bins are 1 % wide, so counts there come from wider bins."),
        (below, "On the logarithmic axis, the bin below 1 us begins at 0.5 us."),
    )


def _largest(cpus: Mapping[str, CpuHistograms]) -> str:
    return ", ".join(_legend_label(cpu, part) for cpu, part in cpus.items() if cpu != ALL)


def _spec(source: Source, label: str, cpus: Mapping[str, Outline], frame: _Frame, quantity: str) -> vega.Part:
    rows = ((cpu, *point) for cpu, shape in cpus.items() for point in shape.points)
    labels = {cpu: _legend_label(cpu, source.measured[label][cpu]) for cpu in cpus}
    names = f"{json.dumps(labels)}[datum.label]"
    choice = frame.axes[frame.chosen]
    top = frame.most * 1.5
    axis = {"title": f"{quantity} (us)", "labelExpr": vega.US_LABEL, **choice["axis"]}
    counts = {"title": "samples", "values": vega.decades(1, top), "format": "~s"}
    lines = vega.layer(
        vega.csv("cpu us:Q n:Q", rows),
        vega.mark("line", interpolate="step-after", strokeWidth=1.3, strokeJoin="miter", clip=True),
        vega.where("cpu === 'all' || datum.cpu === cpu"),
        vega.calculated("x", f"max(datum.us, {frame.low_us * 0.9})"),
        vega.calculated("y", f"max(datum.n, {FLOOR / 2})"),
        vega.NUMBERED,
        x=vega.shown("x:Q", scale=choice["scale"], axis=axis),
        y=vega.shown("y:Q", scale=vega.log_scale(FLOOR, top), axis=counts),
        color=vega.kinds("cpu:O", cpus, legend={"title": None, "labelExpr": names}),
        order=vega.shown("i:Q"),
    )
    text = f"{capital(quantity)} histogram under {label}: {_largest(source.measured[label])}"
    layers = [lines, *vega.bound_layers(source.bound, vertical=True)]
    return vega.layered(layers, height=210, description=text, meta={"x": frame.axes})


def _legend_label(cpu: str, part: CpuHistograms) -> str:
    return f"{f'CPU {cpu}' if cpu.isdigit() else cpu}: max {us(part.max_ns)} us"
