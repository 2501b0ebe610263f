# SPDX-License-Identifier: MIT
"""Compares what an instrument measured from outside with what the machine measured itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtgauge.probe.probe_registry import plural_of, probe_of
from rtgauge.record.histogram import NO_BINS, Histogram
from rtgauge.record.model import SEGMENT, ClockDriftReport, InstrumentReport, SeriesSummary, Step
from rtgauge.record.quantiles import TITLES, times_longer
from rtgauge.report.figure_data import Curve, exceedance, measured
from rtgauge.report.figures import vega
from rtgauge.report.figures.exceedance import share_layers
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import RecordView
from rtgauge.report.step_tables import has_longer
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.text import LONGER_WORDS, NONE, capital, figure_cell, us, whole

OUTER = "from outside"
DIFFERENCE = "outside minus inside"
SHOWN = ("min", "mean", "std", "p50", "p99", "p99.9", "max")
FIGURES = {field: title for field, title in TITLES.items() if title in SHOWN}
NOTE = (
    "Times are in us. The difference is taken between figures, not between single samples; it shows the "
    "delay that the machine's own clock does not see. If both clocks measured the same samples, the "
    "difference of the means is also the mean of the differences. rtgauge subtracts neither a clock offset "
    "nor a drift."
)
MIDDLE = ("std", "p50", "p99")
"""Columns that a narrow terminal or page leaves out."""


@dataclass(frozen=True)
class Views:
    """A step's outer series, and the inner series of the same quantity (None if there is none)."""

    step: Step
    report: InstrumentReport
    outer: SeriesSummary
    inner: SeriesSummary | None

    @property
    def inner_name(self) -> str:
        """The name of the inner view's role."""
        if self.inner is None:
            return NONE
        role = str(self.inner.labels.get("role", ""))
        return probe_of(self.step).shown.roles.get(role, role)


def views(steps: Sequence[Step]) -> list[Views]:
    """Return the views of the steps that an instrument measured."""
    both: list[Views] = []
    for step in steps:
        report = step.instrument
        if report is None:
            continue
        outer = next((series for series in step.series if series.series in report.series), None)
        if outer is None:
            continue
        others = (series for series in step.series if series.series not in report.series)
        own = (series for series in others if series.metric == outer.metric and SEGMENT not in series.labels)
        both.append(Views(step, report, outer, next(own, None)))
    return both


def _us(value_ns: float | None) -> str:
    """Return a time in us with three decimals, because the instrument's resolution is 8 ns."""
    return us(value_ns, digits=3).replace(",", "")


def _cells(series: SeriesSummary) -> list[str]:
    """Return the counts, and the figures of FIGURES."""
    figures = [figure_cell(series, name, digits=3).replace(",", "") for name in FIGURES]
    return [whole(series.count), whole(series.missed), *figures]


def _difference(outer: SeriesSummary, inner: SeriesSummary) -> list[str]:
    cells: list[str] = []
    for name in FIGURES:
        here, there = getattr(outer, name), getattr(inner, name)
        bounded = any(
            name in each.lower_bounds or times_longer(name, each.count) is not None for each in (outer, inner)
        )
        cells.append(NONE if here is None or there is None or bounded else f"{(here - there) / 1_000:+.3f}")
    return cells


def views_grid(view: RecordView, steps: Sequence[Step]) -> Table | None:
    """Return both views of each step, and how their figures differ; None if no instrument measured."""
    both = views(steps)
    if not both:
        return None
    rows: list[list[str]] = []
    for each in both:
        begin = f"{view.labels[each.step.id]}, " if len(both) > 1 else ""
        rows.append([f"{begin}{OUTER}", *_cells(each.outer)])
        if each.inner is not None:
            rows.append([f"{begin}{each.inner_name}", *_cells(each.inner)])
            rows.append([f"{begin}{DIFFERENCE}", "", "", *_difference(each.outer, each.inner)])
    columns = [replace(column, drop_rank=column.title in MIDDLE) for column in numbers(*FIGURES.values())]
    what = " and ".join(dict.fromkeys(plural_of(each.outer.metric) for each in both))
    notes = [NOTE, *([f"{LONGER_WORDS}."] if has_longer(rows) else [])]
    heads = [*texts("view"), *numbers("count", "missed"), *columns]
    return Table(f"{capital(what)}, from outside and inside", heads, rows, notes)


def _drift(drift: ClockDriftReport | None) -> str:
    if drift is None:
        return "not estimated: too short"
    interval = f"{drift.low_ppm:+.1f} to {drift.high_ppm:+.1f}, 95 %"
    return f"{drift.ppm:+.1f} ppm ({interval}) over {drift.seconds:.0f} s"


