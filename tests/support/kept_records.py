# SPDX-License-Identifier: MIT
"""The records in tests/data of a version of rtgauge, and what commands say about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rtgauge.cli.main import app
from tests.support.archives import own_archive

DATA = Path(__file__).resolve().parents[1] / "data"
FROZEN, KINDS = (DATA / folder / "0.1.0.tar.xz" for folder in ("frozen", "kinds"))


@pytest.fixture(scope="session")
def kept_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a record of each kind, and the frozen records and their store."""
    folder = tmp_path_factory.mktemp("kept")
    for path, into in ((FROZEN, folder), (KINDS, folder / "0.1.0")):
        with own_archive(path) as archive:
            archive.extractall(into)
    return folder / "0.1.0"


def printed(*words: object) -> str:
    """What a command prints on standard output."""
    return CliRunner().invoke(app, [str(word) for word in words]).stdout


def of_run(document: dict[str, Any]) -> str:
    """The answer in the document of a run."""
    verdicts = document["run"]["verdicts"]
    if verdicts:
        assert (verdicts[0]["word"], verdicts[0]["reason"]) == (document["outcome"], document["answer"])
    return f"{(document['outcome'] or '').upper()} {document['answer']}".lstrip()


def of_search(document: dict[str, Any]) -> str:
    """The answer in the document of a search."""
    return f"{document['outcome'].upper()} {document['conclusion']}"
