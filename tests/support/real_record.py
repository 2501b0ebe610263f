# SPDX-License-Identifier: MIT
"""A record of this machine, for tests of commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import SHORT, good, invoke
from tests.support.made_once import made_once


@pytest.fixture(scope="session")
def real_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of this machine with two steps; nobody writes to it."""
    words = (
        "run",
        "--load",
        "idle",
        "--repeats",
        2,
        "--duration",
        "1s",
        "--set",
        "samples=true",
        "--seed",
        7,
        *SHORT,
    )
    (record,) = made_once(tmp_path_factory, "real", lambda out: good(invoke(*words, "--out", out))).iterdir()
    return record


@pytest.fixture
def record(real_record: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(real_record, tmp_path / "records" / real_record.name))


def document(text: str) -> dict[str, Any]:
    """The one JSON document that standard output holds."""
    read: dict[str, Any] = json.loads(text)
    return read
