# SPDX-License-Identifier: MIT
"""The selection of Delgado and Choi in a comparison, and what the command prints of it."""

from __future__ import annotations

from tests.support.messages import missing
from tests.support.records import Shape, write_record
from tests.unit.analysis.test_comparison import body, run, side_of

from rtgauge.record.reader import Record
from rtgauge_ext.papers.comparison_part import papers_comparison


def test_a_rejected_side_that_is_better_everywhere_is_named(tmp_path):
    record = Record.open(write_record(tmp_path, Shape(seconds=1, loads=("idle",))))
    single = side_of("Single", body(1), record)
    near, better = side_of("M", body(2, shift=100), record), side_of("HM", body(3, shift=-2_000), record)
    part = papers_comparison(
        [single, near, better], [(near, single), (better, single)], alpha=0.05, tails=False
    )
    paper = part.selections[0]
    assert (paper.best, paper.rejected_but_lower) == ("M", ["HM"])
    assert not missing(part.notes()[0], "nearest to Single is M", "lower at every quantile: HM")


def test_the_selection_is_one_line_without_details(tmp_path, monkeypatch, capsys):
    path = write_record(tmp_path, Shape(seconds=25, loads=("idle", "cpu"), marks=False))
    out = run(monkeypatch, capsys, "compare", path, "--no-tails")[1]
    assert "Selection (chi-square)" in out
    assert "DOF" not in out
    assert "DOF" in run(monkeypatch, capsys, "compare", path, "--no-tails", "--details")[1]
