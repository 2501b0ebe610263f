# SPDX-License-Identifier: MIT
"""Builds Vega-Lite descriptions for the figures: data as compact CSV, marks, channels, and axes in us."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

from rtgauge.escape import escaped
from rtgauge.report.record_view import RequiredBound

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
QUOTED = re.compile(r'[,"\n\r]')
"""Characters that make CSV text need quotes."""
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
AGGREGATE = re.compile(r"(\w+)\((\w+)\)")
Part = dict[str, Any]
"""A part of a Vega-Lite description."""


@dataclass(frozen=True)
class Data:
    """A chart's rows as CSV, which takes a fraction of the size of JSON rows.

    `columns`: name -> "number" or "string".
    """

    columns: Mapping[str, str]
    text: str

    @property
    def name(self) -> str:
        """A name that is the same for equal data."""
        return f"data-{hashlib.md5(self.text.encode(errors='replace'), usedforsecurity=False).hexdigest()}"


def csv(columns: str, rows: Iterable[Iterable[object]]) -> Data:
    """Return a chart's rows as CSV data. `columns`: the columns' names, separated by spaces. A name with a
    type, such as `us:Q`, is a column of numbers, and a name without one is a column of text.
    """
    parts = [column.partition(":") for column in columns.split()]
    types = {name: "number" if number else "string" for name, _, number in parts}
    lines = [",".join(types), *(",".join(map(_cell, row)) for row in rows)]
    return Data(types, "\n".join(lines))


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, int):
        return str(cell)
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""').replace("\n", " ") + '"' if QUOTED.search(text) else text


def shown(what: str, **properties: object) -> Part:
    """Return a channel that shows a field: "us:Q", "mean(us):Q", or "end" for the other end of a bar."""
    name, _, kind = what.partition(":")
    aggregate = AGGREGATE.fullmatch(name)
    part: Part = {"field": name} if aggregate is None else {"aggregate": aggregate[1], "field": aggregate[2]}
    return {**part, **({"type": TYPES[kind]} if kind else {}), **properties}


def fixed(value: object) -> Part:
    """Return a channel with a constant value."""
    return {"value": value}


def tips(*fields: str | tuple[str, ...]) -> list[Part]:
    """Return the fields of a tooltip. Each is a field's name, or (name, title) or (name, title, format)."""
    parts = [(field,) if isinstance(field, str) else field for field in fields]
    return [shown(part[0], **dict(zip(("title", "format"), part[1:], strict=False))) for part in parts]


def kinds(
    what: str, names: Iterable[str], looks: Sequence[object] | None = None, **properties: object
) -> Part:
    """Return a channel that distinguishes names, in order, with an untitled legend. `looks`: one per name."""
    scale: Part = {"domain": [*names], **({} if looks is None else {"range": [*looks]})}
    return shown(what, **{"sort": None, "scale": scale, "legend": {"title": None}, **properties})


LOADS = ("idle", "cpu", "memory", "network", "scheduler", "disk", "swarm")
"""The loads that have one colour on every page."""


def name_colours(what: str, names: Iterable[str], **legend: object) -> Part:
    """Return a channel that gives each name its colour. A single name needs no legend."""
    shown = [*names]
    domain = LOADS if set(shown) <= set(LOADS) else shown
    look = {"title": None, "values": shown, **legend} if len(shown) > 1 else None
    return kinds(what, domain, legend=look)


def mark(kind: str, **look: object) -> Part:
    """Return the shape that a layer draws."""
    return {"type": kind, **look}


def where(test: str) -> Part:
    """Return a transform that keeps the rows for which `test` holds."""
    return {"filter": test}


def calculated(name: str, expression: str) -> Part:
    """Return a transform that adds a calculated field to the rows."""
    return {"calculate": expression, "as": name}


NUMBERED: Part = {"window": [{"op": "row_number", "as": "i"}]}
"""The transform that adds the row number as field `i`."""


def layer(data: Data, drawn: Part, *transform: Part, **encoding: object) -> Part:
    """Return a layer of a chart: data, mark, transforms of the data, and channels."""
    made: Part = {"data": data, "mark": drawn, "encoding": encoding}
    return {**made, "transform": [*transform]} if transform else made


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten in [low, high]."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks for a logarithmic axis from `low` to `high`: powers of ten, and 2 and 5 times them if the
    axis has fewer than four decades.
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < 4 else (1,)
    return [tick for power in powers for step in steps if low <= (tick := step * 10.0**power) <= high]


US_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
    "format(datum.value / 1e3, '~g') + ' ms' : format(datum.value, '~g')"
)
"""Expression for axis labels in us, or in ms and s if the numbers become long."""


PLAIN_AXIS = {"title": None, "grid": False, "ticks": False, "domain": False}
"""An axis of names."""

