# SPDX-License-Identifier: MIT
"""rtgauge killed with -9 in the middle of a step, and resumed: nothing lost, nothing measured twice, no
process left behind.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest

from rtgauge.target.engine_path import engine_path
from tests.e2e.processes import alive, all_pids, command_line, family, find
from tests.support.cli import PATIENCE_S, SHORT, end, error_line, good, invoke, start, wait_until
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]

PLAN = """
load-warm-up = "200ms"
order = "as-written"
[defaults]
warm-up = "100ms"
[[step]]
duration = "500ms"
[[step]]
load = "cpu"
duration = "3s"
[[step]]
duration = "600ms"
"""


def hashes(folder: Path) -> dict[str, str]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.load
@pytest.mark.slow
def test_killed_in_the_middle_of_a_step_under_load(tmp_path: Path) -> None:
    plan, out = tmp_path / "p.toml", tmp_path / "out"
    plan.write_text(PLAN)
    process = start("run", plan, "--out", out, log=tmp_path / "stderr")
    try:
        wait_until(
            lambda: (
                any(out.glob("*/steps/.02-wakeup-cpu.tmp/stream.ndjson"))
                and find(process.pid, "wakeup") != []
            ),
            "the second step",
        )
        below = family(process.pid)
        assert any("stress-ng" in command_line(pid) for pid, _ in below)
        assert any("rtgauge-engine" in command_line(pid) for pid, _ in below)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        end(process)
    wait_until(lambda: alive(below) == [], "the processes of the killed run to end")
    (record,) = out.iterdir()
    assert record.name.endswith(".partial")
    identity = document((record / "run.json").read_text())["id"]
    assert not [pid for pid in all_pids() if identity in command_line(pid)]
    first = record / "steps" / "01-wakeup-idle"
    before = hashes(first)
    assert before

    assert "partial" in good(invoke("show", record)).stdout
    completed = good(invoke("resume", "--out", out, "--json"))
    (whole,) = out.iterdir()
    assert whole.name == identity == record.name.removesuffix(".partial")
    assert hashes(whole / "steps" / "01-wakeup-idle") == before
    assert "[1/2] wakeup cpu" in completed.stderr
    content = document(completed.stdout)
    assert (
        content["run"]["steps"]
        == ["01-wakeup-idle", "02-wakeup-cpu", "03-wakeup-idle"]
        == sorted(entry.name for entry in (whole / "steps").iterdir())
    )
    assert [step["key"] for step in content["steps"]] == content["run"]["planned"]
    assert [mark["name"] for mark in content["run"]["marks"]].count("resumed") == 1
    assert "nothing to resume" in error_line(invoke("resume", "--out", out), 2)


def test_only_the_stopped_step_is_measured_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(
        "run",
        "--load",
        "idle",
        "--repeats",
        2,
        "--duration",
        "5s",
        *SHORT,
        "--out",
        out,
        log=tmp_path / "stderr",
    )
    try:
        wait_until(
            lambda: (
                "[2/2]" in (tmp_path / "stderr").read_text() and any(out.glob("*/steps/.02*/stream.ndjson"))
            ),
            "the second step",
        )
        wait_until(
            lambda: '"window"' in next(out.glob("*/steps/.02*/stream.ndjson")).read_text(), "a window of it"
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    (record,) = out.iterdir()
    before = hashes(record / "steps" / "01-wakeup-idle-r1")
    stopped = document((record / "steps" / "02-wakeup-idle-r2" / "step.json").read_text())
    assert stopped["end_reason"] == "stopped"
    content = document(good(invoke("resume", record, "--json")).stdout)
    whole = Path(content["record"])
    assert hashes(whole / "steps" / "01-wakeup-idle-r1") == before
    assert [step["end_reason"] for step in content["steps"]] == ["duration", "duration"]
    assert content["run"]["state"] == "complete"


def test_sides_by_turns_go_on_in_the_order_that_was_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sides = ("--alternate", "policy=fifo", "policy=rr", "--pairs", 3, "--seed", 4)
    process = start(
        "run", *sides, "--load", "idle", "--duration", "1s", *SHORT, "--out", out, log=tmp_path / "log"
    )
    try:
        wait_until(
            lambda: process.poll() is not None or any(out.glob("*/steps/02-*/step.json")), "the second step"
        )
        (partial,) = out.iterdir()
        drawn = json.loads((partial / "run.json").read_text())["planned"]
        kept = hashes(next(partial.glob("steps/01-*")))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130, (tmp_path / "log").read_text()
    good(invoke("resume", partial, "--wait", "10min"))
    (whole,) = out.iterdir()
    assert json.loads((whole / "run.json").read_text())["planned"] == drawn
    steps = [json.loads(path.read_text()) for path in sorted(whole.glob("steps/*/step.json"))]
    assert [step["key"] for step in steps] == drawn
    policies = {step["key"]["repeat"]: step["key"]["parameters"]["policy"] for step in steps}
    assert policies == {1: "fifo", 2: "rr", 3: "fifo", 4: "rr", 5: "fifo", 6: "rr"}
    assert hashes(next(whole.glob("steps/01-*"))) == kept


def test_a_pause_between_sides_ends_at_once(tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    sides = ("--alternate", "policy=fifo", "policy=rr", "--pairs", 1, "--seed", 4, "--pause-between", "1h")
    process = start("run", *sides, "--load", "idle", "--duration", "200ms", *SHORT, "--out", out, log=log)
    try:
        wait_until(lambda: process.poll() is not None or "pausing for 1 h" in log.read_text(), "the pause")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130, log.read_text()
    (partial,) = out.iterdir()
    assert [path.name for path in partial.glob("steps/*")] == ["01-wakeup-idle-r1"]


def test_what_cannot_be_resumed(tmp_path: Path, record: Path) -> None:
    assert "is complete" in error_line(invoke("resume", record), 2)
    partial = record.rename(record.with_name(record.name + ".partial"))
    run = partial / "run.json"
    text = run.read_text()
    run.write_text(text.replace('"complete"', '"partial"')[:-40])
    assert "run.json" in error_line(invoke("resume", partial), 2)
    run.write_text("{}")
    assert "run.json" in error_line(invoke("resume", "--out", record.parent), 2)
    run.write_text(text.replace('"complete"', '"partial"'))
    (partial / "steps" / document(text)["steps"][0] / "step.json").write_text('{"not": "a step"}')
    assert "step.json" in error_line(invoke("resume", partial), 2)


def test_a_run_killed_between_its_end_and_its_renaming(record: Path) -> None:
    partial = record.rename(record.with_name(record.name + ".partial"))
    before = hashes(partial / "steps")
    good(invoke("resume", "--out", record.parent))
    assert hashes(record / "steps") == before


GONE = (
    '{"type":"error","code":"method","message":"this machine lost it",'
    '"detail":{"what":"timer interrupt","remedy":"boot another kernel"},"status":3}'
)
"""What the engine prints if the machine lacks what a step needs; `timer interrupt` is what the step lacks."""


@pytest.mark.parametrize("finished", [0, 1])
def test_what_is_refused_as_it_is_resumed_is_left_out(tmp_path: Path, finished: int) -> None:
    """A kernel that was booted in between may lack what there was: the other steps are measured, and the
    record says what is missing.
    """
    engine, out, plan, log = tmp_path / "engine", tmp_path / "out", tmp_path / "p.toml", tmp_path / "stderr"
    engine.write_text(
        f"#!/bin/sh\ncase \"$*\" in *777000*) [ -e '{tmp_path}/gone' ] && {{ echo '{GONE}'; exit 3; "
        f'}} ;; esac\nexec {engine_path()} "$@"\n'
    )
    engine.chmod(0o755)
    steps = ['[[step]]\nduration = "300ms"\n'] * finished
    plan.write_text(
        'order = "as-written"\n' + "".join(steps) + '[[step]]\ninterval = "777us"\nduration = "1h"\n'
    )
    env = {"RTGAUGE_ENGINE": str(engine)}
    process = start("run", plan, "--out", out, log=log, env=env)
    try:
        wait_until(lambda: any(out.glob(f"*/steps/.0{finished + 1}*/stream.ndjson")), "the long step")
        wait_until(
            lambda: '"window"' in next(out.glob(f"*/steps/.0{finished + 1}*/stream.ndjson")).read_text(),
            "a window of it",
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    (record,) = out.iterdir()
    (tmp_path / "gone").touch()
    resumed = invoke("resume", record, "--json", env=env)
    assert "timer interrupt" in resumed.stderr
    if not finished:
        assert resumed.returncode == 3
        assert record.exists()
        return
    run = document(good(resumed).stdout)["run"]
    assert (run["state"], len(run["planned"]), run["steps"]) == ("complete", 1, ["01-wakeup-idle"])
    assert [missing["what"] for missing in run["left_out"]] == ["wakeup, timer interrupt"]
