# SPDX-License-Identifier: MIT
"""`stall:KIND` or `stall:KIND:CPU`: stalls one CPU in a known way, again and again, and writes when it did: what `rtgauge selftest` measures under."""

from __future__ import annotations

from importlib import resources
from typing import ClassVar

from rtgauge.errors import InputError
from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge.suggest import nearest

KINDS = {"hog": "rtgauge-hog", "softirq": "rtgauge-packets", "timers": "rtgauge-timers", "throttle": "rtgauge-fair"}
"""Kind -> the name of the process that makes the stalls."""
LENGTH_US = 1000
EVERY_MS = 60
MOST_CPU = 65_535


class Stall(Load):
    """Stalls of one kind."""

    name = "stall"
    programs: ClassVar[tuple[str, ...]] = ("python3",)
    packages: ClassVar[dict[str, str]] = {"python3": "python3"}
    parameter = "KIND"

    def __init__(self, kind: str | None = None) -> None:
        word, colon, cpu = (kind or "hog").partition(":")
        if word not in KINDS:
            raise InputError(f"load stall:{word[:100]}: the kinds are {', '.join(KINDS)}{nearest(word, KINDS)}")
        if colon and not (cpu.isascii() and cpu.isdigit() and len(cpu) <= 5 and int(cpu) <= MOST_CPU):
            raise InputError(f"load stall:{word}:{cpu[:100]}: write the number of a CPU, such as stall:{word}:1")
        self._kind, self._cpu = word, int(cpu) if colon else None

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """One Python program; by default on the last CPU."""
        cpu = context.cpus - 1 if self._cpu is None else self._cpu
        text = resources.files("rtgauge.load").joinpath("stall_program.py").read_text(encoding="utf-8")
        argv = ["python3", "-c", text, self._kind, str(cpu), str(LENGTH_US), str(EVERY_MS), str(context.bound_s)]
        return [PartSpec("python3", argv, {"kind": self._kind, "cpu": cpu, "length_us": LENGTH_US, "every_ms": EVERY_MS}, ready=(KINDS[self._kind], 1))]
