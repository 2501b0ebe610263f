# SPDX-License-Identifier: MIT
"""The load `cpu`: stress-ng computes on every CPU, all methods in turn (Delgado et al. 2020, section V)."""

from __future__ import annotations

from typing import ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec, stress_ng


class Cpu(Load):
    """Runs a CPU stressor on every online CPU."""

    name = "cpu"
    programs: ClassVar[tuple[str, ...]] = ("stress-ng",)

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one stress-ng with a worker for each CPU."""
        argv = stress_ng(context, "--cpu", str(context.cpus), "--cpu-method", "all")
        return [
            PartSpec(
                "stress-ng",
                argv,
                {"workers": context.cpus, "method": "all", "cpu_share": 1.0},
                ready=("stress-ng", context.cpus + 1),
            )
        ]