GREY_LEGEND = {"title": None, "symbolFillColor": "#808890", "symbolStrokeColor": "#808890"}
"""Grey symbols for the legend of shapes, because each shape comes in several colours."""


def log_scale(low: float, high: float) -> Part:
    """Return a logarithmic scale from `low` to `high`."""
    return {"type": "log", "domain": [low, high], "nice": False}


def log_axis(what: str, low: float, high: float, title: str, **axis: object) -> Part:
    """Return a logarithmic axis, in us unless it has its own labels or format."""
    look = {"title": title, "values": log_ticks(low, high), **(axis or {"labelExpr": US_LABEL})}
    return shown(what, scale=log_scale(low, high), axis=look)


def counted_axis(what: str, count: int, title: str) -> Part:
    """Return an axis for numbers counted from 1, with room at both ends."""
    step = max(1, -(-count // 20))
    axis = {"title": title, "values": [*range(step, count + 1, step)], "format": "d"}
    return shown(what, axis=axis, scale={"domain": [0.5, count + 0.5], "nice": False, "zero": False})


def share_axis(rarest: float, title: str) -> Part:
    """Return the logarithmic axis of an exceedance curve: shares in percent, from the rarest on."""
    labels = "format(datum.value * 100, '~g') + ' %'"
    axis = {"title": title, "values": decades(rarest, 1), "labelExpr": labels}
    return shown("share:Q", scale=log_scale(rarest, 1), axis=axis)


def names_axis(what: str, order: Sequence[str], **axis: object) -> Part:
    """Return an axis with a row for each name, in this order."""
    return shown(what, sort=[*order], scale={"domain": [*order]}, axis={**PLAIN_AXIS, **axis})


def rule(
    channel: str, at: float, *, dash: Sequence[int] = (5, 3), style: str = "alarm", clip: bool = True
) -> Part:
    """Return a dashed line across the chart, at a value of the channel "x" or "y"."""
    drawn = mark("rule", strokeDash=[*dash], strokeWidth=1.5, style=style, **({"clip": True} if clip else {}))
    return layer(csv("at:Q", [[at]]), drawn, **{channel: shown("at:Q")})


def bound_layers(bound: RequiredBound | None, *, vertical: bool) -> list[Part]:
    """Return the layers of a line at the requirement's bound and of its label; empty without a bound."""
    if bound is None:
        return []
    label = {"text": f"bound {bound.words}", "baseline": "bottom", "style": "alarm"}
    at = csv("at:Q", [[bound.us]])
    if vertical:
        name = layer(at, mark("text", align="right", dx=2, dy=-4, **label), x=shown("at:Q"), y=fixed(0))
        return [rule("x", bound.us), name]
    drawn = mark("text", align="right", dx=-4, dy=-3, clip=True, **label)
    return [rule("y", bound.us), layer(at, drawn, y=shown("at:Q"), x=fixed("width"))]


def forbidden_corner(bound: RequiredBound | None, high_us: float, rarest: float) -> list[Part]:
    """Return the layer that shades what a requirement forbids an exceedance curve: later than the bound, and
    more often than allowed. Empty without a bound.
    """
    if bound is None:
        return []
    corner = csv("low:Q high:Q rare:Q all:Q", [[bound.us, high_us, max(bound.allowed, rarest), 1]])
    x, y = {"x": shown("low:Q"), "x2": shown("high")}, {"y": shown("rare:Q"), "y2": shown("all")}
    return [layer(corner, mark("rect", style="alarm", opacity=0.12, clip=True), **x, **y)]


def layered(
    layers: Sequence[Part], *, height: int, description: str, meta: Mapping[str, object] | None = None
) -> Part:
    """Return the layers as one Vega-Lite description with the parameter `cpu`; `meta` is for the page."""
    spec: Part = {"$schema": SCHEMA, "layer": [], "description": description, "height": height}
    spec |= {"params": [{"name": "cpu", "value": "all"}], "datasets": {}}
    for each in layers:
        rows = cast("Data", each["data"])
        form = {"type": "csv", "parse": dict(rows.columns)}
        spec["layer"].append({**each, "data": {"name": rows.name, "format": form}})
        spec["datasets"][rows.name] = rows.text
    return spec if meta is None else {**spec, "usermeta": dict(meta)}


WIDTH = 820
"""The width (px) of a figure in a file. On the page, a figure fills the available room."""


@dataclass(frozen=True)
class Figure:
    """A figure: a name for its file, a description in words, and its charts (stacked in a file)."""

    name: str
    title: str
    description: str
    specs: list[dict[str, Any]]
    """Vega-Lite descriptions, one per chart. The page and the files add style, width and title."""
    titles: list[str] = field(default_factory=list[str])
    """A title for each chart, if there are several charts."""
    notes: list[str] = field(default_factory=list[str])
    """Notes below the figure that a reader needs."""

    @classmethod
    def of(cls, name: str, title: str, charts: Mapping[str, Part], notes: list[str]) -> Self | None:
        """Return a figure of charts, described by their titles; None if there are no charts."""
        if not charts:
            return None
        return cls(name, title, " ".join(charts), [*charts.values()], [*charts], notes)

    @classmethod
    def described(cls, name: str, title: str, charts: Mapping[str, Part], notes: list[str]) -> Self | None:
        """Return a figure of charts, by title. Each chart describes itself. None if there are no charts."""
        if not charts:
            return None
        text = " ".join(str(spec["description"]) for spec in charts.values())
        return cls(name, title, text, [*charts.values()], [*charts] if len(charts) > 1 else [], notes)

    @classmethod
    def single(
        cls, name: str, title: str, text: str, layers: Sequence[Part], height: int, notes: Sequence[str] = ()
    ) -> Self:
        """Return a figure of one chart with these layers, `height` px high."""
        spec = layered(layers, height=height, description=text)
        return cls(name, title, text, [spec], notes=[*notes])

    def __post_init__(self) -> None:
        """Escape names from a record, because Vega's parser, SVG and the page reject some characters."""
        object.__setattr__(self, "specs", [drawable(spec) for spec in self.specs])


def drawable(spec: Any) -> Any:
    """Return a description, or a part of it, with all its text escaped."""
    if isinstance(spec, str):
        return escaped(spec)
    if isinstance(spec, dict):
        return {escaped(str(key)): drawable(part) for key, part in cast("dict[str, Any]", spec).items()}
    return [drawable(part) for part in cast("list[Any]", spec)] if isinstance(spec, list) else spec


Theme = Literal["light", "dark"]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"

_CATEGORY = {
    "light": ["#5f6b7a", "#0069a8", "#c94f00", "#00805d", "#a8437f", "#8a6500", "#2a8fc4", "#3a3f8f"],
    "dark": ["#a3aebd", "#4fb0ea", "#ff8b4d", "#2fc79b", "#e893c4", "#e3b02b", "#9ad4f5", "#a5a8f0"],
}
_RAMP = {
    "light": ["#3b1f6b", "#28508f", "#0d7f8c", "#2fa05f", "#a38a00", "#c94f00"],
    "dark": ["#b69af0", "#6ea4f2", "#3fc4cf", "#63d48a", "#e0c63c", "#ff9a5c"],
}
_INK = {"light": "#1c2128", "dark": "#e4e8ee"}
_MUTED = {"light": "#59636e", "dark": "#9ba6b3"}
_LINE = {"light": "#d8dde3", "dark": "#343b45"}
_ALARM = {"light": "#b3261e", "dark": "#ff7b72"}
BACKGROUND = {"light": "#ffffff", "dark": "#15191f"}


def _mix(low: str, high: str, share: float) -> str:
    ends = ((int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a * (1 - share) + b * share):02x}" for a, b in ends)


def cpu_colours(count: int, theme: Theme) -> list[str]:
    """Return one colour per CPU: distinct hues for a few, a ramp for many."""
    distinct = _CATEGORY[theme][1:]
    if count <= len(distinct):
        return distinct[:count]
    ramp = [*_RAMP[theme], _RAMP[theme][-1]]
    places = [divmod(i * (len(ramp) - 2) / (count - 1), 1) for i in range(count)]
    return [_mix(ramp[int(whole)], ramp[int(whole) + 1], share) for whole, share in places]


def config(theme: Theme, cpus: int = 1) -> dict[str, Any]:
    """Return the Vega-Lite configuration of a theme; `cpus`: the number of colours for CPUs."""
    ink, muted, line, alarm = _INK[theme], _MUTED[theme], _LINE[theme], _ALARM[theme]
    look = {"labelColor": muted, "titleColor": ink, "titleFontWeight": "normal"}
    text = {**look, "labelFontSize": 11, "titleFontSize": 12}
    axis = {"gridColor": line, "domainColor": muted, "tickColor": muted}
    legend = {"orient": "bottom", "direction": "horizontal", "columns": 5}
    title = {"color": ink, "subtitleColor": muted, "fontSize": 14, "subtitleFontSize": 11, "fontWeight": 600}
    styles = {"ink": ink, "paper": BACKGROUND[theme], "muted": muted, "alarm": alarm}
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "rule": {"color": ink},
        "axis": {**text, **axis, "labelOverlap": True, "titlePadding": 8},
        "legend": {**text, **legend, "symbolStrokeWidth": 2.5, "labelLimit": 260, "symbolLimit": 0},
        "title": {**title, "anchor": "start", "offset": 12},
        "range": {"category": _CATEGORY[theme], "ordinal": cpu_colours(cpus, theme)},
        "style": {name: {"color": colour} for name, colour in styles.items()},
    }
