# SPDX-License-Identifier: MIT
"""The figure and the chapter of the frequencies, among those of a record and of a comparison."""

from __future__ import annotations

from pathlib import Path

import altair as alt
from tests.support.figures import save_figures
from tests.support.records import Shape, write_record
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.record.reader import Record
from rtgauge.report.record_page import Drawn


def test_the_figure_is_a_valid_chart_and_a_file(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(seconds=2, repeats=2)))
    figure = Drawn.of(record).figures["timing-wakeup-latency-log"]
    for spec in figure.specs:
        alt.LayerChart.from_dict(spec, validate=True)
    files = save_figures(record, tmp_path / "figures", ["svg"])
    (text,) = (file.read_text(encoding="utf-8") for file in files if file.name.startswith("timing-"))
    assert "bound 200 us" not in text
    assert text.count("line mark") >= 3


def test_a_comparison_has_the_chapter(tmp_path: Path) -> None:
    sides = [
        word
        for seed in (1, 2)
        for word in ("--side", f"run-{seed}={write_record(tmp_path, Shape(seconds=2, seed=seed))}")
    ]
    page = tmp_path / "page.html"
    completed = CliRunner().invoke(app, ["compare", *sides, "--no-tails", "--page", str(page)])
    assert completed.exit_code == 0, completed.output
    assert ">How often<" in page.read_text(encoding="utf-8")


def test_it_fits_narrow_terminals(kept_records: Path) -> None:
    for columns in (60, 80):
        words = ["show", str(kept_records / "pairs"), "--frequency"]
        completed = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
        assert max(len(line) for line in completed.stdout.splitlines() if "rtgauge " not in line) <= columns
        assert "…" not in completed.stdout
