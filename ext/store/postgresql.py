# SPDX-License-Identifier: MIT
"""Connects to a store on a PostgreSQL server, and explains the server's errors.

The tables are in a schema of their own, `rtgauge`. Writers take turns: each holds an advisory lock during its
transaction, which the server frees if the writer dies. A reader sees one consistent state of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from rtgauge.errors import InputError, MeasureError, RtgaugeError

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "rtgauge"
LOCK = 0x7274676175
"""The number of the advisory lock: the bytes of "rtgau"."""
SECRET = {"password", "sslpassword", "sslkeylogfile", "oauth_client_secret"}
READ = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class Server:
    """A store on PostgreSQL. `url`: a URL that libpq accepts, without a password."""

    url: str

    def __str__(self) -> str:
        return self.url


def server_of(url: str) -> Server:
    """Return the store that a URL names.

    Raises InputError, which does not repeat the URL, if libpq cannot read the URL or it has a password.
    """
    try:
        from psycopg import ProgrammingError, conninfo
    except ImportError:
        raise InputError(
            "psycopg 3, which connects to PostgreSQL, is not installed: pip install 'rtgauge[postgresql]', "
            "or apt-get install python3-psycopg"
        ) from None
    try:
        parts = conninfo.conninfo_to_dict(url)
    except (ProgrammingError, ValueError):
        raise InputError(
            "--store: libpq cannot read this URL; give postgresql://USER@HOST/DATABASE"
        ) from None
    if SECRET & set(parts):
        raise InputError(
            "--store: other users can see a password in a URL; remove it, and put it into ~/.pgpass, "
            "a service file (postgresql://?service=NAME) or PGPASSWORD"
        )
    return Server(url)


def engine_of(server: Server, *, write: bool, busy_s: float) -> Engine:
    """Return connections to the server. A writing transaction waits up to `busy_s` for other writers."""
    import psycopg

    settings = f"-c search_path={SCHEMA} -c lock_timeout={busy_s:.0f}s -c client_encoding=UTF8"

    connect: Callable[[], Any] = lambda: psycopg.connect(  # noqa: E731
        server.url, options=settings, application_name="rtgauge", connect_timeout=30
    )
    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})" if write else READ)

    return engine


def make_schema(connection: Connection) -> None:
    """Make the tables' schema, if it does not exist."""
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))


def put_aside(server: Server, busy_s: float) -> str:
    """Rename the schema of a damaged store; return the new name."""
    with engine_of(server, write=True, busy_s=busy_s).begin() as connection:
        names = set(connection.scalars(text("SELECT nspname FROM pg_namespace")))
        aside = next(name for n in range(1, 10_000) if (name := f"{SCHEMA}_damaged_{n}") not in names)
        connection.execute(text(f"ALTER SCHEMA {SCHEMA} RENAME TO {aside}"))
    return aside


NOT_ALLOWED = "42501"
"""The SQLSTATE of insufficient_privilege."""


def is_refused(error: DBAPIError) -> bool:
    """Return whether the server refused because the user lacks the privilege."""
    return getattr(error.orig, "sqlstate", None) == NOT_ALLOWED


def problem(server: Server, error: Exception) -> RtgaugeError | None:
    """Return a one-line error for an error of the server; None if the store is damaged."""
    original: Any = error.orig if isinstance(error, DBAPIError) else error
    message = " ".join(str(original).split())
    state = str(getattr(original, "sqlstate", None) or "")
    if state == "55P03":
        return MeasureError(f"another program is using {server}; try again when it has ended")
    if state == NOT_ALLOWED:
        return InputError(
            f"{server}: this user lacks the rights ({message}); grant them with "
            "packaging/postgresql/rights.sql"
        )
    if state == "25006":
        return InputError(f"{server} is read-only: name another --store")
    if state.startswith("53"):
        return MeasureError(
            f"{server} cannot be written ({message}), so the store is unchanged; free memory or "
            "disk space on the server"
        )
    if state.startswith(("28", "3D")):
        return InputError(f"{server} cannot be opened ({message})")
    if state.startswith("22") or isinstance(original, UnicodeError) or "NUL" in message:
        return InputError(
            f"{server}: PostgreSQL cannot store this text ({message}); remove it from the labels or names"
        )
    if type(original).__name__ in {"OperationalError", "AdminShutdown", "CrashShutdown", "InterfaceError"}:
        return MeasureError(
            f"{server} does not answer or refuses the connection ({message}); the store contains the records "
            "added before this; try again"
        )
    return None
