# SPDX-License-Identifier: MIT
"""Opens the store's database or makes a new one, and turns each of its errors into one line.

The module `postgresql` handles PostgreSQL. SQLite runs in WAL mode: readers never wait, a writer waits for
the previous writer, and a transaction is whole or absent, even after kill -9 or a power cut.

A file is trusted only for its figures. A database that would compute or change something itself, such as by a
trigger or a view, is refused before anything else is read from it. A store of another user is only read.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, insert, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from rtgauge.errors import InputError, MeasureError, RtgaugeError
from rtgauge.input_file import open_regular
from rtgauge_ext.store import postgresql
from rtgauge_ext.store.migrations import migrate
from rtgauge_ext.store.postgresql import Server
from rtgauge_ext.store.tables import METADATA, SCHEMA_VERSION, STORE

BUSY_S = 120.0
"""How long (s) a writer waits for other writers."""
TRIES = 100
"""The most requests for WAL mode while another process opens the store. SQLite itself does not wait here."""
LONGEST_S = 60.0
"""How long (s) one question to a file may take."""
STEPS = 100_000
"""After how many steps of SQLite's virtual machine to look for the end of that time, and for Ctrl-C."""
MOST_SQL = 10_000
"""The longest definition of a table that a store may have."""
COMPUTES = re.compile(r"\b(AS|CHECK|DEFAULT|GENERATED|VIRTUAL|WHERE)\b", re.IGNORECASE)
"""In the definition of a table or an index: SQLite would compute something with each row."""
PLAIN_INDEX = re.compile(
    r'CREATE\s+(UNIQUE\s+)?INDEX\s+"?\w+"?\s+ON\s+"?\w+"?\s*\([\w\s,"]+\)', re.IGNORECASE
)
NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another file, which SQLite would delete (https://sqlite.org/fileformat.html).
rtgauge writes none.
"""
MODES = {"read": "ro", "write": "rw", "make": "rwc"}


Place = Path | Server
"""The file or server that holds a store."""


def place_of(store: str | Path) -> Place:
    """Return the file, or the server's database, that --store names. Raises InputError for any other URL."""
    text = str(store)
    if text.startswith(postgresql.SCHEMES):
        return postgresql.server_of(text)
    if "://" in text:
        raise InputError("--store: give the name of a file, or postgresql://USER@HOST/DATABASE")
    return Path(store)


def _kind(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _check_place(path: Path, *, make: bool) -> None:
    """Refuse a path that cannot be a store before SQLite opens it. Raises InputError."""
    try:
        kind = _kind(path)
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}): name another --store") from None
    except ValueError:
        raise InputError("--store: the name contains a NUL character; give another") from None
    if kind is None and not make:
        raise InputError(f"the store {path} does not exist; make one with: rtgauge store add RECORD")
    if kind is None and path.is_symlink():
        raise InputError(f"{path} is a link to a file that is not there: name another --store")
    if kind is None and not path.parent.is_dir():
        raise InputError(
            f"the folder {path.parent} for the store does not exist: create it, or name another --store"
        )
    if kind is not None and not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "not a regular file"
        raise InputError(f"{path} is {what}: name a file with --store")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that begins no transactions itself; SQLAlchemy begins them."""
    name = path.absolute().as_uri().replace("?", "%3f").replace("#", "%23")
    stays = not _can_write(path) or (not is_own(path) and not _size(path, "-wal"))
    unchanging = "&immutable=1" if mode == "read" and stays else ""
    connection = sqlite3.connect(
        f"{name}?mode={MODES[mode]}{unchanging}", uri=True, timeout=BUSY_S, isolation_level=None
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    if mode == "read":
        connection.execute("PRAGMA query_only = ON")
    return connection


def _size(path: Path, end: str) -> int:
    """Return the size of a file that SQLite keeps next to the store; 0 if there is none. Raises OSError."""
    try:
        return path.with_name(path.name + end).stat().st_size
    except FileNotFoundError:
        return 0


def is_own(path: Path) -> bool:
    """Return whether a file belongs to this user, to root, or is not there yet. Raises OSError."""
    try:
        return path.stat().st_uid in {os.geteuid(), 0}
    except FileNotFoundError:
        return True


def _check_neighbours(path: Path) -> None:
    """Refuse files that SQLite would write next to the store, but that are not its own. Raises InputError."""
    for end in ("-wal", "-shm", "-journal"):
        file = path.with_name(path.name + end)
        try:
            about = file.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}): name another --store") from None
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            raise InputError(f"{file} is not from SQLite: remove it, or name another --store")


def _check_journal(path: Path) -> None:
    """Refuse to undo a change by a journal that makes SQLite delete another file. Raises InputError."""
    journal = path.with_name(f"{path.name}-journal")
    try:
        with open_regular(journal) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(NAMES_ANOTHER)))
            if file.read(len(NAMES_ANOTHER)) == NAMES_ANOTHER:
                raise InputError(f"{journal} is not from rtgauge: remove it, or name another --store")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{journal} cannot be read ({error.strerror}): name another --store") from None


def _undo_unfinished(path: Path) -> None:
    """Undo the change of a killed writer in a store with a rollback journal, which no reader can do."""
    if _size(path, "-journal") and is_own(path) and _can_write(path) and os.access(path, os.W_OK):
        with closing(_connect(path, "write")) as connection:
            connection.execute("PRAGMA schema_version").fetchone()


def _can_write(path: Path) -> bool:
    """Return whether SQLite can make its files next to the store. Even readers need these files."""
    return os.access(path.parent, os.W_OK) and not os.statvfs(path.parent).f_flag & os.ST_RDONLY


def _engine(path: Path, mode: str) -> Engine:
    """Return an engine whose questions take at most LONGEST_S and end on Ctrl-C."""
    ends_s = inf

    def is_late() -> bool:
        return time.monotonic() > ends_s

    def connect() -> sqlite3.Connection:
        connection = _connect(path, mode)
        connection.set_progress_handler(is_late, STEPS)
        return connection

    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=NullPool)
    begin = "BEGIN" if mode == "read" else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.exec_driver_sql(begin)

    @event.listens_for(engine, "before_cursor_execute")
    def begin_time(*_: object) -> None:  # pyright: ignore[reportUnusedFunction]
        nonlocal ends_s
        ends_s = time.monotonic() + LONGEST_S

    @event.listens_for(engine, "handle_error")
    def pass_interrupt(context: ExceptionContext) -> None:  # pyright: ignore[reportUnusedFunction]
        # sqlite3 drops the KeyboardInterrupt of a progress handler.
        error: Any = context.original_exception
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT" and not is_late():
            raise KeyboardInterrupt

    return engine


def problem(path: Place, error: Exception) -> RtgaugeError:
    """Return a one-line error for an error of the database."""
    if isinstance(path, Server) and (known := postgresql.problem(path, error)):
        return known
    original: Any = error.orig if isinstance(error, DBAPIError) else error
    name = str(getattr(original, "sqlite_errorname", ""))
    if name.startswith("SQLITE_FULL"):
        return MeasureError(
            f"the disk is full, so {path} cannot be written; free space. The store is unchanged"
        )
    if name == "SQLITE_INTERRUPT":
        return MeasureError(
            f"{path} did not answer within {LONGEST_S:g} s: create it again from the records with: "
            f"rtgauge store rebuild"
        )
    if name in {"SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY"}:
        return InputError(
            f"{path} has an unfinished change from a killed program: its owner can undo it with: rtgauge "
            "store list"
        )
    if name.startswith("SQLITE_READONLY"):
        return InputError(f"{path} is read-only: name another --store, or change its permissions")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return InputError(f"{path} cannot be opened ({original}): name another --store")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return MeasureError(
            f"another program has been using {path} for {BUSY_S:g} s; try again when it has ended"
        )
    if name == "SQLITE_NOTADB":
        return InputError(f"{path} is a file of another kind, not a store: name another --store")
    if name.startswith("SQLITE_IOERR"):
        return MeasureError(
            f"{path} cannot be read or written ({original}); check whether the disk is full or damaged"
        )
    return damaged(path, str(original))


class DamagedError(InputError):
    """The store's file is damaged; the records still hold everything."""


