# SPDX-License-Identifier: MIT
"""Environments and limits with which commands cannot work: one line, and the status of a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.messages import missing
from tests.support.records import Shape, write_record

PROGRAM = "import resource, sys; {limit}; from rtgauge.cli.main import main; main()"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("runs"), Shape(seconds=2, loads=("idle",)))


def rtgauge(
    *words: object, limit_kib: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command, with this much address space."""
    limits = (limit_kib or 0) << 10
    limit = f"resource.setrlimit(resource.RLIMIT_AS, ({limits}, {limits}))" if limit_kib else "pass"
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(limit=limit), *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "²", "", "9" * 30])
def test_a_size_of_the_terminal_that_is_none_is_ignored(record: Path, name: str, value: str) -> None:
    completed = rtgauge("show", record, **{name: value})
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.parametrize("value", ["", "x", "1e9", "9" * 30, "1.5"])
def test_a_date_that_is_none_is_refused(record: Path, value: str) -> None:
    completed = rtgauge("show", "--page", record, SOURCE_DATE_EPOCH=value)
    assert completed.returncode == 2
    (line,) = completed.stderr.splitlines()
    assert f"SOURCE_DATE_EPOCH={value!r}" in line
    assert not missing(line, "seconds", "unset")


@pytest.mark.parametrize("value", ["0", "1700000000"])
def test_a_date_is_allowed(record: Path, value: str) -> None:
    assert rtgauge("show", "--page", record, SOURCE_DATE_EPOCH=value).returncode == 0


@pytest.mark.parametrize("limit_kib", [150_000, 300_000, 600_000, 1_000_000])
def test_too_little_memory_is_one_line(record: Path, limit_kib: int) -> None:
    completed = rtgauge("show", "--page", record, limit_kib=limit_kib)
    assert completed.returncode == 3
    (line,) = completed.stderr.splitlines()
    assert not missing(line, f"{limit_kib} KiB", "ulimit -v")
    least_kib = int(line.split()[-1])
    assert rtgauge("show", "--page", record, limit_kib=least_kib).returncode == 0


def test_too_little_memory_to_begin_is_one_line() -> None:
    """Without this check, imports end in a traceback and the status of an answer."""
    completed = rtgauge("audit", "--facts", limit_kib=60_000)
    assert completed.returncode == 3
    (line,) = completed.stderr.splitlines()
    assert not missing(line, "60000 KiB", "ulimit -v 65536")


def test_commands_that_need_little_memory_work(record: Path) -> None:
    assert rtgauge("marks", limit_kib=150_000).returncode == 0
    completed = rtgauge("show", record, limit_kib=80_000)
    assert completed.returncode == 3
    assert len(completed.stderr.splitlines()) == 1
