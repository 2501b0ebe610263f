# SPDX-License-Identifier: MIT
"""A long run on 64 CPUs, from a generated stream: what the host needs, what is on disk, what readers get;
interrupted, killed and resumed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from rtgauge.target.engine_path import engine_path
from tests.support.cli import PATIENCE_S, end, good, invoke, rtgauge, start, wait_until
from tests.support.generated_engine import write_engine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine
CPUS = 64
SECONDS = 540
WINDOWS = CPUS * SECONDS
MOST_MIB = 300  # with the page
MOST_BYTES = 150
TELL_MEMORY = (
    "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:]).returncode; "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr); sys.exit(status)"
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str | None]:
    return {
        "RTGAUGE_ENGINE": str(write_engine(tmp_path / "engine")),
        "RTGAUGE_REAL_ENGINE": str(engine_path()),
        "RTGAUGE_GENERATED_CPUS": str(CPUS),
    }


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "long.toml"
    file.write_text(f'name = "long"\n[[step]]\nprobe = "wakeup"\nduration = "{SECONDS}s"\n')
    return file


def test_memory_and_disk_have_bounds_and_readers_get_blocks(
    tmp_path: Path, env: dict[str, str | None], plan: Path
) -> None:
    completed = good(
        rtgauge(
            "run",
            plan,
            "--out",
            tmp_path / "out",
            "--json",
            env=env,
            before=[sys.executable, "-c", TELL_MEMORY],
        )
    )
    assert int(completed.stderr.split()[-1]) < MOST_MIB
    (record,) = (tmp_path / "out").iterdir()
    (step,) = json.loads(completed.stdout)["steps"]
    assert step["total"]["count"] == WINDOWS * 1_000
    assert not [mark for mark in step["marks"] if mark["name"] in {"windows-disagree", "summary-missing"}]

    folder = record / "steps" / step["id"]
    parts = [pl.read_parquet(part) for part in sorted(folder.glob("windows-*.parquet"))]
    assert not (folder / "windows.parquet").exists()
    assert sum(map(len, parts)) == WINDOWS
    assert max(map(len, parts)) <= 8_192
    assert '"window"' not in (folder / "stream.ndjson").read_text()
    size = (
        sum(part.stat().st_size for part in folder.glob("windows-*.parquet"))
        + (folder / "stream.ndjson").stat().st_size
    )
    assert size / WINDOWS < MOST_BYTES

    blocks = pl.read_parquet(folder / "blocks.parquet")
    assert len(blocks) <= 8_192
    assert blocks["count"].sum() == WINDOWS * 1_000
    page, table = tmp_path / "page.html", tmp_path / "windows.parquet"
    good(invoke("show", record, "--page", page))
    assert page.stat().st_size < 3_000_000
    good(invoke("export", record, "--format", "parquet", "--windows", "-o", table))
    assert pl.scan_parquet(table).select(pl.len()).collect().item() == WINDOWS


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_one_that_was_interrupted_resumes(
    tmp_path: Path, env: dict[str, str | None], plan: Path, how: signal.Signals
) -> None:
    out = tmp_path / "out"
    process = start(
        "run", plan, "--out", out, env=env | {"RTGAUGE_GENERATED_HOLD": "200"}, log=tmp_path / "stderr"
    )
    try:
        wait_until(lambda: any(out.glob("*/steps/.*.tmp/windows-00000.parquet")), "windows in a file")
        os.kill(process.pid, how)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    (partial,) = out.iterdir()
    assert partial.name.endswith(".partial")
    completed = good(invoke("resume", partial, "--json", env=env))
    (record,) = out.iterdir()
    (step,) = json.loads(completed.stdout)["steps"]
    assert step["total"]["count"] == WINDOWS * 1_000
    assert sum(len(pl.read_parquet(part)) for part in record.glob("steps/*/windows-*.parquet")) == WINDOWS
