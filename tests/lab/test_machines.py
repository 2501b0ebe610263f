# SPDX-License-Identifier: MIT
"""This machine and guests of every architecture and kernel in one plan, one record and one page; every
command on a guest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import error_line, good, invoke

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

GUESTS = ("debian", "debian-rt", "debian-arm64", "debian-rt-arm64")
PLAN = """
name = "machines"
targets = ["local", "lab:debian", "lab:debian-rt", "lab:debian-arm64", "lab:debian-rt-arm64"]
require = "period=10ms latency<=5s"
order = "as-written"
[matrix]
interval = "10ms"
duration = "1s"
warm-up = "100ms"
load = ["idle", "cpu"]
"""


def test_one_plan_one_record_one_page(lab: Lab, tmp_path: Path) -> None:
    lab.boot(GUESTS[0])
    for name in GUESTS[1:]:
        lab.boot_beside(name)
    (tmp_path / "machines.toml").write_text(PLAN)
    # the verdict is about emulated machines too: it cannot be told
    completed = good(
        invoke("run", tmp_path / "machines.toml", "--out", tmp_path / "out", "--json", env=lab.env), 4
    )
    lab.stop()
    document = json.loads(completed.stdout)
    assert [(step["key"]["targets"]["self"], step["key"]["load"]) for step in document["steps"]] == [
        (name, load) for name in ("local", *(f"lab:{guest}" for guest in GUESTS)) for load in ("idle", "cpu")
    ]
    for step in document["steps"]:
        names = {mark["name"] for mark in step["marks"]}
        assert ("guests-running" if step["key"]["targets"]["self"] == "local" else "emulated") in names
    (record,) = (tmp_path / "out").iterdir()
    assert {path.name for path in record.glob("targets/*")} == {"local", *(f"lab-{name}" for name in GUESTS)}
    assert "emulated" in (record / "report.html").read_text()
    assert "--force" in error_line(invoke("compare", record), 2)
    page = tmp_path / "compare.html"
    compared = good(
        invoke(
            "compare",
            record,
            "--force",
            "--no-intervals",
            "--no-tails",
            "--page",
            page,
            env={"COLUMNS": "200"},
        )
    ).stdout
    assert "Emulated:" in compared
    html = page.read_text()
    assert f"Emulated: {', '.join(GUESTS)}." in html
    assert "6.12" in html


def test_every_command_on_a_guest(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian-arm64")
    for words in (
        ("noise", "--duration", "300ms"),
        ("switch", "--count", 500),
        ("preempt", "--count", 200),
        ("semaphore", "--count", 500),
        ("inversion",),
        ("calibrate", "--count", 1000),
    ):
        document = json.loads(lab.command("probe", *words, "--json").stdout)
        assert document["steps"][0]["key"]["targets"] == {"self": "lab:debian-arm64"}
    tasks = tmp_path / "set.toml"
    tasks.write_text('[[task]]\nname = "a"\nperiod = "50ms"\nexecution = "1ms"\npriority = 90\n')
    document = json.loads(lab.command("probe", "taskset", tasks, "--duration", "1s", "--json").stdout)
    assert document["steps"][0]["tasks"][0]["activations"] > 0
    shown = lab.command("deploy", "show").stdout
    assert "Single" in shown
    line = lab.command("deploy", "cmdline", "MI").stdout
    assert "isolcpus=managed_irq,domain,1-3" in line
    assert "nohlt" in line
    assert "nothing had to be restored" in lab.command("restore").stdout


def test_both_roles_of_a_probe_each_on_its_machine(lab: Lab, tmp_path: Path) -> None:
    """The guest reaches this machine's loopback interface as 10.0.2.2."""
    lab.boot("debian-arm64")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[step]]\nprobe = "response"\nrole = "slave"\npeer = "lab:debian-arm64"\npath = '
        '"udp:127.0.0.1:7000"\npeer-path = "udp:10.0.2.2:7000"\n'
        'interval = "20ms"\ncycles = 100\n'
    )
    document = json.loads(
        good(
            invoke(
                "run", plan, "--require", "response<=10s", "--out", tmp_path / "out", "--json", env=lab.env
            ),
            4,
        ).stdout
    )
    assert "emulated" in document["run"]["verdicts"][0]["reason"]
    (step,) = document["steps"]
    assert step["key"]["targets"] == {"self": "local", "master": "lab:debian-arm64"}
    assert {series["labels"]["machine"]: series["labels"]["role"] for series in step["series"]} == {
        "local": "slave",
        "lab:debian-arm64": "master",
    }
    assert all(series["count"] > 0 for series in step["series"])
    # a time is as good as the worse of the two machines
    assert {"emulated", "guests-running"} <= {mark["name"] for mark in step["marks"]}
    (record,) = (tmp_path / "out").iterdir()
    assert (record / "targets" / "lab-debian-arm64" / "console.log").is_file()


@pytest.mark.parametrize("name", ["debian-rt", "debian-arm64"])
def test_deploy_apply_and_restore_on_a_guest(lab: Lab, name: str) -> None:
    lab.boot(name)
    lab.command("deploy", "apply", "Single")
    facts = json.loads(lab.command("audit", "--facts", "--json").stdout)
    assert (facts["deployment"]["name"], facts["deployment"]["held"], facts["cpu"]["online"]) == (
        "Single",
        "Single",
        "0",
    )
    lab.command("restore", "--applied")
    facts = json.loads(lab.command("audit", "--facts", "--json").stdout)
    assert (facts["deployment"]["held"], facts["cpu"]["online"]) == ("none", "0-3")
