# SPDX-License-Identifier: MIT
"""One figure as one file, in the form that the file's name asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.report.figures.figure import VEGALITE, WIDTH, Figure
from rtgauge.report.figures.save import FORMATS, convert, whole
from rtgauge.report.figures.theme import BACKGROUND, config

if TYPE_CHECKING:
    from pathlib import Path

FORMS = (*FORMATS, "html")


def figure_form(path: Path) -> str:
    """`x.svg` -> "svg". Raises InputError for an ending that is no form of figure."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise InputError(f"'{path}': a figure's file ends in {', '.join('.' + one for one in FORMS)}")
    return form


def write_figure(figure: Figure, path: Path, subtitle: str) -> None:
    """Write the figure as SVG, PNG, PDF or an HTML page that needs no network.

    Raises InputError where that cannot be written, MeasureError for a full disk.
    """
    form = figure_form(path)
    spec = whole(figure, subtitle)
    if form == "html":
        import vl_convert

        look = {**config("light"), "background": BACKGROUND["light"], "padding": 16}
        content = vl_convert.vegalite_to_html(
            {**spec, "width": spec.get("width", WIDTH)} if "vconcat" not in spec else spec,
            vl_version=VEGALITE,
            bundle=True,
            config=look,
        ).encode()
    else:
        content = convert(spec, [form], "light", 1)[form]
    with clear_errors(path, option="--figure", kind="file"):
        write_whole(path, content)
