# SPDX-License-Identifier: MIT
"""Adds records to a store and removes them. The module `queries` has the queries."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, Table, delete, insert, select, update

from rtgauge.errors import InputError
from rtgauge.record.records_folder import RECORDS
from rtgauge_ext.store.database import Place, clear_problems, damaged, open_database, place_of
from rtgauge_ext.store.postgresql import Server
from rtgauge_ext.store.tables import (
    CONFIGURATION,
    LABEL,
    MACHINE,
    MARK,
    RECORD,
    RESULT,
    SERIES,
    STEP,
    VERDICT,
)

if TYPE_CHECKING:
    from rtgauge_ext.store.digest import Digest, Row

DEFAULT = RECORDS / "store.sqlite"


class AddingOutcome(StrEnum):
    """The outcome of adding a record."""

    ADDED = "added"
    UPDATED = "updated"
    MOVED = "moved"
    UNCHANGED = "unchanged"


class Store:
    """An open store. Every method raises the errors of `database.open_database`."""

    def __init__(self, path: Place, engine: Engine) -> None:
        self.path, self.engine = path, engine

    @classmethod
    def open(cls, store: str | Path, *, make: bool = False, write: bool = False) -> Store:
        """Open `store`, a file or postgresql://... `make`: make a missing store. `write`: open it for writing
        too.
        """
        place = place_of(store)
        return cls(place, open_database(place, make=make, write=write))

    def place_of(self, path: str) -> Path | None:
        """Return the folder of a record; None if it is on another host.

        A store in a file keeps a path relative to its own folder, if the record is below that folder. A
        server keeps HOST:PATH. Raises DamagedError for what cannot be a path.
        """
        if not isinstance(path, str) or "\0" in path:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise damaged(self.path, "the path of a record is not text")
        if isinstance(self.path, Server):
            host, _, folder = path.partition(":")
            return Path(folder) if host == socket.gethostname() else None
        return self.path.absolute().parent / path

    def is_there(self, path: str) -> bool | None:
        """Return whether a record's folder exists; None if it is on another host or cannot be reached."""
        place = self.place_of(path)
        try:
            return None if place is None else (place / "run.json").exists()
        except OSError as error:
            return False if error.errno == errno.ENAMETOOLONG else None

    def _shown(self, folder: Path) -> str:
        if isinstance(self.path, Server):
            return f"{socket.gethostname()}:{os.path.realpath(folder)}"
        here = Path(os.path.realpath(self.path.parent))
        there = Path(os.path.realpath(folder))
        return str(there.relative_to(here) if there.is_relative_to(here) else there)

    def paths(self) -> dict[str, str]:
        """Return the path of each record, by name, for `place_of`."""
        with clear_problems(self.path), self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(select(RECORD.c.name, RECORD.c.path))}

    def holds(self, name: str) -> bool:
        """Return whether the store has a record with this name."""
        with clear_problems(self.path), self.engine.connect() as connection:
            return connection.execute(select(RECORD.c.name).where(RECORD.c.name == name)).first() is not None

    def known(self, name: str, folder: Path, sha256: str) -> AddingOutcome | None:
        """Return the outcome of adding this record: UNCHANGED or MOVED; None if the record has to be read.

        Raises InputError if the store has another record with this name that still exists.
        """
        with clear_problems(self.path), self.engine.connect() as connection:
            return self._known(connection, name, folder, sha256)

    def _known(self, connection: Connection, name: str, folder: Path, sha256: str) -> AddingOutcome | None:
        row = connection.execute(
            select(RECORD.c.path, RECORD.c.sha256).where(RECORD.c.name == name)
        ).one_or_none()
        if row is None:
            return None
        elsewhere = row.path != self._shown(folder) and self.is_there(row.path) is not False
        if row.sha256 == sha256:
            return (
                AddingOutcome.UNCHANGED
                if elsewhere or row.path == self._shown(folder)
                else AddingOutcome.MOVED
            )
        if elsewhere:
            raise InputError(
                f"{folder} was not added, because the store has another record {name} in "
                f"{self.place_of(row.path) or row.path}; rename one of them, or remove the other from the "
                "store with: rtgauge store rm"
            )
        return None

    def put(self, digest: Digest, folder: Path, *, again: bool = False) -> AddingOutcome:
        """Add a record, whole or not at all; it replaces an earlier version. `again`: even if nothing
        changed.
        """
        name, sha256 = digest.row["name"], digest.row["sha256"]
        with clear_problems(self.path), self.engine.begin() as connection:
            known = self._known(connection, name, folder, sha256)
            if known is AddingOutcome.UNCHANGED and not again:
                return known
            had = connection.execute(delete(RECORD).where(RECORD.c.name == name)).rowcount
            _insert(connection, digest, self._shown(folder), again=again)
            return known or (AddingOutcome.UPDATED if had else AddingOutcome.ADDED)

    def remove(self, names: list[str]) -> None:
        """Remove records from the store; their folders stay. Raises InputError for an unknown record."""
        with clear_problems(self.path), self.engine.begin() as connection:
            for name in names:
                if not connection.execute(delete(RECORD).where(RECORD.c.name == name)).rowcount:
                    raise InputError(
                        f"'{name}' is not a record in the store; list its records with: rtgauge store list"
                    )
            _prune(connection)

    def prune(self) -> None:
        """Drop machines, configurations and series that no record uses any more."""
        with clear_problems(self.path), self.engine.begin() as connection:
            _prune(connection)


