# SPDX-License-Identifier: MIT
"""Draws exceedance curves (the share of activations later than x). Other figures of such curves use
`share_layers`, or `named_chart`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rtgauge.record.histogram import lower_ns, upper_ns
from rtgauge.report.figure_data import ALL, CpuHistograms, Curve, Source, exceedance
from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import LATENCY, RequiredBound
from rtgauge.report.table import applying
from rtgauge.report.text import capital
from rtgauge.units import format_count, format_share, format_time

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


def share_layers(
    columns: str,
    curves: Sequence[tuple[tuple[str, ...], Curve]],
    title: str,
    share_title: str,
    *transform: vega.Part,
    least_us: float = 0.01,
    bound: RequiredBound | None = None,
    **encoding: vega.Part,
) -> list[vega.Part]:
    """Return the layers that draw exceedance curves on logarithmic axes, as every figure of shares does, with
    the corner that a bound forbids.

    `curves`: each with its names. `columns`: for the names, x and the share. The x axis begins at about
    `least_us` or above, and contains the bound.
    """
    first = min(float(curve.x_us[0]) for _, curve in curves)
    low = max(least_us, first if bound is None else min(first, bound.us / 2))
    high = max(low, 0.0 if bound is None else bound.us * 2, *(float(curve.x_us[-1]) for _, curve in curves))
    rarest = min(float(curve.share[-1]) for _, curve in curves)
    if bound is not None and bound.allowed:
        rarest = min(rarest, bound.allowed)
    lines = vega.layer(
        vega.csv(columns, [(*names, *point) for names, curve in curves for point in curve.points]),
        vega.mark("line", interpolate="step-after", strokeWidth=1.8, clip=True),
        *transform,
        x=vega.log_axis("us:Q", low * 0.9, high * 1.15, title),
        y=vega.share_axis(rarest * 0.6, share_title),
        **encoding,
    )
    corner = vega.forbidden_corner(bound, high * 1.15, rarest * 0.6)
    return [lines, *corner, *vega.bound_layers(bound, vertical=True)]


def named_chart(
    curves: Mapping[str, CpuHistograms], quantity: str, bound: RequiredBound | None = None
) -> vega.Part | None:
    """Return a chart with a curve per name, with missed activations filled in; None if all are empty."""
    filled = {name: replace(part, plain=part.plain.plus(part.missed)) for name, part in curves.items()}
    drawn = [((name,), exceedance(part.plain, part.max_ns)) for name, part in filled.items()]
    drawn = [(names, curve) for names, curve in drawn if len(curve.x_us)]
    if not drawn:
        return None
    share = share_later(quantity)
    colour = vega.name_colours("name:N", curves)
    layers = share_layers("name us:Q share:Q", drawn, f"{quantity} x (us)", share, bound=bound, color=colour)
    return vega.layered(layers, height=240, description=_described(filled, quantity, bound))


def _described(parts: Mapping[str, CpuHistograms], quantity: str, bound: RequiredBound | None) -> str:
    """Return the numbers of the curves in words: "idle: 1.2 % later than 200 us, none of 20,062 later than
    13.1 ms"; without a bound, the time that 1 % exceed.
    """
    later = "later" if quantity == LATENCY else "longer"
    each: list[str] = []
    for name, part in parts.items():
        bins, counts = part.plain
        total = part.plain.total
        if not total:
            continue
        if bound is None:
            rank = np.searchsorted(np.cumsum(counts), 0.99 * total)
            clause = f"1 % {later} than {format_time(float(upper_ns(bins[rank])))}"
        else:
            share = counts[lower_ns(bins) > bound.us * 1_000].sum() / total
            clause = f"{format_share(share) if share else 'none'} {later} than {bound.words}"
        largest = "" if part.max_ns is None else f", none {later} than {format_time(part.max_ns)}"
        each.append(f"{name}: of {format_count(total + part.unplaced)}, {clause}{largest}")
    allowed = "" if bound is None else f"; {format_share(bound.allowed) if bound.allowed else 'none'} allowed"
    return f"{capital(share_later(quantity))}, both axes logarithmic. {'; '.join(each)}{allowed}"


def corner_note(bound: RequiredBound | None, quantity: str = LATENCY) -> str:
    """Return what the shaded corner means; empty without a bound."""
    if bound is None:
        return ""
    later = "later" if quantity == LATENCY else "longer"
    if not bound.allowed:
        broken = f"nothing may be {later} than {bound.words}"
        return f"A curve that enters the red area breaks the requirement: {broken}."
    return (
        f"A curve that enters the red corner breaks the requirement: more than {format_share(bound.allowed)} "
        f"of the values are {later} than {bound.words}."
    )


def _chart(source: Source, curves: dict[tuple[str, str, str], Curve], quantity: str) -> vega.Part:
    any_missed = any(kind == FILLED for _, _, kind in curves)
    ends = [(*key, *curve.points[-1]) for key, curve in curves.items() if key[2] == PLAIN]
    dashes = {PLAIN: [1, 0], FILLED: [4, 3]} if any_missed else {PLAIN: [1, 0]}
    legend = {"title": None, "labelExpr": _KIND} if any_missed else None
    lines, *marked = share_layers(
        COLUMNS,
        [*curves.items()],
        f"{quantity} x (us)",
        share_later(quantity),
        OF_CPU,
        bound=source.bound,
        color=vega.name_colours("load:N", source.labels),
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
    together = {label: cpus[ALL] for label, cpus in source.measured.items() if ALL in cpus}
    filled = {label: replace(part, plain=part.plain.plus(part.missed)) for label, part in together.items()}
    text = _described(filled, quantity, source.bound)
    return vega.layered([lines, largest, *marked], height=330, description=text)


def share_later(quantity: str) -> str:
    """Return the title of the axis of shares."""
    return "share of activations later than x" if quantity == LATENCY else "share of samples longer than x"


def _notes(source: Source, curves: Sequence[tuple[str, Curve]]) -> list[str]:
    points = _points_a_cpu(source)
    filled = any(kind == FILLED for kind, _ in curves)
    bounded = any(curve.upper_bound for _, curve in curves)
    outside = "Samples that are missing from the other tool's histogram are drawn at the largest value"
    return applying(
        *((bound, corner_note(bound, name)) for name, bound in source.bounds.items()),
        (
            True,
            "Curves are read from the histogram (resolution: 1 % or better); the dot is the exact maximum.",
        ),
        (True, "A curve of N samples ends at 1 in N, because anything rarer was not measured."),
        (filled, "In dashed curves, missed activations count with the latencies that they would have had."),
        (points < FULL, f"The curve of each single CPU has only about {points} points."),
        (bounded, f"{outside}, so the curve is an upper bound."),
        (any(curve.lower_bound for _, curve in curves), "A curve that ends at 10 s continues beyond it."),
    )
