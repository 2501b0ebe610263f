# SPDX-License-Identifier: MIT
"""Draws how many times as large one side is as another, on a logarithmic axis: twice and half are equally far
from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtgauge.report.figures import vega
from rtgauge.report.figures.vega import Figure
from rtgauge.units import format_factor, format_time

LARGE = 2.0
"""If the factors span more than this, the axis shows factors, otherwise changes in percent."""
PERCENT_STEPS = (1, 2, 5, 10, 20, 25)
MOST_TICKS = 8
MARGIN = 0.02
"""The share of the axis beyond the smallest and the largest factor, so that no mark lies on the edge."""
TIMES = (
    "datum.value === 1 ? 'equal' : datum.value < 1 ? '1/' + format(1 / datum.value, '~r') : "
    "format(datum.value, '~r') + ' times'"
)
PERCENT = "format(datum.value * 100 - 100, '+~r') + ' %'"


def factor_axis(what: str, factors: Sequence[float], title: str) -> vega.Part:
    """Return a logarithmic axis for factors (> 0) that contains 1."""
    low, high = min(*factors, 1.0, 1.0), max(*factors, 1.0, 1.0)
    margin = max(1.02, (high / low) ** MARGIN)
    low, high = low / margin, high * margin
    if high / low > LARGE:
        ticks = [*(1 / tick for tick in vega.log_ticks(1.0, 1 / low)), *vega.log_ticks(1.0, high)]
        return vega.log_axis(what, low, high, title, values=sorted({*ticks, 1.0}), labelExpr=TIMES)
    span = (high - low) * 100
    step = next((step for step in PERCENT_STEPS if span / step <= MOST_TICKS), PERCENT_STEPS[-1])
    ticks = [
        1 + at * step / 100 for at in range(int((low - 1) * 100 / step), int((high - 1) * 100 / step) + 1)
    ]
    return vega.log_axis(what, low, high, title, values=ticks, labelExpr=PERCENT)


@dataclass(frozen=True)
class Factor:
    """A row: how many times as large a value is on one side as on the other.

    `runs`: the factors of single pairs of runs. `low` and `high`: the interval; None has no limit.
    `measured`: both sides' values in ns, the baseline first.
    """

    name: str
    factor: float
    runs: Sequence[float]
    low: float | None
    high: float | None
    measured: tuple[float, float]

    @property
    def words(self) -> str:
        """The row in words: "p99: 18 times (650 us -> 9.70 ms)"."""
        before, after = map(format_time, self.measured)
        return f"{self.name}: {format_factor(self.factor)} times ({before} -> {after})"


def factors_figure(rows: Sequence[Factor], title: str, notes: Sequence[str]) -> Figure | None:
    """Return a figure with a row per factor: its interval, the pairs of runs as dots, and the factor; None
    without rows.
    """
    if not rows:
        return None
    ends = [end for row in rows for end in (row.low, row.high) if end is not None and end > 0]
    drawn = [*ends, *(row.factor for row in rows), *(factor for row in rows for factor in row.runs)]
    x = factor_axis("factor:Q", [factor for factor in drawn if factor > 0], title)
    low, high = x["scale"]["domain"]
    names = [row.name for row in rows]
    y = vega.names_axis("name:N", names)
    bars = [
        (row.name, max(row.low or low, low), high if row.high is None else row.high)
        for row in rows
        if (row.low, row.high) != (None, None)
    ]
    tooltip = vega.tips("name:N", "words:N")
    runs = [(row.name, factor) for row in rows for factor in row.runs if factor > 0]
    layers = [
        vega.rule("x", 1.0, style="muted"),
        vega.layer(
            vega.csv("name low:Q high:Q", bars),
            vega.mark("rule", strokeWidth=2.5, opacity=0.5, clip=True),
            x=vega.shown("low:Q"),
            x2=vega.shown("high"),
            y=y,
        ),
        vega.layer(
            vega.csv("name factor:Q", runs),
            vega.mark("point", size=26, opacity=0.7, style="muted"),
            x=vega.shown("factor:Q"),
            y=y,
        ),
        vega.layer(
            vega.csv("name factor:Q words", [(row.name, row.factor, row.words) for row in rows]),
            vega.mark("point", filled=True, size=70, opacity=1, style="ink"),
            x=x,
            y=y,
            tooltip=tooltip,
        ),
    ]
    layers = [layer for layer in layers if layer["data"].text.count("\n")]
    text = f"{title}. {'; '.join(row.words for row in rows)}"
    return Figure.single("factors", "How many times as large", text, layers, 26 * len(rows) + 20, notes)
