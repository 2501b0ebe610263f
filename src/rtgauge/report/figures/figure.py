# SPDX-License-Identifier: MIT
"""A figure: its charts, and what a reader has to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

from rtgauge.escape import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.report.figures.vega import Part

WIDTH = 820
"""Width (px) of a figure in a file; on the page it is as wide as there is room."""


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

    @classmethod
    def of(cls, name: str, title: str, charts: Mapping[str, Part], notes: list[str]) -> Self | None:
        """The figure of charts by their titles, which describe it; None if there is none."""
        if not charts:
            return None
        return cls(name, title, " ".join(charts), [*charts.values()], [*charts], notes)

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
