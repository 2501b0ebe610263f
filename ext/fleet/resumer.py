# SPDX-License-Identifier: MIT
"""How `rtgauge resume` continues a fleet."""

from __future__ import annotations

from pathlib import Path

from rtgauge.cli.resumer import ResumeOptions, Resumer


def _resume(plan: Path, options: ResumeOptions) -> None:  # noqa: ARG001 - a fleet takes none
    from rtgauge_ext.fleet.command import fleet

    fleet(plan)


FLEET = Resumer("a fleet", frozenset(), _resume)
