# SPDX-License-Identifier: MIT
"""Writers at the same time, and writers that are killed."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ext.store.tests.stored import contents, run, small, store_json
from rtgauge.record.record_folder import RecordFolder

ROOT = Path(__file__).parents[4]
WRITERS = 4


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [small(folder, seed, cpus=(0,), system={"host": f"h{seed % 3}"}) for seed in range(6)]


@pytest.fixture(scope="module")
def expected(records: list[Path]) -> list[Any]:
    """For each number of records what a store has that was never disturbed."""
    store = records[0].parent / "expected.sqlite"
    store_json("add", *records, "--store", store)
    return every_row(store)


def every_row(store: Path) -> list[Any]:
    """What the store has of each record, in the order of their names."""
    has = contents(store)
    rows = zip(has["records"], has["results"], strict=True)
    return sorted(rows, key=lambda row: row[0]["record"])


def writer(how: str, store: Path, records: list[Path]) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "ext.store.tests.writer", how, str(store), *map(str, records)]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        words, cwd=ROOT, env=os.environ | path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def is_sound(store: Path) -> bool:
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_writers_at_the_same_time_lose_nothing(records: list[Path], expected: list[Any]) -> None:
    store = records[0].parent / "together.sqlite"
    order = random.Random(1)
    writers = [writer("add", store, order.sample(records, len(records))) for _ in range(WRITERS)]
    for process in writers:
        assert line(process) == "ready"
    for process in writers:  # none has a store yet: they make it at the same time, too
        go(process)
    for process in writers:
        process.communicate()
    assert [process.returncode for process in writers] == [0] * WRITERS
    assert is_sound(store)
    assert every_row(store) == expected


def test_labels_written_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    record = small(tmp_path, 1, cpus=(0,))
    store = tmp_path / "labels.sqlite"
    names = [f"key{number}" for number in range(2 * WRITERS)]
    writers = [writer(f"label:{name}", store, [record]) for name in names]
    for process in writers:
        assert line(process) == "ready"
    for process in writers:
        go(process)
    for process in writers:
        process.communicate()
    assert [process.returncode for process in writers] == [0] * len(writers)
    expected = dict.fromkeys(names, "x")
    assert json.loads((record / "labels.json").read_text())["labels"] == expected
    assert contents(store)["records"][0]["labels"] == expected


def test_a_record_that_another_program_holds_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = small(tmp_path, 1, cpus=(0,))
    monkeypatch.setattr("rtgauge.record.record_folder.LOCK_S", 0.05)
    with RecordFolder.open(record).locked():
        refused = run("store", "add", record, "--store", tmp_path / "s.sqlite", "--label", "a=b")
    assert "another program has kept it locked" in str(refused.exception)
    assert not (record / "labels.json").exists()


@pytest.mark.parametrize("after", range(2))
def test_what_was_added_before_a_kill_is_there(records: list[Path], expected: list[Any], after: int) -> None:
    store = records[0].parent / f"killed-after-{after}.sqlite"
    process = writer("add", store, records)
    assert line(process) == "ready"
    go(process)
    added = {line(process) for _ in range(2 * after + 1)}
    process.kill()
    added |= set(process.communicate()[0].split())
    assert is_sound(store)
    rows = every_row(store)
    assert added <= {row[0]["record"] for row in rows}
    assert all(row in expected for row in rows)
    store_json("add", *records, "--store", store)
    assert every_row(store) == expected


def test_a_writer_killed_at_any_step_leaves_nothing_half(records: list[Path], expected: list[Any]) -> None:
    store = records[0].parent / "half.sqlite"
    process = writer("killed", store, records[:2])
    output, _ = process.communicate()
    steps = int(output.split()[-1])
    assert steps > 30
    observed: set[int] = set()
    for at in range(steps + 1):
        part = store.with_name(f"{store.name}-{at}")
        if not part.exists():
            continue
        assert is_sound(part)
        with closing(sqlite3.connect(part)) as connection:
            made = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,)
        rows = every_row(part) if made else []
        assert rows == expected[: len(rows)]
        observed.add(len(rows))
        if at % 10 == 0:
            store_json("add", *records[:2], "--store", part)
            assert every_row(part) == expected[:2]
    assert observed == {0, 1, 2}
