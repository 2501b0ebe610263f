# SPDX-License-Identifier: MIT
"""Draws idle and loaded conditions: median to largest value, a line per condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.model import Distribution, Step
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import has_distribution
from rtgauge.report.text import capital

if TYPE_CHECKING:
    from rtgauge.report.figure_data import Source

QUANTILES = {"p50_ns": "p50", "p99_ns": "p99", "p99_9_ns": "p99.9", "p99_99_ns": "p99.99", "max_ns": "max"}
SHAPES = ["cross", "triangle-down", "square", "diamond", "circle"]

GREY_LEGEND = {"title": None, "symbolFillColor": "#808890", "symbolStrokeColor": "#808890"}
"""The legend of shapes that come in several colours."""


def _lines(source: Source) -> list[tuple[str, str, Step, Distribution]]:
    """Return (row name, load, step, figures) of each row of the figure."""
    names = source.view.labels
    distributions: list[tuple[str, str, Step, Distribution]] = []
    for label, condition in source.conditions.items():
        for step in condition.steps:
            if not has_distribution(step) and not step.tasks:
                named = [
                    (f"{names[step.id]}, {series.labels.get('lock', '')}", series) for series in step.series
                ]
                distributions += [
                    (name, label, step, one) for name, one in named if one.unit == "ns" and one.count
                ]
            elif step.total is not None and not step.tasks and step.total.unit == "ns" and step.total.count:
                distributions.append((names[step.id], label, step, step.total))
                if step.total.missed:
                    distributions.append((f"{names[step.id]}, filled in", label, step, step.total.filled))
    return distributions


def spread_figure(source: Source) -> Figure | None:
    """Return a chart per quantity: quantiles of all CPUs together, a row per step or lock; None without
    data.
    """
    specs: list[vega.Part] = []
    titles: list[str] = []
    every: list[tuple[str, str, Step, Distribution]] = []
    for quantity in source.quantities:
        lines = _lines(source.only(quantity))
        spec = _chart(source.only(quantity), lines, quantity)
        if spec is not None:
            specs.append(spec)
            titles.append(capital(quantity))
            every += lines
    if not specs:
        return None
    notes = ["All CPUs together, from the median to the exact largest value."]
    if any(figures is step.total.filled for _, _, step, figures in every if step.total is not None):
        notes.append("Filled in: with the latencies that missed activations would have had.")
    if any(key in figures.lower_bounds for *_, figures in every for key in QUANTILES):
        notes.append("A figure that overflowed the histogram (10 s) is drawn at its lower bound.")
    text = " ".join(str(spec["description"]) for spec in specs)
    return Figure("spread", "Idle and loaded", text, specs, titles if len(titles) > 1 else [], notes)


def _chart(
    source: Source, lines: list[tuple[str, str, Step, Distribution]], quantity: str
) -> vega.Part | None:
    rows = [
        (name, label, title, value / 1_000, int(key in figures.lower_bounds))
        for name, label, _, figures in lines
        for key, title in QUANTILES.items()
        if (value := getattr(figures, key)) is not None and value > 0
    ]
    if not rows:
        return None
    columns = {"name": "string", "load": "string", "quantile": "string", "us": "number", "bound": "number"}
    low = min(row[3] for row in rows) * 0.8
    high = max([row[3] for row in rows] + [source.bound_us or 0]) * 1.25
    data = vega.csv(columns, rows)
    place = {
        "x": vega.log_axis("us:Q", low, high, f"{quantity} (us)"),
        "y": vega.names_axis("name:N", [name for name, *_ in lines], labelFontSize=12, labelPadding=8),
        "color": vega.kinds("load:N", source.labels or source.conditions, legend=None),
    }
    line = vega.mark("line", strokeWidth=2, opacity=0.6)
    points = vega.mark("point", filled=True, size=58, opacity=1, strokeWidth=2)
    shape = vega.kinds("quantile:N", QUANTILES.values(), SHAPES, legend=GREY_LEGEND)
    tooltip = vega.tips("name:N", "quantile:N", ("us:Q", "us", ",.1f"))
    layers = [
        vega.layer(data, line, **place, detail=vega.shown("name:N")),
        vega.layer(data, points, **place, shape=shape, tooltip=tooltip),
        *vega.bound_layers(source.bound_us, vertical=True),
    ]
    text = f"Median to largest {quantity} of all CPUs together. " + "; ".join(
        f"{name}: p50 {figures.p50_ns} ns, max {figures.max_ns} ns" for name, _, _, figures in lines
    )
    return vega.layered(layers, height=30 * len(lines), description=text)
