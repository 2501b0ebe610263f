# SPDX-License-Identifier: MIT
"""Draws step times, speed-up and efficiency, the cost model, and the frontier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from rtgauge.analysis.median_of_runs import LEAST_RUNS
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge_ext.tire.analysis.estimate import Estimate
from rtgauge_ext.tire.analysis.prediction import Prediction, SpeedPoint
from rtgauge_ext.tire.analysis.tire_results import FrontierRow, TireResults
from rtgauge_ext.tire.page.tire_labels import (
    SIMULATED_S,
    SIMULATED_STEPS,
    by_solver,
    period_name,
    policy_name,
    solver_name,
    threads_name,
)

HEIGHT = 220
NODES_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' M' : datum.value >= 1e4 ? "
    "format(datum.value / 1e3, '~g') + ' k' : format(datum.value, '~g')"
)
COLUMNS = "threads solver nodes:Q value:Q low:Q high:Q"


def nodes_axis(field: str, nodes: Sequence[float]) -> vega.Part:
    """Return a logarithmic axis of n that reaches slightly beyond the measured sizes."""
    low, high = min(nodes) / 1.15, max(nodes) * 1.15
    return vega.log_axis(field, low, high, "nodes", labelExpr=NODES_LABEL)


def colours(results: TireResults) -> vega.Part:
    """Return the channel that colours by number of threads, with the same colours in all figures of the
    chapter.
    """
    order = [threads_name(number, results) for number in sorted({point.threads for point in results.points})]
    legend = {"title": None, "symbolType": "circle", "symbolOpacity": 1}
    return vega.kinds("threads:N", order, legend=legend)


def _row(point: SpeedPoint, estimate: Estimate, factor: float, results: TireResults) -> tuple[object, ...]:
    bounds = (estimate.low, estimate.high)
    low, high = (None if bound is None else max(bound * factor, 0.0) for bound in bounds)
    solver = solver_name(point.solver, free_running=point.free_running)
    return threads_name(point.threads, results), solver, point.nodes, estimate.value * factor, low, high


def _curves(
    results: TireResults,
    points: Sequence[tuple[SpeedPoint, Estimate]],
    y: vega.Part,
    edge: float,
    number: tuple[str, str],
    *,
    factor: float = 1.0,
    by: vega.Part | None = None,
) -> list[vega.Part]:
    """Return the layers of curves over n: a line per thread number with its points and their intervals, and a
    dashed line at `edge`. `number`: a value's name and format. `by`: a channel for the form of line and
    points.
    """
    name, form = number
    numbers = (("value:Q", name, form), ("low:Q", "from", form), ("high:Q", "to", form))
    tooltip = vega.tips("solver:N", "threads:N", ("nodes:Q", "nodes", ","), *numbers)
    data = vega.csv(COLUMNS, [_row(point, estimate, factor, results) for point, estimate in points])
    place = {
        "x": nodes_axis("nodes:Q", [point.nodes for point, _ in points]),
        "y": y,
        "color": colours(results),
    }
    bars = vega.mark("rule", strokeWidth=1.2, opacity=0.65, clip=True)
    drawable = " && datum.low > 0" if y["scale"].get("type") == "log" else ""
    known = vega.where(f"isValid(datum.low){drawable}")
    ends = {**place, "y": vega.shown("low:Q"), "y2": vega.shown("high")}
    line = vega.mark("line", strokeWidth=1.6, opacity=0.85, clip=True)
    dots = vega.mark("point", filled=True, size=38, opacity=1)
    return [
        vega.layer(
            vega.csv("y:Q", [[edge]]),
            vega.mark("rule", strokeDash=[5, 3], style="muted"),
            y=vega.shown("y:Q"),
        ),
        vega.layer(data, bars, known, **ends),
        vega.layer(data, line, **place, **({} if by is None else {"strokeDash": by})),
        vega.layer(data, dots, **place, tooltip=tooltip, **({} if by is None else {"shape": by})),
    ]


def _time_chart(results: TireResults, points: Sequence[SpeedPoint], text: str) -> vega.Part:
    factor = SIMULATED_STEPS / 1e9
    values = [point.step_ns.value * factor for point in points]
    low, high = min(values) / 1.4, max([*values, SIMULATED_S]) * 1.4
    title = f"time that {SIMULATED_S} s of simulation take (s)"
    y = vega.log_axis("value:Q", low, high, title, format="~g")
    side = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3}
    label = vega.mark("text", text="as fast as real time", style="muted", **side)
    known = [(point, point.step_ns) for point in points]
    layers = [
        *_curves(results, known, y, SIMULATED_S, ("s", ".4g"), factor=factor),
        vega.layer(vega.csv("y:Q", [[SIMULATED_S]]), label, y=vega.shown("y:Q"), x=vega.fixed(0)),
    ]
    return vega.layered(layers, height=HEIGHT, description=text)


def _summary(results: TireResults, points: Sequence[SpeedPoint]) -> str:
    largest = max(point.nodes for point in points)
    return "; ".join(
        f"{threads_name(point.threads, results)}: {point.step_ns.value * SIMULATED_STEPS / 1e9:.3g} "
        f"s at {largest} nodes"
        for point in points
        if point.nodes == largest
    )


def time_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return a chart per solver and policy of the time for 60 s of simulation over n, with a curve per thread
    number.
    """
    charts: dict[str, vega.Part] = {}
    for policy in sorted({point.policy for point in results.points}, reverse=True):
        every = [point for point in results.points if point.policy == policy]
        for solver in by_solver(point.solver for point in every):
            for free in (False, True):
                shown = [point for point in every if point.solver == solver and point.free_running == free]
                if not shown:
                    continue
                title = f"{solver_name(solver, free_running=free).capitalize()}, {policy_name(policy)}"
                over = f"Time that {SIMULATED_S} s of simulation take, against the number of nodes, {title}"
                charts[title] = _time_chart(results, shown, f"{over}. {_summary(results, shown)}")
    notes = [
        (
            f"The mean time of a step, in the median of the repeats, is multiplied by {SIMULATED_STEPS}, for "
            f"{SIMULATED_S} s of simulation in steps of 10 ms. Points below the dashed line are faster than "
            "real time."
        ),
        (
            f"Bars are 95 % intervals of the median of at least {LEAST_RUNS} repeats. Both axes are "
            "logarithmic; the paper's are not."
        ),
    ]
    title = "Real-fast: computation time by number of nodes (drawn like figs. 5 to 7 of Garre et al.)"
    return Figure.of(f"tire-time{suffix}", title, charts, notes)


