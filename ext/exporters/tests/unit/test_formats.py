# SPDX-License-Identifier: MIT
"""Every format is read back by a reader that is not ours, to the numbers of the record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from kcidb_io import schema
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus
from tests.support.exported import text
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import InputError
from rtgauge.exporters.record_export import export
from rtgauge.record.quantiles import QUANTILES
from rtgauge.record.reader import Record
from rtgauge_ext.exporters.kcidb import KernelSource, kcidb


def test_openmetrics_has_every_figure(exported, hostile_exported):
    for source in (exported, hostile_exported):
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


def test_kcidb_fits_the_schema(exported, hostile_exported):
    for source in (exported, hostile_exported):
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


def test_kcidb_names_the_commit_and_the_build(exported, tmp_path):
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
        str(exported.path),
        "--format",
        "kcidb",
        "--kernel-tree",
        str(tmp_path),
        "--origin",
        "lab_1",
    ]
    completed = CliRunner().invoke(app, words)
    assert completed.exit_code == 0, completed.output
    report = json.loads(completed.stdout)
    schema.V5_3.validate(report)
    commit = git("rev-parse", "HEAD")
    (checkout,) = report["checkouts"]
    assert checkout["git_commit_hash"] == commit
    assert checkout["git_commit_name"] == "v6.18"
    assert checkout["git_repository_url"] == "https://example.org/linux.git"
    assert {build["checkout_id"] for build in report["builds"]} == {checkout["id"]} == {f"lab_1:{commit}"}
    assert {test["build_id"] for test in report["tests"]} == {build["id"] for build in report["builds"]}


def test_kcidb_refuses_the_tree_of_another_kernel(exported):
    facts = exported.system("local")
    named = facts.model_copy(
        update={"kernel": facts.kernel.model_copy(update={"release": "6.18.0-rt-g0123456789ab"})}
    )
    built = replace(exported, systems=dict.fromkeys(exported.systems, named))
    with pytest.raises(
        InputError, match=r"6\.18\.0-rt-g0123456789ab, which was not built from commit aaaaaaaaaaaa"
    ):
        kcidb(built, KernelSource("lab_1", "a" * 40, "v6.18", ""))
    assert json.loads(kcidb(built, KernelSource("lab_1", "0123456789ab" + "a" * 28, "v6.18", "")))["builds"]


def only(record: Record, number: int) -> Record:
    return replace(record, steps=[record.steps[number]])


@pytest.mark.parametrize("form", ("kcidb", "openmetrics"))
def test_a_hostile_name_gives_no_control_characters(form, hostile_exported, tmp_path: Path):
    out = tmp_path / "out"
    export(only(hostile_exported, 0), form, out)
    written = out.read_text(encoding="utf-8")
    assert "\x1b" not in written
    assert "\u202e" not in written
