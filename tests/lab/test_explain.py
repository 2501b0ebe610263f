# SPDX-License-Identifier: MIT
"""Stalls that need a kernel module, in a real kernel: what kept interrupts off is named by its function, on the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.explain.analysis.attribution import Kind
from rtgauge.explain.analysis.explained_step import explained_steps
from rtgauge.lab.headers import headers_tree
from rtgauge.record.reader import Record
from tests.e2e.cli import good, rtgauge
from tests.lab.kmod_guests import KMOD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

AGAIN = """
while [ -e /tmp/stalling ]; do
  echo irqs-off 20000 >/sys/module/rtgauge_stall/parameters/stall
  cat /sys/module/rtgauge_stall/parameters/stall
  sleep 0.3
done
"""
"""On whatever CPU the shell is: all are measured. 20 ms, since the emulator itself delays by some ms."""
END = "rm /tmp/stalling; until rmmod rtgauge_stall; do sleep 0.2; done; cat /tmp/stalls.txt"


@pytest.mark.ci
def test_who_keeps_interrupts_off_is_named_by_function(lab: Lab, tmp_path: Path) -> None:
    tree = headers_tree("x86_64", print)
    (release,) = [release for release in tree.releases() if "-rt-" not in release]
    (module,), _ = tree.make(release, KMOD / "test" / "stall", ["-s", "W=1", "KCFLAGS=-Werror"])
    lab.boot("debian")
    (tmp_path / "again.sh").write_text(AGAIN)
    for file, place in ((module, "rtgauge_stall.ko"), (tmp_path / "again.sh", "again.sh")):
        with file.open("rb") as content:
            good(rtgauge("lab", "shell", "debian", f"cat >/tmp/{place}", env=lab.env, stdin=content))
    lab.run_in("touch /tmp/stalling; insmod /tmp/rtgauge_stall.ko && { setsid sh /tmp/again.sh >/tmp/stalls.txt 2>&1 </dev/null & }")
    try:
        words = ("--explain", "--explain-events", "default,stack", "--explain-above", "15ms", "--interval", "1ms", "--duration", "10s")
        lab.command("probe", "wakeup", *words, "--save", "--out", tmp_path / "records")
    finally:
        stalls = [tuple(map(int, line.split())) for line in lab.run_in(END).splitlines() if line[:1].isdigit()]
    (path,) = (tmp_path / "records").iterdir()
    record = Record.open(path)
    (step,) = explained_steps(record)
    named = [
        (explanation, part)
        for explanation in step.explanations
        for part in explanation.parts
        if part.culprit.kind is Kind.INTERRUPTS_OFF and "rtgauge_stall_irqs_off" in part.where
    ]
    assert named, [(explanation.latency_ns, [(str(part.culprit.kind), part.ns, part.where) for part in explanation.parts]) for explanation in step.explanations]
    for explanation, part in named:
        begin, end = explanation.moment.release_ns, explanation.moment.end_ns
        assert any(start < end and stop > begin for start, stop in stalls)
        assert sum(known.ns for known in explanation.parts) == explanation.latency_ns
        assert part.ns <= explanation.latency_ns
    assert "interrupts were off in rtgauge_stall_irqs_off" in (path / "report.html").read_text()
