# SPDX-License-Identifier: MIT
"""A short summary of recorded facts.

Apart from reading facts, which imports every kind of target: a comparison would begin 40 ms later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtgauge.record.facts import fact


def brief(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Host, distribution, kernel, preemption model, CPUs, virtual machine and clock source; None if unknown.

    `virtual_machine` is the hypervisor's name, True if that is unknown, False on real hardware.
    """
    virtual = fact(facts, "machine", "virtual")
    hypervisor = fact(facts, "machine", "hypervisor")
    return {
        "hostname": fact(facts, "host"),
        "os": fact(facts, "os"),
        "kernel": fact(facts, "kernel", "release"),
        "preemption": fact(facts, "kernel", "preemption", "model"),
        "cpu_model": fact(facts, "cpu", "model"),
        "cpus_online": fact(facts, "cpu", "online"),
        "virtual_machine": hypervisor if virtual is True and hypervisor is not None else virtual,
        "emulated": fact(facts, "machine", "emulated"),
        "clock_source": fact(facts, "clock_source", "current"),
    }


def counts_instructions(facts: Mapping[str, Any]) -> bool:
    """Whether the clock of an emulated processor goes on with its instructions, not with time."""
    return bool(fact(facts, "machine", "instruction_ns"))