def _threads_chart(
    results: TireResults,
    points: Sequence[SpeedPoint],
    of: Callable[[SpeedPoint], Estimate | None],
    title: str,
) -> vega.Part:
    known = [(point, estimate) for point in points if (estimate := of(point)) is not None]
    most = max(estimate.value for _, estimate in known)
    top = max(max(estimate.value, estimate.high or 0.0) for _, estimate in known)
    scale = {"domain": [0, max(1.0, min(top, 2 * most)) * 1.08], "nice": True}
    y = vega.shown("value:Q", scale=scale, axis={"title": title})
    by = vega.kinds("solver:N", by_solver(point.solver for point, _ in known))
    layers = _curves(results, known, y, 1, (title, ".3f"), by=by)
    summary = "; ".join(
        f"{point.solver}, {threads_name(point.threads, results)}, {point.nodes} nodes: {estimate.value:.3g}"
        for point, estimate in known
    )
    over = f"{title} against the number of nodes"
    return vega.layered(layers, height=HEIGHT - 40, description=f"{over}. {summary}")


def threads_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return speed-up and efficiency over n for each policy; None if no solver ran both on one thread and on
    several.
    """
    charts: dict[str, vega.Part] = {}
    fast = [point for point in results.points if point.speed_up is not None and not point.free_running]
    for policy in sorted({point.policy for point in fast}, reverse=True):
        points = [point for point in fast if point.policy == policy]
        for name, title in (("speed_up", "speed-up"), ("efficiency", "efficiency")):
            chart = _threads_chart(results, points, attrgetter(name), title)
            charts[f"{title.capitalize()}, {policy_name(policy)}"] = chart
    notes = [
        (
            "The speed-up is the solver's step time on one thread, divided by its step time on several. The "
            "efficiency is the speed-up per thread."
        ),
        f"Bars are 95 % intervals of the ratio of medians, if both have at least {LEAST_RUNS} repeats.",
    ]
    return Figure.of(f"tire-threads{suffix}", "What threads gain", charts, notes)


FRONTIER_ROW = 34
MODEL_COLUMNS = "threads nodes:Q predicted:Q measured:Q residual:Q"
KINDS = [
    "predicted by the mean step",
    "predicted with the longest delay",
    "measured in the map",
    "measured by the search",
]
SHAPES = ["diamond", "triangle-left", "square", "circle"]
FRONTIER_COLUMNS = "name kind nodes:Q low:Q high:Q"


def _model_chart(results: TireResults, predictions: Sequence[Prediction], title: str) -> vega.Part:
    names = [threads_name(each.threads, results) for each in predictions]
    rows = [
        (name, each.nodes, each.predicted_ns / 1e3, each.measured_ns / 1e3, each.residual * 100)
        for each, name in zip(predictions, names, strict=True)
    ]
    values = [float(str(value)) for row in rows for value in row[2:4]]
    low, high = min(values) / 1.3, max(values) * 1.3
    x = nodes_axis("nodes:Q", [prediction.nodes for prediction in predictions])

    tooltip = vega.tips(
        "threads:N",
        ("nodes:Q", "nodes", ","),
        ("predicted:Q", "predicted (us)", ",.4g"),
        ("measured:Q", "measured (us)", ",.4g"),
        ("residual:Q", "residual (%)", "+.1f"),
    )
    data = vega.csv(MODEL_COLUMNS, rows)
    place = {"x": x, "color": colours(results)}
    fields = ("predicted:Q", "measured:Q")
    predicted, measured = (vega.log_axis(field, low, high, "step (us)", format="~g") for field in fields)
    points = vega.mark("point", filled=True, size=42, opacity=1)
    dashed = vega.mark("line", strokeWidth=1.6, opacity=0.8, strokeDash=[6, 3])
    layers = [
        vega.layer(data, dashed, **place, y=predicted),
        vega.layer(data, points, **place, y=measured, tooltip=tooltip),
    ]
    worst = max(predictions, key=lambda prediction: abs(prediction.residual))
    where = f"{worst.residual * 100:+.0f} % at {worst.nodes} nodes on {threads_name(worst.threads, results)}"
    what = f"{title}: predicted and measured step time against the number of nodes"
    return vega.layered(layers, height=HEIGHT, description=f"{what}; the largest residual is {where}.")


def model_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return predicted and measured step times over n, for each solver and policy; None if empty."""
    charts: dict[str, vega.Part] = {}
    for policy in sorted({prediction.policy for prediction in results.predictions}):
        fitted = [each for each in results.predictions if each.policy == policy]
        for solver in by_solver(each.solver for each in fitted):
            predictions = [each for each in fitted if each.solver == solver]
            title = f"{solver.capitalize()}, {policy_name(policy)}"
            charts[title] = _model_chart(results, predictions, title)
    notes = [
        (
            "Dashed lines are predictions from the slope on one thread and the intercept for the number of "
            "threads. Points are measurements."
        ),
        (
            "The residual is the measured time divided by the predicted one, minus one. If it is above "
            "zero, threads disturb each other (locks, caches, memory), or the scheduler took time."
        ),
    ]
    title = "The cost model: prediction and measurement"
    return Figure.of(f"tire-model{suffix}", title, charts, notes)


