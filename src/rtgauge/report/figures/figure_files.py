# SPDX-License-Identifier: MIT
"""Writes figures as PNG, SVG, PDF and HTML, without a browser and without a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError
from rtgauge.record.files import clear_errors, open_folder, write_whole
from rtgauge.report.figures.vega import BACKGROUND, WIDTH, Figure, Theme, config, drawable
from rtgauge.report.vega_bundle import VEGALITE

if TYPE_CHECKING:
    from types import ModuleType

FORMATS = ("png", "svg", "pdf")
FORMS = (*FORMATS, "html")


def _whole(figure: Figure, subtitle: str) -> dict[str, Any]:
    """Return the figure as one Vega-Lite description for a file, with its title and the system below it."""
    heading = {"text": figure.title, "subtitle": subtitle.split("\n")}
    if len(figure.specs) == 1:
        return drawable({**figure.specs[0], "width": WIDTH, "title": heading})
    once = ("$schema", "params", "usermeta", "datasets")
    charts = [
        {
            **{key: part for key, part in spec.items() if key not in once},
            "width": WIDTH,
            "title": {"text": title, "fontSize": 12, "offset": 6},
        }
        for spec, title in zip(figure.specs, figure.titles, strict=True)
    ]
    resolve = {"scale": {"color": "independent"}, "legend": {"color": "independent"}}
    first = figure.specs[0]
    datasets = {name: data for spec in figure.specs for name, data in spec["datasets"].items()}
    shared = {"$schema": first["$schema"], "params": first["params"], "datasets": datasets}
    return drawable({**shared, "title": heading, "vconcat": charts, "resolve": resolve, "spacing": 18})


def _look(cpus: int = 1, theme: Theme = "light") -> dict[str, Any]:
    return {**config(theme, cpus), "background": BACKGROUND[theme], "padding": 16}


def _converter() -> ModuleType:
    """Return vl-convert. Raises InputError if it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise InputError(
            "vl-convert, which draws figures, is not installed: pip install 'rtgauge[figures]'"
        ) from None
    return vl_convert


def _convert(spec: dict[str, Any], forms: Sequence[str], cpus: int = 1) -> dict[str, bytes]:
    """Return the files of a Vega-Lite description, by format. It is laid out once, as SVG; the other formats
    are made from the SVG.
    """
    vl_convert = _converter()
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE, config=_look(cpus), allowed_base_urls=[])
    made = {"svg": svg.encode}
    made |= {"png": lambda: vl_convert.svg_to_png(svg, scale=2), "pdf": lambda: vl_convert.svg_to_pdf(svg)}
    return {form: made[form]() for form in forms}


def as_svg(figure: Figure, theme: Theme) -> bytes:
    """Return a figure with one chart as SVG, without a title."""
    vl_convert = _converter()
    spec = drawable({**figure.specs[0], "width": WIDTH})
    look = _look(theme=theme)
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE, config=look, allowed_base_urls=[])
    return svg.encode()


def write_figures(
    figures: Iterable[Figure], folder: Path, subtitle: str, formats: Sequence[str] = FORMATS, cpus: int = 1
) -> list[Path]:
    """Write every figure in every format into `folder`, each file whole; return the files.

    Raises InputError if the folder cannot be written, MeasureError if the disk is full.
    """
    written: list[Path] = []
    with clear_errors(folder, option="--figures"):
        folder.mkdir(parents=True, exist_ok=True)
        with open_folder(folder, follow=False) as opened:
            for figure in figures:
                for form, data in _convert(_whole(figure, subtitle), formats, cpus).items():
                    file = folder / f"{figure.name}.{form}"
                    write_whole(file, data, folder=opened)
                    written.append(file)
    return written


def figure_form(path: Path) -> str:
    """Return a file's format: `x.svg` -> "svg". Raises InputError if FORMS lacks the suffix."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        *others, last = (f".{known}" for known in FORMS)
        raise InputError(f"'{path}': the name of a figure's file must end in {', '.join(others)} or {last}")
    return form


def write_figure(figure: Figure, path: Path, subtitle: str) -> None:
    """Write the figure as SVG, PNG, PDF or an HTML page that needs no network.

    Raises InputError if it cannot be written, MeasureError if the disk is full.
    """
    form = figure_form(path)
    spec = _whole(figure, subtitle)
    if form == "html":
        vl_convert = _converter()
        shaped = spec if "vconcat" in spec else {"width": WIDTH, **spec}
        page = vl_convert.vegalite_to_html(shaped, vl_version=VEGALITE, bundle=True, config=_look())
        content = page.encode()
    else:
        content = _convert(spec, [form])[form]
    with clear_errors(path, option="--figure", kind="file"):
        write_whole(path, content)
