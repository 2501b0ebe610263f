# SPDX-License-Identifier: MIT
"""A record of each kind is shown, compared and explained, whatever command wrote it.

Without the extension that wrote it, it is shown as far as the core can, with the name of the extension.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import RtgaugeError
from rtgauge.extension import extensions
from rtgauge.units import format_time
from tests.support.archives import own_archive
from tests.support.messages import missing

ARCHIVES = sorted((Path(__file__).resolve().parents[1] / "data" / "kinds").glob("*.tar.xz"))


def kinds(archive: Path) -> list[str]:
    """The records of an archive: one folder each, named after its kind."""
    with tarfile.open(archive) as members:
        return sorted({name.partition("/")[0] for name in members.getnames()})


SEARCHES = {"bisect"}
"""Kinds that are no record, but a folder with a record of each run."""
EVERY = [(archive, kind) for archive in ARCHIVES for kind in kinds(archive)]
RECORDS = [(archive, kind) for archive, kind in EVERY if kind not in SEARCHES]
PAIRS = {"gate", "tune"}
"""Kinds that have two sides, so that the record is compared alone."""
EXPLAINED = {"watch", "tune"}
NEEDS = {"bisect": "bisect", "response": "signal", "tire": "tire", "tune": "tune"}
"""Kind -> the extension that shows more of it than the core."""
HERE = {extension.name for extension in extensions()}
POLLER = "poller"
"""It has too few stops for a quantile, and no recorded events of them."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all archives."""
    folder = tmp_path_factory.mktemp("kinds")
    for path in ARCHIVES:
        with own_archive(path) as archive:
            archive.extractall(folder / path.stem)  # noqa: S202 - our own, with a filter
    return folder


def test_there_is_a_record_of_each_kind() -> None:
    assert {kind for _, kind in EVERY} >= {
        "run",
        "probe",
        "watch",
        "poller",
        "response",
        "tire",
        "gate",
        "tune",
        "bisect",
        "import",
    }


@pytest.mark.parametrize(("archive", "kind"), RECORDS, ids=lambda value: getattr(value, "stem", value))
def test_it_is_shown_compared_and_explained(unpacked: Path, tmp_path: Path, archive: Path, kind: str) -> None:
    record = unpacked / archive.stem / kind

    def run(*words: object) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code in {0, 1, 4}, (words, result.output, result.exception)
        return result.output if "--json" not in words else result.stdout

    is_missing = kind in NEEDS and NEEDS[kind] not in HERE
    has_pairs = kind in PAIRS and not is_missing
    document = json.loads(run("show", record, "--json"))
    largest = {each["max_ns"] for step in document["steps"] for each in step["series"]} - {None}
    shown = run("show", record)
    assert (
        f"needs the extension {NEEDS.get(kind)}, which is not installed" in " ".join(shown.split())
    ) == is_missing
    if has_pairs:
        assert shown.startswith(document["outcome"].upper())
    else:
        assert any(format_time(value) in shown for value in largest)
    run("show", record, "--details")
    run("show", record, "--marks")
    run("show", record, "--page", tmp_path / "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text()

    if kind in PAIRS:
        assert json.loads(run("compare", record, "--json"))["sides"]
    else:
        shutil.copytree(record, tmp_path / "after")
        sides = ("--side", f"before={record}", "--side", f"after={tmp_path / 'after'}")
        compared = json.loads(run("compare", *sides, "--json"))
        documents = compared if isinstance(compared, list) else [compared]
        differences = {row["difference_ns"] for document in documents for row in document["quantiles"]}
        assert differences == (set() if kind == POLLER else {0})

    if kind in EXPLAINED:
        assert "us" in run("show", record, "--why")
    elif kind == POLLER:
        assert "none of the latencies is explained" in run("show", record, "--why")
    else:
        result = CliRunner().invoke(app, ["show", str(record), "--why"])
        assert isinstance(result.exception, RtgaugeError)
        assert "--explain" in str(result.exception)


@pytest.mark.parametrize(
    "archive", [archive for archive, kind in EVERY if kind == "bisect"], ids=lambda path: path.stem
)
def test_a_bisections_runs_are_shown_compared_and_explained(unpacked: Path, archive: Path) -> None:
    search = unpacked / archive.stem / "bisect"
    if "bisect" not in HERE:
        refused = CliRunner().invoke(app, ["show", str(search)])
        assert not missing(str(refused.exception), "extension bisect", "not installed")
        return

    def run(*words: object) -> str:
        return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).output

    document = json.loads(run("show", search, "--json"))
    (actual,) = document["first_bad"]
    assert run("show", search).startswith(f"FIRST BAD  {actual['commit'][:12]} {actual['subject']}\n")
    for part in ("--why", "--marks", "--frequency"):
        refused = CliRunner().invoke(app, ["show", str(search), part])
        assert isinstance(refused.exception, RtgaugeError)

    state = json.loads((search / "bisect.json").read_text())
    ends = {side: state["wish"][side] for side in ("good", "bad")}
    runs = [(each["commit"], search / each["record"]) for each in state["runs"]]
    kept = [(commit, record) for commit, record in runs if record.is_dir()]
    sides = [
        word
        for side, end in ends.items()
        for commit, record in kept
        if commit == end
        for word in ("--side", f"{side}={record}")
    ]
    compared = json.loads(run("compare", "--baseline", "good", *sides, "--json"))
    (p99,) = [row for row in compared["quantiles"] if row["quantile"] == "p99"]
    assert p99["difference_ns"] > 1_000_000
    for _, record in kept:
        assert "activations" in run("show", record)
        refused = CliRunner().invoke(app, ["show", str(record), "--why"])
        assert isinstance(refused.exception, RtgaugeError)
        assert "--explain" in str(refused.exception)
