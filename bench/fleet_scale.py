# SPDX-License-Identifier: MIT
"""What a fleet costs a board and a record: `python bench/fleet_scale.py RECORD [BOARDS...]`.

The boards are simulated. In place of each run, a program replays RECORD, a real one: it writes it again under
another name, date and host. Such a record has the mark `simulated` (invalid). It measures:

- the scheduler: CPU time of the fleet's own process without the store, for each job;
- the store: CPU time of adding a record, and the bytes that a record takes there, on SQLite and PostgreSQL;
- the site: CPU time and bytes of all pages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
JOBS = 3
AT_ONCE = 16
BOARDS = (100, 300, 1000)
REPLAY = ("run.json", "step.json", "system.json")
"""Files that are another for each record; the others are links to those of the record that is replayed."""


def replay(words: list[str]) -> None:
    """Stands in for `rtgauge run`: replays the record $REPLAYED."""
    options = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    source, out, target = Path(os.environ["REPLAYED"]), Path(options["out"]), options["target"]
    run = json.loads((source / "run.json").read_bytes())
    number = int(out.name.removeprefix("job"))
    day = f"2026-11-{number + 1:02d}T"
    host = target.removeprefix("ssh://")
    name = f"{day}00-00-00Z-{host}-{out.name}"
    for path in sorted(source.rglob("*")):
        to = out / name / path.relative_to(source)
        if path.is_dir():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.name not in REPLAY:
            os.link(path, to)
            continue
        text = path.read_text().replace(run["id"], name).replace(run["created"][:11], day)
        data = json.loads(text)
        if path.name == "run.json":
            mark = {"name": "simulated", "severity": "invalid", "detail": "a recorded stream was replayed"}
            data["marks"] = [*data.get("marks", []), {**mark, "series": None}]
        if path.name == "system.json":
            data |= {"host": host, "boot_id": f"{host}-{number}"}
        to.write_text(json.dumps(data))


def measure(record: Path, boards: int, folder: Path, server: str | None) -> None:
    from rtgauge.cli.history import store_site
    from rtgauge.fleet.fleet import Fleet
    from rtgauge.fleet.plan import FleetPlan
    from rtgauge.store.queries import Asked
    from rtgauge.store.store import Store

    store = server or str(folder / "store.sqlite")
    plan = folder / "plan.toml"
    lines = [f'store = "{store}"', f"at-once = {AT_ONCE}"]
    lines += [f'[[boards]]\nname = "b{n}"\ntarget = "ssh://b{n}"' for n in range(boards)]
    lines += [f'[[jobs]]\nname = "job{n}"' for n in range(JOBS)]
    plan.write_text("\n".join(lines))
    os.environ["REPLAYED"] = str(record)
    Store.open(store, make=True)
    empty = size_of(server, folder)
    adding: list[float] = []

    class Timed(Fleet):
        def _store(self, task: object, folder: Path) -> None:
            began = time.thread_time()
            super()._store(task, folder)
            adding.append(time.thread_time() - began)

    command = (sys.executable, "-S", "-E", str(Path(__file__).resolve()), "--replay")
    began, wall = time.process_time(), time.monotonic()
    status = Timed(FleetPlan.read(plan), folder / "out", lambda _: None, command).run()
    spent, wall = time.process_time() - began, time.monotonic() - wall
    if status not in (0, 4):
        sys.exit(f"the fleet ended with {status}")
    records = boards * JOBS
    tail = sum(adding[-records // 10 :]) / max(1, records // 10)
    began = time.process_time()
    again = Fleet(FleetPlan.read(plan), folder / "out", lambda _: None, command).run()
    resumed = time.process_time() - began
    if again != status:
        sys.exit(f"the second start ended with {again}")
    began = time.process_time()
    store_site(folder / "site", Store.open(store), Asked(), "*", "p99", "kernel")
    site = time.process_time() - began
    pages = sum(path.stat().st_size for path in (folder / "site").iterdir())
    kind = "PostgreSQL" if server else "SQLite"
    size = size_of(server, folder) - empty
    columns = (spent - sum(adding), sum(adding), tail * records, resumed, site)
    cells = [f"{boards:,}", kind, *(f"{each / records * 1e3:.1f}" for each in columns)]
    cells += [f"{size / records / 1e3:.1f}", f"{pages / 1e6:.1f}", f"{wall:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def size_of(server: str | None, folder: Path) -> int:
    if server is None:
        return sum(path.stat().st_size for path in folder.glob("store.sqlite*"))
    import psycopg

    with psycopg.connect(server) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return 0 if row is None else int(row[0])


def main() -> None:
    if "--replay" in sys.argv:
        replay(sys.argv[sys.argv.index("--replay") + 1 :])
        return
    from tests.support.postgresql import PostgreSQL

    record = Path(sys.argv[1]).resolve()
    size = sum(path.stat().st_size for path in record.rglob("*") if path.is_file())
    load = os.getloadavg()[0]
    print(f"record of {size / 1e3:.0f} kB; load of the machine {load:.1f}; CPU time in ms a record")
    heads = ["boards", "store", "scheduler", "store add", "its last tenth", "start again", "site"]
    heads += ["kB in the store", "site MB", "wall s"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    server = PostgreSQL()
    try:
        for boards in map(int, sys.argv[2:] or map(str, BOARDS)):
            for place in (None, server.database()):
                folder = Path(tempfile.mkdtemp(prefix="rtgauge-fleet-", dir=record.parent))
                try:
                    measure(record, boards, folder, place)
                finally:
                    shutil.rmtree(folder)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
