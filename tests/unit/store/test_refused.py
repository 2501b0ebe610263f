# SPDX-License-Identifier: MIT
"""Files that are no store, stores that cannot be used, and hostile words: one line each, and nothing lost."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtgauge.errors import RtgaugeError
from rtgauge.store import database
from tests.unit.store.stored import asked, contents, run, small

if TYPE_CHECKING:
    from pathlib import Path

SERIES = "wakeup/latency/idle/as-is"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def record(runs: Path) -> Path:
    return small(runs, 1)


@pytest.fixture
def store(tmp_path: Path, record: Path) -> Path:
    path = tmp_path / "store.sqlite"
    asked("add", record, "--store", path)
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def refused(*words: object) -> str:
    """The one line that a command ends with."""
    error = run("store", *words).exception
    assert isinstance(error, RtgaugeError), repr(error)
    assert "\n" not in str(error)
    return str(error)


def every_command(store: Path, record: Path) -> list[str]:
    return [
        refused(*words, "--store", store)
        for words in (("list",), ("show", SERIES), ("rm", record.name), ("add", record))
    ]


def test_what_is_no_store_is_left_as_it_is(tmp_path: Path, record: Path) -> None:
    other = tmp_path / "other.sqlite"
    change(other, "CREATE TABLE theirs (a)")
    text = tmp_path / "text"
    text.write_text("not a database, but a longer text than the header of one" * 10)
    for path, said in ((other, "another program"), (text, "not a store but another file")):
        before = path.read_bytes()
        assert all(said in error for error in every_command(path, record))
        assert said in refused("rebuild", "--store", path)
        assert path.read_bytes() == before
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert all("no regular file" in error for error in every_command(pipe, record))
    assert all("is a folder" in error for error in every_command(tmp_path, record))
    assert "no folder" in refused("add", record, "--store", tmp_path / "none" / "s")
    assert "only a file" in refused("list", "--store", "postgresql://lab/rtgauge")


def test_a_newer_store_is_left_as_it_is(store: Path, record: Path) -> None:
    change(store, "UPDATE rtgauge_store SET schema_version = 2")
    before = store.read_bytes()
    assert all("newer rtgauge" in error for error in every_command(store, record))
    assert "newer rtgauge" in refused("rebuild", "--store", store)
    assert store.read_bytes() == before


def test_no_store_and_an_empty_one(tmp_path: Path, store: Path, record: Path) -> None:
    assert "there is no store" in refused("list", "--store", tmp_path / "none.sqlite")
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    assert "is empty" in refused("show", SERIES, "--store", empty)
    asked("add", record, "--store", empty)
    assert contents(empty) == contents(store)
    asked("rm", record.name, "--store", store)
    assert run("store", "list", "--store", store).stdout.startswith("The store ")
    assert "has no record: rtgauge store add" in refused("show", SERIES, "--store", store)


def test_an_unknown_series_names_the_nearest(store: Path) -> None:
    assert f"did you mean {SERIES}?" in refused("show", "wakeup/latency/idel/as-is", "--store", store)
    assert "--series shows" in refused("show", "x", "--store", store)
    assert "--machine or --label" in refused("show", SERIES, "--store", store, "--machine", "none")
    assert "no record nobody" in refused("rm", "nobody", "--store", store)


@pytest.mark.parametrize("damage", ["cut", "garbled", "no-table", "no-version", "wrong-value"])
def test_a_damaged_store_is_made_anew(store: Path, record: Path, damage: str) -> None:
    before = contents(store)
    if damage in {"cut", "garbled"}:
        data = store.read_bytes()
        half = data[: len(data) // 2 // 4096 * 4096]
        store.write_bytes(half if damage == "cut" else data[:4096] + b"\xa5" * (len(data) - 4096))
    else:
        change(
            store,
            {
                "no-table": "DROP TABLE mark",
                "no-version": "DELETE FROM rtgauge_store",
                "wrong-value": "UPDATE series SET parameters = '{'",
            }[damage],
        )
    assert "store rebuild makes it anew" in refused("show", SERIES, "--store", store)
    rebuilt = asked("rebuild", record.parent, "--store", store)
    if damage != "wrong-value":
        assert (store.parent / rebuilt["put_aside"]).exists()
    assert contents(store) == before


@pytest.mark.parametrize(
    ("pragma", "said"),
    [("max_page_count = 1", "disk full"), ("query_only = 1", "read-only")],
)
def test_a_full_disk_and_a_read_only_store_lose_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pragma: str, said: str
) -> None:
    before = contents(store)
    connect = database._connect

    def limited(path: Path, mode: str) -> sqlite3.Connection:
        connection = connect(path, mode)
        connection.execute("SELECT count(*) FROM record").fetchone()  # the limit is of a size that is known
        connection.execute(f"PRAGMA {pragma}")
        return connection

    another = small(tmp_path / "more", 2, loads=tuple(f"l{number}" for number in range(40)), cpus=(0,))
    with monkeypatch.context() as patched:
        patched.setattr(database, "_connect", limited)
        assert said in refused("add", another, "--store", store)
    assert contents(store) == before


def test_a_damaged_record_is_named_and_the_others_are_added(tmp_path: Path) -> None:
    runs, store = tmp_path / "runs", tmp_path / "store.sqlite"
    bad, _ = small(runs, 1), small(runs, 2)
    (bad / "run.json").write_text("{")
    result = run("store", "add", runs, "--store", store)
    assert "1 of 2 records could not be added, see above; the others are" in str(result.exception)
    assert str(bad) in result.stderr
    assert asked("list", "--store", store)["total"] == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.text(min_size=1, max_size=300), st.text(max_size=300), st.text(max_size=50))
def test_any_words_are_kept_or_refused(store: Path, record: Path, key: str, value: str, machine: str) -> None:
    words = ["add", record, "--store", store, f"--label={key}={value}", f"--commit={value}"]
    result = run("store", *words, f"--machine={machine}@local")
    assert result.exception is None or isinstance(result.exception, RtgaugeError)
    if result.exception is None:
        (row,) = asked("list", "--store", store)["records"]
        name, _, rest = f"{key}={value}".partition("=")
        assert row["labels"].get(name.strip(), "") == rest.strip()
        assert row["commit"] == (value or None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.text(max_size=60), st.text(max_size=20))
def test_any_question_is_answered_or_refused(store: Path, name: str, machine: str) -> None:
    for words in (("show", "--", name), ("rm", "--", f"{name}?"), ("list", f"--machine={machine}")):
        result = run("store", words[0], "--store", store, *words[1:])
        assert result.exception is None or isinstance(result.exception, (RtgaugeError, SystemExit))
    assert asked("list", "--store", store)["total"] == 1
