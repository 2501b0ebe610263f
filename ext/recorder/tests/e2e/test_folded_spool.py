# SPDX-License-Identifier: MIT
"""The engine folds the windows of sessions that are over, and the import tells no difference."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.cli import wait_until

from ext.recorder.tests.driven import SECOND
from ext.recorder.tests.unit.test_spool import SETTINGS, Writer, play
from rtgauge.record.reader import Record
from rtgauge.target.engine_path import engine_path
from rtgauge_ext.recorder.entries import folded
from rtgauge_ext.recorder.record import make_record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.root, pytest.mark.tracefs]


def fold(folder: Path) -> None:
    """Let the engine open the spool: it folds the last two sessions, which a kill may have left."""
    words = [
        f"--folder={folder}",
        f"--keep-bytes={SETTINGS['keep_bytes']}",
        "--program=rtgauge-no-such-program",
        f"--settings={json.dumps(SETTINGS)}",
    ]
    log = folder / "log.ndjson"
    before = log.read_bytes()
    with subprocess.Popen([engine_path(), "record", *words]) as engine:
        wait_until(lambda: log.read_bytes() != before, "the recorder's start")
        engine.send_signal(signal.SIGTERM)
    assert engine.returncode == 0
    log.write_bytes(before)


class Imported:
    """What an import says."""

    def __init__(self, spool: Path, runs: Path) -> None:
        with play(spool) as folder:
            self.hours = [stretch.figures for stretch in (*folder.stretches, folded(folder.minutes))]
            self.counts = dict(folder.counts)
            self.moments = sorted(kept.latency_ns for kept in folder.keeping.moments.values())
            record = Record.open(make_record(folder, runs, ["rtgauge"]))
        (step,) = record.steps
        assert step.total is not None
        self.total = step.total.model_dump(exclude={"std_ns": True, "filled": {"std_ns"}})
        self.std_ns = step.total.std_ns


def test_a_folded_spool_gives_the_same_record(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    spool = Writer(tmp_path / "control")
    spool.event("recorder started")
    for session in range(2):
        spool.begin(arming_ns=0)
        for quarter in range(4):
            worst_ns = 2_000_000 + 300_000 * session - 7_000 * quarter
            values = (20_000 + rng.gamma(2.0, 40_000, 900)).astype(np.int64)
            spool.late_window(np.append(values, worst_ns), 900 * SECOND)
            if quarter == 1:
                spool.clock.pass_ns(0, set_ns=5 * SECOND)
        spool.end("stopped")
    shutil.copytree(spool.folder, tmp_path / "folded")
    fold(tmp_path / "folded")
    lines = [
        json.loads(line)["type"]
        for path in (tmp_path / "folded" / "sessions").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert (lines.count("folded"), lines.count("window")) == (2, 0)
    plain, of_folded = (
        Imported(folder, tmp_path / f"runs-of-{folder.name}")
        for folder in (spool.folder, tmp_path / "folded")
    )
    assert plain.counts["trigger_late"] == 8 and plain.counts["clock_sets"] == 2
    assert of_folded.counts == plain.counts
    assert of_folded.moments == plain.moments
    assert of_folded.total == plain.total
    assert of_folded.std_ns == pytest.approx(plain.std_ns)
    assert [[each.max_ns for each in hour] for hour in of_folded.hours] == [[2_000_000], [2_300_000]]
    assert [hour.model_dump(exclude={"m2_ns2"}) for (hour,) in of_folded.hours] == [
        hour.model_dump(exclude={"m2_ns2"}) for (hour,) in plain.hours
    ]
