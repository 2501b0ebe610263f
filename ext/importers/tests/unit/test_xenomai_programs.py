# SPDX-License-Identifier: MIT
"""Xenomai's own latency and switchtest as a cross-check: their command lines, and what they print.

None runs: that is for a guest.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.model import StepKey
from rtgauge_ext.importers.foreign_file import lines
from rtgauge_ext.importers.latency_table import parse_screen
from rtgauge_ext.importers.other_tool import OTHER_TOOL, switchtest_argv, xenomai_argv
from rtgauge_ext.importers.switchtest import parse_switchtest

if TYPE_CHECKING:
    from rtgauge.runner.context import StepContext

CAPTURED = Path(__file__).parents[3] / "cokernel" / "tests" / "data"


def step(**written: object) -> StepKey:
    parameters = normalise(
        PROBES["wakeup"], {"rt": "cobalt", "interval": "500us", "duration": "2500ms", **written}, "x"
    )
    return StepKey(
        probe="wakeup",
        parameters=parameters,
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
    )


def test_xenomais_latency_is_given_the_settings_of_the_step():
    words = " ".join(xenomai_argv("latency", step(priority=80), [2]))
    assert words == "latency -t 0 -T 3 -p 500 -P 80 -c 2 -h -H 20000 -B 1000"


@pytest.mark.parametrize(
    ("key", "cpus", "words"),
    [
        (step(), [1, 2], "one CPU, not 1-2"),
        (step(policy="rr"), [1], "under the policy fifo, not rr"),
        (step(interval="5500ns"), [1], "whole us"),
    ],
    ids=["CPUs", "policy", "interval"],
)
def test_what_xenomais_latency_cannot_measure_is_refused(key: StepKey, cpus: list[int], words: str):
    with pytest.raises(InputError, match=words):
        xenomai_argv("latency", key, cpus)


def test_what_a_tool_cannot_measure_is_refused_before_a_run():
    class Guest:
        def which(self, place: str) -> str | None:
            return place if place.startswith("/usr/xenomai/") else None

    def context(key: StepKey) -> StepContext:
        return cast("StepContext", SimpleNamespace(key=key, isolated=[1], target=Guest()))

    checked = step(cpu=None).model_copy(update={"tool": "xenomai-latency"})
    OTHER_TOOL.try_arm(context(checked))
    halves = normalise(PROBES["periodic"], {"rt": "cobalt", "space": "kernel", "path": "none"}, "x")
    with pytest.raises(
        InputError, match=r"only at periods of whole us.* \(periodic under idle\); change that step"
    ):
        OTHER_TOOL.try_arm(context(checked.model_copy(update={"probe": "periodic", "parameters": halves})))


@pytest.mark.parametrize(("context", "mode"), [("thread", "1"), ("irq", "2")])
def test_xenomai_latency_in_kernel_is_of_a_task_or_timer_handler(context: str, mode: str):
    written = {
        "rt": "cobalt",
        "space": "kernel",
        "path": "none",
        "context": context,
        "period": "4ms",
        "cycles": 900,
    }
    parameters = normalise(PROBES["periodic"], written, "x")
    key = StepKey(
        probe="periodic",
        parameters=parameters,
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
    )
    words = " ".join(xenomai_argv("latency", key, [0]))
    assert words == f"latency -t {mode} -T 2 -p 2000 -P 98 -c 0 -h -H 20000 -B 1000"


@pytest.mark.parametrize(
    ("file", "context", "least_us"),
    [("cobalt-latency-t1.txt", "thread", 5.7), ("cobalt-latency-t2.txt", "irq", 3.1)],
)
def test_what_xenomais_latency_printed_of_kernel_space(file: str, context: str, least_us: float):
    (measurement,) = parse_screen(lines(CAPTURED / file), file)
    assert (measurement.parameters["space"], measurement.parameters["context"]) == ("kernel", context)
    (series,) = measurement.series
    assert series.minimum_ns is not None
    assert round(series.minimum_ns / 1000, 1) == least_us


def test_switchtest_runs_many_threads_on_the_steps_cpu():
    key = StepKey(
        probe="switch", parameters=normalise(PROBES["switch"], {"rt": "cobalt"}, "x"), load="idle",
        deployment="as-is", targets={"self": "local"}, repeat=1,
        tool="xenomai-switchtest",
    )  # fmt: skip
    program, *options = switchtest_argv("switchtest", key, [3])
    assert (program, options[:2], set(options[2:])) == ("switchtest", ["-T", "6"], {"rtup3"})
    with pytest.raises(InputError, match="one CPU, not 1-2"):
        switchtest_argv("switchtest", key, [1, 2])


def test_what_switchtest_printed():
    measurement = parse_switchtest(lines(CAPTURED / "cobalt-switchtest.txt"), "x")
    (result,) = measurement.results
    switches = [
        int(line.split("|")[2])
        for line in (CAPTURED / "cobalt-switchtest.txt").read_text().splitlines()
        if line.startswith("RTD|")
    ]
    assert result.labels == {"cpu": 0}
    assert result.values == {
        "threads": 101,
        "seconds": len(switches),
        "switches": sum(switches),
        "at_most_ns": len(switches) * 10**9 // sum(switches),
    }


@pytest.mark.parametrize(
    "damage", [("RTD|           0|", "RTD|  x|"), ("RTD|", "rtd|"), ("|       ", "|      9")]
)
def test_a_damaged_output_of_switchtest_is_refused(damage: tuple[str, str]):
    text = (CAPTURED / "cobalt-switchtest.txt").read_text().replace(*damage)
    with pytest.raises(InputError, match=r"damaged|no figures"):
        parse_switchtest(enumerate(text.splitlines(), 1), "x")


@given(
    text=st.lists(
        st.sampled_from(["RTD|", "== Threads: ", "0|", " 12|", "99", "\n", "|", "-", "9" * 20, "\0"]),
        max_size=40,
    ).map("".join)
)
def test_hostile_outputs_of_switchtest(text: str):
    with contextlib.suppress(InputError):
        assert parse_switchtest(enumerate(text.splitlines(), 1), "x").results
