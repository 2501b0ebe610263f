# SPDX-License-Identifier: MIT
"""Draws idle and loaded steps: a line per step or lock, from the median to the largest value."""

from __future__ import annotations

from rtgauge.record.model import Distribution, Step
from rtgauge.record.quantiles import times_longer
from rtgauge.report.figure_data import Source
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import has_distribution
from rtgauge.report.table import applying
from rtgauge.report.text import capital

QUANTILES = {"p50_ns": "p50", "p99_ns": "p99", "p99_9_ns": "p99.9", "p99_99_ns": "p99.99", "max_ns": "max"}
SHAPES = ["cross", "triangle-down", "square", "diamond", "circle"]


def _lines(source: Source) -> list[tuple[str, str, Step, Distribution]]:
    """Return (row name, load, step, figures) for each row of the figure."""
    names = source.view.labels
    distributions: list[tuple[str, str, Step, Distribution]] = []
    for label, condition in source.conditions.items():
        for step in condition.steps:
            name, total = names[step.id], step.total
            if not has_distribution(step) and not step.tasks:
                for one in step.series:
                    if one.unit == "ns" and one.count:
                        of_lock = f"{name}, {one.labels.get('lock', '')}"
                        distributions.append((of_lock, label, step, one))
            elif total is not None and not step.tasks and total.unit == "ns" and total.count:
                distributions.append((name, label, step, total))
                if total.missed:
                    distributions.append((f"{name}, filled in", label, step, total.filled))
    return distributions


def spread_figure(source: Source) -> Figure | None:
    """Return a chart per quantity with the quantiles of all CPUs together, and a row per step or lock; None
    without data.
    """
    charts: dict[str, vega.Part] = {}
    every: list[tuple[str, str, Step, Distribution]] = []
    for quantity in source.quantities:
        lines = _lines(source.only(quantity))
        spec = _chart(source.only(quantity), lines, quantity)
        if spec is not None:
            charts[capital(quantity)] = spec
            every += lines
    filled = any(figures is step.total.filled for _, _, step, figures in every if step.total is not None)
    overflowed = any(key in figures.lower_bounds for *_, figures in every for key in QUANTILES)
    notes = applying(
        (True, "Each line covers all CPUs together, from the median to the exact largest value."),
        (filled, "Missed activations count with the latencies that they would have had."),
        (overflowed, "A figure that overflowed the histogram (10 s) is drawn at its lower bound."),
    )
    return Figure.described("spread", "Idle and loaded", charts, notes)


def _chart(
    source: Source, lines: list[tuple[str, str, Step, Distribution]], quantity: str
) -> vega.Part | None:
    rows = [
        (name, label, title, value / 1_000, int(key in figures.lower_bounds))
        for name, label, _, figures in lines
        for key, title in QUANTILES.items()
        if (value := getattr(figures, key)) is not None
        and value > 0
        and times_longer(key, figures.count) is None
    ]
    if not rows:
        return None
    low = min(row[3] for row in rows) * 0.8
    high = max([row[3] for row in rows] + [source.bound_us or 0]) * 1.25
    data = vega.csv("name load quantile us:Q bound:Q", rows)
    place = {
        "x": vega.log_axis("us:Q", low, high, f"{quantity} (us)"),
        "y": vega.names_axis("name:N", [name for name, *_ in lines], labelFontSize=12, labelPadding=8),
        "color": vega.kinds("load:N", source.labels or source.conditions, legend=None),
    }
    line = vega.mark("line", strokeWidth=2, opacity=0.6)
    points = vega.mark("point", filled=True, size=58, opacity=1, strokeWidth=2)
    shape = vega.kinds("quantile:N", QUANTILES.values(), SHAPES, legend=vega.GREY_LEGEND)
    tooltip = vega.tips("name:N", "quantile:N", ("us:Q", "us", ",.1f"))
    layers = [
        vega.layer(data, line, **place, detail=vega.shown("name:N")),
        vega.layer(data, points, **place, shape=shape, tooltip=tooltip),
        *vega.bound_layers(source.bound_us, vertical=True),
    ]
    text = f"{capital(quantity)} of all CPUs together, from the median to the largest. " + "; ".join(
        f"{name}: p50 {figures.p50_ns} ns, max {figures.max_ns} ns" for name, _, _, figures in lines
    )
    return vega.layered(layers, height=30 * len(lines), description=text)
