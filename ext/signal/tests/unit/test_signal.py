# SPDX-License-Identifier: MIT
"""Signal paths as they are written, and the parameters of the probes on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.make_plan import Overrides, load_plan
from rtgauge.probe.descriptor import TRACE_INSTANCE, normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge_ext.signal.parameters import SignalProbe, check_path, resolved

GOOD = [
    "loop:eventfd", "loop:pipe", "loop:socketpair", "loop:udp", "udp:board:7000", "udp:10.0.0.1:1",
    "udp:[fe80::1%eth0]:65535", "udp:[::1]:7000",
    "gpio:/dev/gpiochip0:17,27", "gpio:gpiochip1:LED_A", "gpio:gpiochip1:1,2,3,4:pull-up,active-low",
]  # fmt: skip
GOOD_ON_COBALT = ["rtdm:pinctrl-bcm2835:17,27", "rtdm:rtgauge_wire:0,1,2,3"]
WRONG = [
    "", "loop", "loop:", "loop:smoke", "loop:eventfd:1", "udp:", "udp:board", "udp:board:0",
    "udp:board:65536", "udp:board:x", "udp::7", "udp:a b:7",
    "udp:fe80::1:7", "gpio:", "gpio:x", "gpio::1", "gpio:x:", "gpio:x:1,", "gpio:x:1,2,3,4,5", "gpio:x:1:up",
    "gpio:x:1:pull-up:active-low", "serial:1",
    "rtdm:", "rtdm:x", "rtdm:x:a", "rtdm:a/b:1", "rtdm:..:1,", "rtdm:x:1:pull-up",
    "udp:board:7\n", "loop:pipe\n",
]  # fmt: skip


@pytest.mark.parametrize("path", GOOD)
def test_a_path_stays_as_it_is_written(path: str) -> None:
    assert check_path(path) == path
    parameters = normalise(PROBES["response"], {"path": path}, "x")
    assert parameters.path == path


@pytest.mark.parametrize("path", GOOD_ON_COBALT)
def test_lines_of_rtdm_are_of_cobalt(path: str) -> None:
    assert normalise(PROBES["response"], {"path": path, "rt": "cobalt"}, "x").path == path
    assert (
        PROBES["response"].modules(normalise(PROBES["response"], {"path": path, "rt": "cobalt"}, "x")) == ()
    )


@pytest.mark.parametrize("path", WRONG)
def test_what_is_no_path_is_one_line(path: str) -> None:
    with pytest.raises(InputError, match="path") as error:
        normalise(PROBES["periodic"], {"path": path}, "plan x, step 1")
    assert "\n" not in str(error.value)


@given(
    st.text(max_size=40)
    | st.tuples(st.sampled_from(["loop", "udp", "gpio"]), st.text(max_size=40)).map(":".join)
)
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        assert check_path(text) == text
    except ValueError as error:
        assert str(error)


def test_names_are_resolved_here_and_addresses_stay() -> None:
    assert resolved("udp:10.1.2.3:7000") == "udp:10.1.2.3:7000"
    assert resolved("udp:[fe80::1%eth0]:7000") == "udp:[fe80::1%eth0]:7000"
    assert resolved("loop:pipe") == "loop:pipe"
    assert resolved("udp:localhost:7000") in ("udp:127.0.0.1:7000", "udp:[::1]:7000")
    with pytest.raises(MeasureError, match=r"no-such-host\.invalid"):
        resolved("udp:no-such-host.invalid:7000")


def test_the_engine_gets_a_fixed_interval_or_two_bounds() -> None:
    probe = PROBES["response"]
    drawn = probe.arguments(normalise(probe, {"seed": 5}, "x"), None)
    assert {
        "--interval-min-ns=3000",
        "--interval-max-ns=7071000",
        "--seed=5",
        "--duration-ns=10000000000",
    } <= set(drawn)
    fixed = probe.arguments(normalise(probe, {"interval": "10ms", "cycles": 3}, "x"), None)
    assert {"--interval-ns=10000000", "--count=3"} <= set(fixed)
    assert not any(
        word.startswith(("--interval-min", "--interval-max", "--duration", "--trace")) for word in fixed
    )
    traced = probe.arguments(normalise(probe, {"trace-parts": True}, "x"), None)
    assert f"--trace-instance={TRACE_INSTANCE}" in traced


@pytest.mark.parametrize(
    ("name", "written", "reported"),
    [
        ("response", {"interval": "1ms", "interval-min": "2us"}, "interval, or interval-min"),
        ("response", {"interval-min": "2ms", "interval-max": "1ms"}, "longer than interval-max"),
        (
            "response",
            {"trace-parts": True, "role": "master", "path": "udp:a:1"},
            "splits the response of the slave",
        ),
        ("response", {"role": "master"}, "does not leave the machine"),
        ("periodic", {"role": "slave"}, "does not leave the machine"),
        ("periodic", {"slave-cpu": 1, "role": "slave", "path": "udp:a:1"}, "role both"),
        ("periodic", {"period": "20001ns"}, "even number"),
        ("periodic", {"period": "8us"}, "the half-period of 4us is shorter than a wake-up"),
        ("response", {"timeout": "1us"}, "too short"),
        ("response", {"context": "irq"}, "add space kernel"),
        ("response", {"space": "kernel", "path": "loop:pipe"}, "in kernel space cannot use path"),
        ("response", {"space": "user", "path": "none"}, "works only with space kernel"),
        ("response", {"space": "kernel", "role": "master", "path": "gpio:c:1,2"}, "measures the slave"),
        ("periodic", {"space": "kernel", "role": "slave", "path": "gpio:c:1"}, "measures the master"),
        ("periodic", {"space": "kernel", "policy": "other"}, "policy fifo"),
        ("periodic", {"space": "kernel", "context": "irq-thread"}, "context"),
        ("periodic", {"rt": "rtai", "space": "kernel", "path": "wire"}, "cannot drive a line"),
        ("periodic", {"rt": "cobalt", "space": "kernel", "path": "rtdm:chip:1,2"}, "give path wire or none"),
        ("periodic", {"path": "rtdm:chip:1,2"}, "add rt cobalt"),
        (
            "periodic",
            {"rt": "rtai", "space": "kernel", "path": "none", "context": "irq"},
            "timers of RTAI can only wake tasks",
        ),
        ("periodic", {"space": "kernel", "period": "10us"}, "from 20us to 20s"),
        ("periodic", {"path": "none"}, "works only with space kernel"),
        ("periodic", {"path": "wire", "role": "master"}, "role both"),
        ("response", {"path": "wire", "peer": "local"}, "leave peer out"),
    ],
)
def test_what_does_not_go_together(name: str, written: dict[str, object], reported: str) -> None:
    with pytest.raises(InputError, match=reported):
        normalise(PROBES[name], written, "x")


def test_how_long_it_takes() -> None:
    periodic, response = PROBES["periodic"], PROBES["response"]
    assert (
        periodic.expected_ns(normalise(periodic, {"cycles": 1000, "period": "2ms", "warm-up": "0s"}, "x"))
        == 10**9
    )
    assert (
        response.expected_ns(normalise(response, {"cycles": 100, "interval": "10ms", "warm-up": "0s"}, "x"))
        == 10**9
    )
    assert response.expected_ns(normalise(response, {"duration": "2h", "warm-up": "1s"}, "x")) == 7201 * 10**9


@pytest.mark.parametrize(
    ("probe", "written", "words"),
    [
        ("response", {"instrument": "serial:/dev/ttyACM0"}, "give a line that does"),
        ("response", {"instrument": "ttyACM0", "path": "gpio:x:1,2"}, "give one such as"),
        (
            "response",
            {"instrument": "serial:", "path": "gpio:x:1,2", "role": "master"},
            "is always the slave",
        ),
        ("periodic", {"instrument": "serial:", "path": "gpio:x:1", "role": "slave"}, "is always the master"),
        ("periodic", {"instrument": "latmon:board", "path": "gpio:x:1"}, "with the probe response"),
        ("response", {"instrument": "latmon:board", "path": "gpio:x:1,2"}, "give an interval"),
        ("response", {"instrument": "latmon:board", "path": "gpio:x:1,2", "interval": "1500ns"}, "whole us"),
        (
            "response",
            {"instrument": "serial:", "path": "udp:a:1", "peer": "local"},
            "leave out instrument or peer",
        ),
        (
            "response",
            {"instrument": "serial:", "path": "gpio:x:1,2", "interval-max": "20s"},
            "interval-max of 20s is outside",
        ),
        (
            "response",
            {"instrument": "serial:", "path": "gpio:x:1,2", "timeout": "1min"},
            "timeout of 1min is outside",
        ),
        ("periodic", {"instrument": "serial:", "path": "gpio:x:1", "period": "1min"}, "half of the period"),
        ("response", {"wire-offset": "8ns"}, "add instrument"),
    ],
)
def test_an_instrument_and_what_does_not_go_with_it(probe: str, written: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        normalise(PROBES[probe], written, "x")


def test_with_an_instrument_the_target_plays_the_measured_role() -> None:
    response = normalise(
        PROBES["response"],
        {"instrument": "serial:", "path": "gpio:x:1,2", "interval": "10ms", "cycles": 7},
        "x",
    )
    assert response.role == "slave"
    probe = PROBES["response"]
    assert isinstance(probe, SignalProbe)
    words = probe.arguments_with_instrument(response, "/s")
    assert not [word for word in words if "instrument" in word or "samples" in word or word == "--count=7"]
    assert (
        normalise(PROBES["periodic"], {"instrument": "serial:E660", "path": "gpio:x:1"}, "x").role == "master"
    )


def test_quick_takes_another_probe_without_its_own_settings() -> None:
    plan = load_plan(
        "quick",
        Overrides(
            parameters={"probe": "response", "path": "udp:board:7000", "instrument": "serial:"},
            loads=["idle"],
        ),
    )
    assert [step.probe for step in plan.steps] == ["response"]
    assert "window" not in plan.steps[0].parameters


@pytest.mark.parametrize(
    ("name", "written", "path", "role", "modules"),
    [
        ("periodic", {}, "loop:eventfd", "both", ()),
        ("periodic", {"path": "wire"}, "wire", "both", ("rtgauge_core", "rtgauge_wire")),
        (
            "periodic",
            {"space": "kernel"},
            "wire",
            "both",
            ("rtgauge_core", "rtgauge_wire", "rtgauge_periodic"),
        ),
        (
            "periodic",
            {"space": "kernel", "path": "none", "timer": "timerfd"},
            "none",
            "master",
            ("rtgauge_core", "rtgauge_periodic"),
        ),
        (
            "response",
            {"space": "kernel", "context": "thread"},
            "wire",
            "both",
            ("rtgauge_core", "rtgauge_wire", "rtgauge_response"),
        ),
        (
            "response",
            {"space": "kernel", "path": "gpio:c:1,2", "peer": "local"},
            "gpio:c:1,2",
            "slave",
            ("rtgauge_core", "rtgauge_response"),
        ),
    ],
)
def test_the_line_and_the_modules_follow_from_the_space(
    name: str, written: dict[str, object], path: str, role: str, modules: tuple[str, ...]
) -> None:
    probe = PROBES[name]
    parameters = normalise(probe, written, "x")
    assert (parameters.path, parameters.role, probe.modules(parameters)) == (path, role, modules)
    assert (parameters.context is not None) == (parameters.space == "kernel")


def test_the_peer_of_a_task_in_the_kernel_is_in_user_space() -> None:
    probe = PROBES["response"]
    parameters = normalise(probe, {"space": "kernel", "path": "gpio:c:1,2", "peer": "local"}, "x")
    ends = probe.both_ends(parameters, None)  # type: ignore[attr-defined] - of a SignalProbe
    assert {"--space=kernel", "--context=irq"} <= set(ends["slave"])
    assert "--space=user" in ends["master"]
    assert not any(word.startswith("--context") for word in ends["master"])


def test_in_the_kernel_a_task_of_rtai_is_what_toggles():
    parameters = normalise(PROBES["periodic"], {"rt": "rtai", "space": "kernel", "path": "none"}, "x")
    assert parameters.context == "thread"
    assert PROBES["periodic"].modules(parameters) == ("rtgauge_core", "rtgauge_periodic_rtai")
    over_wire = normalise(PROBES["response"], {"path": "wire", "rt": "rtai"}, "x")
    assert PROBES["response"].modules(over_wire) == (), "RTAI has no wire: the engine says what it lacks"
