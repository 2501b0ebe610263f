# SPDX-License-Identifier: MIT
"""The co-kernel RTAI. rtgauge loads its modules for a step unless they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtgauge.record.facts import Facts, RealTimeCore
from rtgauge.record.model import StepKey
from rtgauge.system.runtime import ModulesToLoad, Need, Runtime
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel import rtai_facts
from rtgauge_ext.cokernel.needs import RTAI_PATHS, rtai_needs
from rtgauge_ext.cokernel.rtai_modules import PIPELINE, calibration_for, check_loaded, rtai_modules
from rtgauge_ext.cokernel.rtai_programs import modules_of

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target


class Rtai(Runtime):
    """RTAI. It calibrates its timers when its scheduler is loaded."""

    def facts(self, files: Files) -> RealTimeCore | None:
        """Return RTAI's facts; None if it is not loaded."""
        return rtai_facts.rtai(files)

    def needs(self, files: Files) -> list[Need]:
        """Return the engine's needs, from the engine's `read` of `need_paths`."""
        return rtai_needs(files)

    def why_not_chosen(self, core: RealTimeCore, *, loaded: bool) -> str | None:
        """Return a reason if RTAI's scheduler was not loaded before the run."""
        if loaded:
            return "RTAI's module rtai_sched was not loaded before the run"
        return None if "rtai_sched" in (core.modules or []) else "RTAI's module rtai_sched is not loaded"

    def modules(self, key: StepKey, target: Target, facts: Facts) -> ModulesToLoad:
        """Return RTAI's modules, with the step's calibration or, without one, the calibration in `facts`.

        Raises NoModules if they are missing, or if they are loaded already with another calibration than the
        step's.
        """
        given = key.parameters.get("rtai_latency")
        calibration = calibration_for(given, facts)
        if given is not None and calibration is not None:
            check_loaded(target, calibration)
        files = rtai_modules(target, calibration, modules_of(key.tool, in_kernel=key.space == "kernel"))
        themselves = "" if calibration is not None else ", which calibrate themselves"
        return ModulesToLoad(files, f"loading RTAI's modules{themselves}")

    def step_for_facts(self, steps: Sequence[StepKey]) -> StepKey:
        """Return a step for which RTAI calibrates itself, if there is one, so that no step gets the
        `rtai_latency` of another.
        """
        return next((key for key in steps if key.parameters.get("rtai_latency") is None), steps[0])


RTAI = Rtai(
    name="rtai",
    core="RTAI",
    config="rtai-config",
    kernel_file=PIPELINE,
    no_core="this kernel has no I-pipe, which RTAI needs",
    missing_library="install it there",
    early="rtai-latency",
    method=(
        "On RTAI, the measured threads run in hard real time under RTAI's scheduler LXRT, which handles "
        "timer interrupts before Linux does. The threads sleep and lock with RTAI's calls. They read "
        "RTAI's clock, which is the cycle counter of the processor. RTAI measures how long a wake-up "
        "takes (its calibration), and sets each timer early by that time. So a thread may run before its "
        "release; its latency is then negative, and rtgauge keeps it. RTAI counts for all tasks together "
        "how often a task was handed to Linux; if this happened in the measured phase, the step is "
        "marked. The engine's control and output run on Linux."
    ),
    core_module="rtai_sched",
    module_help="RTAI's own instructions",
    page="ext/cokernel/README.md",
    fact_paths=rtai_facts.PATHS,
    need_paths=RTAI_PATHS,
)