def _frontier_rows(rows: Sequence[FrontierRow], results: TireResults) -> list[tuple[object, ...]]:
    points: list[tuple[object, ...]] = []
    for row in rows:
        name = f"{row.place.solver}, {threads_name(row.place.threads, results)}"
        estimates = () if row.predicted is None else (row.predicted.mean, row.predicted.worst)
        for kind, estimate in zip(KINDS, estimates, strict=False):
            if estimate is not None:
                points.append((name, kind, estimate.value, estimate.low, estimate.high))
        if row.edge is not None and row.edge.holds is not None:
            points.append((name, KINDS[2], row.edge.holds, row.edge.holds, row.edge.misses))
        if row.searched is not None and row.searched.nodes is not None:
            low, high = row.searched.low or None, row.searched.high or None
            points.append((name, KINDS[3], row.searched.nodes, low, high))
    return points


def frontier_figure(results: TireResults, suffix: str) -> Figure | None:
    """Return a chart for each policy and period with the largest n by the model, the map and the search."""
    charts: dict[str, vega.Part] = {}
    places = [row.place for row in results.frontiers]
    for policy, period_ns in sorted({(place.policy, place.period_ns) for place in places}):
        shown = (policy, period_ns)
        rows = [row for row in results.frontiers if (row.place.policy, row.place.period_ns) == shown]
        data = _frontier_rows(rows, results)
        if not data:
            continue
        values = [float(str(value)) for line in data for value in line[2:] if value]
        order = list(dict.fromkeys(str(line[0]) for line in data))
        place = {
            "y": vega.names_axis("name:N", order, labelLimit=300),
            "yOffset": vega.shown("kind:N", sort=KINDS, scale={"domain": KINDS}),
            "color": vega.kinds("kind:N", KINDS, legend={"title": None, "columns": 2, "symbolOpacity": 1}),
        }
        shape = vega.shown("kind:N", sort=None, scale={"domain": KINDS, "range": SHAPES})
        numbers = ((f"{field}:Q", field, ",.0f") for field in ("nodes", "low", "high"))
        points = vega.csv(FRONTIER_COLUMNS, data)
        bars = vega.mark("rule", strokeWidth=2, opacity=0.6, clip=True)
        known = vega.where("isValid(datum.low) && isValid(datum.high)")
        ends = {**place, "x": nodes_axis("low:Q", values), "x2": vega.shown("high")}
        dots = {**place, "x": nodes_axis("nodes:Q", values), "shape": shape}
        point = vega.mark("point", filled=True, size=56, opacity=1)
        layers = [
            vega.layer(points, bars, known, **ends),
            vega.layer(points, point, **dots, tooltip=vega.tips("name:N", "kind:N", *numbers)),
        ]
        described = "; ".join(f"{line[0]}, {line[1]}: {float(str(line[2])):.0f}" for line in data)
        title = f"{policy_name(policy)}, a step every {period_name(period_ns)}"
        text = f"The largest tire in hard real time, {title}. {described}"
        charts[title] = vega.layered(layers, height=FRONTIER_ROW * len(order), description=text)
    notes = [
        (
            "The bar of a prediction is its 95 % interval; the bar of a map goes from the last n that missed "
            "no deadline to the first that did; the bar of a search spans its bisections."
        ),
        (
            "The longest delay is the longest step of the real-fast runs minus the mean; a longer one may "
            "come at any time."
        ),
    ]
    title = "The real-time frontier: prediction and measurement"
    return Figure.of(f"tire-frontier{suffix}", title, charts, notes)
