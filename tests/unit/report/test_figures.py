# SPDX-License-Identifier: MIT
"""Figures as files, and what they are drawn from."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import altair as alt
import pytest

from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge.report.figure_data import Source
from rtgauge.report.figures.vega import config, cpu_colours
from rtgauge.report.how_often import how_often
from rtgauge.report.record_page import Drawn, figures
from rtgauge.report.record_view import RecordView, RequiredBound
from tests.support.figures import save_figures
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


@pytest.fixture(name="record")
def a_record(tmp_path: Path) -> Record:
    return Record.open(write_record(tmp_path / "runs"))


def rows(spec: dict, layer: int = 0) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(spec["datasets"][spec["layer"][layer]["data"]["name"]])))


def of_core(files: list[Path], record: Record) -> list[Path]:
    """Leave out the figures that an extension draws of any record."""
    others = {figure.name for figure in how_often([record]).figures}
    return [file for file in files if file.stem not in others]


def test_every_figure_in_every_format(record: Record, tmp_path: Path):
    files = save_figures(record, tmp_path / "figures")
    names = (
        "histogram",
        "exceedance",
        "course",
    )
    assert {file.name for file in of_core(files, record)} == {
        f"{name}.{form}" for name in names for form in MAGIC
    }
    for file in files:
        assert file.read_bytes().startswith(MAGIC[file.suffix[1:]])


def test_a_file_says_what_it_shows_and_on_what(record: Record, tmp_path: Path):
    for file in of_core(save_figures(record, tmp_path / "figures", ["svg"]), record):
        text = file.read_text(encoding="utf-8")
        assert "board-7 · Linux 6.1.0-18-amd64" in text
        assert "bound 200 us" in text
        assert text.count("line mark") >= 3, file.name


def test_an_unwritable_folder_is_named(record: Record, tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="not a folder"):
        save_figures(record, tmp_path / "file" / "figures", ["svg"])


def test_the_histogram_has_a_chart_a_load_and_a_line_a_cpu(record: Record):
    figure = figures(Source.of(RecordView(record)))["histogram"]
    assert figure.titles == ["idle", "cpu", "memory"]
    for spec, step in zip(figure.specs, record.steps, strict=True):
        for summary in step.series:
            mine = [row for row in rows(spec) if row["cpu"] == str(summary.labels["cpu"])]
            held = sum(
                int(a["n"]) * round(float(b["us"]) - float(a["us"])) for a, b in itertools.pairwise(mine)
            )
            assert held == summary.count
            assert summary.max_ns is not None
            assert (
                f"max {summary.max_ns / 1000:,.1f} us"
                in spec["layer"][0]["encoding"]["color"]["legend"]["labelExpr"]
            )


def test_the_bound_can_be_given_and_is_absent_where_none_was(record: Record, tmp_path: Path):
    bounds = {"latency": RequiredBound(50.0, 0.001)}
    drawn = figures(replace(Source.of(RecordView(record)), bounds=bounds))
    for name in ("exceedance", "course", "histogram"):
        assert "bound 50 us" in str(drawn[name].specs)
    plain = Record.open(write_record(tmp_path, Shape(seed=2, verdict=None)))
    assert "bound" not in str(
        [figure.specs[0]["layer"][1:] for figure in figures(Source.of(RecordView(plain))).values()]
    )


def test_the_filled_curve_needs_missed_activations(record: Record, tmp_path: Path):
    assert {
        row["load"]
        for row in rows(figures(Source.of(RecordView(record)))["exceedance"].specs[0])
        if row["kind"] == "f"
    } == {"memory"}
    none = Record.open(write_record(tmp_path, Shape(seed=2, missed_under=())))
    assert {row["kind"] for row in rows(figures(Source.of(RecordView(none)))["exceedance"].specs[0])} == {"p"}


def test_a_record_without_steps_has_no_figures(tmp_path: Path):
    empty = Record.open(write_record(tmp_path, Shape(loads=())))
    assert figures(Source.of(RecordView(empty))) == {}
    assert save_figures(empty, tmp_path / "figures") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("count", [1, 7, 8, 64])
def test_every_cpu_has_its_own_colour(theme: str, count: int):
    assert len(set(cpu_colours(count, theme))) == count
    assert config(theme, count)["range"]["ordinal"] == cpu_colours(count, theme)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "paper"), [("light", "#ffffff"), ("dark", "#15191f")])
def test_colours_stand_out_from_the_paper(theme: str, paper: str):
    look = config(theme, 64)
    for colour in (
        *look["range"]["category"],
        *look["range"]["ordinal"],
        look["axis"]["labelColor"],
        look["style"]["alarm"]["color"],
    ):
        bright, dim = sorted((luminance(colour), luminance(paper)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3, colour


def test_every_chart_is_valid_vega_lite(tmp_path):
    """Charts are not checked while they are made, for the sake of time: they are here."""
    record = Record.open(write_record(tmp_path, Shape(seconds=2, repeats=2)))
    drawn = Drawn.of(record)
    assert {"histogram", "exceedance", "course"} <= set(drawn.figures)
    for figure in drawn.figures.values():
        for spec in figure.specs:
            alt.LayerChart.from_dict(spec, validate=True)
