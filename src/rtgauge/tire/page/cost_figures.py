# SPDX-License-Identifier: MIT
"""The cost model: predicted next to measured step times, the residuals, and the frontier by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.tire.page.labels import by_solver, period_name, policy_name, threads_name
from rtgauge.tire.page.speed_figures import colours, nodes_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.tire.analysis.prediction import Prediction
    from rtgauge.tire.analysis.results import FrontierRow, TireResults

HEIGHT = 190
FRONTIER_ROW = 34
COLUMNS = {
    "threads": "string",
    "nodes": "number",
    "predicted": "number",
    "measured": "number",
    "residual": "number",
}
KINDS = [
    "predicted by the mean step",
    "predicted with the longest delay",
    "measured in the map",
    "measured by the search",
]
SHAPES = ["diamond", "triangle-left", "square", "circle"]
FRONTIER_COLUMNS = {"name": "string", "kind": "string", "nodes": "number", "low": "number", "high": "number"}


def _charts(results: TireResults, predictions: Sequence[Prediction], title: str) -> dict[str, vega.Part]:
    rows = [
        (
            threads_name(prediction.threads, results),
            prediction.nodes,
            prediction.predicted_ns / 1e3,
            prediction.measured_ns / 1e3,
            prediction.residual * 100,
        )
        for prediction in predictions
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
    data = vega.csv(COLUMNS, rows)
    place = {"x": x, "color": colours(results)}
    predicted, measured = (
        vega.log_axis(f"{name}:Q", low, high, "step (us)", format="~g") for name in ("predicted", "measured")
    )
    points = vega.mark("point", filled=True, size=42, opacity=1)
    dashed = vega.mark("line", strokeWidth=1.6, opacity=0.8, strokeDash=[6, 3])
    upper = [
        vega.layer(data, dashed, **place, y=predicted),
        vega.layer(data, points, **place, y=measured, tooltip=tooltip),
    ]
    zero = vega.csv({"y": "number"}, [[0]])
    residual = vega.shown("residual:Q", axis={"title": "residual (%)"})
    lower = [
        vega.layer(zero, vega.mark("rule", strokeDash=[6, 3], style="muted"), y=vega.shown("y:Q")),
        vega.layer(
            data,
            vega.mark("rule", strokeWidth=1, opacity=0.5),
            vega.calculated("zero", "0"),
            **place,
            y=vega.shown("zero:Q"),
            y2=vega.shown("residual"),
        ),
        vega.layer(data, points, **place, y=residual, tooltip=tooltip),
    ]
    worst = max(predictions, key=lambda prediction: abs(prediction.residual))
    where = f"{worst.residual * 100:+.0f} % at {worst.nodes} nodes on {threads_name(worst.threads, results)}"
    text = f"{title}: predicted and measured step time over nodes; the largest residual is {where}."
    return {
        title: vega.layered(upper, height=HEIGHT, description=text),
        f"{title}: what the model leaves unexplained": vega.layered(
            lower, height=HEIGHT // 2, description=f"Residuals. {text}"
        ),
    }


def model_figure(results: TireResults, suffix: str) -> Figure | None:
    """For each solver and policy: step time over n, predicted and measured, and the residuals; or None."""
    charts: dict[str, vega.Part] = {}
    for policy in sorted({prediction.policy for prediction in results.predictions}):
        for solver in by_solver(
            prediction.solver for prediction in results.predictions if prediction.policy == policy
        ):
            predictions = [
                prediction
                for prediction in results.predictions
                if (prediction.solver, prediction.policy) == (solver, policy)
            ]
            title = f"{solver.capitalize()}, {policy_name(policy)}"
            charts |= _charts(results, predictions, title)
    notes = [
        (
            "Dashed: predicted, from the slope on one thread and the intercept for that number of threads. "
            "Points: measured."
        ),
        (
            "Residual: measured over predicted, less one. Above zero: threads disturb each other "
            "(locks, caches, memory), or the scheduler took time."
        ),
    ]
    title = "The cost model: prediction and measurement"
    return Figure.of(f"tire-model{suffix}", title, charts, notes)


def _frontier_rows(rows: Sequence[FrontierRow], results: TireResults) -> list[tuple[object, ...]]:
    points: list[tuple[object, ...]] = []
    for row in rows:
        name = f"{row.solver}, {threads_name(row.threads, results)}"
        for kind, estimate in zip(KINDS[:2], (row.mean, row.worst), strict=True):
            if estimate is not None:
                points.append((name, kind, estimate.value, estimate.low, estimate.high))
        if row.map_holds is not None:
            points.append((name, KINDS[2], row.map_holds, row.map_holds, row.map_misses))
        if row.searched is not None and row.searched.nodes is not None:
            points.append(
                (name, KINDS[3], row.searched.nodes, row.searched.low or None, row.searched.high or None)
            )
    return points


def frontier_figure(results: TireResults, suffix: str) -> Figure | None:
    """A chart for each policy and period: the largest n by the model, by the map, by the search."""
    charts: dict[str, vega.Part] = {}
    for policy, period_ns in sorted({(row.policy, row.period_ns) for row in results.frontiers}):
        rows = [row for row in results.frontiers if (row.policy, row.period_ns) == (policy, period_ns)]
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
        layers = [
            vega.layer(
                points,
                vega.mark("rule", strokeWidth=2, opacity=0.6, clip=True),
                vega.where("isValid(datum.low) && isValid(datum.high)"),
                **place,
                x=nodes_axis("low:Q", values),
                x2=vega.shown("high"),
            ),
            vega.layer(
                points,
                vega.mark("point", filled=True, size=56, opacity=1),
                **place,
                x=nodes_axis("nodes:Q", values),
                shape=shape,
                tooltip=vega.tips("name:N", "kind:N", *numbers),
            ),
        ]
        described = "; ".join(f"{line[0]}, {line[1]}: {float(str(line[2])):.0f}" for line in data)
        title = f"{policy_name(policy)}, a step every {period_name(period_ns)}"
        text = f"The largest tire in hard real time, {title}. {described}"
        charts[title] = vega.layered(layers, height=FRONTIER_ROW * len(order), description=text)
    notes = [
        (
            "Bars: 95 % interval of a prediction; in a map from the last n that held to the first that "
            "missed; of a search where its bisections ended."
        ),
        (
            "The longest delay: the longest step of the real-fast runs less its mean; a longer one may "
            "come any time."
        ),
    ]
    title = "The real-time frontier: prediction and measurement"
    return Figure.of(f"tire-frontier{suffix}", title, charts, notes)
