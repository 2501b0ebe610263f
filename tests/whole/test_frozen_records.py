# SPDX-License-Identifier: MIT
"""Records that earlier versions wrote, read by every command that reads them.

Without an extension that measured a step, the step is shown as far as the core can.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.extension import registered
from rtgauge.known_extensions import missing
from tests.support.archives import own_archive

if TYPE_CHECKING:
    from click.testing import Result

FROZEN = Path(__file__).resolve().parents[1] / "data" / "frozen"
PROBES = {
    *("inversion", "noise", "periodic", "preempt", "response"),
    *("semaphore", "switch", "taskset", "tire", "wakeup"),
}
VERSIONS = sorted(FROZEN.glob("*.tar.xz"))


def run(*words: object, status: int = 0) -> Result:
    """A command's result; it must end with this status."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, (words, result.output, result.exception)
    return result


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda path: path.name.removesuffix(".tar.xz"))
def frozen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one version: corpus, pairs, store.sqlite."""
    folder = tmp_path_factory.mktemp("frozen")
    with own_archive(request.param) as archive:
        archive.extractall(folder)
    (version,) = folder.iterdir()
    return version


def test_show_has_the_figures_that_were_measured(frozen: Path) -> None:
    shown = json.loads(run("show", frozen / "corpus", "--json").stdout)
    step = next(step for step in shown["steps"] if step["id"] == "02-wakeup-cpu")
    assert [(series["count"], series["missed"], series["max_ns"]) for series in step["series"]] == [
        (993, 7, 7_811_283),
        (1_000, 0, 112_855),
    ]
    assert "FAILS" in run("show", frozen / "corpus").stdout


def test_each_probe_is_there(frozen: Path) -> None:
    shown = json.loads(run("show", frozen / "corpus", "--json").stdout)
    assert {step["key"]["probe"] for step in shown["steps"]} == PROBES


def test_it_is_judged_by_another_requirement(frozen: Path) -> None:
    assert "FAILS" in run("show", frozen / "corpus", "--require", "period=1ms latency<=1us", status=1).stdout


def test_report(frozen: Path, tmp_path: Path) -> None:
    run("show", frozen / "corpus", "--page", tmp_path / "page.html")
    assert "7,811.3" in (tmp_path / "page.html").read_text()


def test_explain(frozen: Path) -> None:
    assert "local timer interrupt" in run("show", frozen / "corpus", "--why").stdout


def test_compare_takes_the_pairs(frozen: Path) -> None:
    compared = json.loads(run("compare", frozen / "pairs", "--json").stdout)
    assert [(side["label"], side["runs"]) for side in compared["sides"]] == [
        ("policy=fifo", 3),
        ("policy=rr", 3),
    ]


@pytest.mark.parametrize(
    "form",
    sorted({"csv", "json", "markdown", "junit", "openmetrics", "perfetto"} & set(registered("exporters"))),
)
def test_export(frozen: Path, form: str) -> None:
    assert run("export", frozen / "corpus", "--format", form).stdout


def test_export_of_windows(frozen: Path, tmp_path: Path) -> None:
    run("export", frozen / "corpus", "--format", "parquet", "--windows", "-o", tmp_path / "windows.parquet")
    assert pl.read_parquet(tmp_path / "windows.parquet").height > 0


def test_the_extensions_that_are_missing_are_named(frozen: Path, tmp_path: Path) -> None:
    """On the terminal and on the page."""
    run("show", frozen / "corpus", "--page", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for shown in (run("show", frozen / "corpus", "--details").stdout, page):
        text = " ".join(shown.split())
        for probe in PROBES:
            reported = f"{probe} is shown without its own tables: it needs the extension"
            assert (reported in text) == (missing("probes", probe) is not None), probe
