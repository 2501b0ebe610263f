# SPDX-License-Identifier: MIT
"""wakeup in kernel space, by the timerlat tracer of Debian's PREEMPT_RT kernels; their stock kernels have
none.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.kmod_guests import KERNELS
from tests.support.cli import end, error_line, good, invoke, rtgauge, start, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.conftest import Lab

    Measured = Callable[..., tuple[dict[str, Any], Path]]

OSNOISE = (
    "cd /sys/kernel/tracing; cat osnoise/options; grep . osnoise/*_us osnoise/cpus "
    "osnoise/print_stack; ls instances"
)
RUNNING = "cat /sys/kernel/tracing/instances/*/current_tracer"
PLAN = """
name = "spaces"
order = "as-written"
{more}
[matrix]
space = ["user", "kernel"]
interval = "10ms"
cpu = "1"
count = 200
warm-up = "100ms"
"""
THREE = ["latency", "irq-latency", "user-latency"]


def plan(tmp_path: Path, more: str = "") -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(more=more))
    return path


def check_series(step: dict[str, Any], count: int, metrics: list[str], thread: str) -> None:
    """Every activation has its times, each later than the one before, and none is lost unsaid."""
    series = {series["metric"]: series for series in step["series"]}
    assert list(series) == metrics
    latency, irq = series["latency"], series["irq-latency"]
    assert latency["count"] + latency["missed"] == count
    assert {series["count"] for series in step["series"]} == {latency["count"]}
    assert {metric: entry["missed"] for metric, entry in series.items()} == dict.fromkeys(
        metrics, latency["missed"]
    ) | {"irq-latency": 0}
    for figure in ("min_ns", "mean_ns", "max_ns"):
        assert 0 <= irq[figure] < latency[figure], figure
        assert "user-latency" not in series or latency[figure] < series["user-latency"][figure], figure
    assert {series["lost"] for series in step["series"]} == {0}
    (timerlat,) = step["results"]
    assert timerlat["values"]["thread"] == thread
    assert timerlat["values"]["dropped"] == 0


@pytest.mark.ci
def test_user_and_kernel_space_and_nothing_left_behind(lab: Lab, measured: Measured, tmp_path: Path) -> None:
    lab.boot("debian-rt")
    before = lab.run_in(OSNOISE)
    document, folder = measured(plan(tmp_path))
    user, kernel = document["steps"]
    assert [step["key"]["parameters"]["space"] for step in (user, kernel)] == ["user", "kernel"]
    assert {series["metric"] for series in user["series"]} == {"latency"}
    check_series(kernel, 200, THREE, "of the engine, by timerlat_fd")
    assert kernel["total"]["metric"] == "latency"
    assert lab.run_in(OSNOISE) == before
    compared = json.loads(good(invoke("compare", folder, "--json", "--no-tails", env=lab.env)).stdout)
    sides = compared if isinstance(compared, dict) else compared[0]
    assert {side["traits"]["space"] for side in sides["sides"]} == {"user space", "kernel space"}
    # Now everybody who could put anything back is killed in the middle.
    process = start("run", "--target", "lab:debian-rt", "--load", "idle", "--set", "space=kernel", "--duration", "60s", "--out", tmp_path / "cut",
                    env=lab.env, log=tmp_path / "log")  # fmt: skip
    try:
        wait_until(
            lambda: "timerlat" in lab.run_in(f"{RUNNING} 2>/dev/null; true"), "the tracer", timeout_s=120
        )
        lab.run_in("kill -9 $(pidof engine)")
        process.send_signal(signal.SIGKILL)
    finally:
        end(process)
    assert lab.run_in(OSNOISE) != before
    assert "restored" in lab.command("restore").stdout
    assert lab.run_in(OSNOISE) == before


def test_every_cpu_under_load_at_the_end_of_a_duration(lab: Lab, measured: Measured) -> None:
    lab.boot("debian-rt")
    words = ("--set", "space=kernel", "--set", "interval=5ms", "--duration", "5s", "--load", "cpu")
    document, _ = measured(*words)
    (step,) = document["steps"]
    per_cpu = 5000 // 5
    assert [(series["metric"], series["labels"]["cpu"]) for series in step["series"]] == [
        (metric, cpu) for metric in THREE for cpu in range(4)
    ]
    for item in step["series"][:4]:
        assert abs(item["count"] + item["missed"] - per_cpu) <= 1


def test_a_kernel_before_timerlat_fd_has_two_series(lab: Lab, measured: Measured, tmp_path: Path) -> None:
    """Debian 12's 6.1: the thread is the kernel's own, of the policy that was asked for, and nothing is said
    of user space.
    """
    old = next(kernel for kernel in KERNELS if str(kernel) == "bookworm-rt-x86_64")
    old.add(lab)
    lab.boot(old.guest)
    before = lab.run_in(OSNOISE)
    document, folder = measured(plan(tmp_path))
    user, kernel = document["steps"]
    assert {series["metric"] for series in user["series"]} == {"latency"}
    check_series(kernel, 200, ["latency", "irq-latency"], "of the kernel")
    assert "policy-not-set" not in {mark["name"] for mark in kernel["marks"]}
    assert lab.run_in(OSNOISE) == before
    shown = good(invoke("show", folder, "--details", env=lab.env)).stdout
    assert "needs timerlat_fd (Linux 6.5" in shown


def test_a_threshold_ends_it(lab: Lab) -> None:
    lab.boot("debian-rt")
    completed = lab.command(
        "probe",
        "wakeup",
        "--space",
        "kernel",
        "--cpu",
        "0",
        "--interval",
        "10ms",
        "--stop-at",
        "1ns",
        "--duration",
        "1h",
        "--json",
    )
    (step,) = json.loads(completed.stdout)["steps"]
    assert step["end_reason"] == "threshold"
    assert step["series"][0]["count"] >= 1


def test_who_uses_the_tracer_already_is_left_alone(lab: Lab) -> None:
    lab.boot("debian-rt")
    lab.run_in(
        "mkdir /sys/kernel/tracing/instances/mine; echo osnoise > "
        "/sys/kernel/tracing/instances/mine/current_tracer"
    )
    try:
        before = lab.run_in(OSNOISE)
        completed = rtgauge(
            "probe",
            "wakeup",
            "--space",
            "kernel",
            "--target",
            "lab:debian-rt",
            "--duration",
            "1s",
            env=lab.env,
        )
        assert "instances/mine/current_tracer" in error_line(completed, 3)
        assert lab.run_in(OSNOISE) == before
        assert lab.run_in("cat /sys/kernel/tracing/instances/mine/current_tracer").strip() == "osnoise"
    finally:
        lab.run_in("rmdir /sys/kernel/tracing/instances/mine")


def test_a_kernel_without_the_tracer_leaves_kernel_space_out(
    lab: Lab, measured: Measured, tmp_path: Path
) -> None:
    lab.boot("debian")
    document, _ = measured(plan(tmp_path))
    assert [step["key"]["parameters"]["space"] for step in document["steps"]] == ["user"]
    (left_out,) = document["run"]["left_out"]
    assert left_out["what"] == "space kernel"
    assert "no timerlat tracer" in left_out["reason"]
    completed = rtgauge(
        "probe", "wakeup", "--space", "kernel", "--target", "lab:debian", "--duration", "1s", env=lab.env
    )
    assert "no timerlat tracer" in error_line(completed, 3)


@pytest.mark.ci
def test_rtla_measures_the_same(lab: Lab, measured: Measured, tmp_path: Path) -> None:
    """In turns, five of each, on a guest whose clock the host does not disturb: in each series the mean of
    the medians differs by no more than
    rtla's own differ, or by the microsecond to which it rounds down."""
    lab.boot("debian-rt", icount=True)
    words = ("--set", "space=kernel", "--set", "interval=5ms", "--set", "count=400", "--set", "cpu=0")
    document, _ = measured(plan(tmp_path, 'repeats = 5\ncross-check = "rtla"'), *words)
    by_tool: dict[str, dict[str, list[float]]] = {"rtgauge": {}, "rtla": {}}
    for step in document["steps"]:
        for series in step["series"]:
            by_tool[step["key"]["tool"]].setdefault(series["metric"], []).append(series["p50_ns"])
            assert (
                series["count"] + series["missed"] >= 200
            )  # rtla counts its own beginning into its duration
    assert set(by_tool["rtgauge"]) == set(by_tool["rtla"]) == set(THREE)
    for metric, rtlas in by_tool["rtla"].items():
        own = by_tool["rtgauge"][metric]
        assert len(own) == len(rtlas) == 5
        assert abs(sum(own) - sum(rtlas)) / 5 <= max(rtlas) - min(rtlas) + 1_000, (metric, own, rtlas)
