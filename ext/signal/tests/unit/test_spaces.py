# SPDX-License-Identifier: MIT
"""What the probes of signals measure in user and in kernel space."""

from __future__ import annotations

import pytest

from rtgauge.errors import InputError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES


@pytest.mark.parametrize("name", ["periodic", "response"])
def test_user_space_is_the_default(name: str):
    assert normalise(PROBES[name], {}, "x").space == "user"


@pytest.mark.parametrize("rt", ["linux", "cobalt"])
def test_without_a_line_the_module_makes_stimuli_itself(rt: str):
    written = {"space": "kernel", "path": "none", "context": "thread", "rt": rt}
    parameters = normalise(PROBES["response"], written, "x")
    assert (parameters.role, parameters.interval_min_ns) == ("slave", 10_000)
    assert PROBES["response"].modules(parameters) == (
        "rtgauge_core",
        "rtgauge_response" if rt == "linux" else "rtgauge_response_cobalt",
    )


@pytest.mark.parametrize("name", ["periodic", "response"])
def test_on_cobalt_the_line_of_the_kernel_is_the_wire(name: str):
    probe = PROBES[name]
    parameters = normalise(probe, {"space": "kernel", "rt": "cobalt"}, "x")
    assert (parameters.path, parameters.role) == ("wire", "both")
    assert probe.modules(parameters) == ("rtgauge_core", "rtgauge_wire_cobalt", f"rtgauge_{name}_cobalt")
    assert probe.modules(normalise(probe, {"path": "wire", "rt": "cobalt"}, "x")) == (
        "rtgauge_core",
        "rtgauge_wire_cobalt",
    )
    with pytest.raises(InputError, match="give path wire or none"):
        normalise(probe, {"space": "kernel", "rt": "cobalt", "path": "rtdm:chip:1,2", "role": "both"}, "x")


@pytest.mark.parametrize("rt", ["rtai", "auto"])
def test_a_cokernel_without_lines_has_none_in_kernel_space(rt: str):
    assert normalise(PROBES["periodic"], {"space": "kernel", "rt": rt}, "x").path == "none"
    with pytest.raises(InputError, match=r"cannot (drive|use)"):
        normalise(PROBES["periodic"], {"space": "kernel", "rt": rt, "path": "gpio:gpiochip0:1"}, "x")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"context": "irq-thread"}, "answers the interrupt of a line"),
        ({"interval": "5us"}, "from 10us to 1min"),
        ({"interval": "2min"}, "from 10us to 1min"),
        ({"role": "both"}, "give role slave"),
        ({"rt": "rtai"}, "works only with rt linux or cobalt"),
    ],
)
def test_what_a_module_without_a_line_cannot_do_is_refused(written: dict[str, object], words: str):
    with pytest.raises(InputError, match=words):
        normalise(PROBES["response"], {"space": "kernel", "path": "none", **written}, "x")
