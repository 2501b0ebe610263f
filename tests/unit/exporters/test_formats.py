# SPDX-License-Identifier: MIT
"""Every format is read back by a reader that is not ours, to the numbers of the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import junitparser
import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import InputError
from rtgauge.exporters.record_export import GONE, export, formats
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record
from tests.support.exported import text


def test_junit_has_a_case_a_step(exported, hostile_exported):
    for source in (exported, hostile_exported):
        suite = next(iter(junitparser.JUnitXml.fromstring(text(source, "junit").encode())))
        assert suite.tests == len(source.steps) + 1 + len(source.run.left_out)
        failing = {
            verdict.step
            for verdict in source.run.verdicts
            if verdict.word is VerdictWord.FAILS and verdict.step is not None
        }
        failed = {
            case.name.split(":")[0]
            for case in suite
            if any(isinstance(result, junitparser.Failure) for result in case.result)
        }
        assert failing
        assert failed == failing | {"requirement period=1ms latency<=200us hardness=100%", "load network"}
        assert suite.failures == len(failed)
        assert suite.skipped == 0


def test_markdown_is_a_table_with_a_row_a_series(exported, hostile_exported):
    for source in (exported, hostile_exported):
        tokens = MarkdownIt("commonmark").enable("table").parse(text(source, "markdown"))
        rows = [at for at, token in enumerate(tokens) if token.type == "tr_open"]
        assert len(rows) == 1 + sum(1 + len(step.series) for step in source.steps)
        for at in rows:
            cells = [token.type for token in tokens[at:]]
            assert cells[: cells.index("tr_close")].count("inline") == 9
        assert not [token for token in tokens if token.type == "html_block"]
        assert not [
            child
            for token in tokens
            for child in token.children or []
            if child.type in {"html_inline", "link_open", "image"}
        ]


def only(record: Record, number: int) -> Record:
    return replace(record, steps=[record.steps[number]])


@pytest.mark.parametrize("form", sorted(GONE))
def test_a_format_that_is_gone_names_another(form, exported):
    completed = CliRunner().invoke(app, ["export", str(exported.path), "--format", form])
    assert isinstance(completed.exception, InputError)
    assert form in str(completed.exception)
    assert GONE[form] in str(completed.exception)
    assert form not in formats()


@pytest.mark.parametrize("form", ("junit", "markdown"))
def test_a_hostile_name_gives_no_control_characters(form, hostile_exported, tmp_path: Path):
    out = tmp_path / "out"
    export(only(hostile_exported, 0), form, out)
    written = out.read_text(encoding="utf-8")
    assert "\x1b" not in written
    assert "\u202e" not in written