def _loopback(report: InstrumentReport) -> str:
    if report.loopback_ns is None:
        return "not measured"
    low, high = report.loopback_ns
    return f"{low:g} ns" if low == high else f"{low:g} to {high:g} ns"


def _wires(report: InstrumentReport) -> str:
    if report.wire_offset_ns is None:
        return "not given (measure it with rtgauge instrument selftest --wire)"
    return f"{report.wire_offset_ns} ns, as given"


def _counted(report: InstrumentReport) -> str:
    kept = ("edges",) if report.configuration.get("mode") == "periodic" else ("stimuli", "answers", "missed")
    counted = [(name, value) for name, value in report.counters.items() if value or name in kept]
    return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counted)


def instrument_grids(view: RecordView, steps: Sequence[Step]) -> list[Table]:
    """Return a table for each step with its instrument: identity, own offset, clock, counts."""
    both = views(steps)
    several = len(both) > 1
    return [_instrument_grid(each, f", {view.labels[each.step.id]}" if several else "") for each in both]


def _instrument_grid(each: Views, of_step: str) -> Table:
    report, exact = each.report, each.report.exact
    rows = [
        ["instrument", f"{report.firmware}, {report.id}"],
        ["resolution of its clock", f"{report.resolution_ns:g} ns"],
        ["its own loopback", _loopback(report)],
        ["loopback of the wires", _wires(report)],
        ["drift of this machine's clock", _drift(report.drift)],
        ["counted", _counted(report)],
    ]
    if exact is not None:
        figures = f"min {_us(exact.min_ns)}, mean {_us(exact.mean_ns)}, max {_us(exact.max_ns)}"
        rows.append(["its own figures (us)", f"{exact.count} values: {figures}, std {_us(exact.std_ns)}"])
    drift = (
        "The drift compares the clock of the machine that runs rtgauge with the instrument's clock: 1 ppm "
        "is 1 ns per ms."
    )
    notes = [f"The loopback is shown but not subtracted. {drift}"]
    return Table(f"The instrument{of_step}", texts("", "value"), rows, notes)


def instrument_line(step: Step) -> str | None:
    """Return a line like "instrument E6605838831F2B27: 200 stimuli, 199 answers, 1 missed", or None."""
    report = step.instrument
    if report is None:
        return None
    loopback = f"its own loopback: {_loopback(report)}; loopback of the wires: {_wires(report)}"
    return f"instrument {report.id}: {_counted(report)}; {loopback}; clock drift {_drift(report.drift)}"


def view_curves(view: RecordView, each: Views) -> dict[str, Curve]:
    """Return the exceedance curve of each view. A signed quantity is drawn by its magnitude."""
    named = {each.outer.series: OUTER, **({} if each.inner is None else {each.inner.series: each.inner_name})}
    numbered = {series: name for series, name in named.items() if series is not None}
    parts = measured(view.record.windows(each.step), numbered)
    curves: dict[str, Curve] = {}
    for series in (each.outer, each.inner):
        if series is None or not series.count:
            continue
        counts = parts[named[series.series]].plain
        magnitudes = NO_BINS.plus(Histogram(np.abs(counts.bins), counts.counts))
        ends = [abs(value) for value in (series.min_ns, series.max_ns) if value is not None]
        curves[named[series.series]] = exceedance(magnitudes, max(ends, default=None))
    return curves


def views_figure(view: RecordView, steps: Sequence[Step]) -> Figure | None:
    """Return a chart for each step that an instrument measured; None if there is no such step."""
    drawn = [(each, view_curves(view, each)) for each in views(steps)]
    charts = {
        view.labels[each.step.id]: _views_chart(each.outer.metric, curves) for each, curves in drawn if curves
    }
    clocks = (
        "The two curves use different clocks; the difference between them is the delay that the machine "
        "does not see."
    )
    notes = [f"The curves are read from the histograms (resolution: 1 % or better). {clocks}"]
    return Figure.described("views", "From outside and inside", charts, notes)


def _views_chart(metric: str, curves: dict[str, Curve]) -> vega.Part:
    layers = share_layers(
        "view us:Q share:Q",
        [((name,), curve) for name, curve in curves.items()],
        f"{metric} x (us)",
        "share longer than x",
        least_us=0.001,
        color=vega.kinds("view:N", curves),
        strokeDash=vega.kinds("view:N", curves, [[1, 0], [5, 3]][: len(curves)]),
    )
    ends = (f"{name}: none longer than {float(curve.x_us[-1]):.7g} us" for name, curve in curves.items())
    text = f"Share of samples whose {metric} is longer than x, on logarithmic axes. {'; '.join(ends)}."
    return vega.layered(layers, height=260, description=text)
