# SPDX-License-Identifier: MIT
"""The parts of a program between points, against the program's own clock. The points are removed in any case."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.cli import end, error_line, good, rtgauge, start, wait_until
from tests.support.real_record import document

pytestmark = [pytest.mark.root, pytest.mark.tracefs, pytest.mark.real_time]
EVENTS = Path("/sys/kernel/tracing/uprobe_events")
SOURCE = r"""
#include <cstdio>
#include <time.h>

static long now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void spin(long ns) { long begin = now(); while (now() - begin < ns) ; }
namespace control { struct Loop { void read(); void update(); void end(); }; }
__attribute__((noinline)) void control::Loop::read() { spin(100000); spin(100000); }
__attribute__((noinline)) void control::Loop::update() { spin(200000); spin(200000); }
__attribute__((noinline)) void control::Loop::end() { asm volatile("" ::: "memory"); }

int main()
{
	control::Loop loop;
	timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += 5000000;
		if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		loop.read();
		loop.update();
		loop.end();
	}
}
"""
READ_NS, UPDATE_NS = 200_000, 400_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    (folder / "loop.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O1", folder / "loop.cpp", "-o", folder / "loop"], check=True)
    return folder / "loop"


def points(program: Path) -> tuple[str, ...]:
    names = ("read", "update", "end")
    return tuple(word for name in names for word in ("--point", f"{name}={program}:control::Loop::{name}"))


def of_program(program: Path) -> list[str]:
    """The points in this program that the kernel has."""
    return [line for line in EVENTS.read_text().splitlines() if str(program) in line]


def test_each_part_is_a_row_with_at_least_the_time_that_it_took(program: Path) -> None:
    completed = good(
        rtgauge(
            "watch", *points(program), "--point-budget", "1ms", "--no-explain", "--duration", "2s", "--json",
            "--", program,
        )
    )  # fmt: skip
    (step,) = document(completed.stdout)["steps"]
    parts = {series["labels"]["part"]: series for series in step["series"] if series["metric"] == "part"}
    assert parts.keys() == {"read", "update"}
    for name, least_ns in (("read", READ_NS), ("update", UPDATE_NS)):
        (result,) = (known["values"] for known in step["results"] if known["labels"].get("part") == name)
        assert result["begun"] - result["ended"] in {0, 1}
        assert parts[name]["count"] == result["ended"] > 0
        assert parts[name]["min_ns"] >= least_ns
    (cost,) = (known["values"] for known in step["results"] if known["name"] == "point-cost")
    assert 0 < cost["cost_ns"] <= cost["budget_ns"]
    assert of_program(program) == []


def test_a_point_that_costs_more_than_its_budget_is_refused(program: Path) -> None:
    completed = rtgauge("watch", *points(program), "--point-budget", "1ns", "--duration", "1s", "--", program)
    message = error_line(completed, 2)
    assert "a point costs" in message
    assert "--point-budget" in message
    assert of_program(program) == []


def test_a_missing_function_is_refused_before_measuring(program: Path) -> None:
    words = ("--begin", f"{program}:control::Loop::red", "--end", f"{program}:control::Loop::end")
    message = error_line(rtgauge("watch", *words, "--duration", "1s", "--", program), 2)
    assert "has no function 'control::Loop::red'" in message


def test_begin_without_end_is_refused(program: Path) -> None:
    message = error_line(rtgauge("watch", "--begin", f"{program}:main", "--", program), 2)
    assert "--begin and --end together" in message


def test_a_killed_run_leaves_no_points(program: Path, tmp_path: Path) -> None:
    process = start(
        "watch", *points(program), "--point-budget", "1ms", "--no-explain", "--duration", "10min", "--", program,
        log=tmp_path / "log",
    )  # fmt: skip
    try:
        wait_until(lambda: of_program(program) != [] or process.poll() is not None, "points")
        assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        end(process)
        for own in Path("/proc").glob("[0-9]*/exe"):
            try:
                if own.readlink() == program:
                    subprocess.run(["kill", own.parent.name], check=False)
            except OSError:
                continue
    wait_until(lambda: of_program(program) == [], "the removal of the points")
