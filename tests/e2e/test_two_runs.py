# SPDX-License-Identifier: MIT
"""Two runs at the same time on one target: the second is refused and names the first, which notices
nothing.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.cli import PATIENCE_S, SHORT, end, error_line, invoke, start, wait_until
from tests.e2e.conftest import document
from tests.e2e.test_resume import hashes

pytestmark = [pytest.mark.engine, pytest.mark.root]


def test_the_second_is_refused_at_once(tmp_path: Path) -> None:
    out, there = tmp_path / "out", tmp_path / "started"
    first = start(
        "run",
        "--load",
        "idle",
        "--duration",
        "10min",
        *SHORT,
        "--json",
        "--out",
        out,
        log=tmp_path / "stderr",
    )
    try:
        wait_until(
            lambda: any(
                '"phase":"measure"' in stream.read_text()
                for stream in out.glob("*/steps/.*.tmp/stream.ndjson")
            ),
            "the first to measure",
        )
        (record,) = out.iterdir()
        for words in (
            ("run", "--load", "idle", "--duration", "1s", "--out", out),
            ("resume", "--out", out),
            ("resume", record),
            ("probe", "wakeup", "--duration", "1s"),
            ("watch", "--", "touch", there),
        ):
            line = error_line(invoke(*words, wait_for_lock=False), 3)
            assert "this machine is held by run quick-" in line
            assert f"--out {out}" in line
            assert f"wait until the run has ended, or end it with: kill -INT {first.pid}" in line
        assert not there.exists()
        assert "there is no CPU 8191" in error_line(
            invoke("run", "--cpu", 8191, "--wait", "10min", wait_for_lock=False), 2
        )
        assert first.poll() is None
        assert [entry.name for entry in out.iterdir()] == [record.name]
        first.send_signal(signal.SIGINT)
        output, _ = first.communicate(timeout=PATIENCE_S)
    finally:
        end(first)
    (step,) = document(output)["steps"]
    assert step["end_reason"] == "stopped"
    assert step["total"]["count"] > 0
    assert not {mark["name"] for mark in step["marks"]} & {
        "lease-lost",
        "engine-died",
        "samples-lost",
        "connection-broken",
    }


def test_what_only_reads_needs_no_turn(tmp_path: Path, real_record: Path) -> None:
    before = hashes(real_record)
    first = start(
        "run",
        "--load",
        "idle",
        "--duration",
        "5s",
        *SHORT,
        "--out",
        tmp_path / "out",
        log=tmp_path / "stderr",
    )
    try:
        for words in (
            ("show", real_record),
            ("list", real_record.parent),
            ("export", real_record),
            ("show", real_record, "--page", tmp_path / "page.html"),
        ):
            assert invoke(*words, wait_for_lock=False).returncode == 0
    finally:
        end(first)
    assert hashes(real_record) == before
