# SPDX-License-Identifier: MIT
"""The exceedance curve: which share of activations was later than x, both axes logarithmic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.report.figure_data import ALL, Curve, exceedance
from rtgauge.report.figures.figure import US_LABEL, Figure, bound_layer, csv, decades, layered, log_ticks
from rtgauge.report.record_view import LATENCY
from rtgauge.report.text import capital

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.report.figures.source import Source

POINTS = 16_000
"""About this many points in the curves of single CPUs together."""
FULL = 250
"""Points of a curve that nothing is missing from to the eye."""
PLAIN, FILLED = "p", "f"
_KIND = "datum.label === 'f' ? 'missed filled in' : 'as measured'"


def _points_a_cpu(source: Source) -> int:
    return max(40, min(FULL, POINTS // max(1, sum(len(cpus) for cpus in source.measured.values()))))


def _curves(source: Source) -> dict[tuple[str, str, str], Curve]:
    curves: dict[tuple[str, str, str], Curve] = {}
    for label, cpus in source.measured.items():
        for cpu, part in cpus.items():
            points = FULL if cpu == ALL else _points_a_cpu(source)
            curves[label, cpu, PLAIN] = exceedance(part.plain, part.max_ns, points, unplaced=part.unplaced)
            if part.missed.total:
                curves[label, cpu, FILLED] = exceedance(
                    part.plain.plus(part.missed), part.max_ns, points, unplaced=part.unplaced
                )
    return {key: curve for key, curve in curves.items() if len(curve.x_us)}


def exceedance_figure(source: Source) -> Figure | None:
    """A chart a quantity: one curve a condition, and one more with the missed activations filled in where any
    was missed; None where nothing was measured.
    """
    specs: list[dict[str, Any]] = []
    measured: list[str] = []
    every: list[tuple[str, Curve]] = []
    for quantity in source.quantities:
        part = source.only(quantity)
        curves = _curves(part)
        if curves:
            specs.append(_chart(part, curves, quantity))
            measured.append(quantity)
            every += [(kind, curve) for (_, _, kind), curve in curves.items()]
    if not specs:
        return None
    description = " ".join(str(spec["description"]) for spec in specs)
    titles = [capital(quantity) for quantity in measured] if len(measured) > 1 else []
    return Figure("exceedance", "Exceedance", description, specs, titles, _notes(source, every))


def _chart(source: Source, curves: dict[tuple[str, str, str], Curve], quantity: str) -> dict[str, Any]:
    latency = quantity == LATENCY
    low = max(0.01, min(float(curve.x_us[0]) for curve in curves.values()))
    high = max([float(curve.x_us[-1]) for curve in curves.values()] + [source.bound_us or 0, low])
    rarest = min(float(curve.share[-1]) for curve in curves.values())
    any_missed = any(kind == FILLED for _, _, kind in curves)
    rows = (
        (*key, float(x), float(y))
        for key, curve in curves.items()
        for x, y in zip(curve.x_us, curve.share, strict=True)
    )
    data = csv({"load": "string", "cpu": "string", "kind": "string", "us": "number", "share": "number"}, rows)
    base = alt.Chart(data).transform_filter("datum.cpu === cpu")
    kinds = [PLAIN, FILLED] if any_missed else [PLAIN]
    kind_legend = alt.Legend(title=None, labelExpr=_KIND) if any_missed else None
    lines = base.mark_line(interpolate="step-after", strokeWidth=1.8, clip=True).encode(
        x=alt.X(
            "us:Q",
            scale=alt.Scale(type="log", domain=[low * 0.9, high * 1.15], nice=False),
            axis=alt.Axis(
                title=f"{quantity} x (us)", values=log_ticks(low * 0.9, high * 1.15), labelExpr=US_LABEL
            ),
        ),
        y=alt.Y(
            "share:Q",
            scale=alt.Scale(type="log", domain=[rarest * 0.6, 1], nice=False),
            axis=alt.Axis(
                title=_share(quantity),
                values=decades(rarest * 0.6, 1),
                labelExpr="format(datum.value * 100, '~g') + ' %'",
            ),
        ),
        color=alt.Color(
            "load:N", sort=None, scale=alt.Scale(domain=source.labels), legend=alt.Legend(title=None)
        ),
        strokeDash=alt.StrokeDash(
            "kind:N",
            sort=None,
            scale=alt.Scale(domain=kinds, range=[[1, 0], [4, 3]][: len(kinds)]),
            legend=kind_legend,
        ),
    )
    ends = (
        (*key, float(curve.x_us[-1]), float(curve.share[-1]))
        for key, curve in curves.items()
        if key[2] == PLAIN
    )
    largest = (
        alt.Chart(
            csv(
                {"load": "string", "cpu": "string", "kind": "string", "us": "number", "share": "number"}, ends
            )
        )
        .transform_filter("datum.cpu === cpu")
        .mark_point(size=38, filled=True, opacity=1)
        .encode(
            x=alt.X("us:Q"),
            y=alt.Y("share:Q"),
            color=alt.Color("load:N"),
            tooltip=[alt.Tooltip("load:N"), alt.Tooltip("us:Q", title="max (us)"), alt.Tooltip("share:Q")],
        )
    )
    layers = [lines, largest, *bound_layer(source.bound_us, vertical=True)]
    text = f"{capital(_share(quantity))}, log-log. " + "; ".join(
        f"{label}: none of "
        f"{source.measured[label][ALL].plain.total + source.measured[label][ALL].unplaced} "
        f"{'later' if latency else 'longer'} "
        f"than {float(curves[label, ALL, PLAIN].x_us[-1]):.7g} us"
        for label in source.labels
        if (label, ALL, PLAIN) in curves
    )
    return layered(layers, height=330, description=text)


def _share(quantity: str) -> str:
    return "share of activations later than x" if quantity == LATENCY else "share of samples longer than x"


def _notes(source: Source, curves: Sequence[tuple[str, Curve]]) -> list[str]:
    notes = [
        "Read from the histogram (1 % or better); the dot is the exact largest value.",
        "A curve ends at one in the number of samples: anything rarer was not measured.",
    ]
    if any(kind == FILLED for kind, _ in curves):
        notes.append("Dashed: with the latencies filled in that missed activations would have had.")
    if _points_a_cpu(source) < FULL:
        notes.append(f"The curves of single CPUs are thinned to about {_points_a_cpu(source)} points.")
    if any(curve.upper_bound for _, curve in curves):
        notes.append(
            "Samples that the other tool's histogram does not have are drawn at the largest value: "
            "the curve is an upper bound."
        )
    if any(curve.lower_bound for _, curve in curves):
        notes.append("A curve that ends at 10 s continues beyond it.")
    return notes
