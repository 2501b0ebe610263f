# SPDX-License-Identifier: MIT
"""Stores of 0.1.0, a file and a server's, are brought up to date by the first command that opens them."""

from __future__ import annotations

import lzma
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, inspect
from tests.support.archives import own_archive
from tests.support.postgresql import PostgreSQL

from ext.store.tests.stored import contents, run, small, store_json
from rtgauge.errors import InputError
from rtgauge_ext.store import database
from rtgauge_ext.store.database import open_database, place_of
from rtgauge_ext.store.migrations import MIGRATIONS
from rtgauge_ext.store.tables import METADATA, SCHEMA_VERSION

FROZEN = Path(__file__).resolve().parents[4] / "tests" / "data" / "frozen"
RIGHTS = Path(__file__).parents[4] / "packaging" / "postgresql" / "rights.sql"


@pytest.fixture
def old(new_store: Callable[[], str], request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The store of 0.1.0, of the same kind as `new_store`."""
    if "://" in new_store():
        server: PostgreSQL = request.getfixturevalue("postgresql")
        return server.restore(lzma.decompress((FROZEN / "0.1.0.postgresql.sql.xz").read_bytes()))
    with own_archive(FROZEN / "0.1.0.tar.xz") as archive:
        archive.extract("0.1.0/store.sqlite", tmp_path)
    return str(tmp_path / "0.1.0/store.sqlite")


def shape(store: str) -> dict[str, Any]:
    """Columns and indexes of each table."""
    engine = open_database(place_of(store))
    with engine.connect() as connection:
        looked = inspect(connection)
        return {
            table: (
                sorted((column["name"], str(column["type"]), column["nullable"]) for column in looked.get_columns(table)),
                sorted((index["name"], tuple(index["column_names"])) for index in looked.get_indexes(table)),
            )
            for table in METADATA.tables
        }  # fmt: skip


def version(store: str) -> int:
    with open_database(place_of(store)).connect() as connection:
        return int(connection.exec_driver_sql("SELECT schema_version FROM rtgauge_store").scalar_one())


def test_every_older_version_has_a_step() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))


def test_an_old_store_becomes_what_a_new_one_is(
    old: str, new_store: Callable[[], str], tmp_path: Path
) -> None:
    new = new_store()
    store_json("add", small(tmp_path / "runs", 1), "--store", new)
    assert shape(old) == shape(new)
    assert version(old) == version(new) == SCHEMA_VERSION


def test_nothing_of_an_old_store_is_lost(old: str, tmp_path: Path) -> None:
    courses = store_json("show", "wakeup/latency/idle/as-is", "--store", old)["courses"]
    assert sum(len(course["points"]) for course in courses) == 7
    before = contents(old)
    assert len(before["records"]) == 2
    record = small(tmp_path / "runs", 1)
    store_json("add", record, "--store", old)
    store_json("rm", record.name, "--store", old)
    assert contents(old) == before


def test_a_migration_that_is_killed_leaves_the_old_store(tmp_path: Path, old: str) -> None:
    child = os.fork()
    if child == 0:
        event.listen(Engine, "commit", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        database._bring_up_to_date(*_writing(old))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert raw_version(old) == 1
    store_json("list", "--store", old)
    assert raw_version(old) == SCHEMA_VERSION


def _writing(store: str) -> tuple[Engine, database.Place]:
    place = place_of(store)
    if isinstance(place, Path):
        return database._engine(place, "write"), place
    return database.postgresql.engine_of(place, write=True, busy_s=10), place


def raw_version(store: str) -> int:
    engine, _ = _writing(store)
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT schema_version FROM rtgauge_store").scalar_one())


def test_an_old_file_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_archive(FROZEN / "0.1.0.tar.xz") as archive:
        archive.extract("0.1.0/store.sqlite", tmp_path)
    monkeypatch.setattr(database, "_can_write", lambda _path: False)
    error = run("store", "list", "--store", tmp_path / "0.1.0/store.sqlite").exception
    assert isinstance(error, InputError)
    assert "read-only: copy it" in str(error)


def test_only_the_owner_brings_a_server_up_to_date(postgresql: PostgreSQL) -> None:
    owner = postgresql.restore(lzma.decompress((FROZEN / "0.1.0.postgresql.sql.xz").read_bytes()))
    postgresql.execute(RIGHTS.read_text(), owner)
    name = owner.split("/")[3].split("?")[0]
    for role in ("writer", "reader"):
        postgresql.execute(f"CREATE ROLE {name}_{role} LOGIN IN ROLE rtgauge_{role}", owner)
        error = run("store", "list", "--store", postgresql.url(name, f"{name}_{role}")).exception
        assert isinstance(error, InputError)
        assert "their owner can update them" in str(error)
    before = store_json("list", "--store", owner)["records"]
    assert store_json("list", "--store", postgresql.url(name, f"{name}_reader"))["records"] == before
