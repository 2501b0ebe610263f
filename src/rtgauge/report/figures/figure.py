# SPDX-License-Identifier: MIT
"""What the figures share: data as compact CSV, axes in us, the rule that a requirement draws, the figure
itself.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import altair as alt
from altair.utils.schemapi import disable_debug_mode

from rtgauge.escape import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Charts are checked as a whole by the tests, not at every step of their making: it takes a third of the time
# of a page.
disable_debug_mode()

VEGALITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The Vega-Lite that altair writes for; vl-convert carries several."""
WIDTH = 820
"""Width (px) of a figure in a file; on the page it is as wide as there is room."""
QUOTED = re.compile(r'[,"\n\r]')
"""What makes a text of CSV one that is quoted."""


@dataclass(frozen=True)
class Figure:
    """One figure: a name for its file, what it shows in words, and its Vega-Lite charts (in a file, a
    column).
    """

    name: str
    title: str
    description: str
    specs: list[dict[str, Any]]
    """Vega-Lite, one a chart, without look, width or title: the page and the files add these."""
    titles: list[str] = field(default_factory=list[str])
    """A title a chart, where there is more than one."""
    notes: list[str] = field(default_factory=list[str])
    """What a reader has to know to read it honestly, for the caption."""

    def __post_init__(self) -> None:
        """Names in a record may hold characters that Vega's parser, SVG and the page do not take."""
        object.__setattr__(self, "specs", [drawable(spec) for spec in self.specs])


def drawable(spec: Any) -> Any:
    """A description, or a part of one, with all its text escaped."""
    if isinstance(spec, str):
        return escaped(spec)
    if isinstance(spec, dict):
        return {escaped(str(key)): drawable(part) for key, part in cast("dict[str, Any]", spec).items()}
    return [drawable(part) for part in cast("list[Any]", spec)] if isinstance(spec, list) else spec


def csv(columns: dict[str, str], rows: Iterable[Iterable[object]]) -> alt.InlineData:
    """Rows as CSV inside the chart, which is a fraction of the size of JSON rows.

    `columns`: name -> "number" or "string".
    """
    lines = [",".join(columns)]
    lines += [",".join(_cell(cell) for cell in row) for row in rows]
    return alt.InlineData(values="\n".join(lines), format=alt.CsvDataFormat(type="csv", parse=columns))


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, int):
        return str(cell)
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""').replace("\n", " ") + '"' if QUOTED.search(text) else text


def decades(low: float, high: float) -> list[float]:
    """The powers of ten in [low, high]."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks for a logarithmic axis of [low, high]: decades, with 2 and 5 between them where there are few
    decades.
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < 4 else (1,)
    return [tick for power in powers for step in steps if low <= (tick := step * 10.0**power) <= high]


US_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
    "format(datum.value / 1e3, '~g') + ' ms' : format(datum.value, '~g')"
)
"""Axis labels in us, as ms and s where the numbers become long."""


def bound_layer(bound_us: float | None, *, vertical: bool) -> list[alt.Chart]:
    """A rule at the requirement's bound, with its value; nothing where there is none."""
    if bound_us is None:
        return []
    data = csv({"bound": "number"}, [[bound_us]])
    label = f"bound {bound_us:,.7g} us"
    rule = alt.Chart(data).mark_rule(strokeDash=[5, 3], strokeWidth=1.5, style="alarm", clip=True)
    if vertical:
        text = alt.Chart(data).mark_text(
            text=label, align="right", baseline="bottom", dx=2, dy=-4, style="alarm"
        )
        return [rule.encode(x=alt.X("bound:Q")), text.encode(x=alt.X("bound:Q"), y=alt.YValue(0))]
    text = alt.Chart(data).mark_text(
        text=label, align="left", baseline="bottom", dx=4, dy=-3, style="alarm", clip=True
    )
    return [rule.encode(y=alt.Y("bound:Q")), text.encode(y=alt.Y("bound:Q"), x=alt.XValue(0))]


def layered(
    layers: Sequence[alt.Chart], *, height: int, description: str, meta: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The layers as one Vega-Lite description that knows the parameter `cpu`; `meta` is for the page.

    alt.layer and its properties copy every layer several times, and check each copy: half of the time of a
    page.
    """
    drawn = [layer.to_dict(validate=False) for layer in layers]
    datasets: dict[str, Any] = {
        name: data for layer in drawn for name, data in layer.get("datasets", {}).items()
    }
    spec: dict[str, Any] = {
        "$schema": alt.SCHEMA_URL,
        "layer": [
            {key: part for key, part in layer.items() if key not in {"$schema", "config", "datasets"}}
            for layer in drawn
        ],
        "description": description,
        "height": height,
        "params": [{"name": "cpu", "value": "all"}],
        "datasets": datasets,
    }
    if meta is not None:
        spec["usermeta"] = dict(meta)
    return spec
