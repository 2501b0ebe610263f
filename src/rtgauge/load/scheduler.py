# SPDX-License-Identifier: MIT
"""The load `scheduler` runs hackbench (rt-tests) again and again: many processes that wake each other."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec

GROUPS = 10
MESSAGES = 100
FOREVER = 'while "$@"; do :; done'


def rounds(log: str) -> dict[str, Any]:
    """Parse hackbench's `Time: 0.123` lines: the number of finished rounds, and their mean time (s)."""
    times = [float(time) for time in re.findall(r"^Time: ([0-9]{1,9}\.[0-9]{1,9})$", log, re.MULTILINE)]
    return {"rounds": len(times), "round_mean_s": sum(times) / len(times) if times else None}


class Scheduler(Load):
    """Runs hackbench with its defaults: 10 groups of 20 senders and 20 receivers, with 100 messages each."""

    name = "scheduler"
    programs: ClassVar[tuple[str, ...]] = ("hackbench",)
    packages: ClassVar[dict[str, str]] = {"hackbench": "rt-tests"}

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return a shell that starts hackbench again and again until it fails. A guard limits the time."""
        command = ["hackbench", "--groups", str(GROUPS), "--loops", str(MESSAGES)]
        return [
            PartSpec(
                "hackbench",
                ["timeout", str(context.bound_s), "sh", "-c", FOREVER, "sh", *command],
                {"groups": GROUPS, "processes": GROUPS * 40, "messages": MESSAGES},
                ready=("hackbench", 2),
                lasting=False,
                reached=rounds,
            )
        ]
