# SPDX-License-Identifier: MIT
"""Files that are no store, stores that cannot be used, and hostile words: one line each, and nothing lost."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ext.store.tests.stored import contents, run, small, store_json
from rtgauge.errors import RtgaugeError
from rtgauge_ext.store import database
from rtgauge_ext.store.adding import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.postgresql import PostgreSQL

RIGHTS = Path(__file__).parents[4] / "packaging" / "postgresql" / "rights.sql"
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
    store_json("add", record, "--store", path)
    return path


@pytest.fixture
def either(new_store: Callable[[], str], record: Path) -> str:
    """A file or a server's database."""
    store = new_store()
    store_json("add", record, "--store", store)
    return store


def change(path: Path | str, statement: str) -> None:
    if "://" in str(path):
        with psycopg.connect(str(path), options="-c search_path=rtgauge") as server:
            server.execute(statement.encode())
        return
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def refused(*words: object) -> str:
    """The one line that a command ends with."""
    error = run("store", *words).exception
    assert isinstance(error, RtgaugeError), repr(error)
    assert "\n" not in str(error)
    return str(error)


def every_command(store: Path | str, record: Path) -> list[str]:
    return [
        refused(*words, "--store", store)
        for words in (("list",), ("show", SERIES), ("rm", record.name), ("add", record))
    ]


