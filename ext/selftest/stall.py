# SPDX-License-Identifier: MIT
"""The load `stall:KIND` or `stall:KIND:CPU`, which stalls one CPU in a known way again and again, and logs
each stall for `rtgauge selftest`.
"""

from __future__ import annotations

from importlib import resources
from typing import ClassVar

from rtgauge.errors import InputError
from rtgauge.load.load import Load, LoadContext, LoadTarget, PartSpec
from rtgauge.nearest_name import nearest
from rtgauge.record.model import LeftOut

KINDS = {
    "hog": "rtgauge-hog",
    "from-idle": "rtgauge-woken",
    "two-cpus": "rtgauge-two",
    "catch-up": "rtgauge-catchup",
    "softirq": "rtgauge-packets",
    "timers": "rtgauge-timers",
    "throttle": "rtgauge-fair",
    "fault": "rtgauge-faults",
    "idle": "rtgauge-idle",
    "irqs-off": "rtgauge-irqsoff",
    "preempt-off": "rtgauge-preempt",
}
"""Kind -> the name of the process that makes the stalls."""
BY_MODULE = ("irqs-off", "preempt-off")
"""Kinds of stalls that only the kernel can make, with the module kmod/test/stall."""
VERSION, PREEMPT_RT = "/proc/sys/kernel/version", "PREEMPT_RT"
MODULE = "/sys/module/rtgauge_stall/parameters/stall"
LENGTH_US = 1000
LONGEST_US = 20_000
EVERY_MS = 60
MOST_CPU = 65_535
LEAST_EXIT_US = 20
"""The shortest exit from an idle state that can be distinguished from the rest of a wake-up."""
SHELL = """
chrt -i 0 sh -c 'while [ -e "/proc/$0/exe" ]; do :; done' $$ >/dev/null 2>&1 &
printf %s "$1" >/proc/$$/comm
i=0
while read -r up rest </proc/uptime && [ "${up%%.*}" -lt "$5" ]; do
  i=$(((i + 1) % 9))
  echo "$2 $(($3 * (60 + 10 * i) / 100))" >"$6"
  read -r start end <"$6"
  echo "{\\"kind\\": \\"$2\\", \\"cpu\\": $4, \\"start_ns\\": $start, \\"end_ns\\": $end}"
  sleep "0.0$((45 + 5 * (i % 3)))"
done
"""
"""A program for guests without Python: NAME KIND LENGTH_US CPU UNTIL_S FILE. The stalls take 60 to 140 % of
the length.

It keeps the CPU busy, because an exit from an idle state is also a delay. If a guest's clock counts
instructions, the program sleeps by the host's clock.
"""


class StallLoad(Load):
    """Makes stalls of one kind."""

    name = "stall"
    programs: ClassVar[tuple[str, ...]] = ("python3",)
    packages: ClassVar[dict[str, str]] = {"python3": "python3", "taskset": "util-linux"}
    parameter = "KIND"

    def __init__(self, kind: str | None = None) -> None:
        word, *numbers = (kind or "hog").split(":")
        if word not in KINDS:
            raise InputError(
                f"load stall:{word[:100]}: choose a kind of stall from "
                f"{', '.join(KINDS)}{nearest(word, KINDS)}"
            )
        limits = (MOST_CPU, LONGEST_US)
        if len(numbers) > len(limits) or not all(
            n.isascii() and n.isdigit() and len(n) <= 5 and int(n) <= m
            for n, m in zip(numbers, limits, strict=False)
        ):
            raise InputError(
                f"load stall:{kind[:100] if kind else ''}: give the number of a CPU, such as "
                f"stall:{word}:1; if you like, add how long to stall it, in us and at most {LONGEST_US}, "
                f"such as stall:{word}:1:2000"
            )
        self._kind = word
        self._cpu = int(numbers[0]) if numbers else None
        self._length_us = int(numbers[1]) if len(numbers) > 1 else LENGTH_US

    def left_out(self, target: LoadTarget) -> LeftOut | None:
        """Return why the load cannot run, for example because the machine cannot stall in this way; None if
        it can.
        """
        what = f"load stall:{self._kind}"
        if self._kind in BY_MODULE:
            if not target.read([MODULE]).exists(MODULE):
                return LeftOut(
                    what=what,
                    reason="the kernel module rtgauge_stall is not loaded",
                    remedy="build and load kmod/test/stall (ext/selftest/README.md)",
                )
            return None
        if self._kind == "timers" and PREEMPT_RT in (target.read([VERSION]).text(VERSION) or ""):
            return LeftOut(
                what=what,
                reason="PREEMPT_RT runs the timers of programs in a thread, which stalls no real-time task",
                remedy="you need not do anything: this delay cannot occur on this kernel",
            )
        missing = super().left_out(target)
        if missing is not None:
            return missing.model_copy(update={"what": what})
        if self._kind == "idle":
            pattern = f"/sys/devices/system/cpu/cpu{self._cpu or 0}/cpuidle/state*/latency"
            exits = [int(text) for text in target.read([pattern]).texts() if text.isdigit()]
            if max(exits, default=0) < LEAST_EXIT_US:
                reason = f"CPU {self._cpu or 0} leaves every idle state in less than {LEAST_EXIT_US} us"
                return LeftOut(
                    what=what,
                    reason=reason,
                    remedy="you need not do anything: this delay cannot occur on this CPU",
                )
        return None

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one program, which stalls the last CPU by default."""
        cpu = context.cpus - 1 if self._cpu is None else self._cpu
        name = KINDS[self._kind]
        requested = {"kind": self._kind, "cpu": cpu, "length_us": self._length_us, "every_ms": EVERY_MS}
        if self._kind in BY_MODULE:
            until_s = context.target.monotonic_ns() // 10**9 + context.bound_s
            words = [name, self._kind, str(self._length_us), str(cpu), str(until_s), MODULE]
            return [
                PartSpec(
                    "taskset",
                    ["taskset", "-c", str(cpu), "sh", "-c", SHELL, "sh", *words],
                    requested,
                    ready=(name, 1),
                )
            ]
        text = (
            resources.files("rtgauge_ext.selftest").joinpath("stall_program.py").read_text(encoding="utf-8")
        )
        argv = [
            "python3",
            "-c",
            text,
            self._kind,
            str(cpu),
            str(self._length_us),
            str(EVERY_MS),
            str(context.bound_s),
        ]
        return [PartSpec("python3", argv, requested, ready=(name, 1))]
