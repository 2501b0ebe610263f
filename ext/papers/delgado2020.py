# SPDX-License-Identifier: MIT
"""Defines the study of Delgado & Choi (2020), sec. III to V: latency in every deployment, then in the best
one under load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtgauge.errors import InputError, MeasureError
from rtgauge.plan.make_plan import Overrides, Plan, make_plan
from rtgauge.record.model import StepKey
from rtgauge.record.reader import Record
from rtgauge.system.deployment.definition import NAMED
from rtgauge_ext.papers.deployment_choice import IDLE, choose_deployment

NAME = "delgado2020"
SETTINGS: dict[str, Any] = {
    "probe": "wakeup",
    "interval": "100us",
    "priority": 99,
    "phase": "fixed",
    "duration": "10min",
}
"""Sec. III-C: a period of 100 us, priority 99, and 6 million samples in 10 minutes."""
LOAD = "papers"
"""Sec. V: CPU, memory and network together."""


def _plan(overrides: Overrides, **matrix: Any) -> Plan:
    return make_plan(
        {"name": NAME, "matrix": {**SETTINGS, **matrix}},
        f"study {NAME}",
        replace(overrides, deployments=None, loads=None),
    )


def idle_plan(overrides: Overrides) -> Plan:
    """Plan every deployment without load, in a random order. Raises InputError if an override does not
    fit.
    """
    return _plan(
        overrides,
        load=IDLE,
        deployment=overrides.deployments if overrides.deployments is not None else list(NAMED),
    )


def loaded_plan(deployment: str, overrides: Overrides) -> Plan:
    """Plan one deployment under load. Raises InputError if an override does not fit."""
    return _plan(
        overrides, load=overrides.loads if overrides.loads is not None else [LOAD], deployment=deployment
    )


class Delgado2020:
    """The whole experiment in one record."""

    name = NAME
    description = (
        "study: measure latency in every deployment, select the best deployment, and measure it under load "
        "(Delgado & Choi 2020); takes an hour and a quarter"
    )
    measured_by = "rtgauge_ext.papers.measure_delgado2020:measure_study"

    def begin(self, overrides: Overrides) -> Plan:
        """Return the plan of every deployment without load. Raises InputError for several targets, or for
        idle as a load.
        """
        if overrides.targets is not None and len(overrides.targets) > 1:
            raise InputError(
                f"the study {NAME} chooses for a single machine; run it once for each --target, and compare "
                f"the records"
            )
        if overrides.loads is not None and IDLE in overrides.loads:
            raise InputError(
                f"the study {NAME} always measures {IDLE} in its first part; leave this load out of --load"
            )
        return idle_plan(overrides)

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        """Return the chosen deployment's steps under load; empty if no deployment can be chosen."""
        try:
            choice = choose_deployment(record).choice
        except MeasureError:
            return []
        return loaded_plan(choice.deployment, replace(overrides, seed=record.run.seed)).steps

    def later_steps(self, planned: Sequence[StepKey], overrides: Overrides) -> Sequence[StepKey]:
        """Return the steps of one deployment under load, because the chosen one will have as many; empty if
        the plan already has steps under load.
        """
        return (
            []
            if any(key.load != IDLE for key in planned)
            else loaded_plan(planned[0].deployment, overrides).steps
        )


STUDY = Delgado2020()