def _new(connection: Connection, table: Table, row: Mapping[str, Any]) -> int:
    """Insert a row; return its id."""
    (number,) = connection.execute(insert(table).values(**row)).inserted_primary_key or (None,)
    assert isinstance(number, int)  # noqa: S101 - every table has an id
    return number


class _Shared:
    """Rows that several records share, by key."""

    def __init__(self, connection: Connection, *, again: bool) -> None:
        self._connection, self._again = connection, again
        self._seen: dict[tuple[str, str], int] = {}

    def id_of(self, table: Table, row: Mapping[str, Any]) -> int:
        """Return the id of the row with this key; insert a missing row.

        A machine's row is always rewritten; with `again`, all rows are.
        """
        table_key = table.name, str(row["key"])
        if table_key not in self._seen:
            row_id = self._connection.scalar(select(table.c.id).where(table.c.key == row["key"]))
            if row_id is None:
                row_id = _new(self._connection, table, row)
            elif self._again or table is MACHINE:
                self._connection.execute(update(table).where(table.c.id == row_id).values(**row))
            self._seen[table_key] = row_id
        return self._seen[table_key]


def _insert(connection: Connection, digest: Digest, path: str, *, again: bool) -> None:
    record = _new(connection, RECORD, {**digest.row, "path": path})
    for table, rows in (
        (LABEL, [{"key": key, "value": value} for key, value in digest.labels.items()]),
        (MARK, digest.marks),
    ):
        _insert_all(connection, table, [{"record_id": record, **row} for row in rows])
    shared = _Shared(connection, again=again)
    numbers: dict[str, int] = {}
    for step in digest.steps:
        row: Row = {
            **step.row,
            "record_id": record,
            "machine_id": shared.id_of(MACHINE, asdict(step.machine)),
            "peer_machine_id": None if step.peer is None else shared.id_of(MACHINE, asdict(step.peer)),
            "configuration_id": shared.id_of(CONFIGURATION, step.configuration),
        }
        number = numbers[step.row["name"]] = _new(connection, STEP, row)
        _insert_all(
            connection,
            RESULT,
            [
                {
                    "step_id": number,
                    "series_id": shared.id_of(SERIES, series),
                    **figures,
                }
                for series, figures in step.results
            ],
        )
        _insert_all(
            connection, MARK, [{"record_id": record, "step_id": number, **mark} for mark in step.marks]
        )
    verdicts = [
        {"record_id": record, "step_id": None if step is None else numbers.get(step), **row}
        for step, row in digest.verdicts
        if step is None or step in numbers
    ]
    _insert_all(connection, VERDICT, verdicts)


def _insert_all(connection: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _prune(connection: Connection) -> None:
    used = {
        SERIES: select(RESULT.c.series_id),
        CONFIGURATION: select(STEP.c.configuration_id),
        MACHINE: select(STEP.c.machine_id).union(
            select(STEP.c.peer_machine_id).where(STEP.c.peer_machine_id.is_not(None))
        ),
    }
    for table, ids in used.items():
        connection.execute(delete(table).where(table.c.id.not_in(ids)))
