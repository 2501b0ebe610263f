# SPDX-License-Identifier: MIT
"""A PostgreSQL server of the tests' own: on a Unix socket in a temporary folder, as an ordinary user."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import psycopg

NOBODY = 65534


def program(name: str) -> str:
    """A program of PostgreSQL; Debian keeps them out of PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    actual = str(debian[-1]) if debian else shutil.which(name)
    assert actual, f"no {name}: apt-get install postgresql"
    return actual


class PostgreSQL:
    """A server that runs until `stop()`, and ends with this process.

    With a `password`, which `owner` has, it lets nobody in without one (scram-sha-256).
    """

    def __init__(self, password: str | None = None) -> None:
        self.password = password
        self.folder = Path(tempfile.mkdtemp(prefix="rtgauge-pg-", dir="/tmp"))
        self._as: list[str] = ["setpriv", "--pdeathsig", "QUIT"]
        if os.getuid() == 0:  # initdb refuses root
            os.chown(self.folder, NOBODY, NOBODY)
            self._as += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        how = "trust" if password is None else "scram-sha-256"
        options = [f"--auth={how}", "--username=owner", "--encoding=UTF8", "--locale=C", "--no-sync"]
        if password is not None:
            known = self.folder / "password"
            known.write_text(f"{password}\n")
            options.append(f"--pwfile={known}")
        subprocess.run(
            [*self._as, program("initdb"), *options, "-D", str(self.folder / "data")],
            check=True,
            capture_output=True,
            cwd="/",
        )
        self._databases = 0
        self.start()

    def start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",  # a killed server loses nothing without it either; only a power cut would
        }
        words = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [*self._as, program("postgres"), "-D", str(self.folder / "data"), *words],
            stderr=subprocess.PIPE,
            cwd="/",
            text=True,
        )
        assert self._process.stderr is not None
        reported: list[str] = []
        for line in self._process.stderr:
            reported.append(line)
            if "ready to accept connections" in line:
                break
        else:
            raise AssertionError("".join(reported))
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        """kill -9 of the server; returns when all of its processes are gone."""
        own = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        waiting: list[int] = []
        for pid in map(int, own):
            with contextlib.suppress(ProcessLookupError):
                waiting.append(os.pidfd_open(pid))
        self._process.kill()
        self._process.wait()
        for descriptor in waiting:
            select.select([descriptor], [], [])
            os.close(descriptor)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
        shutil.rmtree(self.folder)

    def url(self, database: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"d{self._databases}"
        self.execute(f"CREATE DATABASE {name}", "postgres")
        return self.url(name)

    def execute(self, statement: str, database: str) -> None:
        url = self.url(database) if "://" not in database else database
        with psycopg.connect(url, autocommit=True, password=self.password) as connection:
            connection.execute(statement.encode())

    def restore(self, dump: bytes) -> str:
        """The URL of a new database with what `pg_dump` wrote."""
        url = self.database()
        subprocess.run(
            [program("psql"), "--quiet", "--set=ON_ERROR_STOP=1", url],
            input=dump,
            check=True,
            capture_output=True,
        )
        return url
