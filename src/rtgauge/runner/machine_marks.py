# SPDX-License-Identifier: MIT
"""What takes meaning from every time measured on a machine: an emulated processor, or guests of the lab beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtgauge.lab.running_guests import all_running
from rtgauge.record.model import Mark, Severity
from rtgauge.target.address import LOCAL


def emulated(facts: Mapping[str, Any]) -> bool:
    """Whether a machine's facts say that its processor is emulated."""
    machine = facts.get("machine")
    return isinstance(machine, Mapping) and machine.get("emulated") is True


def machine_marks(target: str, facts: Mapping[str, Any]) -> list[Mark]:
    """The marks of every step that is measured on this target at the moment."""
    if emulated(facts):
        detail = "the machine's processor is emulated by software: what was measured are not the times of a real one"
        return [Mark(name="emulated", severity=Severity.NOTE, detail=detail)]
    guests = [running.name for running in all_running()] if target == LOCAL else []
    if not guests:
        return []
    detail = f"guests of the lab ran on this machine meanwhile and took time from it: {', '.join(guests)}; for better figures stop them: rtgauge lab stop NAME"
    return [Mark(name="guests-running", severity=Severity.DOUBTFUL, detail=detail)]
