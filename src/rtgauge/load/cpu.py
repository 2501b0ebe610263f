# SPDX-License-Identifier: MIT
"""The load `cpu`: stress-ng computes on every CPU, all methods in turn (Delgado et al. 2020, section V)."""

from __future__ import annotations

from typing import ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec


class Cpu(Load):
    """Runs a CPU stressor on every online CPU."""

    name = "cpu"
    programs: ClassVar[tuple[str, ...]] = ("stress-ng",)
    packages: ClassVar[dict[str, str]] = {"stress-ng": "stress-ng"}

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one stress-ng with a worker for each CPU."""
        argv = [
            "stress-ng",
            "--cpu",
            str(context.cpus),
            "--cpu-method",
            "all",
            "--temp-path",
            "/tmp",  # noqa: S108 - of the target; it must only be writable
            "--timeout",
            f"{context.bound_s}s",
        ]
        return [
            PartSpec(
                "stress-ng",
                argv,
                {"workers": context.cpus, "method": "all", "cpu_share": 1.0},
                ready=("stress-ng", context.cpus + 1),
            )
        ]
