# SPDX-License-Identifier: MIT
"""GPIO for real: the PL061 of QEMU's arm64 machine.

Its line 3 is the power button, which QEMU presses and lets go; no line is wired to another one.
"""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import end, error_line, good, rtgauge, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

CHIP = "gpio:/dev/gpiochip0"
BUTTON = 3
GUEST = "debian-arm64"
PLAN = """
name = "button"
controller = true
[[step]]
probe = "response"
path = "gpio:gpiochip0:0,3"
role = "slave"
duration = "12s"
warm-up = "0s"
trace-parts = true
"""


def press(lab: Lab, times: int, pause_s: float) -> None:
    """Each press of the button is an edge, and another one 0.1 s after it (QEMU's gpio-key)."""
    (path,) = lab.home.glob(f"**/{GUEST}/qmp")
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(str(path))
        with monitor.makefile("rw") as talk:
            talk.readline()
            for command in ["qmp_capabilities", *["system_powerdown"] * times]:
                talk.write(json.dumps({"execute": command}) + "\n")
                talk.flush()
                while "return" not in json.loads(talk.readline()):
                    pass
                time.sleep(pause_s)


def test_the_slave_answers_the_edges_of_a_real_line(lab: Lab, tmp_path: Path) -> None:
    """Kernel time stamps, the parts by the line's own interrupt, and its IRQ thread raised by the
    controller.
    """
    lab.boot(GUEST)
    good(probe(lab, "calibrate"))  # the engine of this architecture is built by now
    (tmp_path / "plan.toml").write_text(PLAN)
    process = start(
        "run", tmp_path / "plan.toml", "--target", f"lab:{GUEST}", "--json", "--out", tmp_path / "out",
        env=lab.env, log=tmp_path / "log"
    )  # fmt: skip
    try:
        wait_until(
            lambda: (
                "measuring" in (tmp_path / "log").read_text()
                or "rtgauge-slave" in lab.run_in("cat /sys/kernel/debug/gpio")
            ),
            "the slave",
            300,
        )
        press(lab, 30, 0.7)
        out, _ = process.communicate(timeout=240)
    finally:
        end(process)
    assert process.returncode == 0, (tmp_path / "log").read_text()
    (step,) = json.loads(out)["steps"]
    whole, *parts = step["series"]
    assert whole["labels"] == {"cpu": step["cpus"][0], "role": "slave", "from": "kernel-time-stamp"}
    assert whole["count"] >= 10
    assert whole["min_ns"] > 0
    assert [part["labels"]["segment"] for part in parts] == [
        "service-time",
        "scheduling-latency",
        "scheduling-duration",
    ]
    assert all(part["count"] > 0 and part["min_ns"] > 0 for part in parts)
    values = {result["name"]: result["values"] for result in step["results"]}
    assert values["signal"]["answers"] >= whole["count"]
    assert values["parts"]["interrupt"].startswith("irq ")
    raised = [setting for setting in step["deployment"]["settings"] if setting["wanted"] == "fifo 99"]
    assert raised
    assert all(setting["error"] is None for setting in raised)
    assert "rtgauge" not in lab.run_in("cat /sys/kernel/debug/gpio; ls /sys/kernel/tracing/instances")


def probe(lab: Lab, *words: object) -> Any:
    return rtgauge("probe", *words, "--target", f"lab:{GUEST}", env=lab.env, timeout=240)


def test_an_output_is_toggled(lab: Lab) -> None:
    lab.boot(GUEST)
    completed = good(
        probe(
            lab,
            "periodic",
            "--path",
            f"{CHIP}:0",
            "--role",
            "master",
            "--period",
            "20ms",
            "--duration",
            "2s",
            "--timer",
            "timerfd",
            "--json",
        )
    )
    (step,) = json.loads(completed.stdout)["steps"]
    latency, jitter = step["series"]
    assert latency["count"] + latency["missed"] == 200
    assert jitter["count"] >= 100
    assert step["results"][0]["values"]["edges"] >= latency["count"]


@pytest.mark.parametrize(
    ("lines", "role", "reported"),
    [
        ("0,9", "slave", "has no line '9'; its lines are 0 to 7"),
        ("0,BUTTON", "slave", "has no line 'BUTTON'"),
        (f"{BUTTON},{BUTTON}", "master", "is in use by 'rtgauge-master'"),
        ("0,1,2,4", "both", "did not answer"),
    ],
)
def test_an_error_names_what_is_wrong_with_a_line(lab: Lab, lines: str, role: str, reported: str) -> None:
    lab.boot(GUEST)
    assert reported in error_line(
        probe(
            lab,
            "response",
            "--path",
            f"{CHIP}:{lines}",
            "--role",
            role,
            "--duration",
            "2s",
            "--timeout",
            "20ms",
        ),
        3,
    )


def test_an_edge_that_does_not_come_is_waited_for_in_vain(lab: Lab) -> None:
    lab.boot(GUEST)
    completed = good(
        probe(
            lab,
            "response",
            "--path",
            f"{CHIP}:0,{BUTTON}:active-low",
            "--role",
            "slave",
            "--duration",
            "1s",
            "--json",
        ),
        3,
    )
    (step,) = json.loads(completed.stdout)["steps"]
    assert [mark["name"] for mark in step["marks"] if mark["severity"] == "invalid"] == ["no-stimulus"]
