# SPDX-License-Identifier: MIT
"""Records and stores that earlier versions wrote are read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.archives import own_archive
from typer.testing import CliRunner

from rtgauge.cli.main import app

VERSIONS = sorted((Path(__file__).resolve().parents[4] / "tests" / "data" / "frozen").glob("*.tar.xz"))


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda path: path.name.removesuffix(".tar.xz"))
def frozen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one version: corpus, pairs, store.sqlite."""
    folder = tmp_path_factory.mktemp("frozen")
    with own_archive(request.param) as archive:
        archive.extractall(folder)
    (version,) = folder.iterdir()
    return version


def test_the_store_takes_the_records(frozen: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    run("store", "add", frozen, "--store", store)
    assert len(json.loads(run("store", "list", "--store", store, "--json"))["records"]) == 2


def test_the_store_of_that_version_is_read(frozen: Path) -> None:
    shown = run("store", "show", "wakeup/latency/idle/as-is", "--store", frozen / "store.sqlite")
    assert len(re.findall(r"^2026-11-24", shown, re.MULTILINE)) == 7
    run("store", "history", "wakeup/latency/idle/as-is", "--store", frozen / "store.sqlite")
