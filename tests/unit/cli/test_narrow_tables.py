# SPDX-License-Identifier: MIT
"""Details fit narrow terminals, and nothing that they show is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rtgauge.cli.main import app
from tests.support.archives import own_archive

FROZEN = Path(__file__).resolve().parents[2] / "data" / "frozen" / "0.1.0.tar.xz"


@pytest.fixture(scope="module", name="frozen")
def the_frozen_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    with own_archive(FROZEN) as archive:
        archive.extractall(folder)
    return folder / "0.1.0"


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "words",
    [
        ("show", "corpus", "--details"),
        ("compare", "pairs", "--details"),
    ],
    ids=" ".join,
)
def test_it_fits_and_nothing_is_cut(
    frozen: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int
) -> None:
    monkeypatch.chdir(frozen)
    completed = CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns)})
    lines = [line for line in completed.stdout.splitlines() if "rtgauge " not in line]
    assert lines
    assert [line for line in lines if len(line) > columns] == []
    assert "…" not in completed.stdout
