# SPDX-License-Identifier: MIT
"""RTAI's own latency and switches as a cross-check: what they print, where they are found, and which modules
they get.

None runs: that is for a guest.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext.cokernel.tests.unit.test_rtai_modules import FILES, KERNEL, OPT, RtaiBoard
from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.model import StepKey
from rtgauge_ext.cokernel.rtai_programs import measuring_module, modules_of, program_folder, rtai_argv
from rtgauge_ext.importers.foreign_file import lines
from rtgauge_ext.importers.other_tool import OTHER_TOOL
from rtgauge_ext.importers.rtai_testsuite import parse_rtai_latency, parse_rtai_switches

CAPTURED = Path(__file__).parents[3] / "cokernel" / "tests" / "data"
PREFIX = "/opt/rtai"


@pytest.mark.parametrize(
    ("file", "period_ns", "low_ns", "high_ns", "seconds", "parameters", "marks"),
    [
        ("rtai-latency.txt", 100_000, 2_916, 6_532, 7, {"space": "user", "priority": 99}, []),
        ("rtai-latency-5.0.txt", 100_000, 0, 8_522_461, 4, {"space": "user", "priority": 99}, ["overruns"]),
        ("rtai-latency-kernel.txt", 1_000_000, 1_552, 2_840, 9, {"space": "kernel", "context": "thread"}, []),
        (
            "rtai-latency-kernel-5.1.txt",
            2_000_000,
            1_540,
            2_690,
            7,
            {"space": "kernel", "context": "thread"},
            [],
        ),
    ],
)
def test_what_rtais_latency_printed(
    file: str,
    period_ns: int,
    low_ns: int,
    high_ns: int,
    seconds: int,
    parameters: dict[str, object],
    marks: list[str],
) -> None:
    measurement = parse_rtai_latency(lines(CAPTURED / file), file)
    (series,) = measurement.series
    assert (series.interval_ns, series.minimum_ns, series.maximum_ns) == (period_ns, low_ns, high_ns)
    assert (len(series.seconds), series.count) == (seconds, seconds * 10**9 // period_ns)
    assert measurement.parameters == parameters
    assert [mark.name for mark in measurement.marks] == marks


def latency_text() -> str:
    return (CAPTURED / "rtai-latency.txt").read_text()


def test_the_period_is_the_rtai_tasks_if_a_build_has_another() -> None:
    text = latency_text().replace("0          100000 ", "0          500001 ")
    measurement = parse_rtai_latency(enumerate(text.splitlines(), 1), "x")
    assert (measurement.series[0].interval_ns, measurement.series[0].seconds[0].count) == (500_001, 1999)
    (mark,) = measurement.marks
    assert mark.name == "period-of-the-task"
    assert "500001ns" in mark.detail


def test_an_assumed_period_is_marked() -> None:
    unknown = "\n".join(line for line in latency_text().splitlines() if line.startswith("RT"))
    measurement = parse_rtai_latency(enumerate(unknown.splitlines(), 1), "x")
    assert [(mark.name, mark.severity) for mark in measurement.marks] == [("period-assumed", "doubtful")]


@pytest.mark.parametrize(
    ("damage", "expected_text"),
    [
        (("RTD|       3092", "RTD|       3192"), "contradicts itself"),
        (("RTD|       2924|       2924", "RTD|       2924|       2923"), "contradicts itself"),
        (("RTD|       2924", "RTD|          x"), "is damaged: line"),
        (("RTD|", "RTX|"), "no line with figures"),
        (("average time = 1", "average time = 5"), "reads only averages over 1 s"),
        (("0          100000 ", "0          4000000000 "), "the period is 4s"),
    ],
)
def test_a_damaged_output_of_rtais_latency_is_refused(damage: tuple[str, str], expected_text: str) -> None:
    with pytest.raises(InputError, match=expected_text):
        parse_rtai_latency(enumerate(latency_text().replace(*damage).splitlines(), 1), "x")


def test_what_rtais_switches_printed() -> None:
    measurement = parse_rtai_switches(lines(CAPTURED / "rtai-switches.txt"), "x")
    assert [(result.labels["by"], result.values["mean_ns"]) for result in measurement.results] == [
        ("susp/res", 3205),
        ("sem sig/wait", 3462),
        ("rpc/rcv-ret", 4750),
    ]
    assert {(result.values["tasks"], result.values["switches"]) for result in measurement.results} == {
        (10, 20_000)
    }


@pytest.mark.parametrize(
    "damage",
    [
        ("TIME 64 (ms)", "TIME 6 (ms)"),
        ("SWITCH TIME 3205", "SWITCH TIME x"),
        ("FOR 10", "for 10"),
        ("SWITCHES 20000", "SWITCHES 0"),
    ],
)
def test_a_damaged_output_of_rtais_switches_is_refused(damage: tuple[str, str]) -> None:
    text = (CAPTURED / "rtai-switches.txt").read_text().replace(*damage)
    with pytest.raises(InputError, match=r"damaged|no figures"):
        parse_rtai_switches(enumerate(text.splitlines(), 1), "x")


PIECES = [
    "RTD|",
    " 12|",
    "-3|",
    "99",
    "FOR 1 TASKS: TIME 1 (ms), A SWITCHES 0, SWITCH TIME ",
    "5 (ns)",
    "# period = ",
    "7 (ns)",
    "0  100 y n 0x5 ",
    "\n",
    "9" * 20,
    "\0",
]


@given(text=st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_hostile_outputs(text: str) -> None:
    for parse in (parse_rtai_latency, parse_rtai_switches):
        with contextlib.suppress(InputError):
            measurement = parse(enumerate(text.splitlines(), 1), "x")
            assert measurement.series or measurement.results


class Installed(RtaiBoard):
    """A target on which these programs are installed."""

    programs: tuple[str, ...] = ()

    def which(self, program: str) -> str | None:
        return program if program in self.programs else super().which(program)


def board(*programs: str, modules: list[str] = FILES) -> Installed:
    target = Installed(KERNEL, {OPT: modules})
    target.programs = programs
    return target


@pytest.mark.parametrize(
    ("tool", "in_kernel", "program"),
    [
        ("rtai-latency", False, "testsuite/display"),
        ("rtai-latency", False, "testsuite/user/latency/display"),
        ("rtai-switches", False, "testsuite/user/switches/switches"),
        ("rtai-latency", True, "testsuite/kern/latency/display"),
    ],
)
def test_where_the_programs_are(tool: str, in_kernel: bool, program: str) -> None:
    there = f"{PREFIX}/{program}"
    target = board(there, modules=[*FILES, "latency_rt.ko"])
    assert program_folder(target, tool, in_kernel=in_kernel) == there.rpartition("/")[0]  # pyright: ignore[reportArgumentType]
    missing = OTHER_TOOL.why_not(of_tool(tool, in_kernel=in_kernel), board())  # pyright: ignore[reportArgumentType]
    assert missing is not None
    assert "is not installed" in missing.reason
    assert there in missing.remedy


def test_in_kernel_space_latency_needs_its_module() -> None:
    target = board(f"{PREFIX}/testsuite/kern/latency/display")
    assert program_folder(target, "rtai-latency", in_kernel=True) is None  # pyright: ignore[reportArgumentType]
    missing = OTHER_TOOL.why_not(of_tool("rtai-latency", in_kernel=True), target)  # pyright: ignore[reportArgumentType]
    assert missing is not None
    assert "latency_rt.ko" in missing.reason and "display" in missing.reason
    assert "testsuite/kern/latency/display" in missing.remedy
    assert "latency_rt.ko" in missing.remedy


def of_tool(tool: str, *, in_kernel: bool) -> StepKey:
    probe = "switch" if tool == "rtai-switches" else "wakeup"
    return key("periodic", tool, path="none", space="kernel") if in_kernel else key(probe, tool)


def key(probe: str, tool: str, **written: object) -> StepKey:
    parameters = normalise(PROBES[probe], {"rt": "rtai", **written}, "x")
    return StepKey(
        probe=probe,
        parameters=parameters,
        load="idle",
        deployment="as-is",
        targets={"self": "local"},
        repeat=1,
        tool=tool,
    )


def test_which_modules_a_program_gets() -> None:
    assert set(modules_of("rtai-latency", in_kernel=False)) == {"rtai_mbx", "rtai_msg"}
    assert set(modules_of("rtgauge", in_kernel=False)) == set()
    in_kernel = key("periodic", "rtai-latency", space="kernel", path="none", context="thread", period="2ms")
    interval_ns = PROBES["periodic"].interval_ns(in_kernel.parameters)
    assert set(modules_of("rtai-latency", in_kernel=True)) == {"rtai_fifos"}
    assert measuring_module("rtai-latency", interval_ns, in_kernel=True) == {"latency_rt": "period=1000000"}
    assert measuring_module("rtai-latency", 1_000_000, in_kernel=False) == {}


@pytest.mark.parametrize(
    ("tool", "in_kernel"), [("rtai-latency", False), ("rtai-latency", True), ("rtai-switches", False)]
)
def test_the_commands_are_shell(tool: str, in_kernel: bool) -> None:
    shell, _, script, *words = rtai_argv(tool, "/folder", 5, in_kernel=in_kernel)
    assert words == [tool, "/folder", "6"]
    subprocess.run([shell, "-n", "-c", script], check=True)
