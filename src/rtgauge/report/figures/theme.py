# SPDX-License-Identifier: MIT
"""Colours and type of the figures, light and dark.

Hues after Okabe and Ito, "Color Universal Design" (2008), which people with
colour-blindness can tell apart, shifted in lightness until each stands out against its background."""

from __future__ import annotations

from typing import Any, Literal

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
    parts = [
        round(int(low[i : i + 2], 16) * (1 - share) + int(high[i : i + 2], 16) * share) for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


def cpu_colours(count: int, theme: Theme) -> list[str]:
    """One colour a CPU: distinct hues for a few, a ramp for many."""
    distinct = _CATEGORY[theme][1:]
    if count <= len(distinct):
        return distinct[:count]
    ramp = _RAMP[theme]
    places = [i * (len(ramp) - 1) / (count - 1) for i in range(count)]
    return [
        _mix(ramp[int(place)], ramp[min(int(place) + 1, len(ramp) - 1)], place - int(place))
        for place in places
    ]


def config(theme: Theme, cpus: int = 1) -> dict[str, Any]:
    """Vega-Lite configuration for one theme; `cpus` is how many colours the CPUs need."""
    ink, muted, line, alarm = _INK[theme], _MUTED[theme], _LINE[theme], _ALARM[theme]
    text: dict[str, Any] = {
        "labelColor": muted,
        "titleColor": ink,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **text,
            "gridColor": line,
            "domainColor": muted,
            "tickColor": muted,
            "labelOverlap": True,
            "titlePadding": 8,
        },
        "legend": {
            **text,
            "orient": "bottom",
            "direction": "horizontal",
            "symbolStrokeWidth": 2.5,
            "labelLimit": 260,
            "symbolLimit": 0,
            "columns": 5,
        },
        "title": {
            "color": ink,
            "subtitleColor": muted,
            "anchor": "start",
            "fontSize": 14,
            "subtitleFontSize": 11,
            "fontWeight": 600,
            "offset": 12,
        },
        "range": {"category": _CATEGORY[theme], "ordinal": cpu_colours(cpus, theme)},
        "style": {
            "ink": {"color": ink},
            "paper": {"color": BACKGROUND[theme]},
            "muted": {"color": muted},
            "alarm": {"color": alarm},
        },
    }
