# SPDX-License-Identifier: MIT
"""Draws the real-time maps, and pictures of the falling tire."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge_ext.tire.analysis.results import ConfigurationResult, RealTimeMap, TireResults
from rtgauge_ext.tire.analysis.runs import is_tire
from rtgauge_ext.tire.page.labels import period_name, policy_name, solver_name, threads_name
from rtgauge_ext.tire.page.time_figures import nodes_axis
from rtgauge_ext.tire.probe import STEP_S
from rtgauge_ext.tire.state_file import STATE_FILE, read_state

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
            rows.append((name, cell.nodes, low, high, *_numbers(cell), missed))
    return rows


def _numbers(cell: ConfigurationResult) -> tuple[object, ...]:
    shares = (cell.share * 100, cell.share_at_most * 100)
    kept = "kept" if cell.held else "missed"
    return (cell.missed, cell.deadlines, *shares, cell.runs, share_class(cell.share), kept)


COLUMNS = "threads nodes:Q low:Q high:Q missed:Q deadlines:Q share:Q most:Q runs:Q class hard text"
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


def _chosen(test: str, value: object, otherwise: object) -> vega.Part:
    """Return a channel with one value for rows that pass a test, and another value for all other rows."""
    return {"condition": {"test": test, "value": value}, "value": otherwise}


def _chart(plot: RealTimeMap, results: TireResults, *, hard: bool) -> vega.Part:
    rows = _rows(plot, results)
    order = [threads_name(threads, results) for threads in reversed(plot.threads)]
    row = ROW if len(order) <= 6 else SMALL_ROW
    ends = [float(str(value)) for line in rows for value in line[2:4]]
    y = vega.names_axis("threads:N", order, labelLimit=220)
    data = vega.csv(COLUMNS, rows)
    if hard:
        answers = ("kept", "missed")
        ring = vega.mark("point", filled=True, size=90, stroke="#8a8f98", strokeWidth=1)
        colours = {"domain": [*answers], "range": ["#2f6db5", "#1c1c1c"]}
        place = {
            "x": nodes_axis("nodes:Q", ends),
            "y": y,
            "color": vega.shown("hard:N", scale=colours, legend={"title": "every deadline"}),
            "shape": vega.shown("hard:N", scale={"domain": [*answers], "range": ["circle", "square"]}),
            "opacity": _chosen("datum.hard === 'missed'", 1, 0.75),
        }
        layers = [vega.layer(data, ring, **place, tooltip=TOOLTIP)]
    else:
        legend = {"title": "deadlines missed", "symbolType": "square", "columns": 6}
        bars = {"x": nodes_axis("low:Q", ends), "x2": vega.shown("high"), "y": y, "tooltip": TOOLTIP}
        colour = vega.kinds("class:N", CLASSES, COLOURS, legend=legend)
        bright = "datum['class'] === 'to 1 %' || datum['class'] === 'to 10 %'"
        text = vega.mark("text", fontSize=10, clip=True)
        middle = vega.calculated("middle", "sqrt(datum.low * datum.high)")
        place = {"x": vega.shown("middle:Q"), "y": y, "color": _chosen(bright, "#1c2128", "#ffffff")}
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


FRONTIER_NOTE = (
    "The vertical line is the frontier: at every measured n to the left of it, all deadlines were met. If "
    "there is no line, all deadlines were met."
)


def hard_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return a chart per map that shows whether a deadline was missed; None if no map was measured."""
    charts = {map_title(plot): _chart(plot, results, hard=True) for plot in results.maps}
    title = "Hard real time: was any deadline missed? (drawn like figs. 8 to 10 of Garre et al.)"
    notes = ["A square marks an n at which at least one deadline was missed.", FRONTIER_NOTE]
    return Figure.of(f"tire-hard{suffix}", title, charts, notes)


def soft_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return a chart per map that shows how many deadlines were missed; None if no map was measured."""
    charts = {map_title(plot): _chart(plot, results, hard=False) for plot in results.maps}
    title = "Soft real time: how many deadlines were missed? (drawn like figs. 11 to 13 of Garre et al.)"
    shares = "Colours show the share of missed deadlines. Cells also show it as a number if there is room."
    return Figure.of(f"tire-soft{suffix}", title, charts, [shares, FRONTIER_NOTE])


LEAST_FRAMES = 4
MOST_NODES = 2000
DIGITS = 4
"""Decimals of a position in metres: a tenth of a millimetre is much less than a pixel."""
WIDTH = 320
MARGIN = 0.08
"""The margin around the drawing (m)."""


@dataclass(frozen=True)
class Drop:
    """Pictures of a falling tire, in time order.

    `frames`: for each picture, the number of steps, and the nodes' positions as x0, y0, x1, y1, ... (m). The
    other fields are the limits over all frames (m).
    """

    nodes: int
    solver: str
    frames: list[tuple[int, list[float]]]
    left: float
    right: float
    lowest: float
    highest: float

    @property
    def view(self) -> tuple[float, float, float, float]:
        """The SVG's view box: x, y (downwards), width, height (m)."""
        width, height = self.right - self.left + 2 * MARGIN, self.highest - self.lowest + 2 * MARGIN
        return self.left - MARGIN, -self.highest - MARGIN, width, height

    @property
    def end_s(self) -> float:
        """The simulated time of the last picture (s)."""
        return self.frames[-1][0] * STEP_S

    def as_data(self) -> dict[str, object]:
        """Return the pictures in the form that the page's script reads."""
        return {"step_s": STEP_S, "frames": [{"steps": steps, "at": at} for steps, at in self.frames]}


def _family(step: Step) -> str:
    """Return a key that all pictures of a fall share: every parameter except the number of steps."""
    return step.key.id_without("repeat", "steps")


def drop_of(record: Record) -> Drop | None:
    """Return the fall with the most pictures; None if these are too few for a film.

    Raises RecordError for a damaged state.
    """
    families: dict[str, dict[int, Step]] = {}
    for step in record.steps:
        steps = step.key.parameters.get("steps")
        kept = step.key.parameters.get("state") and record.has(step, STATE_FILE)
        if is_tire(step) and isinstance(steps, int) and kept:
            families.setdefault(_family(step), {})[steps] = step
    most = max(families.values(), key=len, default=dict[int, Step]())
    steps_of = [step for _, step in sorted(most.items())]
    states = [(step, read_state(record.file(step, STATE_FILE))) for step in steps_of]
    drawable = [(step, state) for step, state in states if len(state.nodes) <= MOST_NODES]
    if len(drawable) < LEAST_FRAMES:
        return None
    ordered = sorted((state for _, state in drawable), key=lambda state: state.steps)
    frames: list[tuple[int, list[float]]] = []
    for state in ordered:
        at = state.nodes[:, :2].ravel().tolist()
        frames.append((state.steps, [round(value, DIGITS) for value in at]))
    x, y = [value for _, at in frames for value in at[::2]], [value for _, at in frames for value in at[1::2]]
    first = drawable[0][0]
    solver = str(first.key.parameters.get("solver"))
    return Drop(len(frames[0][1]) // 2, solver, frames, min(x), max(x), min(0.0, *y), max(y))
