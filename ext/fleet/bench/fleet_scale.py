# SPDX-License-Identifier: MIT
"""What a fleet costs a board and a record: `python ext/fleet/bench/fleet_scale.py RECORD [BOARDS...]`.

The boards are simulated. Instead of each run, a stand-in replays the streams of RECORD, a real one, through
the reader of `rtgauge run`, which makes windows, figures and a record of them: another one for each board.
Such a record has the mark `simulated` (invalid). One process replays for all boards, so that it imports once.

It measures:

- the scheduler: CPU time of the fleet's own process without the store, for each job;
- the store: CPU time of adding a record, and the bytes that a record takes there, on SQLite and PostgreSQL;
- the site: CPU time and bytes of all pages;
- the stand-in: CPU time of a record, and the bytes of a record's folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))
JOBS = 1
AT_ONCE = 16
BOARDS = (100, 300, 1000)
STAND_IN = "RTGAUGE_STAND_IN"
"""The environment variable with the path of the stand-in's socket."""


def request_record(words: list[str]) -> None:
    """Stands in for `rtgauge run`: lets the stand-in write the record."""
    options = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    with socket.socket(socket.AF_UNIX) as stand_in:
        stand_in.connect(os.environ[STAND_IN])
        stand_in.sendall(f"{options['target']}\n{options['out']}\n".encode())
        if stand_in.recv(16) != b"done":
            sys.exit(3)


def stand_in(source: Path, at: str) -> None:
    """Answer until killed: each request is a target and the folder for its record."""
    from rtgauge.record.reader import Record

    recorded = Record.open(source)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(at)
        server.listen(AT_ONCE)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile() as lines:
                target, out = (next(lines).rstrip("\n") for _ in range(2))
                replay(recorded, target.removeprefix("ssh://"), Path(out))
                connection.sendall(b"done")


class Played:
    """The program whose output is a recorded stream."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self, _silence_s: float | None = None) -> list[bytes]:
        return self._path.read_bytes().splitlines(keepends=True)


def replay(recorded: object, host: str, out: Path) -> None:
    """Write the record of a board."""
    from rtgauge.record.model import Mark
    from rtgauge.record.reader import Record
    from rtgauge.record.summary import summarise_step
    from rtgauge.record.writer import RecordWriter
    from rtgauge.runner.engine import EngineStream

    assert isinstance(recorded, Record)
    writer = RecordWriter.create(out, host=host, name=out.name)
    mark = Mark(name="simulated", severity="invalid", detail="a recorded stream was replayed")
    run = recorded.run.model_copy(
        update={"id": writer.id, "steps": [], "state": "partial", "marks": [*recorded.run.marks, mark]}
    )
    writer.write_run(run)
    for name, facts in recorded.systems.items():
        writer.write_system(name, facts.model_copy(update={"host": host, "boot_id": writer.id}))
    for step in recorded.steps:
        stream = EngineStream(writer.step_folder(step.id) / "stream.ndjson")
        played = Played(recorded.path / "steps" / step.id / "stream.ndjson")
        for _ in stream.lines(played):  # type: ignore[arg-type]
            pass
        windows = stream.table.windows()
        summary = summarise_step(windows, stream.result.series, stream.result.summaries)
        figures = {"series": summary.series, "total": summary.total}
        writer.commit_step(step.model_copy(update=figures), windows)
    writer.finish("complete")


def measure(record: Path, boards: int, folder: Path, server: str | None) -> None:
    from rtgauge_ext.fleet.fleet import Fleet
    from rtgauge_ext.fleet.fleet_plan import FleetPlan
    from rtgauge_ext.store.cli.history_command import store_site
    from rtgauge_ext.store.queries import RecordFilter
    from rtgauge_ext.store.store import Store

    store = server or str(folder / "store.sqlite")
    plan = folder / "plan.toml"
    lines = [f'store = "{store}"', f"at-once = {AT_ONCE}"]
    lines += [f'[[boards]]\nname = "b{n}"\ntarget = "ssh://b{n}"' for n in range(boards)]
    lines += [f'[[jobs]]\nname = "job{n}"' for n in range(JOBS)]
    plan.write_text("\n".join(lines))
    os.environ[STAND_IN] = str(folder / "socket")
    words = [sys.executable, str(Path(__file__).resolve()), "--stand-in", str(record), os.environ[STAND_IN]]
    standing_in = subprocess.Popen(words)
    while not Path(os.environ[STAND_IN]).exists() and standing_in.poll() is None:
        time.sleep(0.05)
    Store.open(store, make=True)
    empty = size_of(server, folder)
    adding: list[float] = []

    class Timed(Fleet):
        def _store(self, task: object, folder: Path) -> None:
            began = time.thread_time()
            super()._store(task, folder)
            adding.append(time.thread_time() - began)

    command = (sys.executable, "-S", "-E", str(Path(__file__).resolve()), "--ask")
    began, wall = time.process_time(), time.monotonic()
    status = Timed(FleetPlan.read(plan), folder / "out", lambda _: None, command).run()
    spent, wall = time.process_time() - began, time.monotonic() - wall
    times = Path(f"/proc/{standing_in.pid}/stat").read_text().rpartition(")")[2].split()
    replayed = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    standing_in.kill()
    standing_in.wait()
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
    store_site(folder / "site", Store.open(store), RecordFilter(), "*", "p99", "kernel")
    site = time.process_time() - began
    pages = sum(path.stat().st_size for path in (folder / "site").iterdir())
    kind = "PostgreSQL" if server else "SQLite"
    size = size_of(server, folder) - empty
    columns = (spent - sum(adding), sum(adding), tail * records, resumed, site, replayed)
    kept = sum(path.stat().st_size for path in (folder / "out" / "b0").rglob("*") if path.is_file()) / JOBS
    cells = [f"{boards:,}", kind, *(f"{each / records * 1e3:.1f}" for each in columns)]
    cells += [f"{size / records / 1e3:.1f}", f"{kept / 1e3:.0f}", f"{pages / 1e6:.1f}", f"{wall:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def size_of(server: str | None, folder: Path) -> int:
    if server is None:
        return sum(path.stat().st_size for path in folder.glob("store.sqlite*"))
    import psycopg

    with psycopg.connect(server) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return 0 if row is None else int(row[0])


def main() -> None:
    if "--ask" in sys.argv:
        request_record(sys.argv[sys.argv.index("--ask") + 1 :])
        return
    if "--stand-in" in sys.argv:
        source, at = sys.argv[sys.argv.index("--stand-in") + 1 :]
        stand_in(Path(source), at)
    from tests.support.postgresql import PostgreSQL

    record = Path(sys.argv[1]).resolve()
    size = sum(path.stat().st_size for path in record.rglob("*") if path.is_file())
    load = os.getloadavg()[0]
    print(f"record of {size / 1e3:.0f} kB; load of the machine {load:.1f}; CPU time in ms a record")
    heads = ["boards", "store", "scheduler", "store add", "its last tenth", "start again", "site", "stand-in"]
    heads += ["kB in the store", "kB of a record", "site MB", "wall s"]
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
