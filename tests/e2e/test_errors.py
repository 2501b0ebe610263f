# SPDX-License-Identifier: MIT
"""Wrong input: one line that says what to do, exit status 2, and nothing is measured or left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import error_line, invoke, rtgauge

pytestmark = [pytest.mark.engine, pytest.mark.root]

CPUS = sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("words", "expected_text"),
    [
        ("probe wakeup --interval 0", "longer than 0"),
        ("probe wakeup --interval=-1ms", "longer than 0"),
        ("probe wakeup --interval 1ns", "shorter than a wake-up"),
        ("probe wakeup --interval 4us", "would never sleep; give at least 5us"),
        ("probe periodic --period 8us", "the half-period of 4us is shorter than a wake-up"),
        ("probe wakeup --interval 2h", "1h"),
        ("probe wakeup --interval 5", "no unit; give 5us"),
        ("probe wakeup --interval 5parsec", "unknown unit 'parsec'"),
        ("probe wakeup --duration 0", "too short"),
        ("probe wakeup --duration 999999h", "too long"),
        ("probe wakeup --warm-up 2h", "too long; the maximum is 1h"),
        ("probe wakeup --stop-at=-1us", "too short"),
        ("probe wakeup --cpu 8000", "there is no CPU 8000; this machine has"),
        ("probe wakeup --cpu 99999", "beyond 8191"),
        ("probe wakeup --cpu one", "not a CPU list; give one such as 0-3,6"),
        ("probe wakeup --cpu 1-0", "runs backwards"),
        ("probe wakeup --priority 0", "priority: 0 is too small; the minimum is 1"),
        ("probe wakeup --priority 100", "the maximum is 99"),
        ("probe wakeup --policy fofi", "is not one of 'fifo', 'rr', 'other' or 'deadline'"),
        ("probe wakeup --timer sundial", "nanosleep"),
        ("probe wakeup --phase moon", "random"),
        ("probe wakeup --dma-latency -1", "such as 0, or give off"),
        ("probe wakeup --memory-lock maybe", "on or off"),
        ("probe wakeup --load idel", "did you mean 'idle'?"),
        ("probe wakeup --count 0", "count: 0 is too small; the minimum is 1"),
        ("probe wakeup --count 10 --duration 1s", "duration or count, not both"),
        ("probe wakeup --count 1152921504606846976", "longer than"),
        ("probe wakeup --samples /nowhere/at/all.csv", "there is no folder"),
        ("probe wakeup --samples /tmp", "is a folder; name a file"),
        ("probe wakeup --samples /proc/x.csv", "the folder /proc cannot be written to"),
        ("probe wakeup --require latency<200us", "latency<=200us"),
        ("probe wakeup --require latency", "write it like"),
        ("probe wakeup --require latency<=200", "latency<=200"),
        ("probe weakup", "Did you mean 'wakeup'?"),
        ("probe radar", "choose from wakeup, "),
        ("probe wakeup extra", "unexpected extra argument"),
        ("rnu", "Did you mean 'run'?"),
        ("run --bogus", "(see rtgauge run --help)"),
        (
            "run quick --require latency<=1ms --require p99<=1ms",
            "--require was given 2 times, but takes one value; give it once (see rtgauge run --help)",
        ),
        ("probe wakeup --duration 1s --duration 2s", "--duration was given 2 times"),
        ("run --load idle --load cpu", "give one list, separated with commas"),
        ("store list --store a --store b", "--store was given 2 times"),
        ("run quikc", "did you mean 'quick'?"),
        ("run missing.toml", "there is no plan file missing.toml"),
        ("run --set interval", "give KEY=VALUE"),
        ("run --set intervall=1ms", "did you mean 'interval'?"),
        ("run --set interval=1", "1 has no unit"),
        ("run --load idle,,cpu", "unknown load ''"),
        ("run --repeats 0", "--repeats"),
        ("run --cross-check cyclicte", "cyclictest"),
        (
            "run --cross-check rtai-latency",
            "rtai-latency cannot cross-check any of the steps; it measures wakeup and periodic with rt rtai",
        ),
        ("run --require hardness=100%", "period"),
        ("resume", "nothing to resume"),
        ("resume nowhere", "nowhere"),
        ("resume --duration 1s", "rtgauge resume keeps the settings of the run"),
        ("show nowhere", "no such folder"),
        ("show", "missing argument"),
        ("list nowhere", "there is no folder nowhere"),
        ("show nowhere --page", "no such folder"),
        ("export nowhere", "no such folder"),
        ("import nowhere", "nowhere"),
    ],
)
def test_wrong_input(tmp_path: Path, words: str, expected_text: str) -> None:
    line = error_line(invoke(*words.split(), cwd=tmp_path), 2)
    assert expected_text in line
    assert "Error" not in line
    assert list(tmp_path.iterdir()) == []


def test_an_offline_cpu_is_named_and_the_others_can_be_measured(tmp_path: Path) -> None:
    """The kernel's list of CPUs is covered by one without the last, so that no CPU of this machine is really
    taken off.
    """
    if list(range(len(CPUS))) != CPUS or len(CPUS) < 2:
        pytest.skip("needs two CPUs, all allowed")
    last = CPUS[-1]
    (tmp_path / "online").write_text(f"0-{last - 1}\n" if last > 1 else "0\n")
    cover = 'mount --bind "$1" /sys/devices/system/cpu/online && shift && exec "$@"'
    without = ("unshare", "--mount", "sh", "-c", cover, "sh", str(tmp_path / "online"))
    line = error_line(rtgauge("probe", "wakeup", "--cpu", last, "--duration", "200ms", before=without), 2)
    assert f"CPU {last} is offline;" in line


def test_the_output_folder_cannot_be_written(tmp_path: Path, real_record: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out, expected_text in (
        (file, "is not a folder"),
        (Path("/proc/nowhere"), "cannot be written"),
        (real_record, "is already a record"),
    ):
        line = error_line(invoke("run", "--load", "idle", "--duration", "200ms", "--out", out), 2)
        assert expected_text in line
        assert "--out" in line
    assert file.read_text() == "mine"


def test_a_program_that_is_not_an_engine_is_refused(tmp_path: Path) -> None:
    words = ("probe", "wakeup", "--duration", "200ms")
    assert "the engine is missing" in error_line(
        invoke(*words, env={"RTGAUGE_ENGINE": str(tmp_path / "none")}), 3
    )
    for stranger in ("/bin/true", "/bin/echo", "/bin/false"):
        assert stranger in error_line(invoke(*words, env={"RTGAUGE_ENGINE": stranger}), 3)
