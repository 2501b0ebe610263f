# SPDX-License-Identifier: MIT
"""Defines the study of Adam, Petrellis & Doulos (2021), sec. 7: response, a periodic task and the sustained
frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.errors import InputError
from rtgauge.plan.make_plan import Overrides, Plan
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.descriptor import key_names
from rtgauge_ext.papers.sustained_study import Sustained, entries, plan_of

LOADS = ("idle", "scheduler")
"""Sec. 4.3.1: without load, and with hackbench."""
CYCLES = 3_000
"""The paper measures 1 M cycles, which take 3 hours per step at 10 ms: --set cycles=1000000."""
PERIODIC_CYCLES = 1_000
"""The paper measures 10 000 half-periods of 15 ms (sec. 7.2)."""
PLACES: tuple[dict[str, Any], ...] = ({}, {"path": "wire"}, {"path": "wire", "space": "kernel"})
"""User space within the machine (or over --set path=...), then user and kernel space over the wire of the
kernel modules. Without modules, the steps that need them are left out.
"""
CYCLICTEST: dict[str, Any] = {"probe": "wakeup", "interval": "400us", "priority": 99, "count": 20_000}
"""Sec. 7.4: every 400 us, priority 99."""


def _main_steps(loads: Sequence[str]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for load in loads:
        steps += [
            {"probe": "response", "interval": "10ms", "cycles": CYCLES, "priority": 99, **where, "load": load}
            for where in PLACES
        ]
        steps += [
            {
                "probe": "periodic",
                "period": "30ms",
                "timer": "timerfd",
                "cycles": PERIODIC_CYCLES,
                "priority": 99,
                **where,
                "load": load,
            }
            for where in PLACES
        ]
        steps.append({**CYCLICTEST, "load": load})
    return steps


class Adam2021(Sustained):
    """The paper's measurements in one record."""

    name = "adam2021"
    description = (
        "study: measure responses and a periodic task in user and kernel space, run cyclictest, and find "
        "the highest sustained frequency (Adam et al. 2021); takes about eleven minutes (seven without "
        "kernel modules)"
    )

    def begin(self, overrides: Overrides) -> Plan:
        """Return the paper's measurements at fixed periods, and then the first periods of the search. Raises
        InputError if an option sets the probe or a period.
        """
        given = {"probe", "interval", "interval-min", "interval-max", "period"} & overrides.parameters.keys()
        if given:
            raise InputError(
                f"--set {min(given)}: the study adam2021 sets this parameter itself; leave the option out, "
                f"or measure with "
                f"rtgauge run sustained or a plan of your own"
            )
        checked = replace(overrides, repeats=1, cross_check=overrides.cross_check or "cyclictest")
        main = plan_of(self.name, _main_steps(overrides.loads or LOADS), checked, order="as-written")
        known = {
            key: value
            for key, value in overrides.parameters.items()
            if key in key_names(probes.get("response"))
        }
        first = [{**entry, "priority": 99} for entry in entries("response", ["idle"])]
        search = plan_of(self.name, first, replace(overrides, parameters=known))
        return replace(main, steps=[*main.steps, *(step for step in search.steps if step not in main.steps)])


STUDY = Adam2021()
