# SPDX-License-Identifier: MIT
"""Stalls that need a kernel module, or a guest that is stopped from outside: `rtgauge selftest` finds and
names them, on the terminal and on the page.

The first runs on a guest whose clock counts its instructions, and whose CPU is never idle meanwhile: other
work of this machine takes nothing from it.
PREEMPT_RT keeps its network from delaying the measured thread by as much as a stall. Still the bounds are
wide, and no size is asserted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.record.reader import Record
from rtgauge_ext.lab.headers import headers_tree
from tests.lab.kmod_guests import KMOD
from tests.support.cli import good, invoke, rtgauge

if TYPE_CHECKING:
    from tests.lab.conftest import Lab


def self_test(lab: Lab, tmp_path: Path, *words: str) -> tuple[dict[str, dict[str, Any]], Record]:
    """(kind -> its row, the record) of a self test in the guest that is up."""
    done = invoke(
        "selftest", "--target", f"lab:{lab.up}", *words, "--json", "--out", tmp_path / "records", env=lab.env
    )
    assert done.returncode in {0, 1, 4}, done.stderr
    result = json.loads(done.stdout)
    rows = {row["kind"]: row for row in result["kinds"]}
    for row in rows.values():
        assert row["injected"] >= 2, rows
        assert row["found"] >= 0.5 * row["injected"], rows
    record = Record.open(Path(result["record"]))
    for step in explained_steps(record):
        assert all(
            sum(part.ns for part in explanation.parts) == explanation.latency_ns
            for explanation in step.explanations
        )
    return rows, record


@pytest.mark.ci
def test_a_function_that_holds_off_interrupts_is_named(lab: Lab, tmp_path: Path) -> None:
    tree = headers_tree("x86_64", print)
    (release,) = [release for release in tree.releases() if "-rt-" in release]
    (module,), _ = tree.make(release, KMOD / "test" / "stall", tmp_path, ["-s", "W=1", "KCFLAGS=-Werror"])
    lab.boot("debian-rt", icount=True)
    with module.open("rb") as content:
        good(rtgauge("lab", "shell", "debian-rt", "cat >/tmp/rtgauge_stall.ko", env=lab.env, stdin=content))
    lab.run_in("insmod /tmp/rtgauge_stall.ko")
    try:
        rows, record = self_test(
            lab,
            tmp_path,
            "--cpu",
            "0",
            "--kinds",
            "irqs-off,preempt-off",
            "--length",
            "500us",
            "--count",
            "40",
        )
    finally:
        lab.run_in("until rmmod rtgauge_stall; do sleep 0.2; done")
    for row in rows.values():
        assert row["named"] >= 0.5 * row["injected"], rows
        assert row["unattributed_median_ns"] <= 5_000, rows
    page = (record.path / "report.html").read_text()
    assert "in rtgauge_stall_irqs_off" in page
    assert "could not be preempted in" in page
    assert all(f"figure-explained-{step.step.id}" in page for step in explained_steps(record))


@pytest.mark.ci
def test_a_guest_stopped_from_outside_ran_no_software(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    rows, record = self_test(lab, tmp_path, "--kinds", "stopped", "--count", "6")
    assert rows["stopped"]["named"] >= 0.5 * rows["stopped"]["found"], rows
    told = json.loads(good(invoke("show", record.path, "--why", "--json", env=lab.env)).stdout)
    assert any("no software ran on CPUs 0-3" in known["sentence"] for known in told["steps"][0]["latencies"])
