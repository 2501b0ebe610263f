# SPDX-License-Identifier: MIT
"""Draws exceedance curves (the share of activations later than x). Other figures of such curves use
`share_lines`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.report.figure_data import ALL, Curve, Source, exceedance
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import LATENCY
from rtgauge.report.table import applying
from rtgauge.report.text import capital

POINTS = 16_000
"""The approximate number of points in the curves of all single CPUs together."""
FULL = 250
"""With this many points, a curve looks complete."""
PLAIN, FILLED = "p", "f"
_KIND = "datum.label === 'f' ? 'missed filled in' : 'as measured'"


def _points_a_cpu(source: Source) -> int:
    return max(40, min(FULL, POINTS // max(1, sum(len(cpus) for cpus in source.measured.values()))))


def _curves(source: Source) -> dict[tuple[str, str, str], Curve]:
    curves: dict[tuple[str, str, str], Curve] = {}
    for label, cpus in source.measured.items():
        for cpu, part in cpus.items():
            points = FULL if cpu == ALL else _points_a_cpu(source)
            counts = {PLAIN: part.plain}
            if part.missed.total:
                counts[FILLED] = part.plain.plus(part.missed)
            for kind, of_kind in counts.items():
                curves[label, cpu, kind] = exceedance(of_kind, part.max_ns, points, unplaced=part.unplaced)
    return {key: curve for key, curve in curves.items() if len(curve.x_us)}


def exceedance_figure(source: Source) -> Figure | None:
    """Return a chart per quantity, with a curve per condition; a dashed curve includes missed activations.
    None without data.
    """
    charts: dict[str, vega.Part] = {}
    every: list[tuple[str, Curve]] = []
    for quantity in source.quantities:
        part = source.only(quantity)
        curves = _curves(part)
        if curves:
            charts[capital(quantity)] = _chart(part, curves, quantity)
            every += [(kind, curve) for (_, _, kind), curve in curves.items()]
    return Figure.described("exceedance", "Exceedance", charts, _notes(source, every))


COLUMNS = "load cpu kind us:Q share:Q"
OF_CPU = vega.where("datum.cpu === cpu")


def share_lines(
    columns: str,
    curves: Sequence[tuple[tuple[str, ...], Curve]],
    title: str,
    share_title: str,
    *transform: vega.Part,
    least_us: float = 0.01,
    bound_us: float = 0.0,
    **encoding: vega.Part,
) -> vega.Part:
    """Return the layer that draws exceedance curves on logarithmic axes, as every figure of shares does.

    `curves`: each with its names. `columns`: for the names, x and the share. The x axis begins at about
    `least_us` or above, and reaches at least `bound_us`.
    """
    low = max(least_us, min(float(curve.x_us[0]) for _, curve in curves))
    high = max(low, bound_us, *(float(curve.x_us[-1]) for _, curve in curves))
    rarest = min(float(curve.share[-1]) for _, curve in curves)
    return vega.layer(
        vega.csv(columns, [(*names, *point) for names, curve in curves for point in curve.points]),
        vega.mark("line", interpolate="step-after", strokeWidth=1.8, clip=True),
        *transform,
        x=vega.log_axis("us:Q", low * 0.9, high * 1.15, title),
        y=vega.share_axis(rarest * 0.6, share_title),
        **encoding,
    )


def _chart(source: Source, curves: dict[tuple[str, str, str], Curve], quantity: str) -> vega.Part:
    latency = quantity == LATENCY
    any_missed = any(kind == FILLED for _, _, kind in curves)
    ends = [(*key, *curve.points[-1]) for key, curve in curves.items() if key[2] == PLAIN]
    dashes = {PLAIN: [1, 0], FILLED: [4, 3]} if any_missed else {PLAIN: [1, 0]}
    legend = {"title": None, "labelExpr": _KIND} if any_missed else None
    lines = share_lines(
        COLUMNS,
        [*curves.items()],
        f"{quantity} x (us)",
        share_later(quantity),
        OF_CPU,
        bound_us=source.bound_us or 0.0,
        color=vega.kinds("load:N", source.labels),
        strokeDash=vega.kinds("kind:N", dashes, [*dashes.values()], legend=legend),
    )
    largest = vega.layer(
        vega.csv(COLUMNS, ends),
        vega.mark("point", size=38, filled=True, opacity=1),
        OF_CPU,
        x=vega.shown("us:Q"),
        y=vega.shown("share:Q"),
        color=vega.shown("load:N"),
        tooltip=vega.tips("load:N", ("us:Q", "max (us)"), "share:Q"),
    )
    layers = [lines, largest, *vega.bound_layers(source.bound_us, vertical=True)]
    drawn = {label: source.measured[label][ALL] for label in source.labels if (label, ALL, PLAIN) in curves}
    text = f"{capital(share_later(quantity))}, log-log. " + "; ".join(
        f"{label}: none of {part.plain.total + part.unplaced} {'later' if latency else 'longer'} "
        f"than {float(curves[label, ALL, PLAIN].x_us[-1]):.7g} us"
        for label, part in drawn.items()
    )
    return vega.layered(layers, height=330, description=text)


def share_later(quantity: str) -> str:
    """Return the title of the axis of shares."""
    return "share of activations later than x" if quantity == LATENCY else "share of samples longer than x"


def _notes(source: Source, curves: Sequence[tuple[str, Curve]]) -> list[str]:
    points = _points_a_cpu(source)
    filled = any(kind == FILLED for kind, _ in curves)
    bounded = any(curve.upper_bound for _, curve in curves)
    outside = "Samples that the other tool's histogram lacks are drawn at the largest value"
    return applying(
        (True, "Curves are read from the histogram (1 % or better); the dot is the exact largest value."),
        (True, "A curve of N samples ends at 1 in N, because anything rarer was not measured."),
        (filled, "In dashed curves, missed activations count with the latencies that they would have had."),
        (points < FULL, f"The curve of each single CPU has only about {points} points."),
        (bounded, f"{outside}, so the curve is an upper bound."),
        (any(curve.lower_bound for _, curve in curves), "A curve that ends at 10 s continues beyond it."),
    )
