# SPDX-License-Identifier: MIT
"""What `rtgauge store` and `history` cost with many records: `ext/store/bench/store_speed.py [RECORDS]`.

One drawn record is read once, and its rows are put into a store under other names, dates, machines and
kernels, as often as wanted. Then each command is run as a user calls it. Wall time depends on what else the
machine does: the CPU time of the command is printed, too, and that of Python with SQLAlchemy alone.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.records import Shape, write_record

from rtgauge.record.reader import Record
from rtgauge_ext.store.digest import Digest, MachineDigest, checksum_of, digest_of
from rtgauge_ext.store.store import Store, _insert

TIMES = 5
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
RTGAUGE = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'rtgauge'; from rtgauge.cli.main import main; main()",
]
SERIES = "wakeup/latency/idle/as-is"


def another(digest: Digest, number: int) -> Digest:
    """The same record from another day, of one of 20 machines with one of 50 kernels."""
    day = f"{FIRST + timedelta(hours=number):%Y-%m-%dT%H:%M:%SZ}"
    machine = MachineDigest(f"dmi:{number % 20}", "dmi", shared=False, host=f"board-{number % 20}")
    kernel = f"6.{number * 50 // 10_000}.0"
    steps = [
        replace(
            step,
            machine=machine,
            row={**step.row, "started": day},
            configuration={**step.configuration, "key": kernel, "kernel": kernel},
        )
        for step in digest.steps
    ]
    row = {**digest.row, "name": f"{day}-{number}", "created": day, "sha256": str(number)}
    return replace(digest, row=row, steps=steps)


def fill(path: Path, digest: Digest, records: int) -> None:
    store = Store.open(path, make=True)
    for first in range(0, records, 500):
        with store.engine.begin() as connection:
            for number in range(first, min(first + 500, records)):
                _insert(connection, another(digest, number), f"gone-{number}", again=False)


def measure(name: str, command: list[str], before: list[str] | None = None) -> None:
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(TIMES + 1):
        if before is not None:
            subprocess.run(before, check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        wall.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    # The first is not counted: byte code is written, files come into the page cache.
    print(
        f"{name:44} {statistics.median(wall[1:]):6.2f} s wall, {statistics.median(cpu[1:]):6.2f} s CPU",
        flush=True,
    )


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        store = folder / "store.sqlite"
        shape = Shape(seconds=30)
        record = write_record(folder, shape)
        opened = Record.open(record)
        fill(store, digest_of(opened, checksum_of(opened.folder)), records)
        print(f"{records} records, {store.stat().st_size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}")
        with_store = ["--store", str(store)]
        command = [*RTGAUGE, "store"]
        measure("python -c 'import sqlalchemy'", [sys.executable, "-c", "import sqlalchemy"])
        measure("rtgauge --help", [*RTGAUGE, "--help"])
        remove = [*command, "rm", record.name, *with_store]
        subprocess.run([*command, "add", str(record), *with_store], check=True, capture_output=True)
        measure("store add RECORD", [*command, "add", str(record), *with_store], remove)
        measure("store add RECORD (unchanged)", [*command, "add", str(record), *with_store])
        measure("store list", [*command, "list", *with_store])
        measure("store list --last 0", [*command, "list", "--last", "0", *with_store])
        measure("store list --series", [*command, "list", "--series", *with_store])
        measure("store list --machines", [*command, "list", "--machines", *with_store])
        measure("store show SERIES", [*command, "show", SERIES, *with_store])
        measure("store show SERIES --last 0", [*command, "show", SERIES, "--last", "0", *with_store])
        measure("store show RECORD", [*command, "show", record.name, *with_store])
        history = [*RTGAUGE, "history", SERIES, *with_store]
        machine = ["--machine", "board-3"]
        site = ["--site", str(folder / "site")]
        measure("history SERIES (20 machines)", history)
        measure("history SERIES --machine NAME", [*history, *machine])
        measure("history SERIES --machine NAME --site DIR", [*history, *machine, *site])
        measure("history SERIES --site DIR", [*history, *site])


if __name__ == "__main__":
    main()
