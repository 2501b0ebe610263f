# SPDX-License-Identifier: MIT
"""Which of RTAI's modules a target needs, where they are found, and what is said where they are not.

None is loaded: that is for a guest.
"""

from __future__ import annotations

import pytest
from tests.support.kernel_board import PLAIN, Board

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.facts import Facts, Kernel, RealTimeCore, RtaiCalibration
from rtgauge.system.loadable_modules import NoModules
from rtgauge.target.target_protocol import Completed
from rtgauge_ext.cokernel.rtai_modules import CONFIG, TimerLead, calibration_for, check_loaded, rtai_modules

FILES = ["Module.symvers", "rtai_hal.ko", "rtai_sched.ko", "rtai_math.ko"]
KERNEL: dict[str, str | None] = {**PLAIN, "/proc/ipipe/version": "14\n"}
OPT = "/opt/rtai/modules"


class RtaiBoard(Board):
    """A target that has rtai-config or not."""

    config: str | None = None

    def which(self, program: str) -> str | None:
        return f"/opt/rtai/bin/{program}" if program == CONFIG and self.config is not None else None

    def run(self, argv: object, timeout_s: float) -> Completed:
        return Completed(0, f"{self.config}\n")


def modules_to_load(board: RtaiBoard, calibration: tuple[int, int] | None = None) -> list[str]:
    return rtai_modules(board, calibration)  # pyright: ignore[reportArgumentType]


def test_modules_that_are_loaded_are_left_alone() -> None:
    assert (
        modules_to_load(
            RtaiBoard({**KERNEL, "/proc/modules": "rtai_sched 237568 0\nrtai_hal 434176 1 rtai_sched\n"})
        )
        == []
    )


def test_the_missing_one_is_loaded_with_the_calibration() -> None:
    board = RtaiBoard({**KERNEL, "/proc/modules": "rtai_hal 434176 0\n"}, {OPT: FILES})
    assert modules_to_load(board) == [f"{OPT}/rtai_sched.ko"]
    assert modules_to_load(board, (2000, 0)) == [f"{OPT}/rtai_sched.ko kernel_latency=1 user_latency=2000"]


def test_further_modules_are_loaded_where_they_are_apart() -> None:
    board = RtaiBoard(KERNEL, {OPT: [*FILES, "rtai_mbx.ko", "latency_rt.ko"]})
    more = {"rtai_msg": "", "rtai_mbx": "", "latency_rt": "period=9"}
    base = [f"{OPT}/rtai_hal.ko", f"{OPT}/rtai_sched.ko kernel_latency=2 user_latency=1"]
    own = [f"{OPT}/rtai_mbx.ko", f"{OPT}/latency_rt.ko period=9"]
    assert rtai_modules(board, TimerLead(1, 2), more) == [*base, *own]  # pyright: ignore[reportArgumentType]
    loaded = RtaiBoard(
        {**KERNEL, "/proc/modules": "rtai_sched 237568 0\nrtai_hal 434176 1 rtai_sched\n"},
        {OPT: [*FILES, "rtai_mbx.ko", "latency_rt.ko"]},
    )
    assert rtai_modules(loaded, TimerLead(1, 2), more) == own  # pyright: ignore[reportArgumentType]


def test_rtai_config_goes_before_the_usual_folders() -> None:
    board = RtaiBoard(KERNEL, {OPT: FILES, "/srv/rtai/modules": [*FILES, "rtai_sem.ko"]})
    assert modules_to_load(board) == [f"{OPT}/rtai_hal.ko", f"{OPT}/rtai_sched.ko"]
    board.config = "/srv/rtai/modules"
    assert modules_to_load(board) == [
        f"/srv/rtai/modules/{name}.ko" for name in ("rtai_hal", "rtai_sched", "rtai_sem")
    ]


@pytest.mark.parametrize(
    ("files", "expected_text"),
    [
        (
            {"/proc/modules": None},
            "cannot load modules; leave --rt rtai out, or boot a kernel with CONFIG_MODULES",
        ),
        ({"/proc/modules": None, "/proc/ipipe/version": None}, "this is not an RTAI kernel"),
        ({"/proc/sys/kernel/modules_disabled": "1\n"}, "modules_disabled is 1"),
        ({"/proc/ipipe/version": None}, "this is not an RTAI kernel, because it lacks the I-pipe"),
        (
            {},
            (
                "rtai_hal and rtai_sched are neither loaded nor in /usr/realtime/modules, "
                "/opt/rtai/modules; install RTAI there"
            ),
        ),
    ],
)
def test_why_there_are_none(files: dict[str, str | None], expected_text: str) -> None:
    with pytest.raises(NoModules, match=expected_text):
        modules_to_load(RtaiBoard({**KERNEL, **files}))


def test_a_latency_that_loaded_modules_do_not_have_is_refused() -> None:
    """Only loading the scheduler sets it; the record would name a latency that was not in force."""
    printed = "Calibrated user space latency: 2000 ns\nCalibrated kernel space latency: 1000 ns\n"
    board = RtaiBoard({**KERNEL, "/proc/modules": "rtai_sched 1 0\nrtai_hal 1 1 rtai_sched\n"})
    with pytest.raises(NoModules, match="not 2000 ns"):
        check_loaded(board, TimerLead(2000, 1000))  # pyright: ignore[reportArgumentType]
    board.files["/proc/rtai/scheduler"] = printed
    check_loaded(board, TimerLead(2000, 1000))  # pyright: ignore[reportArgumentType]
    with pytest.raises(NoModules, match="not 50000 ns and 1000 ns; unload the modules"):
        check_loaded(board, TimerLead(50_000, 1000))  # pyright: ignore[reportArgumentType]
    check_loaded(RtaiBoard(KERNEL), TimerLead(50_000, 1000))  # pyright: ignore[reportArgumentType]


def test_a_step_or_the_first_load_says_how_early_timers_fire() -> None:
    noise = PROBES["noise"]
    given = normalise(noise, {"rt": "rtai", "rtai-latency": "2us, 500ns"}, "x")
    assert given.rtai_latency == "2000ns,500ns"
    assert normalise(noise, {"rt": "rtai", "rtai-latency": given.rtai_latency}, "x") == given
    calibration = RtaiCalibration(user_latency_ns=7, kernel_latency_ns=8)
    facts = Facts(kernel=Kernel(extension=RealTimeCore(calibration=calibration)))
    assert calibration_for(given.rtai_latency, facts) == (2000, 500)
    assert calibration_for(None, facts) == (7, 8)
    assert calibration_for(None, Facts(kernel=Kernel(extension=RealTimeCore(name="none")))) is None
    assert not any("latency=" in word for word in noise.arguments(given, None) if "dma" not in word)


@pytest.mark.parametrize(
    ("latency", "rt", "expected_text"),
    [
        ("2us", "rtai", "two durations"),
        ("0,1us", "rtai", "rtai-latency"),
        ("2us,3s", "rtai", "at most 1s"),
        ("2us,1us", "linux", "only rt rtai has this parameter"),
    ],
)
def test_a_calibration_that_makes_no_sense(latency: str, rt: str, expected_text: str) -> None:
    with pytest.raises(InputError, match=expected_text):
        normalise(PROBES["noise"], {"rt": rt, "rtai-latency": latency}, "x")
