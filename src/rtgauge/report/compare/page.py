# SPDX-License-Identifier: MIT
"""The page of a comparison: one HTML file that works from disk, without a network; it shares the look and the script of a record's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.report.compare.figures import comparison_figures
from rtgauge.report.compare.tables import grids
from rtgauge.report.facts import system_lines
from rtgauge.report.figures.theme import config
from rtgauge.report.page import drawing_code, template_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.analysis.comparison import Comparison
    from rtgauge.analysis.sides import Side


def html(result: Comparison, sides: Sequence[Side], pairs: Sequence[tuple[Side, Side]]) -> str:
    """The page as text. All that comes from the records is escaped."""
    import jinja2

    import rtgauge

    drawn = comparison_figures(sides, pairs)
    loader = jinja2.PackageLoader("rtgauge.report", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("compare.html.j2").render(
        version=rtgauge.__version__,
        baselines=list(dict.fromkeys(pair.baseline for pair in result.pairs)),
        records=list(dict.fromkeys(side.record for side in result.sides)),
        system_lines=list(dict.fromkeys(line for side in sides for line in system_lines(side.record))),
        grids=grids(result),
        figures=drawn,
        data={"figures": {name: figure.specs for name, figure in drawn.items()}, "config": {theme: config(theme) for theme in ("light", "dark")}},
        style=template_text("style.css"),
        script=template_text("page.js"),
        engine=drawing_code(),
    )


def render(result: Comparison, sides: Sequence[Side], pairs: Sequence[tuple[Side, Side]], out: Path) -> None:
    """Write the page to `out`; it is complete or not there. Raises InputError where `out` cannot be written."""
    text = html(result, sides, pairs)
    aside = out.with_name(f".{out.name}.partial")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(out)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): name another file with -o") from None
