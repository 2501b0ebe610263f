# SPDX-License-Identifier: MIT
"""Figures as files: PNG, SVG and PDF, without a browser and without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rtgauge.analysis.frequency import gather
from rtgauge.analysis.sustained import curves
from rtgauge.errors import InputError
from rtgauge.record.files import clear_errors, open_folder, write_whole
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figures.collect import figures
from rtgauge.report.figures.figure import WIDTH, Figure
from rtgauge.report.figures.source import Source
from rtgauge.report.figures.sustained import sustained_figure
from rtgauge.report.figures.theme import BACKGROUND, Theme, config
from rtgauge.report.figures.timing import timing_figures
from rtgauge.report.frequency_tables import Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rtgauge.record.reader import Record

FORMATS = ("png", "svg", "pdf")
VEGALITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The Vega-Lite that altair writes for; vl-convert carries several."""


def whole(figure: Figure, subtitle: str) -> dict[str, Any]:
    """The figure as one Vega-Lite description of fixed width, with its title and the system beneath it: what a file shows."""
    heading = {"text": figure.title, "subtitle": subtitle.split("\n")}
    if len(figure.specs) == 1:
        return {**figure.specs[0], "width": WIDTH, "title": heading}
    once = ("$schema", "params", "usermeta", "datasets")
    charts = [
        {**{key: part for key, part in spec.items() if key not in once}, "width": WIDTH, "title": {"text": title, "fontSize": 12, "offset": 6}}
        for spec, title in zip(figure.specs, figure.titles, strict=True)
    ]
    resolve = {"scale": {"color": "independent"}, "legend": {"color": "independent"}}
    first = figure.specs[0]
    datasets = {name: data for spec in figure.specs for name, data in spec["datasets"].items()}
    shared = {"$schema": first["$schema"], "params": first["params"], "datasets": datasets}
    return {**shared, "title": heading, "vconcat": charts, "resolve": resolve, "spacing": 18}


def convert(spec: dict[str, Any], form: str, theme: Theme, cpus: int) -> bytes:
    """A Vega-Lite description as a file's bytes; `form` is one of `FORMATS`."""
    import vl_convert

    look = {**config(theme, cpus), "background": BACKGROUND[theme], "padding": 16}
    if form == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE, config=look, allowed_base_urls=[]).encode()
    if form == "pdf":
        return vl_convert.vegalite_to_pdf(spec, vl_version=VEGALITE, config=look, allowed_base_urls=[])
    return vl_convert.vegalite_to_png(spec, vl_version=VEGALITE, scale=2, config=look, allowed_base_urls=[])


def write_figures(
    figures: Iterable[Figure], folder: Path, subtitle: str, formats: Sequence[str] = FORMATS, theme: Theme = "light", cpus: int = 1
) -> list[Path]:
    """Write every figure in every format into `folder`; the files written, each whole.

    Raises InputError where the folder cannot be written, MeasureError for a full disk.
    """
    written: list[Path] = []
    with clear_errors(folder, option="--figures"):
        folder.mkdir(parents=True, exist_ok=True)
        with open_folder(folder) as opened:
            for figure in figures:
                spec = whole(figure, subtitle)
                for form in formats:
                    file = folder / f"{figure.name}.{form}"
                    write_whole(file, convert(spec, form, theme, cpus), folder=opened)
                    written.append(file)
    return written


def save_figures(record: Record, folder: Path, formats: Sequence[str] = FORMATS, theme: Theme = "light", timing: Timing | None = None) -> list[Path]:
    """Write every figure of the record into `folder`; the files written. Raises InputError for an unknown format, and as `write_figures` does."""
    for form in formats:
        if form not in FORMATS:
            raise InputError(f"figures have no format '{form}'; there are {', '.join(FORMATS)}")
    source = Source.of(record)
    judged = gather([record], (timing or Timing()).options)
    searched = sustained_figure(curves([record]))
    more = [*timing_figures(judged, (timing or Timing()).markers), *([searched] if searched is not None else [])]
    return write_figures([*figures(source).values(), *more], folder, "\n".join(system_lines(record)), formats, theme, len(source.cpus))
