# SPDX-License-Identifier: MIT
"""rtgauge import, and a cross-check by cyclictest."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import error_line, good, invoke
from tests.support.machine import Machine
from tests.support.over_ssh import left_on, over_ssh
from tests.support.real_record import document
from tests.support.small_disk import check_every_size

DATA = Path(__file__).parents[4] / "tests" / "data" / "cyclictest"

pytestmark = [pytest.mark.engine, pytest.mark.root]


def test_an_import_takes_what_the_file_does_not_say(tmp_path: Path) -> None:
    source = DATA / "h.txt"
    good(invoke("import", source, "--out", tmp_path / "runs", "--interval", "1ms"))
    (record,) = (tmp_path / "runs").iterdir()
    (step,) = document(good(invoke("show", record, "--json")).stdout)["steps"]
    assert step["parameters"]["interval_ns"] == 1_000_000
    good(invoke("import", DATA / "ns.txt", "--out", tmp_path / "ns", "--ns"))
    (record,) = (tmp_path / "ns").iterdir()
    (step,) = document(good(invoke("show", record, "--json")).stdout)["steps"]
    assert all(series["max_ns"] % 1000 for series in step["series"])


def test_a_file_of_no_format_does_not_keep_the_others_out(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir\n")
    completed = invoke(
        "import", tmp_path / "letter.txt", DATA / "h.txt", tmp_path / "gone", "--out", tmp_path / "runs"
    )
    assert completed.returncode == 2
    assert [line.partition(": ")[0] for line in completed.stderr.splitlines()] == ["rtgauge"] * 3
    assert "2 of 3 files could not be imported" in completed.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize("interval", ["0s", "-1ms", "5", "soon"])
def test_an_import_refuses_what_is_no_interval(tmp_path: Path, interval: str) -> None:
    completed = invoke("import", DATA / "h.txt", "--out", tmp_path / "runs", f"--interval={interval}")
    assert "--interval" in error_line(completed, 2)
    assert not (tmp_path / "runs").exists()


def test_an_import_on_every_size_of_a_disk(small_disk: Path) -> None:
    check_every_size(small_disk, ["import", DATA / "histofall.txt", "--out", small_disk / "."])


@pytest.mark.slow
def test_another_tool_checks_it_there(tmp_path: Path) -> None:
    with Machine(tmp_path, "cart", busybox=False) as cart:
        words = (
            "run",
            "--target",
            cart.target,
            "--out",
            tmp_path / "out",
            "--cross-check",
            "cyclictest",
            "--load",
            "idle",
            "--duration",
            "1s",
            "--json",
        )
        content = document(good(over_ssh(cart, *words)).stdout)
        assert [step["key"]["tool"] for step in content["steps"]] == ["rtgauge", "cyclictest"]
        assert all(step["total"]["count"] > 0 for step in content["steps"])
        assert left_on(cart) == ""
