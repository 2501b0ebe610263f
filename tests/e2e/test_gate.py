# SPDX-License-Identifier: MIT
"""A real gate: Ctrl-C and resume, another kernel than wanted, and wrong input."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import PATIENCE_S, SHORT, end, only_error, rtgauge, start, wait_until
from tests.support.real_record import document

if TYPE_CHECKING:
    from pathlib import Path

SIDES = ("--baseline", "policy=fifo", "--candidate", "policy=rr")
GATE = (*SIDES, "--load", "idle", "--quantile", "p50", "--max-pairs", 6, *SHORT)


@pytest.mark.engine
@pytest.mark.root
def test_ctrl_c_keeps_results_and_resume_reaches_an_answer(tmp_path: Path) -> None:
    log, out = tmp_path / "stderr", tmp_path / "out"
    process = start("gate", *GATE, "--duration", "1s", "--out", out, log=log)
    try:
        wait_until(lambda: any(out.glob("*/steps/[0-9]*/step.json")), "a step")
        kept = {path.parent.name: path.read_bytes() for path in out.glob("*/steps/[0-9]*/step.json")}
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130, log.read_text()
    (record,) = out.iterdir()
    assert output.startswith("UNFINISHED")
    assert f"rtgauge resume {record}" in output
    assert "Traceback" not in log.read_text()

    resumed = rtgauge("resume", record, "--wait", "10min", "--json")
    result = document(resumed.stdout)
    assert resumed.returncode == result["status"]
    assert result["outcome"] in {"not worse", "worse", "cannot tell", "could not measure"}
    assert result["pairs"]
    (whole,) = out.iterdir()
    assert not whole.name.endswith(".partial")
    assert {name: (whole / "steps" / name / "step.json").read_bytes() for name in kept} == kept
    assert (whole / "gate.html").is_file()

    shown = rtgauge("resume", whole, "--json")
    assert document(shown.stdout) == result
    assert list(out.iterdir()) == [whole]


@pytest.mark.engine
@pytest.mark.root
def test_an_unwanted_kernel_ends_the_gate_after_one_pair(tmp_path: Path) -> None:
    junit = tmp_path / "gate.xml"
    completed = rtgauge(
        "gate", *GATE, "--duration", "100ms", "--candidate-kernel", "no-such-kernel",
        "--out", tmp_path / "out", "--junit", junit, "--json",
    )  # fmt: skip
    result = document(completed.stdout)
    assert (completed.returncode, result["outcome"]) == (3, "could not measure")
    assert "no-such-kernel" in result["conclusion"]
    assert len(list((tmp_path / "out").glob("*/steps/*/step.json"))) == 2
    assert "<error" in junit.read_text()


@pytest.mark.parametrize(
    ("words", "expected_text"),
    [
        (("--baseline", "policy=fifo"), "name both sides"),
        ((*SIDES, "--series", "wakeup/latency/cpux"), "did you mean 'wakeup/latency/cpu'?"),
        ((*SIDES, "--series", "x/y/z"), "there are: wakeup/latency/cpu"),
        ((*SIDES, "--series", "wakeup/*"), "matches several series"),
        ((*SIDES, "--max-pairs", 5), "must have 6 to"),
        ((*SIDES, "--larger-than", "much"), "--larger-than"),
        ((*SIDES, "--quantile", "max"), "is not one of"),
        ((*SIDES, "--load", "idle", "--duration", "100ms"), "too short for p99.9"),
        ((*SIDES, "--rare", "1%"), "give at least 2.3%"),
        ((*SIDES, "--rare", "10%", "--max-pairs", "12"), "takes 44 pairs, but --max-pairs allows only 12"),
        ((*SIDES, "--known", "no-such-file.toml"), "no-such-file.toml"),
    ],
)
def test_wrong_input_is_refused_in_one_line_and_measures_nothing(
    tmp_path: Path, words: tuple[object, ...], expected_text: str
) -> None:
    out = tmp_path / "out"
    completed = rtgauge("gate", *words, "--out", out)
    error = only_error(completed.stderr)
    assert completed.returncode == 2
    assert expected_text in error
    assert len(error) < 300
    assert not out.exists()
