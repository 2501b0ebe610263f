# SPDX-License-Identifier: MIT
"""A process that writes to a store, and may be killed: `python -m ext.store.tests.writer HOW STORE RECORD...`.

`rows`: as `add`, but each RECORD is only the name of a record with two steps, whose rows are made here.
`label:KEY`: as `add`, and gives each record this label.
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

from rtgauge_ext.store import adding
from rtgauge_ext.store.digest import Digest, MachineDigest, StepDigest
from rtgauge_ext.store.store import Store


def add(store: str, records: list[Path], reported: adding.GivenLabels | None = None) -> None:
    opened = Store.open(store, make=True)
    for record in records:
        print(adding.add(opened, record, reported)[0], flush=True)


def digest(name: str) -> Digest:
    """The rows of a small record; the same for the same name."""
    row = {"name": name, "sha256": name, "created": name, "state": "complete", "rtgauge": "0"}
    number = int(name)
    steps = [
        StepDigest(
            {
                "name": f"{step}", "started": name, "ended": name, "tool_version": "", "end_reason": "",
                "repeat": 1, "emulated": False, "answers": [],
            },
            MachineDigest(f"m{number % 7}", "name", False, "host"),
            None,
            {"key": f"c{number % 5}", "settings": {}},
            [
                (
                    {
                        "key": f"s{step}", "name": f"s{step}", "probe": "p", "metric": "m", "unit": "ns", "load": "l",
                        "deployment": "d", "tool": "t", "whole": True, "labels": {}, "parameters": {},
                    },
                    {
                        "count": number, "missed": 0, "lost": 0, "impossible": 0, "lower_bounds": [],
                    },
                )
            ],
            [],
        )
        for step in range(2)
    ]  # fmt: skip
    return Digest(row, {"label": name}, steps)


def put_rows(store: str, names: list[str]) -> None:
    opened = Store.open(store, make=True)
    for name in names:
        opened.put(digest(name), Path("/none") / name)
        print(name, flush=True)


def add_and_be_killed(store: str, records: list[Path], at: int) -> None:
    finished = 0

    def step(*_: object) -> None:
        nonlocal finished
        finished += 1
        if finished > at:
            os.kill(os.getpid(), signal.SIGKILL)

    for moment in ("before_cursor_execute", "commit", "begin", "engine_connect"):
        event.listen(Engine, moment, step)
    add(store, records)


def main() -> None:
    how, store, *records = sys.argv[1:]
    folders = list(map(Path, records))
    how, _, label = how.partition(":")
    if how in {"add", "label", "rows"}:
        print("ready", flush=True)
        sys.stdin.readline()
        if how == "add":
            add(store, folders)
        elif how == "label":
            add(store, folders, adding.GivenLabels(labels={label: "x"}))
        else:
            put_rows(store, records)
        return
    for at in range(0, 1000, 2):
        child = os.fork()
        if child == 0:
            add_and_be_killed(f"{store}-{at}", folders, at)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            print(at, flush=True)
            return


if __name__ == "__main__":
    main()
