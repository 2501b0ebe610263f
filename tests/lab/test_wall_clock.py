# SPDX-License-Identifier: MIT
"""A wall clock that is really set back while `rtgauge watch` measures: only a guest's may be."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import end, good, rtgauge, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

LOOPS = "bench/own_loops/loops.c"
SET_NS = -300_000_000
SET_CLOCK = """
#include <stdlib.h>
#include <sys/timex.h>

int main(int count, char **words)
{
	long long ns = count > 1 ? atoll(words[1]) : 0, s = ns / 1000000000 - (ns < 0);
	struct timex change = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {s, ns - s * 1000000000}};

	return adjtimex(&change) < 0;
}
"""
FOLDER = "/var/tmp"
UNDER_WAY_S = 240
ENDS_S = 240


def copy(lab: Lab, program: Path) -> str:
    """Where it is in the guest."""
    there = f"{FOLDER}/{program.name}"
    with program.open("rb") as content:
        words = f"cat >{there} && chmod 755 {there}"
        good(rtgauge("lab", "shell", "debian", words, env=lab.env, stdin=content, timeout=150))
    return there


def compiled(source: Path, program: Path) -> Path:
    subprocess.run(["gcc", "-O2", "-static", "-pthread", source, "-o", program], check=True)
    return program


def measures(out: Path) -> bool:
    return any('"phase":"measure"' in path.read_text() for path in out.glob("*/steps/.*/stream.ndjson"))


def values(step: dict[str, Any], name: str) -> dict[str, Any]:
    (actual,) = (result["values"] for result in step["results"] if result["name"] == name)
    return dict(actual)


@pytest.mark.parametrize(("kind", "on_wall_clock"), [("condition-wall", True), ("absolute", False)])
def test_a_clock_set_back_is_named_if_the_loop_waits_for_it(
    lab: Lab, tmp_path: Path, request: pytest.FixtureRequest, kind: str, on_wall_clock: bool
) -> None:
    lab.boot("debian")
    (tmp_path / "set-clock.c").write_text(SET_CLOCK)
    set_clock = copy(lab, compiled(tmp_path / "set-clock.c", tmp_path / "set-clock"))
    loop = copy(lab, compiled(request.config.rootpath / LOOPS, tmp_path / "loops"))
    process = start(
        "watch", "--target", "lab:debian", "--duration", "10s", "--period", "10ms", "--no-explain", "--save",
        "--json", "--out", tmp_path / "out", "--", loop, kind, "--log", f"{FOLDER}/log",
        "--period-us", "10000", "--fifo", "40",
        env=lab.env, log=tmp_path / "log",
    )  # fmt: skip
    try:
        wait_until(
            lambda: measures(tmp_path / "out") or process.poll() is not None,
            "the measured phase",
            UNDER_WAY_S,
        )
        lab.run_in(f"{set_clock} {SET_NS}")
        output, _ = process.communicate(timeout=ENDS_S)
    finally:
        end(process)
    lab.run_in(f"{set_clock} {-SET_NS}")
    assert process.returncode == 0, (tmp_path / "log").read_text()
    (step,) = json.loads(output)["steps"]
    watched = values(step, "watched")
    assert watched["clock_sets"] == 1
    assert watched["clock_set_ns"] == pytest.approx(SET_NS, rel=0.1)
    assert values(step, "thread")["wall_clock"] is on_wall_clock
    reported = [mark["detail"] for mark in step["marks"] if mark["name"] == "wall-clock-set"]
    assert len(reported) == on_wall_clock
    assert all("set back by" in detail for detail in reported)
