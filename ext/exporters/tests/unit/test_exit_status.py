# SPDX-License-Identifier: MIT
"""What is exported for continuous integration passes where the run exits with 0, and nowhere else."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import junitparser
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from tests.support.records import Shape, write_record
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.exporters.record_export import export
from rtgauge.record.model import LeftOut, Mark, Severity, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.report.record_view import RecordView
from rtgauge.verdict.exit_status import exit_status
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("junit", "openmetrics", "kcidb")
NETWORK = LeftOut(what="load network", reason="iperf3 is not installed", remedy="apt-get install iperf3")
HOLDS, MARGINAL, FAILS, TOO_SHORT = (
    "latency<=1s",
    "latency<=500us",
    "latency<=200us",
    "latency<=1s hardness=99.9999%",
)


@pytest.fixture(scope="module", name="path")
def a_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(
        tmp_path_factory.mktemp("record"),
        Shape(seconds=6, verdict=None, marks=False, left_out=False, missed_under=()),
    )


def passes(record: Record) -> dict[str, bool]:
    """Format -> whether whatever reads it says that all passed."""
    written = {form: export(record, form, None) or "" for form in FORMATS}
    suite = next(iter(junitparser.JUnitXml.fromstring(written["junit"].encode())))
    samples = {
        sample.value
        for family in read_openmetrics(written["openmetrics"])
        if family.name in {"rtgauge_passes", "rtgauge_run_passes"}
        for sample in family.samples
    }
    return {
        "junit": suite.failures == suite.errors == 0,
        "openmetrics": samples == {1.0},
        "kcidb": all(test["status"] != "FAIL" for test in json.loads(written["kcidb"])["tests"]),
    }


def changed(
    path: Path, require: str | None, *, left_out: bool, allowed: bool, invalid: bool, state: str
) -> Record:
    record = Record.open(path)
    record.run.left_out = [NETWORK] if left_out else []
    record.run.allow_left_out = allowed
    if state != "complete":
        record.run.state = "interrupted"
        record.run.planned = [
            *record.run.planned,
            record.run.planned[0].model_copy(update={"load": "network"}),
        ]
    if invalid:
        record.steps[0].marks = [Mark(name="stopped", severity=Severity.INVALID, detail="the machine slept")]
    if require is not None:
        record.run.requirement = require
        record.run.verdicts = judge_run(parse_requirement(require), record, RecordView(record).labels)
    return record


CASES = list(
    itertools.product(
        [None, HOLDS, MARGINAL, FAILS, TOO_SHORT, "jitter<=1ms"],
        *[[False, True]] * 3,
        ["complete", "interrupted"],
    )
)


@pytest.mark.parametrize(("require", "left_out", "allowed", "invalid", "state"), CASES)
def test_every_format_agrees_with_the_exit_status(
    path: Path, require: str | None, left_out: bool, allowed: bool, invalid: bool, state: str
) -> None:
    record = changed(path, require, left_out=left_out, allowed=allowed, invalid=invalid, state=state)
    # an interrupted run exits with 130 whatever it measured (cli/command_end.py)
    good = state == "complete" and exit_status(record.run.verdicts, record.steps) == 0
    assert passes(record) == dict.fromkeys(FORMATS, good)


@pytest.mark.parametrize(
    ("require", "word"),
    [
        (HOLDS, VerdictWord.HOLDS),
        (MARGINAL, VerdictWord.MARGINAL),
        (FAILS, VerdictWord.FAILS),
        (TOO_SHORT, VerdictWord.CANNOT_TELL),
    ],
)
def test_the_cases_are_what_their_names_say(path: Path, require: str, word: VerdictWord) -> None:
    assert (
        changed(path, require, left_out=False, allowed=False, invalid=False, state="complete")
        .run.verdicts[0]
        .word
        is word
    )


def test_one_step_alone_is_not_the_run(path: Path) -> None:
    record = Record.open(path)
    words = ["export", str(path), "--format", "junit", "--step", record.steps[0].id, "--require", HOLDS]
    completed = CliRunner().invoke(app, words)
    assert completed.exit_code == 0
    suite = next(iter(junitparser.JUnitXml.fromstring(completed.stdout.encode())))
    assert suite.tests == 1


def test_export_judges_by_another_requirement(path: Path) -> None:
    completed = CliRunner().invoke(app, ["export", str(path), "--format", "junit", "--require", FAILS])
    assert completed.exit_code == 1
    suite = next(iter(junitparser.JUnitXml.fromstring(completed.stdout.encode())))
    assert suite.failures == 3  # idle fails, cpu is marginal, and the run
    assert "latency<=200us" in [case.name for case in suite][-1]
