# SPDX-License-Identifier: MIT
"""A gate over guests whose clock counts instructions: it catches a planted change, and is silent without it.

The change is what a kernel builder may leave behind: the kernel records a stack trace at each wake-up by a
timer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ext.lab.tests.fake_lab import stock_kernel
from tests.support.cli import good, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

pytestmark = pytest.mark.ci

TRACED = (
    "ftrace=function ftrace_filter=hrtimer_wakeup,try_to_wake_up,hrtimer_interrupt "
    "trace_options=func_stack_trace"
)
SHORT = (
    "--load", "idle", "--duration", "1s", "--set", "warm-up=50ms", "--set", "interval=1ms",
    "--quantile", "p50", "--larger-than", "10%", "--seed", "1", "--max-pairs", "6",
)  # fmt: skip
GATE_S = 1000


def gate(lab: Lab, out: Path, *words: str, status: int) -> dict[str, Any]:
    completed = rtgauge("gate", *words, *SHORT, "--out", out, "--json", env=lab.env, timeout=GATE_S)
    result: dict[str, Any] = json.loads(good(completed, status).stdout)
    return result


def test_a_boot_before_each_run_and_no_change(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian", icount=True)
    words = ("--baseline", "lab:debian", "--candidate", "lab:debian", "--boot", "each-run")
    result = gate(lab, tmp_path / "out", *words, status=0)
    assert result["outcome"] == "not worse"
    (record,) = (tmp_path / "out").iterdir()
    steps = [json.loads(path.read_text()) for path in sorted(record.glob("steps/*/step.json"))]
    runs = 2 * len(result["pairs"])
    console = (record / "targets/lab-debian/console.log").read_text()
    assert (len(steps), console.count("rtgauge-lab: ready")) == (runs, runs + 1)
    assert {step["deployment"]["by"] for step in steps} == {"boot"}


def test_a_planted_change(lab: Lab, tmp_path: Path) -> None:
    kept = stock_kernel()
    kernel = next(kept.glob("vmlinuz-*"))
    own = ("--kernel", kernel, "--modules", kept, "--append", TRACED)
    good(rtgauge("lab", "add", "traced", *own, env=lab.env))
    lab.boot("debian", icount=True)
    lab.boot_beside("traced", icount=True)
    try:
        words = ("--baseline", "lab:debian", "--candidate", "lab:traced")
        result = gate(lab, tmp_path / "out", *words, status=1)
    finally:
        lab.stop()
        good(rtgauge("lab", "rm", "traced", env=lab.env))
    assert result["outcome"] == "worse"
    assert result["primary"]["low"] > 0.1