def damaged(path: Place, what: str) -> DamagedError:
    """Return the one-line error for a damaged store. `what`: what is wrong with it."""
    return DamagedError(
        f"{path} is damaged ({what}); create it again from the records with: rtgauge store rebuild"
    )


@contextmanager
def clear_problems(path: Place) -> Generator[None]:
    """Turn database errors into one-line messages.

    Raises DamagedError for a damaged database, InputError if the wrong file is named, otherwise MeasureError.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, ValueError, TypeError) as error:
        raise problem(path, error) from None


def _into_wal_mode(path: Path) -> None:
    """Switch the file to WAL mode permanently. If SQLite refuses, the file keeps its rollback journal."""
    connection = _connect(path, "make")
    try:
        for left in reversed(range(TRIES)):
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not left:
                    raise
                connection.execute("BEGIN IMMEDIATE")  # waits for the other process
                connection.execute("ROLLBACK")
    finally:
        connection.close()


def _check_only_data(connection: Connection, path: Path) -> None:
    """Refuse a database that computes or changes something itself. Raises InputError."""
    parts = connection.exec_driver_sql("SELECT type, name, length(sql), sql FROM sqlite_master")
    for kind, name, length, sql in parts:
        harmless = kind in {"table", "index"} and (
            sql is None
            or (
                length <= MOST_SQL
                and not COMPUTES.search(sql)
                and (kind == "table" or PLAIN_INDEX.fullmatch(sql.strip()) is not None)
            )
        )
        if not harmless:
            raise InputError(
                f"rtgauge does not open {path}, because it contains the {str(kind)[:20]} {str(name)[:60]}, "
                "which rtgauge did not make and which could change data: name another --store"
            )


def _check_tables(connection: Connection, path: Place) -> int | None:
    """Return the store's schema version; None if it has no tables.

    Raises InputError for another program's database or a newer store.
    """
    if not isinstance(path, Server):
        _check_only_data(connection, path)
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return None
    if STORE.name not in tables:
        raise InputError(f"{path} is the database of another program: name another --store")
    version = connection.scalar(select(STORE.c.schema_version))
    if not isinstance(version, int) or version < 1:
        raise DamagedError(
            f"{path} has no schema version; create it again from the records with: rtgauge store rebuild"
        )
    if version != SCHEMA_VERSION and not isinstance(path, Server):
        # From a damaged page, SQLite may read any number.
        answer = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if answer != "ok":
            raise damaged(path, str(answer).splitlines()[-1])
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path} was written by a newer rtgauge (schema {version}, supported: {SCHEMA_VERSION}): "
            "update rtgauge"
        )
    missing = set(METADATA.tables) - tables
    if missing:
        raise damaged(path, f"no table {min(missing)}")
    return version


def open_database(path: Place, *, make: bool = False, write: bool = False) -> Engine:
    """Return a store's checked database; `make`: make missing tables. Raises InputError, DamagedError,
    MeasureError.
    """
    if isinstance(path, Server):
        return _open_server(path, make=make, write=write)
    _check_place(path, make=make)
    if (make or write) and not _can_write(path):
        raise InputError(f"{path} is read-only: name another --store, or change its permissions")
    if (make or write) and not is_own(path):
        raise InputError(
            f"{path} belongs to another user, so rtgauge only reads it: name a store of your own, or keep "
            "the store on PostgreSQL"
        )
    _check_neighbours(path)
    _check_journal(path)
    with clear_problems(path):
        _undo_unfinished(path)
        if make or write:
            # Leave another program's database unchanged.
            if _kind(path) is not None:
                with _engine(path, "read").begin() as connection:
                    _check_tables(connection, path)
            _into_wal_mode(path)
        engine = _engine(path, "make" if make else "write" if write else "read")
        with engine.begin() as connection:
            version = _check_tables(connection, path)
            if version is None:
                if not make:
                    raise InputError(f"the store {path} is empty; fill it with: rtgauge store add RECORD")
                _make_tables(connection)
        if version is not None and version < SCHEMA_VERSION:
            if not _can_write(path) or not os.access(path, os.W_OK) or not is_own(path):
                raise InputError(
                    f"{path} has the tables of an older rtgauge (schema {version}) and is read-only: "
                    "copy it to a folder that you can write to"
                )
            _bring_up_to_date(_engine(path, "write"), path)
        return engine


def _bring_up_to_date(engine: Engine, path: Place) -> None:
    with engine.begin() as connection:
        version = _check_tables(connection, path)  # another process may have been faster
        if version is not None and version < SCHEMA_VERSION:
            migrate(connection, version)


def _make_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(insert(STORE).values(schema_version=SCHEMA_VERSION))


def _open_server(server: Server, *, make: bool, write: bool) -> Engine:
    engine = postgresql.engine_of(server, write=make or write, busy_s=BUSY_S)
    with clear_problems(server), engine.begin() as connection:
        version = _check_tables(connection, server)
        if version is None:
            if not make:
                raise InputError(f"{server} has no store; make one with: rtgauge store add RECORD")
            postgresql.make_schema(connection)
            _make_tables(connection)
    if version is not None and version < SCHEMA_VERSION:
        try:
            _bring_up_to_date(postgresql.engine_of(server, write=True, busy_s=BUSY_S), server)
        except DBAPIError as error:
            if not postgresql.is_refused(error):
                raise problem(server, error) from None
            raise InputError(
                f"{server} has the tables of an older rtgauge (schema {version}): their owner can update "
                "them with any store command of this rtgauge, e.g. rtgauge store list"
            ) from None
    return engine
