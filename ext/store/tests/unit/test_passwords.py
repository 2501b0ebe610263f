# SPDX-License-Identifier: MIT
"""A server that lets nobody in without a password: where the password may come from, and where it never is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.support.postgresql import PostgreSQL

from ext.store.tests.stored import run, small
from rtgauge.errors import InputError, RtgaugeError
from rtgauge_ext.store.postgresql import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASSWORD = "-".join(("correct", "horse", "7f3a"))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    server = PostgreSQL(PASSWORD)
    yield server
    server.stop()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return small(tmp_path / "runs", 1)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without passwords; libpq asks the environment for it."""
    for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def from_environment(_server: PostgreSQL, store: str, _home: Path, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("PGPASSWORD", PASSWORD)
    return store


def from_pgpass(server: PostgreSQL, store: str, home: Path, patch: pytest.MonkeyPatch) -> str:
    file = home / "pgpass"
    file.write_text(f"{server.folder}:*:*:owner:{PASSWORD}\n")
    file.chmod(0o600)
    patch.setenv("PGPASSFILE", str(file))
    return store


def from_service(server: PostgreSQL, store: str, home: Path, patch: pytest.MonkeyPatch) -> str:
    file = home / "services"
    database = store.split("/")[3].split("?", maxsplit=1)[0]
    file.write_text(f"[lab]\nhost={server.folder}\ndbname={database}\nuser=owner\npassword={PASSWORD}\n")
    patch.setenv("PGSERVICEFILE", str(file))
    return "postgresql://?service=lab"


@pytest.mark.parametrize("source", [from_environment, from_pgpass, from_service])
def test_it_lets_in_and_is_nowhere(
    server: PostgreSQL,
    record: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Callable[[PostgreSQL, str, Path, pytest.MonkeyPatch], str],
) -> None:
    store = source(server, server.database(), home, monkeypatch)
    reported = [
        run(*words, "--store", store).output
        for words in (
            ("store", "add", record, "--label", "a=b", "--json"),
            ("store", "list"),
            ("store", "list", "--json"),
            ("store", "show", record.name),
            ("store", "history", "wakeup/*"),
            ("store", "site", home / "site"),
        )
    ]
    assert '"added"' in reported[0]
    assert "1 record in" in reported[1]
    assert not any(PASSWORD in text for text in reported)
    written = [path for folder in (record, home / "site") for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 4
    assert not any(PASSWORD.encode() in path.read_bytes() for path in written)


@pytest.mark.parametrize("password", [None, "wrong-horse-11"])
def test_without_the_right_one_nobody_gets_in(
    server: PostgreSQL, record: Path, monkeypatch: pytest.MonkeyPatch, password: str | None
) -> None:
    store = server.database()
    if password is not None:
        monkeypatch.setenv("PGPASSWORD", password)
    for words in (("list",), ("add", record)):
        error = run("store", *words, "--store", store).exception
        assert isinstance(error, RtgaugeError)
        assert "\n" not in str(error)
        assert "password" in str(error)
        assert str(password) not in str(error)


def test_it_is_in_no_list_of_processes(server: PostgreSQL, record: Path) -> None:
    """A command waits for the lock of writers; meanwhile everybody's words are looked at."""
    store = server.database()
    environment = os.environ | {"PGPASSWORD": PASSWORD, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "rtgauge", "store", "add", str(record), "--store", store]
    with psycopg.connect(store, password=PASSWORD, autocommit=True) as holder:
        with holder.transaction():
            holder.execute(f"SELECT pg_advisory_xact_lock({LOCK})".encode())
            waiting = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            query = b"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while holder.execute(query).fetchone() == (0,):
                assert waiting.poll() is None
            lists = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        reported = b"".join(waiting.communicate())
    assert reported.startswith(b"added: ")
    assert any(b"store\0add" in text and str(server.folder).encode() in text for text in lists)
    assert not any(PASSWORD.encode() in text for text in lists)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://a:{PASSWORD}@/x",
        f"postgresql:///x?password={PASSWORD}",
        f"postgresql://a:{PASSWORD}@h:x/%",
        f"postgresql:///x?pass%77ord={PASSWORD}",
        f"postgresql:///x?sslpassword={PASSWORD}",
    ],
)
def test_one_in_a_url_is_refused_and_not_repeated(url: str, record: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'store = "{url}"\n[[boards]]\nname = "a"\ntarget = "local"\n[[jobs]]\nname = "j"\n', encoding="utf-8"
    )
    for words in (
        ("store", "list", "--store", url),
        ("store", "add", record, "--store", url),
        ("store", "rebuild", "--store", url),
        ("store", "history", "wakeup/*", "--store", url),
        ("fleet", plan),
    ):
        result = run(*words)
        assert isinstance(result.exception, InputError), words
        assert PASSWORD not in f"{result.exception}{result.output}"
    assert not (tmp_path / "plan").exists(), "the fleet has not begun"
