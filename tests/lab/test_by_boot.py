# SPDX-License-Identifier: MIT
"""Deployments by booting: Delgado & Choi's table 1, and a matrix of deployments and loads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import good, rtgauge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.conftest import Lab

    Measured = Callable[..., tuple[dict[str, Any], Path]]

SHORT = ("--set", "warm-up=100ms", "--set", "interval=10ms", "--seed", "7")
WORDS = {
    "HM": "",
    "HMI": "isolcpus=managed_irq,domain,1-3",
    "M": "nosmt",
    "MI": "nosmt isolcpus=managed_irq,domain,2",
    "Single": "nosmt maxcpus=1",
}
CPUS = {"HM": [0, 1, 2, 3], "HMI": [1, 2, 3], "M": [0, 2], "MI": [2], "Single": [0]}
STUDY_S = 900


def check(step: dict[str, Any], record: Path) -> None:
    name = step["key"]["deployment"]
    report = step["deployment"]
    assert (report["by"], report["recognised"]) == ("boot", name)
    assert WORDS[name] in report["boot_words"]
    assert "idle=poll" not in report["boot_words"], "an emulated processor has no C-states to keep out of"
    assert step["cpus"] == CPUS[name]
    assert f"--- booted for {name}\n" in (record / "targets/lab-debian-rt/console.log").read_text()


def test_the_papers_table_by_rebooting(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian-rt", "threadirqs")
    completed = rtgauge(
        "run", "delgado2020", "--target", "lab:debian-rt", "--boot", "each-deployment", "--duration", "1s",
        "--load", "cpu", *SHORT, "--json",
        "--out", tmp_path / "out", env=lab.env, timeout=STUDY_S,
    )  # fmt: skip
    study = json.loads(good(completed).stdout)
    (measured,) = study["runs"]
    assert {step["key"]["deployment"] for step in measured["steps"]} == set(WORDS)
    (left_out,) = measured["run"]["left_out"]
    assert left_out["what"] == "deployment CHM"
    assert "this kernel has no C-states" in left_out["reason"]
    assert "HM instead of CHM" in left_out["remedy"]
    (record,) = (tmp_path / "out").iterdir()
    for step in measured["steps"]:
        check(step, record)
        assert {mark["name"] for mark in step["marks"]} >= {"emulated"}
    (loaded,) = [step for step in measured["steps"] if step["key"]["load"] != "idle"]
    assert (loaded["key"]["deployment"], loaded["key"]["load"]) == (study["choice"]["deployment"], "cpu")
    assert "emulated" in study["choice"]["reason"]
    assert "All sides are emulated." in (record / "compare.html").read_text()
    # it is left as it was found
    assert lab.run_in("cat /proc/cmdline").split()[-1] == "threadirqs"
    assert lab.listed("debian-rt")["running"]["append"] == "threadirqs"


@pytest.mark.ci
def test_a_matrix_of_deployments_and_loads(lab: Lab, measured: Measured) -> None:
    lab.boot("debian-rt")
    document, record = measured(
        "--boot",
        "each-deployment",
        "--deployment",
        "MI,Single,as-is",
        "--load",
        "idle,cpu",
        "--duration",
        "1s",
        *SHORT,
    )
    assert not document["run"]["left_out"]
    measured_keys = sorted((step["key"]["deployment"], step["key"]["load"]) for step in document["steps"])
    assert measured_keys == sorted(
        (name, load) for name in ("MI", "Single", "as-is") for load in ("idle", "cpu")
    )
    for step in document["steps"]:
        if step["key"]["deployment"] == "as-is":
            assert (step["deployment"]["boot_words"], step["deployment"]["recognised"]) == ("", "HM")
        else:
            check(step, record)


def test_what_deploy_apply_holds_is_not_rebooted_away(lab: Lab) -> None:
    lab.boot("debian-rt")
    assert "MI is applied" in lab.command("deploy", "apply", "MI").stdout
    facts = json.loads(lab.command("audit", "--facts", "--json").stdout)
    assert (facts["deployment"]["name"], facts["deployment"]["held"]) == ("MI", "MI")
    refused = rtgauge(
        "run", "--target", "lab:debian-rt", "--boot", "each-deployment", "--deployment", "M", env=lab.env
    )
    assert refused.returncode == 3
    assert "rtgauge restore --applied --target lab:debian-rt" in refused.stderr
    assert "nothing had to be restored" in lab.command("restore").stdout
    lab.command("restore", "--applied")
    assert json.loads(lab.command("audit", "--facts", "--json").stdout)["deployment"]["name"] == "HM"
