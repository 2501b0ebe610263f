# SPDX-License-Identifier: MIT
"""Updates the tables of an older store step by step, in one transaction.

Each step works on SQLite and PostgreSQL. A step changes its version's tables, and must not use the module
`tables`, which defines the newest ones.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, text, update

from rtgauge_ext.store.tables import SCHEMA_VERSION, STORE


def _without_intervals(connection: Connection) -> None:
    """Drop the results' confidence intervals within a run, and give labels an index."""
    unused = {"windows", "window_ns"}
    unused |= {f"{name}_{end}_ns" for name in ("p50", "p99", "p99_9", "p99_99") for end in ("low", "high")}
    there = {column["name"] for column in inspect(connection).get_columns("result")}
    for name in sorted(unused & there):
        connection.execute(text(f"ALTER TABLE result DROP COLUMN {name}"))
    connection.execute(text("CREATE INDEX ix_label_key_value ON label (key, value)"))


def _with_p99_999(connection: Connection) -> None:
    """Add p99.999. It stays unknown for records that are in the store already."""
    for name in ("p99_999_ns", "filled_p99_999_ns"):
        connection.execute(text(f"ALTER TABLE result ADD COLUMN {name} BIGINT"))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: _without_intervals, 2: _with_p99_999}
"""Maps a schema version to the function that migrates it to the next version."""


def migrate(connection: Connection, version: int) -> None:
    """Update tables of schema `version`. The caller's transaction makes the update whole or absent."""
    for each in range(version, SCHEMA_VERSION):
        MIGRATIONS[each](connection)
    connection.execute(update(STORE).values(schema_version=SCHEMA_VERSION))
