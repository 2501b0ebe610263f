# SPDX-License-Identifier: MIT
"""The load `cache`: stress-ng evicts the last-level cache from every CPU."""

from __future__ import annotations

from typing import ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec, stress_ng


class CacheLoad(Load):
    """Runs a cache stressor for each online CPU, which stays on the CPUs that it is allowed to use."""

    name = "cache"
    programs: ClassVar[tuple[str, ...]] = ("stress-ng",)

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one stress-ng with a worker for each CPU."""
        argv = stress_ng(context, "--cache", str(context.cpus), "--cache-no-affinity")
        return [PartSpec("stress-ng", argv, {"workers": context.cpus}, ready=("stress-ng", context.cpus + 1))]