def test_what_is_no_store_is_left_as_it_is(tmp_path: Path, record: Path) -> None:
    other = tmp_path / "other.sqlite"
    change(other, "CREATE TABLE theirs (a)")
    text = tmp_path / "text"
    text.write_text("not a database, but a longer text than the header of one" * 10)
    for path, reported in ((other, "another program"), (text, "a file of another kind, not a store")):
        before = path.read_bytes()
        assert all(reported in error for error in every_command(path, record))
        assert reported in refused("rebuild", "--store", path)
        assert path.read_bytes() == before
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert all("not a regular file" in error for error in every_command(pipe, record))
    assert all("is a folder" in error for error in every_command(tmp_path, record))
    assert "does not exist" in refused("add", record, "--store", tmp_path / "none" / "s")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert "a file that is not there" in refused("add", record, "--store", tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
    assert "name of a file, or postgresql:" in refused("list", "--store", "mysql://lab/rtgauge")


def test_a_newer_store_is_left_as_it_is(either: str, record: Path) -> None:
    before = contents(either)
    change(either, "UPDATE rtgauge_store SET schema_version = schema_version + 998")
    assert all("newer rtgauge" in error for error in every_command(either, record))
    assert "newer rtgauge" in refused("rebuild", record.parent, "--store", either)
    change(either, "UPDATE rtgauge_store SET schema_version = schema_version - 998")
    assert contents(either) == before


def test_no_store_and_an_empty_one(tmp_path: Path, store: Path, record: Path) -> None:
    assert "none.sqlite does not exist" in refused("list", "--store", tmp_path / "none.sqlite")
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    assert "is empty" in refused("show", SERIES, "--store", empty)
    store_json("add", record, "--store", empty)
    assert contents(empty) == contents(store)
    store_json("rm", record.name, "--store", store)
    assert run("store", "list", "--store", store).stdout.startswith("The store ")
    assert "rtgauge store add" in refused("show", SERIES, "--store", store)


def test_an_unknown_series_names_the_nearest(either: str) -> None:
    store = either
    assert f"did you mean {SERIES}?" in refused("show", "wakeup/latency/idel/as-is", "--store", store)
    assert "store list --series" in refused("show", "x", "--store", store)
    assert "--machine or --label" in refused("show", SERIES, "--store", store, "--machine", "none")
    assert "'nobody' is not a record in the store" in refused("rm", "nobody", "--store", store)


@pytest.mark.parametrize("damage", ["cut", "garbled", "row", "no-table", "no-version", "wrong-value"])
def test_a_damaged_store_is_made_anew(store: Path, record: Path, damage: str) -> None:
    before = contents(store)
    if damage in {"cut", "garbled", "row"}:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (page,) = connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'rtgauge_store'"
            ).fetchone()
        data = store.read_bytes()
        half = data[: len(data) // 2 // 4096 * 4096]
        row = data[: page * 4096 - 100] + b"\xff" * 100 + data[page * 4096 :]
        store.write_bytes(
            {"cut": half, "garbled": data[:4096] + b"\xa5" * (len(data) - 4096), "row": row}[damage]
        )
    else:
        change(
            store,
            {
                "no-table": "DROP TABLE mark",
                "no-version": "DELETE FROM rtgauge_store",
                "wrong-value": "UPDATE series SET parameters = '{'",
            }[damage],
        )
    assert "rtgauge store rebuild" in refused("show", SERIES, "--store", store)
    rebuilt = store_json("rebuild", record.parent, "--store", store)
    if damage != "wrong-value":
        assert (store.parent / rebuilt["put_aside"]).exists()
    assert contents(store) == before


@pytest.mark.parametrize(
    ("pragma", "reported"),
    [("max_page_count = 1", "disk is full"), ("query_only = 1", "read-only")],
)
def test_a_full_disk_and_a_read_only_store_lose_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pragma: str, reported: str
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
        assert reported in refused("add", another, "--store", store)
    assert contents(store) == before


@pytest.mark.parametrize("damage", ["DROP TABLE mark", "DELETE FROM rtgauge_store"])
def test_a_damaged_store_of_a_server_is_made_anew(postgresql: PostgreSQL, record: Path, damage: str) -> None:
    store = postgresql.database()
    store_json("add", record, "--store", store)
    before = contents(store)
    change(store, damage)
    assert "rtgauge store rebuild" in refused("show", SERIES, "--store", store)
    assert store_json("rebuild", record.parent, "--store", store)["put_aside"] == "rtgauge_damaged_1"
    assert contents(store) == before


def test_a_server_refuses_in_one_line(postgresql: PostgreSQL, record: Path, tmp_path: Path) -> None:
    store = postgresql.database()
    assert "rtgauge store add" in refused("list", "--store", store)
    assert "does not answer" in refused("add", record, "--store", f"postgresql:///x?host={tmp_path}")
    assert "does not exist" in refused("add", record, "--store", postgresql.url("none"))
    for url in ("postgresql://a:secret@/x", "postgresql:///x?password=secret", "postgresql://a:secret@h:x/%"):
        error = refused("add", record, "--store", url)
        assert error.startswith("--store: ")
        assert "secret" not in error


def test_each_role_may_do_what_it_is_for(postgresql: PostgreSQL, record: Path, runs: Path) -> None:
    """A writer adds and removes, a reader reads; neither makes or changes tables."""
    owner = postgresql.database()
    store_json("add", record, "--store", owner)
    postgresql.execute(RIGHTS.read_text(), owner)
    postgresql.execute(RIGHTS.read_text(), owner)  # again after an update
    name = owner.split("/")[3].split("?")[0]
    for role in ("writer", "reader"):
        postgresql.execute(f"CREATE ROLE {name}_{role} LOGIN IN ROLE rtgauge_{role}", owner)
    writer, reader = (postgresql.url(name, f"{name}_{role}") for role in ("writer", "reader"))
    store_json("add", small(runs.parent / "more", 2), "--store", writer)
    assert contents(writer) == contents(reader) == contents(owner)
    assert "rights.sql" in refused("rm", record.name, "--store", reader)
    assert "rights.sql" in refused("add", small(runs.parent / "more", 3), "--store", reader)
    store_json("rm", record.name, "--store", writer)
    assert store_json("list", "--store", reader)["total"] == 1
    for statement in (
        "CREATE TABLE rtgauge.x (y int)",
        "UPDATE rtgauge.rtgauge_store SET schema_version = 2",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            postgresql.execute(statement, writer)


def test_a_damaged_record_is_named_and_the_others_are_added(tmp_path: Path) -> None:
    runs, store = tmp_path / "runs", tmp_path / "store.sqlite"
    bad, _ = small(runs, 1), small(runs, 2)
    (bad / "run.json").write_text("{")
    result = run("store", "add", runs, "--store", store)
    assert "1 of 2 records could not be added" in str(result.exception)
    assert str(bad) in result.stderr
    assert store_json("list", "--store", store)["total"] == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.text(min_size=1, max_size=300), st.text(max_size=300), st.text(max_size=50))
def test_any_words_are_kept_or_refused(either: str, record: Path, key: str, value: str, machine: str) -> None:
    words = ["add", record, "--store", either, f"--label={key}={value}", f"--commit={value}"]
    result = run("store", *words, f"--machine={machine}@local")
    assert result.exception is None or isinstance(result.exception, RtgaugeError)
    if result.exception is None:
        (row,) = store_json("list", "--store", either)["records"]
        name, _, rest = f"{key}={value}".partition("=")
        assert row["labels"].get(name.strip(), "") == rest.strip()
        assert row["commit"] == (value or None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.text(max_size=60), st.text(max_size=20))
def test_any_question_is_answered_or_refused(either: str, name: str, machine: str) -> None:
    for words in (("show", "--", name), ("rm", "--", f"{name}?"), ("list", f"--machine={machine}")):
        result = run("store", words[0], "--store", either, *words[1:])
        assert result.exception is None or isinstance(result.exception, (RtgaugeError, SystemExit))
    assert store_json("list", "--store", either)["total"] == 1


def test_a_link_to_itself_does_not_end_the_rebuilding_of_a_store(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    rebuilt = rebuild(tmp_path / "store.sqlite", [link])
    assert [failed.path for failed in rebuilt.failed] == [str(link)]
