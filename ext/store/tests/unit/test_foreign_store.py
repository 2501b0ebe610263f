# SPDX-License-Identifier: MIT
"""SQLite files that somebody else made: they run nothing, change nothing and do not hang. And files that a killed
writer left.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ext.store.tests.stored import contents, run, small, store_json
from rtgauge.errors import InputError, MeasureError
from rtgauge_ext.store import database
from rtgauge_ext.store.store import Store

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("runs"), 1)


@pytest.fixture
def store(tmp_path: Path, record: Path) -> Path:
    path = tmp_path / "store.sqlite"
    store_json("add", record, "--store", path)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def machines(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM machine").fetchone()[0]


COMPUTING = {
    "a trigger that empties tables": [
        "CREATE TRIGGER t AFTER DELETE ON record BEGIN DELETE FROM machine; END"
    ],
    "a trigger that hangs": [f"CREATE TRIGGER t BEFORE INSERT ON record BEGIN {ENDLESS}; END"],
    "a view": ["DROP TABLE label", f"CREATE VIEW label AS {ENDLESS}"],
    "a view as the first table": ["DROP TABLE rtgauge_store", f"CREATE VIEW rtgauge_store AS {ENDLESS}"],
    "a virtual table": ["CREATE VIRTUAL TABLE f USING fts5(x)"],
    "a computed column": ["ALTER TABLE record ADD COLUMN x AS (hex(zeroblob(400000000)))"],
    "a computed index": ["CREATE INDEX i ON record (hex(name))"],
    "a partial index": ["CREATE INDEX i ON record (name) WHERE length(hex(name)) > 3"],
    "a check": ["CREATE TABLE x (y CHECK (y > abs(random())))"],
}


@pytest.mark.parametrize("statements", COMPUTING.values(), ids=COMPUTING)
def test_a_file_that_computes_is_refused(store: Path, record: Path, statements: list[str]) -> None:
    change(store, *statements)
    before = store.read_bytes()
    name = record.name
    for words in (
        ["list"],
        ["show", name],
        ["rm", name],
        ["add", record],
        ["add", record, "--label", "a=b"],
        ["rebuild"],
    ):
        refused = run("store", *words, "--store", store)
        assert isinstance(refused.exception, InputError), refused.stdout
        assert "which rtgauge did not make" in str(refused.exception)
    assert store.read_bytes() == before
    assert machines(store) == 1


def test_an_index_of_the_users_own_is_allowed(store: Path) -> None:
    change(store, 'CREATE INDEX mine ON record(name, "created")', "ANALYZE")
    assert len(store_json("list", "--store", store)["records"]) == 1


def kill_while_writing(path: Path) -> None:
    """Kill a writer of a store with a rollback journal after it has changed pages of the file."""
    program = (
        "import os, signal, sqlite3, sys\n"
        "store = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for words in ('PRAGMA cache_size = 1', 'BEGIN IMMEDIATE', 'DELETE FROM step', 'DELETE FROM result',\n"
        "              'UPDATE record SET name = \\'changed\\' || hex(zeroblob(100000))'):\n"
        "    store.execute(words)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == -signal.SIGKILL
    assert path.with_name(f"{path.name}-journal").stat().st_size


@pytest.mark.parametrize("words", [["list"], ["add"], ["rebuild"]])
def test_a_copy_with_a_rollback_journal_survives_a_kill(store: Path, record: Path, words: list[str]) -> None:
    before = contents(store)
    copy = store.with_name("copy.sqlite")
    vacuum(store, copy)
    kill_while_writing(copy)
    more = {"add": [record], "rebuild": [record.parent]}.get(words[0], [])
    completed = run("store", *words, *more, "--store", copy)
    assert completed.exception is None, completed.exception
    assert contents(copy) == before


def vacuum(store: Path, copy: Path) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", [str(copy)])
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "second name", "FIFO", "folder"])
def test_a_neighbour_that_is_not_sqlites_is_left_alone(
    store: Path, record: Path, tmp_path: Path, end: str, kind: str
) -> None:
    victim, at = tmp_path / "victim", store.with_name(store.name + end)
    victim.write_text("precious")
    at.unlink(missing_ok=True)
    match kind:
        case "link":
            at.symlink_to(victim)
        case "second name":
            at.hardlink_to(victim)
        case "FIFO":
            os.mkfifo(at)
        case _:
            at.mkdir()
    for words in (["list"], ["add", record], ["rebuild"]):
        refused = run("store", *words, "--store", store)
        assert f"store.sqlite{end} is not from SQLite" in str(refused.exception)
    assert victim.read_text() == "precious"


def test_a_journal_that_names_another_file_deletes_nothing(store: Path, tmp_path: Path) -> None:
    """Only a journal of several databases names one. SQLite would delete it after the last of them."""
    copy, victim = tmp_path / "copy.sqlite", tmp_path / "victim"
    vacuum(store, copy)
    kill_while_writing(copy)
    victim.write_text("precious")
    name = os.fsencode(victim)
    with copy.with_name("copy.sqlite-journal").open("ab") as journal:
        journal.write(
            b"\0\0\0\0" + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
            + bytes.fromhex("d9d505f920a163d7")
        )  # fmt: skip
    for words in (["list"], ["rm", "x"], ["rebuild"]):
        refused = run("store", *words, "--store", copy)
        assert "copy.sqlite-journal" in str(refused.exception)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "value",
    [b"\xff", "a\0b", "0" * 6000, "/" + "0" * 6000],
    ids=["bytes", "NUL", "long", "long and absolute"],
)
def test_a_damaged_path_is_no_traceback(store: Path, record: Path, value: str | bytes) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE record SET path = ?", (value,))
    for words in (["list"], ["show", record.name], ["add", record], ["rebuild", record.parent]):
        completed = run("store", *words, "--store", store)
        assert completed.exception is None or isinstance(completed.exception, (InputError, SystemExit)), (
            completed.exception
        )
    (row,) = store_json("list", "--store", store)["records"]
    assert (row["record"], row["missing"]) == (record.name, False)


@pytest.mark.root
def test_a_store_of_another_user_is_only_read(store: Path, record: Path) -> None:
    os.chown(store, 65534, 65534)
    os.chown(store.parent, 65534, 65534)
    before = sorted(store.parent.iterdir()), store.read_bytes()
    assert len(store_json("list", "--store", store)["records"]) == 1
    for words in (["add", record], ["rm", record.name], ["rebuild"]):
        refused = run("store", *words, "--store", store)
        assert "belongs to another user" in str(refused.exception)
    assert (sorted(store.parent.iterdir()), store.read_bytes()) == before


def test_a_long_question_ends(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LONGEST_S", 0.05)
    opened = Store.open(store)
    with (
        pytest.raises(MeasureError, match="did not answer within"),
        database.clear_problems(store),
        opened.engine.begin() as connection,
    ):
        connection.exec_driver_sql(ENDLESS)


def test_ctrl_c_ends_a_long_question(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import signal, sys; from rtgauge_ext.store.store import Store; from rtgauge_ext.store.database import clear_problems\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "path, question = sys.argv[1:]\n"
        "store = Store.open(path)\n"
        "with clear_problems(store.path), store.engine.begin() as connection:\n"
        "    print('asking', flush=True)\n"
        "    connection.exec_driver_sql(question)\n"
    )
    asking = subprocess.Popen(
        [sys.executable, "-c", program, str(store), ENDLESS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == "asking\n"
    asking.send_signal(signal.SIGINT)
    _, output = asking.communicate(timeout=30)
    assert output.splitlines()[-1] == "KeyboardInterrupt"
