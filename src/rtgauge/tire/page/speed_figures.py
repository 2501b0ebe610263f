# SPDX-License-Identifier: MIT
"""Real-fast: computation time over n (the form of fig. 5 to 7), speed-up and efficiency over threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.report.figures.figure import Figure, csv, layered, log_ticks
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


def nodes_axis(field: str, nodes: Sequence[float]) -> alt.X:
    """A logarithmic axis of n that ends a little beyond the sizes measured."""
    low, high = min(nodes) / 1.15, max(nodes) * 1.15
    return alt.X(
        field,
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title="nodes", values=log_ticks(low, high), labelExpr=NODES_LABEL),
    )


def colours(results: TireResults, title: str | None = None) -> alt.Color:
    """A colour a number of threads, the same one in every figure of the chapter."""
    order = [threads_name(number, results) for number in sorted({point.threads for point in results.points})]
    return alt.Color(
        "threads:N",
        sort=None,
        scale=alt.Scale(domain=order),
        legend=alt.Legend(title=title, symbolType="circle", symbolOpacity=1),
    )


def _row(point: SpeedPoint, estimate: Estimate, factor: float, results: TireResults) -> tuple[object, ...]:
    low, high = (
        None if bound is None else max(bound * factor, 0.0) for bound in (estimate.low, estimate.high)
    )
    solver = solver_name(point.solver, free_running=point.free_running)
    return threads_name(point.threads, results), solver, point.nodes, estimate.value * factor, low, high


def _time_chart(results: TireResults, points: Sequence[SpeedPoint], text: str) -> dict[str, Any]:
    factor = SIMULATED_STEPS / 1e9
    rows = [_row(point, point.step_ns, factor, results) for point in points]
    values = [float(str(row[3])) for row in rows]
    low, high = min(values) / 1.4, max([*values, SIMULATED_S]) * 1.4
    x = nodes_axis("nodes:Q", [point.nodes for point in points])
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title=f"time for {SIMULATED_S} s of simulation (s)", values=log_ticks(low, high), format="~g"
        ),
    )
    tooltip = [
        alt.Tooltip("solver:N"),
        alt.Tooltip("threads:N"),
        alt.Tooltip("nodes:Q", format=","),
        alt.Tooltip("value:Q", title="s", format=".4g"),
        alt.Tooltip("low:Q", title="from", format=".4g"),
        alt.Tooltip("high:Q", title="to", format=".4g"),
    ]
    base = alt.Chart(csv(COLUMNS, rows))
    bars = base.transform_filter("isValid(datum.low) && datum.low > 0").mark_rule(
        strokeWidth=1.2, opacity=0.7, clip=True
    )
    edge = alt.Chart(csv({"y": "number"}, [[SIMULATED_S]]))
    label = edge.mark_text(
        text="as fast as real time", align="left", baseline="bottom", dx=4, dy=-3, style="muted"
    )
    return layered(
        [
            edge.mark_rule(strokeDash=[5, 3], style="muted").encode(y=alt.Y("y:Q")),
            label.encode(y=alt.Y("y:Q"), x=alt.value(0)),
            bars.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colours(results)),
            base.mark_line(strokeWidth=1.6, opacity=0.85).encode(x=x, y=y, color=colours(results)),
            base.mark_point(filled=True, size=34, opacity=1).encode(
                x=x, y=y, color=colours(results), tooltip=tooltip
            ),
        ],
        height=HEIGHT,
        description=text,
    )


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
    specs: list[dict[str, Any]] = []
    titles: list[str] = []
    for policy in sorted({point.policy for point in results.points}, reverse=True):
        every = [point for point in results.points if point.policy == policy]
        for solver in by_solver(point.solver for point in every):
            for free in (False, True):
                shown = [point for point in every if point.solver == solver and point.free_running == free]
                if not shown:
                    continue
                title = f"{solver_name(solver, free_running=free).capitalize()}, {policy_name(policy)}"
                titles.append(title)
                specs.append(
                    _time_chart(
                        results,
                        shown,
                        f"Time for {SIMULATED_S} s of simulation over nodes, {title}. "
                        f"{_told(results, shown)}",
                    )
                )
    if not specs:
        return None
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
    return Figure(
        f"tire-time{suffix}",
        "Real-fast: computation time over nodes (form of fig. 5 to 7)",
        " ".join(titles),
        specs,
        titles,
        notes,
    )


def _threads_chart(
    results: TireResults,
    points: Sequence[SpeedPoint],
    of: Callable[[SpeedPoint], Estimate | None],
    title: str,
) -> dict[str, Any]:
    known = [(point, estimate) for point in points if (estimate := of(point)) is not None]
    rows = [_row(point, estimate, 1.0, results) for point, estimate in known]
    most = max(estimate.value for _, estimate in known)
    top = max(max(estimate.value, estimate.high or 0.0) for _, estimate in known)
    x = nodes_axis("nodes:Q", [point.nodes for point, _ in known])
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(domain=[0, max(1.0, min(top, 2 * most)) * 1.08], nice=True),
        axis=alt.Axis(title=title),
    )
    dash = alt.StrokeDash(
        "solver:N",
        sort=None,
        scale=alt.Scale(domain=by_solver(point.solver for point, _ in known)),
        legend=alt.Legend(title=None),
    )
    shape = alt.Shape(
        "solver:N",
        sort=None,
        scale=alt.Scale(domain=by_solver(point.solver for point, _ in known)),
        legend=alt.Legend(title=None),
    )
    tooltip = [
        alt.Tooltip("solver:N"),
        alt.Tooltip("threads:N"),
        alt.Tooltip("nodes:Q", format=","),
        alt.Tooltip("value:Q", title=title, format=".3f"),
        alt.Tooltip("low:Q", title="from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
    ]
    base = alt.Chart(csv(COLUMNS, rows))
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.2, opacity=0.6, clip=True)
    real_time = (
        alt.Chart(csv({"y": "number"}, [[1]]))
        .mark_rule(strokeDash=[5, 3], style="muted")
        .encode(y=alt.Y("y:Q"))
    )
    summary = "; ".join(f"{row[1]}, {row[0]}, {row[2]} nodes: {row[3]:.3g}" for row in rows)
    return layered(
        [
            real_time,
            bars.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colours(results)),
            base.mark_line(strokeWidth=1.6, opacity=0.85, clip=True).encode(
                x=x, y=y, color=colours(results), strokeDash=dash
            ),
            base.mark_point(filled=True, size=40, opacity=1).encode(
                x=x, y=y, color=colours(results), shape=shape, tooltip=tooltip
            ),
        ],
        height=HEIGHT - 40,
        description=f"{title} over nodes. {summary}",
    )


def _speed_up(point: SpeedPoint) -> Estimate | None:
    return point.speed_up


def _efficiency(point: SpeedPoint) -> Estimate | None:
    return point.efficiency


def threads_figure(results: TireResults, suffix: str) -> Figure | None:
    """Speed-up and efficiency over n for each policy; None if no solver was measured on one thread and on
    several.
    """
    specs: list[dict[str, Any]] = []
    titles: list[str] = []
    for policy in sorted(
        {point.policy for point in results.points if point.speed_up is not None}, reverse=True
    ):
        points = [
            point
            for point in results.points
            if point.policy == policy and not point.free_running and point.speed_up is not None
        ]
        if not points:
            continue
        for of, title in ((_speed_up, "speed-up"), (_efficiency, "efficiency")):
            specs.append(_threads_chart(results, points, of, title))
            titles.append(f"{title.capitalize()}, {policy_name(policy)}")
    if not specs:
        return None
    notes = [
        (
            "Speed-up: the step time of the same solver on one thread over that on so many. "
            "Efficiency: speed-up for each thread."
        ),
        "Bars: 95 % intervals, where configurations were repeated.",
    ]
    return Figure(f"tire-threads{suffix}", "What threads gain", " ".join(titles), specs, titles, notes)
