# SPDX-License-Identifier: MIT
"""What the command line takes, and where it points to instead, before anything is measured."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.analysis.quantile_interval import LEAST_WINDOWS
from rtgauge.cli.main import main
from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_INTERRUPTED
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.runner.interrupt import Interrupt
from rtgauge.verdict.decision import interval_remark
from tests.support.command_line import refused, unanswerable
from tests.support.messages import missing
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtgauge.plan.make_plan import Plan


class WouldMeasure(BaseException):
    """The command has come as far as measuring, with this plan."""


def started(plan: Plan, *_: Any, **__: Any) -> None:
    raise WouldMeasure(plan)


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtgauge.runner.measure_run.start_run", started)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["wakeup"], "wakeup is a probe; use rtgauge probe wakeup"),
        (["probe", "watch"], "watch is a probe; use rtgauge watch"),
        (["quick"], "quick is a plan; use rtgauge run quick"),
        (["run", "--phase", "fixed"], "give --set phase=VALUE, which sets this parameter of wakeup"),
        (["probe", "noise", "--phase", "fixed"], "only the probe wakeup has this option"),
    ],
)
def test_what_belongs_elsewhere_is_pointed_to(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], instead: str
):
    assert instead in refused(monkeypatch, capfd, *words)


@pytest.mark.parametrize(
    ("words", "requirement", "can"),
    [
        (["run", "quick"], "irq-latency<=3us", "rtgauge probe wakeup --space kernel --require"),
        (["run", "quick"], "response<=1ms", "give instead: rtgauge "),
        (["probe", "wakeup"], "user-latency<=5us", "rtgauge probe wakeup --space kernel --require"),
    ],
)
def test_an_unanswerable_requirement_names_the_command_that_can(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    requirement: str,
    can: str,
):
    assert can in unanswerable(monkeypatch, capfd, words, requirement)


@pytest.mark.parametrize(
    "words", [["run", "spaces"], ["probe", "wakeup", "--space", "kernel"]], ids=["plan", "probe"]
)
def test_one_on_the_interrupt_is_answered_in_kernel_space(monkeypatch: pytest.MonkeyPatch, words: list[str]):
    monkeypatch.setattr(sys, "argv", ["rtgauge", *words, "--require", "irq-latency<=3us"])
    with pytest.raises(WouldMeasure):
        main()


def test_run_takes_what_is_changed_most_often_without_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        sys,
        "argv",
        ["rtgauge", "run", "--cpu", "0", "--interval", "250us", "--policy", "rr", "--priority", "7"],
    )
    with pytest.raises(WouldMeasure) as stop:
        main()
    (plan,) = stop.value.args
    assert plan.steps
    for key in plan.steps:
        given = {name: key.parameters.get(name) for name in ("cpu", "interval_ns", "policy", "priority")}
        assert given == {"cpu": "0", "interval_ns": 250_000, "policy": "rr", "priority": 7}


@pytest.mark.parametrize("words", [[], ["--duration", "1ns"]])
def test_watch_starts_its_program_no_sooner_than_it_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
):
    there = tmp_path / "started"
    monkeypatch.setattr(sys, "argv", ["rtgauge", "watch", *words, "--", "touch", str(there)])
    with pytest.raises(WouldMeasure) as stop:
        main()
    (step,) = stop.value.args[0].steps
    assert (step.parameters.get("program"), step.parameters.get("pid")) == ("touch", None)
    assert not there.exists()


def test_watch_refuses_wrong_input_before_it_starts_its_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
):
    there = tmp_path / "started"
    assert "unknown unit 'parsec'" in refused(
        monkeypatch, capfd, "watch", "--duration", "1parsec", "--", "touch", str(there)
    )
    assert "cannot be started: no such file" in refused(
        monkeypatch, capfd, "watch", "--", str(tmp_path / "no-such-program")
    )
    assert not there.exists()


def test_quick_covers_every_phase_of_a_millisecond_silently():
    steps = load_plan("quick", Overrides()).steps
    intervals = {key.parameters.get("interval_ns") for key in steps}
    assert len(intervals) == 1
    (interval_ns,) = intervals
    phases = {step * interval_ns % 1_000_000 for step in range(1_000)}
    assert len(phases) == 1_000
    assert interval_remark(interval_ns, 1_000_000) is None
    assert not missing(interval_remark(interval_ns, 2_000_000) or "", "every 997us", "2ms is required")


def test_two_quick_runs_have_enough_windows_to_be_compared():
    for key in load_plan("quick", Overrides()).steps:
        assert key.parameters.get("duration_ns") // key.parameters.get("window_ns") >= LEAST_WINDOWS


def started_without_reader(*words: str) -> tuple[subprocess.Popen[str], Callable[[], None]]:
    """`rtgauge WORDS`, which waits because nobody reads its output; and what lets it go on."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, b" " * 4096)
    os.set_blocking(write, True)
    code = "from rtgauge.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    return process, lambda: os.close(read)


def wait_until_it_handles(process: subprocess.Popen[str], numbers: set[signal.Signals]) -> None:
    """Wait for a process that handles these signals."""
    handled: set[signal.Signals] = set()
    while not numbers <= handled:
        assert process.poll() is None
        time.sleep(0.01)
        (line,) = re.findall(
            r"^SigCgt:\s+(\S+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE
        )
        handled = {number for number in numbers if int(line, 16) >> (number - 1) & 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_interrupted_says_so(number: signal.Signals):
    process, let_go = started_without_reader("--help")
    wait_until_it_handles(process, {signal.SIGTERM, signal.SIGHUP})
    process.send_signal(number)
    let_go()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (EXIT_INTERRUPTED, "rtgauge: interrupted\n")


def test_nohup_keeps_a_run():
    run = Interrupt()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run:
            signal.raise_signal(signal.SIGHUP)
            assert not run.requested
            signal.raise_signal(signal.SIGTERM)
            assert run.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_defect_does_not_end_like_an_answer(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("there")

    monkeypatch.setattr("rtgauge.runner.measure_run.start_run", broken)
    monkeypatch.setattr(sys, "argv", ["rtgauge", "gate", "--baseline", "M", "--candidate", "MI"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == EXIT_CANNOT_MEASURE
    assert capfd.readouterr().err.splitlines()[-1].startswith("rtgauge: defect in rtgauge: KeyError: 'there'")


def test_a_change_that_no_histogram_can_show_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    words = ["gate", "--larger-than", "1.9%", "--baseline", "M", "--candidate", "MI"]
    line = refused(monkeypatch, capfd, *words)
    assert "--larger-than 1.9%: give at least 2%" in line


def test_a_rate_has_no_least_change(monkeypatch: pytest.MonkeyPatch):
    words = ["gate", "--baseline", "M", "--candidate", "MI", "--require", "latency<=1ms"]
    monkeypatch.setattr(sys, "argv", ["rtgauge", *words, "--larger-than", "1%"])
    with pytest.raises(WouldMeasure):
        main()
