# SPDX-License-Identifier: MIT
"""The load `memory`: five virtual memory stressors use 70 % of memory (Delgado et al. 2020, section V)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from rtgauge.errors import MeasureError
from rtgauge.load.load import Load, LoadContext, PartSpec, stress_ng

WORKERS = 5
SHARE = 0.70
SHARE_OF_AVAILABLE = 0.85
"""The largest share of the available memory to use, so that the target does not run out of memory."""
ENOUGH = 0.9
PAGE = 4096


def _shortfall(given: int, total: int, reached: Mapping[str, Any]) -> str | None:
    """Return a note if the workers never used most of their memory, because the step was too short."""
    most = reached.get("resident_bytes_max")
    if not isinstance(most, int) or most >= ENOUGH * given:
        return None
    return (
        f"load memory used at most {most / total:.0%} of memory instead of {given / total:.0%}, because it "
        "had too little time to fill it; give the load a longer warm-up (load-warm-up in the plan), or the "
        "step a longer duration"
    )


class MemoryLoad(Load):
    """Runs stress-ng with five workers that map, write, check and unmap memory, with all methods in turn."""

    name = "memory"
    programs: ClassVar[tuple[str, ...]] = ("stress-ng",)

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return the program. Raises MeasureError if the size of the target's memory cannot be read."""
        if context.memory_total is None or context.memory_available is None:
            raise MeasureError(
                "load memory cannot run, because /proc/meminfo on the target does not give the size of its "
                "memory; leave this load out"
            )
        desired_bytes = int(context.memory_total * SHARE)
        used_bytes = min(desired_bytes, int(context.memory_available * SHARE_OF_AVAILABLE))
        # stress-ng divides --vm-bytes among its workers.
        used_bytes = max(used_bytes // (WORKERS * PAGE), 1) * WORKERS * PAGE
        notes: tuple[str, ...] = ()
        if used_bytes < desired_bytes - WORKERS * PAGE:
            note = (
                f"load memory uses {used_bytes >> 20} MiB instead of {desired_bytes >> 20} MiB "
                f"({SHARE:.0%} of memory), because only {context.memory_available >> 20} MiB are available"
            )
            notes = (note,)
        argv = stress_ng(context, "--vm", str(WORKERS), "--vm-bytes", str(used_bytes), "--vm-populate")
        return [
            PartSpec(
                "stress-ng",
                argv,
                {
                    "workers": WORKERS,
                    "memory_share": SHARE,
                    "bytes": desired_bytes,
                    "bytes_given": used_bytes,
                },
                ready=("stress-ng", WORKERS + 1),
                watch_memory=True,
                notes=notes,
                shortfall=partial(_shortfall, used_bytes, context.memory_total),
            )
        ]
