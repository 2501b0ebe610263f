# SPDX-License-Identifier: MIT
"""Every format is read back by a reader that is not ours, to the numbers of the record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import junitparser
import pytest
from kcidb_io import schema
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import InputError
from rtgauge.exporters.ci_reports import KernelSource, kcidb
from rtgauge.exporters.record_export import FORMATS, GONE, TEXTS, export
from rtgauge.record.model import VerdictWord
from rtgauge.record.quantiles import QUANTILES
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record

HOSTILE = 'a"b\\c\x1b[2J|*_<&>%$#{}~^\u202e\n]]> -- é'


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> Record:
    return Record.open(write_record(tmp_path_factory.mktemp("record"), Shape(seconds=3)))


@pytest.fixture(scope="module")
def hostile(record) -> Record:
    """The same with a load whose name belongs to all formats at once."""
    steps = [
        step.model_copy(update={"key": step.key.model_copy(update={"load": HOSTILE})})
        for step in record.steps
    ]
    return replace(record, steps=steps)


def text(record: Record, form: str) -> str:
    written = export(record, form, None)
    assert written is not None
    return written


def test_every_format_has_a_test_of_its_own():
    tested = {name.removeprefix("test_").split("_")[0] for name in globals() if name.startswith("test_")}
    assert set(TEXTS) <= tested
    assert set(TEXTS) < set(FORMATS)


def test_junit_has_a_case_a_step(record, hostile):
    for source in (record, hostile):
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


def test_openmetrics_has_every_figure(record, hostile):
    for source in (record, hostile):
        written = text(source, "openmetrics")
        families = {family.name: family for family in read_openmetrics(written)}
        maxima = {
            (sample.labels["step"], sample.labels["series"]): sample.value
            for sample in families["rtgauge_max_seconds"].samples
        }
        for step in source.steps:
            assert maxima[step.id, "all"] == pytest.approx(step.total.max_ns / 1e9)
            assert maxima[step.id, "1"] == pytest.approx(step.series[1].max_ns / 1e9)
        assert {sample.labels["p"] for sample in families["rtgauge_quantile_seconds"].samples} <= {
            str(float(share)) for share in QUANTILES.values()
        }
        assert 'quantile="' not in written, "promtool: non-summary metrics should not have a quantile label"
        # node_exporter reads the older format.
        assert {family.name for family in read_prometheus(written)} == set(families)


def test_markdown_is_a_table_with_a_row_a_series(record, hostile):
    for source in (record, hostile):
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


def test_kcidb_fits_the_schema(record, hostile):
    for source in (record, hostile):
        report = json.loads(text(source, "kcidb"))
        schema.V5_3.validate(report)
        ids = [test["id"] for test in report["tests"]]
        assert len(ids) == len(set(ids))
        largest = {
            test["id"].rsplit("/", 2)[0]: test["number"]["value"]
            for test in report["tests"]
            if test["id"].endswith("/None/max")
        }
        assert list(largest.values()) == pytest.approx([step.total.max_ns / 1e9 for step in source.steps])
        assert {test["status"] for test in report["tests"]} >= {"DONE", "FAIL"}


def test_kcidb_names_the_commit_and_the_build(record, tmp_path):
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("tag", "v6.18")
    git("remote", "add", "origin", "https://example.org/linux.git")
    words = [
        "export",
        str(record.path),
        "--format",
        "kcidb",
        "--kernel-tree",
        str(tmp_path),
        "--origin",
        "lab_1",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    schema.V5_3.validate(report)
    commit = git("rev-parse", "HEAD")
    (checkout,) = report["checkouts"]
    assert checkout["git_commit_hash"] == commit
    assert checkout["git_commit_name"] == "v6.18"
    assert checkout["git_repository_url"] == "https://example.org/linux.git"
    assert {build["checkout_id"] for build in report["builds"]} == {checkout["id"]} == {f"lab_1:{commit}"}
    assert {test["build_id"] for test in report["tests"]} == {build["id"] for build in report["builds"]}


def test_kcidb_refuses_the_tree_of_another_kernel(record):
    facts = record.system("local")
    named = facts.model_copy(
        update={"kernel": facts.kernel.model_copy(update={"release": "6.18.0-rt-g0123456789ab"})}
    )
    built = replace(record, systems=dict.fromkeys(record.systems, named))
    with pytest.raises(
        InputError, match=r"6\.18\.0-rt-g0123456789ab, which was not built from commit aaaaaaaaaaaa"
    ):
        kcidb(built, KernelSource("lab_1", "a" * 40, "v6.18", ""))
    assert json.loads(kcidb(built, KernelSource("lab_1", "0123456789ab" + "a" * 28, "v6.18", "")))["builds"]


def only(record: Record, number: int) -> Record:
    return replace(record, steps=[record.steps[number]])


@pytest.mark.parametrize("form", sorted(GONE))
def test_a_format_that_is_gone_names_another(form, record):
    done = CliRunner().invoke(app, ["export", str(record.path), "--format", form])
    assert isinstance(done.exception, InputError)
    assert form in str(done.exception)
    assert GONE[form] in str(done.exception)
    assert form not in FORMATS


@pytest.mark.parametrize("form", sorted(TEXTS))
def test_a_hostile_name_gives_no_control_characters(form, hostile, tmp_path: Path):
    out = tmp_path / "out"
    export(only(hostile, 0), form, out)
    written = out.read_text(encoding="utf-8")
    assert "\x1b" not in written
    assert "\u202e" not in written
