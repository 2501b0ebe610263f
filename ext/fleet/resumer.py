# SPDX-License-Identifier: MIT
"""How `rtgauge resume` continues a fleet."""

from __future__ import annotations

from pathlib import Path

from rtgauge.cli.extension_resumer import ResumeOptions, Resumer


def _resume(plan: Path, options: ResumeOptions) -> None:  # noqa: ARG001 - a fleet takes none
    from rtgauge_ext.fleet.command import fleet

    fleet(plan)


def _question(plan: Path) -> str:
    from rtgauge.units import plural
    from rtgauge_ext.fleet.plan import FleetPlan

    read = FleetPlan.read(plan)
    jobs = ", ".join(job.name for job in read.jobs)
    return f"the jobs {jobs} on {plural(len(read.boards), 'board')}"


FLEET = Resumer("a fleet", _question, frozenset(), _resume)
