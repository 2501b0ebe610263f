# SPDX-License-Identifier: MIT
"""Two runs at the same time on one target: the second is refused and names the first, which notices
nothing.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.test_resume import hashes
from tests.support.cli import PATIENCE_S, SHORT, end, error_line, invoke, start, wait_until
from tests.support.real_record import document

GATE = ("gate", "--baseline", "policy=fifo", "--candidate", "policy=other")
TUNE = ("tune", "--require", "latency<=1ms")
NOWHERE = "/proc/nowhere"
"""Nobody can make this folder."""
WRONG: list[tuple[tuple[object, ...], str]] = [
    (("run", "--require", "oops"), "requirement 'oops'"),
    (("run", "--load", "oops"), "unknown load 'oops'"),
    (("run", "oops.toml"), "no plan file oops.toml"),
    (("run", "--cpu", 8191), "there is no CPU 8191"),
    (("run", "--out", NOWHERE), "cannot be written"),
    (("run", "--alternate", "M", "MI", "--pairs", 0), "--pairs: 0 is too small"),
    (("probe", "wakeup", "--require", "oops"), "requirement 'oops'"),
    (("probe", "wakeup", "--load", "oops"), "unknown load 'oops'"),
    (("probe", "wakeup", "--save", "--out", NOWHERE), "cannot be written"),
    (("probe", "wakeup", "--samples", f"{NOWHERE}/a.csv"), "there is no folder"),
    (("watch", "--require", "oops", "--", "sleep", "1"), "requirement 'oops'"),
    (("watch", "--save", "--out", NOWHERE, "--", "sleep", "1"), "cannot be written"),
    (("watch", "--", "no-such-program"), "no-such-program cannot be started"),
    ((*GATE, "--require", "oops"), "requirement 'oops'"),
    ((*GATE, "--load", "oops"), "unknown load 'oops'"),
    ((*GATE, "--series", "oops"), "is not in the plan"),
    ((*GATE, "--max-pairs", 5), "6 to 198 pairs"),
    ((*GATE, "--rare", "1%"), "at least 2.3%"),
    ((*GATE, "--out", NOWHERE), "cannot be written"),
    ((*GATE, "--junit", f"{NOWHERE}/a.xml"), "there is no folder"),
    (("tune", "--require", "oops"), "requirement 'oops'"),
    ((*TUNE, "--load", "oops"), "unknown load 'oops'"),
    ((*TUNE, "--budget", "1s"), "--budget"),
    ((*TUNE, "--only", "oops"), "oops"),
    ((*TUNE, "--out", NOWHERE), "cannot be written"),
    ((*TUNE, "--files", NOWHERE), "cannot be written"),
    (("deploy", "apply", "oops"), "unknown deployment 'oops'"),
]
"""Commands that can never end well, and a part of what they must say instead of asking for the machine."""

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
            assert f"kill -INT {first.pid}" in line
        assert not there.exists()
        for words, reported in WRONG:
            assert reported in error_line(invoke(*words, wait_for_lock=False, cwd=tmp_path), 2), words
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
