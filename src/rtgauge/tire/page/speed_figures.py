# SPDX-License-Identifier: MIT
"""Real-fast: computation time over n (the form of fig. 5 to 7), speed-up and efficiency over threads."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.tire.page.labels import (
    SIMULATED_S,
    SIMULATED_STEPS,
    by_solver,
    policy_name,
    solver_name,
    threads_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtgauge.tire.analysis.estimate import Estimate
    from rtgauge.tire.analysis.results import TireResults
    from rtgauge.tire.analysis.scaling import SpeedPoint

HEIGHT = 220
NODES_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' M' : datum.value >= 1e4 ? "
    "format(datum.value / 1e3, '~g') + ' k' : format(datum.value, '~g')"
)
COLUMNS = {
    "threads": "string",
    "solver": "string",
    "nodes": "number",
    "value": "number",
    "low": "number",
    "high": "number",
}


def nodes_axis(field: str, nodes: Sequence[float]) -> vega.Part:
    """A logarithmic axis of n that ends a little beyond the sizes measured."""
    low, high = min(nodes) / 1.15, max(nodes) * 1.15
    return vega.log_axis(field, low, high, "nodes", labelExpr=NODES_LABEL)


def colours(results: TireResults) -> vega.Part:
    """A colour a number of threads, the same one in every figure of the chapter."""
    order = [threads_name(number, results) for number in sorted({point.threads for point in results.points})]
    legend = {"title": None, "symbolType": "circle", "symbolOpacity": 1}
    return vega.kinds("threads:N", order, legend=legend)


def _row(point: SpeedPoint, estimate: Estimate, factor: float, results: TireResults) -> tuple[object, ...]:
    low, high = (
        None if bound is None else max(bound * factor, 0.0) for bound in (estimate.low, estimate.high)
    )
    solver = solver_name(point.solver, free_running=point.free_running)
    return threads_name(point.threads, results), solver, point.nodes, estimate.value * factor, low, high


def _time_chart(results: TireResults, points: Sequence[SpeedPoint], text: str) -> vega.Part:
    factor = SIMULATED_STEPS / 1e9
    rows = [_row(point, point.step_ns, factor, results) for point in points]
    values = [float(str(row[3])) for row in rows]
    low, high = min(values) / 1.4, max([*values, SIMULATED_S]) * 1.4
    x = nodes_axis("nodes:Q", [point.nodes for point in points])
    title = f"time for {SIMULATED_S} s of simulation (s)"
    y = vega.log_axis("value:Q", low, high, title, format="~g")
    numbers = (("value:Q", "s", ".4g"), ("low:Q", "from", ".4g"), ("high:Q", "to", ".4g"))
    tooltip = vega.tips("solver:N", "threads:N", ("nodes:Q", "nodes", ","), *numbers)
    data = vega.csv(COLUMNS, rows)
    place = {"x": x, "y": y, "color": colours(results)}
    edge = vega.csv({"y": "number"}, [[SIMULATED_S]])
    side = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3}
    label = vega.mark("text", text="as fast as real time", style="muted", **side)
    layers = [
        vega.layer(edge, vega.mark("rule", strokeDash=[5, 3], style="muted"), y=vega.shown("y:Q")),
        vega.layer(edge, label, y=vega.shown("y:Q"), x=vega.fixed(0)),
        vega.layer(
            data,
            vega.mark("rule", strokeWidth=1.2, opacity=0.7, clip=True),
            vega.where("isValid(datum.low) && datum.low > 0"),
            **{**place, "y": vega.shown("low:Q")},
            y2=vega.shown("high"),
        ),
        vega.layer(data, vega.mark("line", strokeWidth=1.6, opacity=0.85), **place),
        vega.layer(data, vega.mark("point", filled=True, size=34, opacity=1), **place, tooltip=tooltip),
    ]
    return vega.layered(layers, height=HEIGHT, description=text)


def _told(results: TireResults, points: Sequence[SpeedPoint]) -> str:
    largest = max(point.nodes for point in points)
    return "; ".join(
        f"{threads_name(point.threads, results)}: {point.step_ns.value * SIMULATED_STEPS / 1e9:.3g} "
        f"s at {largest} nodes"
        for point in points
        if point.nodes == largest
    )


def time_figure(results: TireResults, suffix: str) -> Figure | None:
    """A chart a solver and policy: the time for 60 s of simulation over n, a curve a number of threads."""
    charts: dict[str, vega.Part] = {}
    for policy in sorted({point.policy for point in results.points}, reverse=True):
        every = [point for point in results.points if point.policy == policy]
        for solver in by_solver(point.solver for point in every):
            for free in (False, True):
                shown = [point for point in every if point.solver == solver and point.free_running == free]
                if not shown:
                    continue
                title = f"{solver_name(solver, free_running=free).capitalize()}, {policy_name(policy)}"
                described = (
                    f"Time for {SIMULATED_S} s of simulation over nodes, {title}. {_told(results, shown)}"
                )
                charts[title] = _time_chart(results, shown, described)
    notes = [
        (
            f"The mean time of a step, {SIMULATED_STEPS} times: {SIMULATED_S} s of simulation in steps "
            "of 10 ms. Below the dashed line it is faster than time."
        ),
        (
            "Bars: 95 % intervals of the mean, where a configuration was repeated. Both axes are "
            "logarithmic, the paper's are not."
        ),
    ]
    title = "Real-fast: computation time over nodes (form of fig. 5 to 7)"
    return Figure.of(f"tire-time{suffix}", title, charts, notes)


def _threads_chart(
    results: TireResults,
    points: Sequence[SpeedPoint],
    of: Callable[[SpeedPoint], Estimate | None],
    title: str,
) -> vega.Part:
    known = [(point, estimate) for point in points if (estimate := of(point)) is not None]
    rows = [_row(point, estimate, 1.0, results) for point, estimate in known]
    most = max(estimate.value for _, estimate in known)
    top = max(max(estimate.value, estimate.high or 0.0) for _, estimate in known)
    x = nodes_axis("nodes:Q", [point.nodes for point, _ in known])
    scale = {"domain": [0, max(1.0, min(top, 2 * most)) * 1.08], "nice": True}
    solvers = by_solver(point.solver for point, _ in known)
    numbers = (("value:Q", title, ".3f"), ("low:Q", "from", ".3f"), ("high:Q", "to", ".3f"))
    tooltip = vega.tips("solver:N", "threads:N", ("nodes:Q", "nodes", ","), *numbers)
    data = vega.csv(COLUMNS, rows)
    edge = vega.csv({"y": "number"}, [[1]])
    place = {
        "x": x,
        "y": vega.shown("value:Q", scale=scale, axis={"title": title}),
        "color": colours(results),
    }
    by = vega.kinds("solver:N", solvers)
    dots = vega.mark("point", filled=True, size=40, opacity=1)
    layers = [
        vega.layer(edge, vega.mark("rule", strokeDash=[5, 3], style="muted"), y=vega.shown("y:Q")),
        vega.layer(
            data,
            vega.mark("rule", strokeWidth=1.2, opacity=0.6, clip=True),
            vega.where("isValid(datum.low)"),
            **{**place, "y": vega.shown("low:Q")},
            y2=vega.shown("high"),
        ),
        vega.layer(data, vega.mark("line", strokeWidth=1.6, opacity=0.85, clip=True), **place, strokeDash=by),
        vega.layer(data, dots, **place, shape=by, tooltip=tooltip),
    ]
    summary = "; ".join(f"{row[1]}, {row[0]}, {row[2]} nodes: {row[3]:.3g}" for row in rows)
    return vega.layered(layers, height=HEIGHT - 40, description=f"{title} over nodes. {summary}")


def threads_figure(results: TireResults, suffix: str) -> Figure | None:
    """Speed-up and efficiency over n for each policy; None without a solver on one and several threads."""
    charts: dict[str, vega.Part] = {}
    fast = [point for point in results.points if point.speed_up is not None and not point.free_running]
    for policy in sorted({point.policy for point in fast}, reverse=True):
        points = [point for point in fast if point.policy == policy]
        for name, title in (("speed_up", "speed-up"), ("efficiency", "efficiency")):
            chart = _threads_chart(results, points, attrgetter(name), title)
            charts[f"{title.capitalize()}, {policy_name(policy)}"] = chart
    notes = [
        (
            "Speed-up: the step time of the same solver on one thread over that on so many. "
            "Efficiency: speed-up for each thread."
        ),
        "Bars: 95 % intervals, where configurations were repeated.",
    ]
    return Figure.of(f"tire-threads{suffix}", "What threads gain", charts, notes)
