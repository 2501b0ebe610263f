# SPDX-License-Identifier: MIT
"""The cost model drawn: predicted step times beside the measured ones, what is left between them, and the
frontier by both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.report.figures.figure import Figure, csv, layered, log_ticks
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


def _charts(results: TireResults, predictions: Sequence[Prediction], title: str) -> list[dict[str, Any]]:
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

    def y(field: str) -> alt.Y:
        axis = alt.Axis(title="step (us)", values=log_ticks(low, high), format="~g")
        return alt.Y(f"{field}:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=axis)

    tooltip = [
        alt.Tooltip("threads:N"),
        alt.Tooltip("nodes:Q", format=","),
        alt.Tooltip("predicted:Q", title="predicted (us)", format=",.4g"),
        alt.Tooltip("measured:Q", title="measured (us)", format=",.4g"),
        alt.Tooltip("residual:Q", title="residual (%)", format="+.1f"),
    ]
    base = alt.Chart(csv(COLUMNS, rows))
    upper = [
        base.mark_line(strokeWidth=1.6, opacity=0.8, strokeDash=[6, 3]).encode(
            x=x, y=y("predicted"), color=colours(results)
        ),
        base.mark_point(filled=True, size=42, opacity=1).encode(
            x=x, y=y("measured"), color=colours(results), tooltip=tooltip
        ),
    ]
    zero = (
        alt.Chart(csv({"y": "number"}, [[0]]))
        .mark_rule(strokeDash=[6, 3], style="muted")
        .encode(y=alt.Y("y:Q"))
    )
    residual = alt.Y("residual:Q", axis=alt.Axis(title="residual (%)"))
    lower = [
        zero,
        base.mark_rule(strokeWidth=1, opacity=0.5)
        .encode(x=x, y=alt.Y("zero:Q"), y2="residual:Q", color=colours(results))
        .transform_calculate(zero="0"),
        base.mark_point(filled=True, size=42, opacity=1).encode(
            x=x, y=residual, color=colours(results), tooltip=tooltip
        ),
    ]
    worst = max(predictions, key=lambda prediction: abs(prediction.residual))
    where = f"{worst.residual * 100:+.0f} % at {worst.nodes} nodes on {threads_name(worst.threads, results)}"
    text = f"{title}: predicted and measured step time over nodes; the largest residual is {where}."
    return [
        layered(upper, height=HEIGHT, description=text),
        layered(lower, height=HEIGHT // 2, description=f"Residuals. {text}"),
    ]


def model_figure(results: TireResults, suffix: str) -> Figure | None:
    """For each solver and policy: step time over n, predicted and measured, and the residuals; None if
    nothing could be predicted.
    """
    specs: list[dict[str, Any]] = []
    titles: list[str] = []
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
            specs += _charts(results, predictions, title)
            titles += [title, f"{title}: what the model leaves unexplained"]
    if not specs:
        return None
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
    return Figure(
        f"tire-model{suffix}",
        "The cost model: prediction and measurement",
        " ".join(titles),
        specs,
        titles,
        notes,
    )


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
    """A chart a policy and period: the largest n in hard real time, by the model, by the map, by the
    search.
    """
    specs: list[dict[str, Any]] = []
    titles: list[str] = []
    for policy, period_ns in sorted({(row.policy, row.period_ns) for row in results.frontiers}):
        rows = [row for row in results.frontiers if (row.policy, row.period_ns) == (policy, period_ns)]
        data = _frontier_rows(rows, results)
        if not data:
            continue
        values = [float(str(value)) for line in data for value in line[2:] if value]
        order = list(dict.fromkeys(str(line[0]) for line in data))
        x = nodes_axis("nodes:Q", values)
        y = alt.Y(
            "name:N",
            sort=order,
            scale=alt.Scale(domain=order),
            axis=alt.Axis(title=None, grid=False, ticks=False, domain=False, labelLimit=300),
        )
        offset = alt.YOffset("kind:N", sort=KINDS, scale=alt.Scale(domain=KINDS))
        colour = alt.Color(
            "kind:N",
            sort=None,
            scale=alt.Scale(domain=KINDS),
            legend=alt.Legend(title=None, columns=2, symbolOpacity=1),
        )
        shape = alt.Shape(
            "kind:N",
            sort=None,
            scale=alt.Scale(domain=KINDS, range=["diamond", "triangle-left", "square", "circle"]),
        )
        tooltip = [
            alt.Tooltip("name:N"),
            alt.Tooltip("kind:N"),
            *(alt.Tooltip(f"{field}:Q", format=",.0f") for field in ("nodes", "low", "high")),
        ]
        base = alt.Chart(
            csv(
                {"name": "string", "kind": "string", "nodes": "number", "low": "number", "high": "number"},
                data,
            )
        )
        ranges = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(
            strokeWidth=2, opacity=0.6, clip=True
        )
        layers = [
            ranges.encode(x=nodes_axis("low:Q", values), x2="high:Q", y=y, yOffset=offset, color=colour),
            base.mark_point(filled=True, size=56, opacity=1).encode(
                x=x, y=y, yOffset=offset, color=colour, shape=shape, tooltip=tooltip
            ),
        ]
        described = "; ".join(f"{line[0]}, {line[1]}: {float(str(line[2])):.0f}" for line in data)
        title = f"{policy_name(policy)}, a step every {period_name(period_ns)}"
        specs.append(
            layered(
                layers,
                height=FRONTIER_ROW * len(order),
                description=f"The largest tire in hard real time, {title}. {described}",
            )
        )
        titles.append(title)
    if not specs:
        return None
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
    return Figure(
        f"tire-frontier{suffix}",
        "The real-time frontier: prediction and measurement",
        " ".join(titles),
        specs,
        titles,
        notes,
    )
