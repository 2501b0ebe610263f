# SPDX-License-Identifier: MIT
"""calibrate: measures the resolution of each clock and the cost of reading it (Garre et al. 2014, sec. 3.4).

On Cobalt it runs Xenomai's autotune, which sets the timer's gravity, and measures the latency before and
after (Delgado & Choi 2020, sec. III-C).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe import wakeup
from rtgauge.probe.descriptor import CommandTrait, Metric, Probe, Shown, normalise
from rtgauge.record.model import StepKey
from rtgauge.record.probe_parameters import Parameters
from rtgauge.validation import CpuList, DurationNs, between

GRAVITY = "/proc/xenomai/clock/coreclk"
"""The setting of the target that the calibration changes."""
BEFORE, AFTER = "before-autotune", "after-autotune"
"""Roles of the series: the latency before autotune, and after it with the gravity that it found."""
AUTOTUNE_NS = 60_000_000_000
"""The longest that autotune takes: about 40 rounds of half a second for each of the three gravities
(drivers/xenomai/autotune).
"""
OF_COBALT = frozenset({"keep", "cpu", "interval_ns", "priority", "duration_ns"})


class CalibrateParameters(Parameters):
    """Parameters of `calibrate`."""

    rt: Literal["linux", "cobalt", "rtai"] = Field(
        default="linux",
        description="kernel to calibrate: linux (measures the clocks) or cobalt (calibrates the timer "
        "of Xenomai 3 with its program autotune)",
    )
    count: int = Field(default=100_000, ge=1, le=100_000_000, description="readings of each clock")
    keep: bool = Field(
        default=False,
        description="on cobalt, keep the gravity that autotune found (how early the timer is set) "
        "until the next boot",
    )
    cpu: CpuList | None = Field(
        default=None, description="on cobalt, CPUs on which to measure the latency, e.g. 0-3,6; default: all"
    )
    interval_ns: Annotated[DurationNs, between("10us", "1s")] = Field(
        default=1_000_000,
        description="on cobalt, time between two releases; Delgado and Choi (2020) use 100us",
    )
    priority: int = Field(
        default=98, ge=1, le=99, description="on cobalt, real-time priority of the measuring threads"
    )
    duration_ns: Annotated[DurationNs, between("100ms", "1h")] = Field(
        default=5_000_000_000,
        description="on cobalt, how long to measure the latency before autotune, and again after it",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rt == "rtai":
            raise ValueError(
                "RTAI calibrates itself when rtai_sched is loaded; see the result with: rtgauge audit --facts"
            )
        given = self.model_fields_set & (OF_COBALT if self.rt == "linux" else {"count"})
        if given:
            names = sorted(str(type(self).model_fields[name].alias) for name in given)
            owner = "rt cobalt" if self.rt == "linux" else "the clocks (rt linux)"
            apply, them = ("applies", "it") if len(names) == 1 else ("apply", "them")
            raise ValueError(f"{' and '.join(names)} {apply} only to {owner}; leave {them} out")
        return self


class Calibrate(Probe[CalibrateParameters]):
    """Measures the clocks' resolution and reading cost, or Cobalt's latency before and after autotune."""

    def arguments(self, parameters: CalibrateParameters, samples_dir: str | None) -> list[str]:  # noqa: ARG002 - the same for every probe
        """Return the engine's command line; on Cobalt, it measures the latency before and after autotune."""
        if parameters.rt == "linux":
            return [self.name, f"--count={parameters.count}"]
        own = {name: parameters.get(name) for name in ("rt", "cpu", "interval_ns", "priority", "duration_ns")}
        return wakeup.PROBE.arguments(normalise(wakeup.PROBE, {}, self.name).but(**own), None)

    def changes(self, parameters: CalibrateParameters) -> tuple[str, ...]:
        """Return Cobalt's gravity, which autotune sets."""
        return (GRAVITY,) if parameters.rt == "cobalt" else ()

    def measurer(self, key: StepKey) -> str | None:
        """Return autotune on Cobalt."""
        return "autotune" if key.rt == "cobalt" else None

    def expected_ns(self, parameters: CalibrateParameters) -> int:
        """Return the time (ns) for all clocks, at most 0.2 s each; on Cobalt, for both measurements and
        autotune.
        """
        if parameters.rt == "linux":
            return 1_000_000_000
        return 2 * (parameters.duration_ns + wakeup.MOST_WARM_UP_NS) + AUTOTUNE_NS


PROBE = Calibrate(
    name="calibrate",
    order=110,
    help=(
        "resolution of each clock, and how long reading it takes; with --rt cobalt, how Xenomai calibrates "
        "its timer"
    ),
    about="""Measure the resolution of each clock, and how long reading it takes.

With --rt cobalt, run Xenomai's program autotune, which finds how early the timer must fire (the gravity) for
an interrupt handler, a thread in the kernel and a thread in user space. rtgauge measures the latency before
and after autotune, and then restores the previous gravity, unless you give --keep. This takes about a
minute.""",
    examples=(
        "--count 1000000",
        "--rt cobalt --target ssh://root@board",
        "--rt cobalt --target ssh://root@board --interval 100us --keep",
    ),
    parameters=CalibrateParameters,
    method=(
        "A loop reads each clock of the machine again and again. The cost of a reading is the difference "
        "between two successive readings, and the smallest step is the smallest such difference above 0. "
        "The kernel reports the resolution (clock_getres)."
    ),
    methods={
        "cobalt": (
            "Xenomai sets its timer earlier than the release. The difference is called gravity. It is "
            "the shortest time that passes from the expiry of the timer until an interrupt handler, a thread "
            "in the kernel or a thread in user space runs. Xenomai's program autotune finds these three "
            "values, and rtgauge reads them from the kernel before and after autotune. rtgauge also "
            "measures the latency before and after, like the probe wakeup, with the same parameters and "
            "under the same load: one thread per CPU sleeps until an absolute time and reads the clock. If "
            "the gravity is too large, a thread wakes before its release. Its latency is then below 0, and "
            "rtgauge keeps this value."
        )
    },
    metrics=(Metric(name="latency", plural="latencies", signed=True),),
    missed="activations whose release time passed before the task was waiting again",
    command=CommandTrait(prints_only_tables=True),
    shown=Shown(pooled=False, roles={BEFORE: "before autotune", AFTER: "after autotune"}),
    measures_clocks=True,
)
