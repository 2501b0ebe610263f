# SPDX-License-Identifier: MIT
"""Output that is not a terminal has whole lines: nothing is cut or wrapped, and no line ends in spaces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.records import Shape, write_record


@pytest.fixture(scope="module", name="record")
def a_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loads = ("idle", "a-load-with-a-name-that-no-terminal-of-80-columns-shows-whole")
    medians = dict.fromkeys(loads, 6_000.0)
    return write_record(tmp_path_factory.mktemp("runs"), Shape(loads=loads, seconds=1, median_ns=medians))


def shown(record: Path, *words: str, columns: str | None = None) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    completed = subprocess.run(
        [sys.executable, "-c", "from rtgauge.cli.main import main; main()", "show", record, *words],
        env=environment | ({} if columns is None else {"COLUMNS": columns}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stderr == ""
    return completed.stdout.splitlines()


@pytest.mark.parametrize("words", [(), ("--details",)])
def test_no_line_is_cut_or_padded(record: Path, words: tuple[str, ...]) -> None:
    lines = shown(record, *words)
    assert [line for line in lines if line != line.rstrip()] == []
    assert not any("…" in line for line in lines)
    assert any(
        line.startswith("a-load-with-a-name-that-no-terminal-of-80-columns-shows-whole") for line in lines
    )


def test_columns_still_sets_a_width(record: Path) -> None:
    assert len(shown(record, columns="80")[0]) <= 80 < len(shown(record)[0])
