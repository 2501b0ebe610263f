# SPDX-License-Identifier: MIT
"""What a probe has the kernel record: an instance of tracefs for one step, and the settings of the timerlat
tracer, all put back after it.
"""

from __future__ import annotations

from typing import Literal

from rtgauge.probe.descriptor import TRACE_INSTANCE
from rtgauge.probe.explain_parameters import EXPLAIN_INSTANCE
from rtgauge.system.deployment.apply import Applied, Refused, apply_actions
from rtgauge.system.deployment.stages import Setting, Write
from rtgauge.target.target import Target

TIMERLAT_SETTINGS = (
    "timerlat_period_us",
    "cpus",
    "stop_tracing_us",
    "stop_tracing_total_us",
    "print_stack",
    "workload",
)
"""What the engine sets for the tracer (docs/formats/agent.md, `osnoise:`): one set for the whole machine.

Older kernels lack the last two.
"""


class CannotTrace(Refused):
    """The kernel cannot record what the step needs."""

    what = "the kernel's events"
    remedy = "it takes root and a kernel with CONFIG_FTRACE"


class NoParts(CannotTrace):
    """A response cannot be taken apart."""

    what = "trace-parts"
    remedy = "measure without trace-parts, or as root on a kernel with CONFIG_FTRACE"


class NoTimerlat(CannotTrace):
    """There is no timerlat tracer to measure kernel space with."""

    what = "space kernel"
    remedy = (
        "measure with space user, or on a kernel with CONFIG_TIMERLAT_TRACER, such as Debian's "
        "PREEMPT_RT kernels"
    )


WHY = {
    "ENOENT": "this kernel has no timerlat tracer",
    "ENODEV": "this kernel has no tracefs",
    "EACCES": "this user may not use its timerlat tracer: run as root",
    "EPERM": "this user may not use its timerlat tracer: run as root, outside of a container",
}


def prepare_tracing(
    traces: Literal["tracepoints", "timerlat"], applied: Applied, target: Target, *, optional: bool = False
) -> None:
    """Make the instance, which `restore` removes; for timerlat note the tracer's settings before.

    `optional`: the probe also measures without.

    Raises CannotTrace.
    """
    if traces == "timerlat":
        _note_timerlat(applied, target)
    try:
        apply_actions([Write((Setting(f"trace:{TRACE_INSTANCE}", "present"),))], applied, target)
    except Refused as error:
        if traces == "timerlat":
            raise NoTimerlat(f"the timerlat tracer cannot be used here: {error}") from None
        raise (NoParts if optional else CannotTrace)(
            f"the kernel's events cannot be recorded here: {error}"
        ) from None


def prepare_explain(applied: Applied, target: Target) -> str | None:
    """Make the instance for the kernel's events, which `restore` removes.

    Gives why it cannot be; None: it is there. A step goes on without.
    """
    try:
        apply_actions([Write((Setting(f"trace:{EXPLAIN_INSTANCE}", "present"),))], applied, target)
    except Refused as error:
        return str(error)
    return None


def _note_timerlat(applied: Applied, target: Target) -> None:
    answers = target.agent("set", "--note", "--", *(f"osnoise:{name}" for name in TIMERLAT_SETTINGS))
    error = answers[0].get("error")
    if error is not None:
        raise NoTimerlat(WHY.get(str(error), f"its timerlat tracer cannot be used ({error})"))
    applied.report.noted += sum(answer.get("error") is None for answer in answers)
