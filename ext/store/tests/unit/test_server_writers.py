# SPDX-License-Identifier: MIT
"""Writers of one server at the same time; a writer is killed, then the server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import func, select
from tests.support.postgresql import PostgreSQL

from rtgauge_ext.store.queries import count
from rtgauge_ext.store.store import Store
from rtgauge_ext.store.tables import CONFIGURATION, LABEL, MACHINE, RESULT, SERIES, STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]
RECORDS, WRITERS = 1000, 8
NAMES = [str(number) for number in range(RECORDS)]


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    server = PostgreSQL()
    yield server
    server.stop()


class Writer:
    """A process that puts records, each after the one before."""

    def __init__(self, store: str, names: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ext.store.tests.writer", "rows", store, *names],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rest(self) -> tuple[set[str], str]:
        """What it has put since, and its last words."""
        output, reported = self.process.communicate()
        return set(output.split()), reported


def query_rows(store: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(store, options="-c search_path=rtgauge") as connection:
        return connection.execute(query.encode()).fetchall()


def test_nothing_is_lost_and_nothing_is_there_twice(server: PostgreSQL) -> None:
    store = server.database()
    # Each record has two writers.
    shares = [NAMES[n::4] for n in range(4)]
    writers = [Writer(store, shares[n % 4][:: 1 if n < 4 else -1]) for n in range(WRITERS)]
    for writer in writers:
        writer.go()
    put = {writer.line() for writer in writers}
    writers[0].process.kill()
    put |= {writer.line() for writer in writers[1:] for _ in range(20)}
    server.kill()
    ends = [writer.rest() for writer in writers]
    assert all("does not answer" in reported for _, reported in ends[1:])
    for names, _ in ends:
        put |= names
    server.start()
    there = {str(name) for (name,) in query_rows(store, "SELECT name FROM record")}
    assert put <= there
    assert len(there) < RECORDS
    (wrong,) = query_rows(store, "SELECT count(*) FROM record r WHERE (SELECT count(*) FROM result JOIN step ON "
                            "step.id = result.step_id WHERE record_id = r.id AND count = r.name::int) != 2")  # fmt: skip
    assert wrong == (0,)
    writers = [Writer(store, share) for share in shares]
    for writer in writers:
        writer.go()
    assert [writer.rest()[1] for writer in writers] == [""] * 4
    assert sorted(str(name) for (name,) in query_rows(store, "SELECT name FROM record")) == sorted(NAMES)
    counts = {
        table.name: query_rows(store, str(select(func.count()).select_from(table)))[0][0]
        for table in (STEP, RESULT, LABEL, MACHINE, CONFIGURATION, SERIES)
    }
    assert counts == {
        "step": 2 * RECORDS, "result": 2 * RECORDS, "label": RECORDS, "machine": 7, "configuration": 5, "series": 2,
    }  # fmt: skip


def test_no_connection_stays_open(server: PostgreSQL) -> None:
    """A fleet opens a store many times, and the server has a limit."""
    store = server.database()
    opened = [Store.open(store, make=True) for _ in range(3)]
    assert [count(each) for each in opened] == [0, 0, 0]
    with psycopg.connect(store, autocommit=True) as looking:
        query = b"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rtgauge'"
        while looking.execute(query).fetchone() != (0,):  # the server ends them a moment later
            pass
