# SPDX-License-Identifier: MIT
"""Draws the real-time maps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge_ext.tire.analysis.tire_results import RealTimeMap, TireResults
from rtgauge_ext.tire.page.time_figures import nodes_axis
from rtgauge_ext.tire.page.tire_labels import period_name, policy_name, solver_name, threads_name

ROW = 44
SMALL_ROW = 26
CLASSES = ["none", "to 0.1 %", "to 1 %", "to 10 %", "to 50 %", "more"]
LIMITS = [0.0, 0.001, 0.01, 0.1, 0.5, 1.0]
COLOURS = ["#2f6db5", "#3aa6b0", "#8fc65c", "#f0c93a", "#e8853a", "#b8322a"]
"""From blue (every deadline kept) to red, as in the paper. Legible on a light and on a dark page."""
TEXT_ROOM = 14
"""The most cells in a row whose numbers are shown."""


def share_class(share: float) -> str:
    """Return the legend's class for a share of missed deadlines."""
    return next(name for name, limit in zip(CLASSES, LIMITS, strict=True) if share <= limit)


def bounds(nodes: Sequence[int]) -> list[tuple[float, float]]:
    """Return the range that each of these ascending sizes covers, up to the geometric mean with the next."""
    if len(nodes) == 1:
        return [(nodes[0] / 1.2, nodes[0] * 1.2)]
    middles = [math.sqrt(low * high) for low, high in itertools.pairwise(nodes)]
    first, last = nodes[0] ** 2 / middles[0], nodes[-1] ** 2 / middles[-1]
    return list(itertools.pairwise([first, *middles, last]))


def _rows(plot: RealTimeMap, results: TireResults) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for threads in plot.threads:
        cells = sorted((cell for cell in plot.cells if cell.threads == threads), key=lambda cell: cell.nodes)
        named = len(cells) <= TEXT_ROOM
        for cell, (low, high) in zip(cells, bounds([cell.nodes for cell in cells]), strict=True):
            name, missed = threads_name(threads, results), str(cell.missed) if named else ""
            shares = (cell.share * 100, cell.share_at_most * 100)
            counts = (cell.missed, cell.deadlines, *shares, cell.runs, share_class(cell.share))
            rows.append((name, cell.nodes, low, high, *counts, missed))
    return rows


COLUMNS = "threads nodes:Q low:Q high:Q missed:Q deadlines:Q share:Q most:Q runs:Q class text"
TOOLTIP = vega.tips(
    "threads:N",
    ("nodes:Q", "nodes", ","),
    ("missed:Q", "deadlines missed", ","),
    ("deadlines:Q", "of", ","),
    ("share:Q", "%", ".3g"),
    ("most:Q", "at most (95 %), %", ".3g"),
    "runs:Q",
)


def _edges(plot: RealTimeMap, results: TireResults) -> list[tuple[object, ...]]:
    """Return the place of the frontier in each row: between the last n that held and the first that
    missed.
    """
    rows: list[tuple[object, ...]] = []
    for edge in plot.frontier:
        if edge.misses is None:
            continue
        cells = sorted(cell.nodes for cell in plot.cells if cell.threads == edge.threads)
        low = dict(zip(cells, bounds(cells), strict=True))[edge.misses][0]
        rows.append((threads_name(edge.threads, results), low, edge.holds, edge.misses))
    return rows


def _chart(plot: RealTimeMap, results: TireResults) -> vega.Part:
    rows = _rows(plot, results)
    order = [threads_name(threads, results) for threads in reversed(plot.threads)]
    row = ROW if len(order) <= 6 else SMALL_ROW
    ends = [float(str(value)) for line in rows for value in line[2:4]]
    y = vega.names_axis("threads:N", order, labelLimit=220)
    data = vega.csv(COLUMNS, rows)
    legend = {"title": "deadlines missed", "symbolType": "square", "columns": 6}
    bars = {"x": nodes_axis("low:Q", ends), "x2": vega.shown("high"), "y": y, "tooltip": TOOLTIP}
    colour = vega.kinds("class:N", CLASSES, COLOURS, legend=legend)
    bright = "datum['class'] === 'to 1 %' || datum['class'] === 'to 10 %'"
    text = vega.mark("text", fontSize=10, clip=True)
    text_colour = {"condition": {"test": bright, "value": "#1c2128"}, "value": "#ffffff"}
    middle = vega.calculated("middle", "sqrt(datum.low * datum.high)")
    place = {"x": vega.shown("middle:Q"), "y": y, "color": text_colour}
    layers = [
        vega.layer(data, vega.mark("bar", height=row - 6), **bars, color=colour),
        vega.layer(data, text, middle, **place, text=vega.shown("text:N")),
    ]
    edges = _edges(plot, results)
    if edges:
        line = vega.csv("threads at:Q holds:Q misses:Q", edges)
        tooltip = vega.tips("threads:N", ("holds:Q", "holds to", ","), ("misses:Q", "misses at", ","))
        for style, thickness in (("paper", 6), ("ink", 3)):
            tick = vega.mark("tick", orient="vertical", thickness=thickness, height=row - 2, style=style)
            layers.append(vega.layer(line, tick, x=vega.shown("at:Q"), y=y, tooltip=tooltip))
    return vega.layered(layers, height=row * len(order), description=_description(plot, results))


def _description(plot: RealTimeMap, results: TireResults) -> str:
    parts: list[str] = []
    for edge in plot.frontier:
        holds = (
            f"all met up to {edge.holds} nodes"
            if edge.holds is not None
            else ("missed a deadline even at the smallest size")
        )
        misses = f", first miss at {edge.misses}" if edge.misses is not None else ""
        parts.append(f"{threads_name(edge.threads, results)}: {holds}{misses}")
    return f"{map_title(plot)}, {plot.deadlines} deadlines. " + "; ".join(parts)


def map_title(plot: RealTimeMap) -> str:
    """Return a map's title: solver, policy and period."""
    solver = solver_name(plot.solver, free_running=plot.free_running).capitalize()
    return f"{solver}, {policy_name(plot.policy)}, a step every {period_name(plot.period_ns)}"


def map_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return a chart per map that shows how many deadlines were missed; None if no map was measured."""
    charts = {map_title(plot): _chart(plot, results) for plot in results.maps}
    title = "Real time: how many deadlines were missed? (as figs. 8 to 13 of Garre et al.)"
    notes = [
        (
            "Colours show the share of missed deadlines; blue is hard real time, in which none was missed. "
            "Cells also show their number if there is room."
        ),
        (
            "The vertical line is the frontier: at every measured n to the left of it, all deadlines were "
            "met. If there is no line, all deadlines were met."
        ),
    ]
    return Figure.of(f"tire-map{suffix}", title, charts, notes)
