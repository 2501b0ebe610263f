# SPDX-License-Identifier: MIT
"""Every format is read back by a reader that is not ours, to the numbers of the record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import junitparser
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from kcidb_io import schema
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexWalker
from tap.parser import Parser as TapParser
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import InputError
from rtgauge.exporters.ci_reports import KernelSource, kcidb
from rtgauge.exporters.record_export import FORMATS, TEXTS, export
from rtgauge.exporters.step_figures import QUANTILES
from rtgauge.importers.imported_record import import_file
from rtgauge.record.model import VerdictWord
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record
from tests.unit.importers.foreign_files import FILES

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


def test_hdr_has_every_sample_of_every_window(record, tmp_path):
    (tmp_path / "log").write_text(text(record, "hdr"))
    for step in record.steps:
        for series in step.series:
            together = HdrHistogram(1, 10**11, 3)
            reader = HistogramLogReader(str(tmp_path / "log"), together)
            windows = 0
            while (histogram := reader.get_next_interval_histogram()) is not None:
                if histogram.get_tag() == f"{step.id}-{series.series}":
                    together.add(histogram)
                    windows += 1
            assert windows == 3
            assert together.get_total_count() == series.count
            assert together.get_max_value() == pytest.approx(series.max_ns, rel=2e-3)
            # 1 % by the bins of a record, 0.1 % by the digits of the log.
            assert together.get_value_at_percentile(99) == pytest.approx(series.p99_ns, rel=0.012)


def test_hdr_keeps_early_values_apart(tmp_path):
    source = tmp_path / "x"
    source.write_bytes(FILES["cyclictest.txt"].encode())
    imported = Record.open(import_file(source, tmp_path))
    log = text(imported, "hdr")
    # Two of thread 1 are above the histogram: the largest is known, the other is not.
    assert "samples of unknown value, which are not in the log: 1" in log


def test_hdr_beyond_the_histogram_has_the_largest_and_says_the_rest(tmp_path):
    """Two of 12 and 60 s: a record's last bin begins at 10 s."""
    document = json.loads(FILES["rt-tests.json"])
    document["thread"]["0"] |= {
        "histogram": {"3": 50, "12000000": 1, "60000000": 1},
        "cycles": 52,
        "max": 60_000_000,
        "avg": 1384618.27,
    }
    (tmp_path / "x").write_text(json.dumps(document))
    (tmp_path / "log").write_text(text(Record.open(import_file(tmp_path / "x", tmp_path)), "hdr"))
    assert "samples of 10 s or longer: 1" in (tmp_path / "log").read_text()
    histogram = HistogramLogReader(
        str(tmp_path / "log"), HdrHistogram(1, 10**12, 3)
    ).get_next_interval_histogram()
    assert histogram.get_total_count() == 52
    assert histogram.get_max_value() == pytest.approx(60e9, rel=2e-3)
    assert histogram.get_value_at_percentile(98.5) == pytest.approx(10e9, rel=2e-3)


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


def test_tap_has_a_test_a_step(record, hostile):
    for source in (record, hostile):
        lines = list(TapParser().parse_text(text(source, "tap")))
        tests = [line for line in lines if line.category == "test"]
        assert not [line for line in lines if line.category == "unknown"]
        assert (
            next(line for line in lines if line.category == "plan").expected_tests
            == len(tests)
            == len(source.steps) + 1 + len(source.run.left_out)
        )
        assert [line.ok for line in tests[: len(source.steps)]] == [
            not any(
                verdict.step == step.id and verdict.word is VerdictWord.FAILS
                for verdict in source.run.verdicts
            )
            for step in source.steps
        ]
        assert [line.ok for line in tests[len(source.steps) :]] == [False, False]
        assert sum(line.skip for line in tests) == 0


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
        assert {sample.labels["p"] for sample in families["rtgauge_quantile_seconds"].samples} <= set(
            QUANTILES.values()
        )
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


def test_latex_has_tables_of_nine_columns(record, hostile):
    for source in (record, hostile):
        written = text(source, "latex")
        nodes, _, _ = LatexWalker(written, tolerant_parsing=False).get_latex_nodes()
        tables = [node for node in nodes if isinstance(node, LatexEnvironmentNode)]
        assert [table.environmentname for table in tables] == ["table"]
        body = [line for line in written.splitlines() if line.endswith(r"\\")]
        assert len(body) == 1 + sum(1 + len(step.series) for step in source.steps)
        assert all(line.replace(r"\&", "").count("&") == 8 for line in body)
        assert written.isascii()


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


def test_lava_reads_as_lines_of_four_words(record):
    lines = [line.split() for line in text(only(record, 0), "lava").splitlines()]
    largest = {words[0]: words for words in lines}
    for number, series in enumerate(record.steps[0].series):
        words = largest[f"t{number}-max-latency"]
        assert (words[1] in {"pass", "fail"}, float(words[2]), words[3]) == (
            True,
            pytest.approx(series.max_ns / 1000, abs=1e-3),
            "us",
        )
    assert all(len(line.split()) == 4 for line in text(record, "lava").splitlines())


def test_cyclictest_is_read_as_its_scripts_do(record):
    """As awk reads it: rows begin with a digit, figures with `#`."""
    for number, step in enumerate(record.steps):
        lines = text(only(record, number), "cyclictest").splitlines()
        rows = [[int(cell) for cell in line.split()] for line in lines if line[0].isdigit()]
        figures = {
            line[2 : line.index(":")]: line[line.index(":") + 1 :].split()
            for line in lines
            if line.startswith("# ") and ":" in line
        }
        assert [row[0] for row in rows] == list(range(len(rows)))
        for at, series in enumerate(step.series):
            overflow = int(figures["Histogram Overflows"][at])
            assert sum(row[at + 1] for row in rows) == int(figures["Total"][at]) == series.count - overflow
            assert int(figures["Max Latencies"][at]) == series.max_ns // 1000
            assert int(figures["Min Latencies"][at]) == series.min_ns // 1000


def test_cyclictest_text_goes_out_and_in_again(record, tmp_path):
    source = tmp_path / "histogram.txt"
    export(only(record, 0), "cyclictest", source)
    again = Record.open(import_file(source, tmp_path / "runs")).steps[0]
    assert [(series.count, series.max_ns) for series in again.series] == [
        (series.count, series.max_ns // 1000 * 1000) for series in record.steps[0].series
    ]


def test_a_record_of_several_steps_is_no_text_of_cyclictest(record):
    with pytest.raises(InputError, match="--step"):
        export(record, "cyclictest", None)


@pytest.mark.parametrize("form", sorted(TEXTS))
def test_a_hostile_name_gives_no_control_characters(form, hostile, tmp_path: Path):
    out = tmp_path / "out"
    export(only(hostile, 0), form, out)
    written = out.read_text(encoding="utf-8")
    assert "\x1b" not in written
    assert "\u202e" not in written
