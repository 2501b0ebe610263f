# SPDX-License-Identifier: MIT
"""What is known of a target before anything is measured on it: what its engine refuses, and what its clocks cost."""

from __future__ import annotations

from rtgauge.errors import MeasureError
from rtgauge.probe import registry as probes
from rtgauge.probe.calibrate import PROBE as CALIBRATE
from rtgauge.record.model import Calibration, StepKey
from rtgauge.record.stream import Armed, ErrorLine, StreamResult, parse_line
from rtgauge.runner import peer_step
from rtgauge.runner.context import TRACE_PARTS, Context
from rtgauge.runner.follow_engine import LAST_WORDS_S, fail
from rtgauge.target.target import Target


def check_permission(key: StepKey, context: Context) -> None:
    """Arm the probe and stop it again: what the engine refuses is known before anything else is done."""
    if key.peer is not None:
        peer_step.trial(key, context)
        return
    probe = probes.get(key.probe)
    # the tracefs instance is made for the step itself
    parameters = {name: False if name == TRACE_PARTS else value for name, value in key.parameters.items()}
    program = context.target.engine(*probe.arguments(parameters, None), group=context.group)
    error: ErrorLine | None = None
    for text in program.lines():
        line = parse_line(text)
        if isinstance(line, Armed):
            program.say("stop")
        if isinstance(line, ErrorLine):
            error = line
    status = program.wait(LAST_WORDS_S)
    if error is not None:
        raise fail(error, context.target)
    if status:
        raise MeasureError(f"the engine ended at once with status {status}; run `rtgauge probe {key.probe}` to see why")


def calibrate(target: Target, *, emulated: bool) -> list[Calibration]:
    """Resolution and reading cost of every clock of the target. An emulated one, whose costs are the emulator's, is asked a tenth as often."""
    result = StreamResult()
    program = target.engine(*CALIBRATE.arguments({"count": 10_000 if emulated else 100_000}, None))
    for text in program.lines():
        result.take(parse_line(text))
    program.wait(LAST_WORDS_S)
    return result.calibrations
