# SPDX-License-Identifier: MIT
"""A process that writes to a store, and may be killed: `python -m tests.unit.store.writer HOW STORE RECORD...`.

`add`: waits for a line on standard input, adds the records one by one and prints the name of each.
`killed`: adds the records to stores STORE-0, STORE-1, ...; the n-th is killed before what is the n-th thing that
its database is asked to do. Ends when one was not killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import polars as pl  # noqa: F401 - imported before the forks, used after them alone
from sqlalchemy import Engine, event

from rtgauge.store import adding, intervals  # noqa: F401
from rtgauge.store.store import Store


def add(store: Path, records: list[Path]) -> None:
    opened = Store.open(store, make=True)
    for record in records:
        print(adding.add(opened, record)[0], flush=True)


def add_and_be_killed(store: Path, records: list[Path], at: int) -> None:
    done = 0

    def step(*_: object) -> None:
        nonlocal done
        done += 1
        if done > at:
            os.kill(os.getpid(), signal.SIGKILL)

    for moment in ("before_cursor_execute", "commit", "begin", "engine_connect"):
        event.listen(Engine, moment, step)
    add(store, records)


def main() -> None:
    how, store, *records = sys.argv[1:]
    folders = list(map(Path, records))
    if how == "add":
        print("ready", flush=True)
        sys.stdin.readline()
        add(Path(store), folders)
        return
    for at in range(0, 1000, 2):
        child = os.fork()
        if child == 0:
            add_and_be_killed(Path(f"{store}-{at}"), folders, at)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            print(at, flush=True)
            return


if __name__ == "__main__":
    main()
