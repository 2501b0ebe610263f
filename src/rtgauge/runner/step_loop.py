# SPDX-License-Identifier: MIT
"""Measures a run's steps, and the steps that a study adds, one after the other into the record."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rtgauge.errors import SilentError
from rtgauge.probe import probe_registry as probes
from rtgauge.record.alternation import alternation_of
from rtgauge.record.facts import Facts
from rtgauge.record.files import clean_name
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import STOPPED_EARLY, LeftOut, Mark, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.runner.choice import choose, on_target
from rtgauge.runner.context import LoadFailed, Progress, StepState, TargetContext
from rtgauge.runner.deployments import as_left_out
from rtgauge.runner.interrupt import Abandoned, Interrupt
from rtgauge.runner.step import measure_step
from rtgauge.system.deployment.apply import Refused
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.target.address import LOCAL
from rtgauge.target.kind import kinds
from rtgauge.units import NS_PER_S, format_span

STEP_OVERHEAD_S = 0.6
DEPLOYMENT_S = 0.3
POLL_S = 0.1
"""The time between two looks whether the user interrupted a pause."""
STEP_ARMINGS, LOAD_ARMINGS, EMULATED_LOAD_ARMINGS = 1.6, 3.0, 18.0
"""The overhead of a step, of its load, and of its load on an emulated target, as multiples of the time to arm
and stop a probe there. Each overhead is at least STEP_OVERHEAD_S.

A load slows an emulated guest down. The values were measured on lab guests with the loads of `quick`.
"""
More = Callable[[Record], Sequence[StepKey]]
"""Returns a study's next steps from the record; empty if the study is done.

No step may take longer than the longest planned step.
"""


def machine_marks(target: str, facts: Facts) -> list[Mark]:
    """Return marks if an emulated processor or running lab guests distort all times on this target."""
    if facts.machine.emulated:
        detail = "software emulates the machine's processor, so its times say nothing about a real processor"
        if facts.machine.instruction_ns:
            detail += (
                "; its clock counts instructions (QEMU's -icount), so other work on the host does not "
                "change its times"
            )
        return [MarkKind.EMULATED.mark(detail)]
    if target != LOCAL:
        return []
    details = [detail for kind in kinds().values() if (detail := kind.disturbance()) is not None]
    return [MarkKind.GUESTS_RUNNING.mark(detail) for detail in details]


def _saving_steps(writer: RecordWriter, context: TargetContext, name: str) -> TargetContext:
    """Make the target's context save each step's state in the record, so that another process can resume."""
    target = context.target
    if target.session is None:
        return context

    def save(state: StepState | None) -> None:
        writer.write_session(name, {"session": target.session, "step": state})

    save(context.interrupted_step)
    return replace(context, save_step=save)


class RunOutcome(NamedTuple):
    """The result of a run."""

    path: Path
    """The record's folder."""
    run: Run
    """The content of the record's run.json."""
    steps: list[Step]


@contextmanager
def _consoles_written(writer: RecordWriter, contexts: Mapping[str, TargetContext]) -> Generator[None]:
    """Write the consoles of lab guests to the record when the block ends, with or without an error."""
    try:
        yield
    finally:
        for name, context in contexts.items():
            console = context.deployments.console()
            if console is not None:
                writer.write_console(name, console)


def _measure(
    writer: RecordWriter,
    run: Run,
    remaining: Sequence[StepKey],
    contexts: Mapping[str, TargetContext],
    finished: Sequence[Step],
    last: StepKey | None,
) -> list[Step]:
    """Measure the remaining steps, and write each when it is done; return all finished steps. `last`: the
    step that this process measured before them.
    """
    shared = next(iter(contexts.values())).run
    progress, interrupt = shared.progress, shared.interrupt
    ids = dict(zip((key.id for key in run.planned), step_ids(run.planned), strict=True))
    steps = list(finished)
    before: dict[str, StepKey] = {}
    for number, key in enumerate(remaining):
        _pause(pause_s(key, last, run), progress, interrupt)
        if interrupt.requested:
            break
        last = key
        target = key.targets["self"]
        context = contexts[target]
        if _is_booted_for(key, before.get(target), run):
            context.deployments.forget()
        before[target] = key
        for name in key.targets.values():
            contexts[name].deployments.check()
        progress.step_begins(number, key)
        step_id = ids[key.id]
        folder = writer.step_folder(step_id)
        try:
            step, windows = measure_step(step_id, key, context, folder)
            marks = [
                mark for name in key.targets.values() for mark in machine_marks(name, contexts[name].facts)
            ]
            step.marks += {mark.name: mark for mark in marks}.values()
            writer.commit_step(step, windows)
        except Abandoned:
            break
        except LoadFailed as error:
            how = f"try the step by itself: {probes.get(key.probe).called} --load {key.load} --duration 2s"
            missing = LeftOut(what=f"load {error.load}", reason=error.reason, remedy=how)
            _leave_out(writer, on_target(missing, context), progress)
            continue
        except (Refused, SilentError) as error:
            if key.deployment == AS_IS and isinstance(error, SilentError):
                raise
            refused = error if isinstance(error, Refused) else Refused(str(error))
            _leave_out(writer, on_target(as_left_out(key.deployment, refused), context), progress)
            continue
        finally:
            writer.drop_step(step_id)
        context.save_step(None)
        steps.append(step)
        progress.step_ends(step)
        if step.end_reason in STOPPED_EARLY and not interrupt.requested:
            for name in key.targets.values():
                contexts[name].deployments.check()
    return steps


def _plan_more(
    writer: RecordWriter, more: More | None, contexts: Mapping[str, TargetContext]
) -> list[StepKey]:
    """Add the study's next steps to the record's plan, and return them.

    A step that is already in the plan is not measured again.
    """
    run = writer.run
    if more is None or run is None:
        return []
    choice = choose(list(more(writer.record())), contexts, planned=run.planned)
    writer.write_run(run.model_copy(update={"planned": [*run.planned, *choice.steps]}))
    for missing in choice.left_out:
        _write_left_out(writer, missing)
    return choice.steps


def measure_run(
    writer: RecordWriter,
    run: Run,
    finished: Sequence[Step],
    contexts: Mapping[str, TargetContext],
    more: More | None,
) -> RunOutcome:
    """Measure the planned steps that are not finished, and the steps that a study adds.

    If the user ends the run early, the record's name keeps its suffix `.partial`.
    """
    for name, context in contexts.items():
        writer.write_system(name, context.facts.model_copy(update={"calibrations": context.calibrations}))
    contexts = {name: _saving_steps(writer, context, name) for name, context in contexts.items()}
    shared = next(iter(contexts.values())).run
    progress, interrupt = shared.progress, shared.interrupt
    remaining = remaining_steps(run, finished)
    steps = list(finished)
    last: StepKey | None = None
    with _consoles_written(writer, contexts):
        # A study may add steps even if all planned steps of the record are finished.
        while remaining or (not interrupt.requested and (remaining := _plan_more(writer, more, contexts))):
            expected = _expected_s(remaining, contexts, writer.run or run, last)
            for context in contexts.values():
                context.target.expect(sum(expected))
            progress.run_begins(remaining, expected)
            steps = _measure(writer, writer.run or run, remaining, contexts, steps, last)
            last, remaining = remaining[-1], []
    for name in contexts:
        writer.write_session(name, None)
    planned = (writer.run or run).planned
    whole = (
        len(steps) == len(planned)
        and all(step.end_reason not in STOPPED_EARLY for step in steps)
        and more is None
    )
    if not interrupt.requested or whole:
        path = writer.finish("complete")
    else:
        writer.close_partial()
        path = writer.path
    return RunOutcome(path, writer.run or run, steps)


def _is_booted_for(key: StepKey, before: StepKey | None, run: Run) -> bool:
    """Return whether the guest is booted before this step, because a new repeat begins."""
    alternation = alternation_of(run)
    booted = alternation is not None and alternation.boot_between
    return booted and (before is None or before.repeat != key.repeat)


def pause_s(key: StepKey, before: StepKey | None, run: Run) -> float:
    """Return how long (s) the run pauses before this step: if another run of a side begins, as long as the
    user wished. `before`: the step that this process measured before it.
    """
    alternation = alternation_of(run)
    if alternation is None or before is None or before.repeat == key.repeat:
        return 0.0
    return alternation.pause_between_ns / NS_PER_S


def _pause(time_s: float, progress: Progress, interrupt: Interrupt) -> None:
    """Wait, but not longer than until the user interrupts the run."""
    if time_s:
        progress.waits(f"pausing for {format_span(time_s)} between the runs")
    until = time.monotonic() + time_s
    while (left_s := until - time.monotonic()) > 0 and not interrupt.requested:
        time.sleep(min(left_s, POLL_S))


def _expected_s(
    steps: Sequence[StepKey], contexts: Mapping[str, TargetContext], run: Run, last: StepKey | None
) -> list[float]:
    """Return about how long (s) each step takes, including a pause and a change of deployment before it.
    `last`: the step that this process measured before them.
    """
    before: dict[str, StepKey] = {}
    times: list[float] = []
    for key in steps:
        name = key.targets["self"]
        context = contexts[name]
        # A guest's clock that counts instructions waits while the load computes, so the load does not slow
        # the probe.
        machine = context.facts.machine
        slowed = machine.emulated is True and not machine.instruction_ns
        load_warm_up_ns = round(context.run.load_warm_up_s * NS_PER_S)
        alone_s = expected_s(key, load_warm_up_ns, arming_s=context.arming_s, emulated=slowed)
        here = before.get(name)
        deployed = None if here is None or _is_booted_for(key, here, run) else here.deployment
        times.append(
            pause_s(key, last, run) + alone_s + context.deployments.expected_s(deployed, key.deployment)
        )
        before[name] = last = key
    return times


def _leave_out(writer: RecordWriter, missing: LeftOut, progress: Progress) -> None:
    """Report and record that a step cannot be measured. The run continues."""
    progress.left_out(missing)
    _write_left_out(writer, missing)


def _write_left_out(writer: RecordWriter, missing: LeftOut) -> None:
    if writer.run is not None and missing not in writer.run.left_out:
        writer.write_run(writer.run.model_copy(update={"left_out": [*writer.run.left_out, missing]}))


def expected_s(key: StepKey, load_warm_up_ns: int, *, arming_s: float = 0.0, emulated: bool = False) -> float:
    """Return about how long (s) a step takes.

    `arming_s`: how long arming and stopping a probe took on its target. `emulated`: whether the target is
    emulated and follows the host's clock, so that a load slows it down.
    """
    probe = probes.get(key.probe)
    measured = (probe.expected_ns(probe.own(key)) or 0) / NS_PER_S
    deploying = 0.0 if key.deployment == AS_IS else DEPLOYMENT_S
    loading = 0.0
    if key.load != "idle":
        loading = load_warm_up_ns / NS_PER_S + max(
            STEP_OVERHEAD_S, arming_s * (EMULATED_LOAD_ARMINGS if emulated else LOAD_ARMINGS)
        )
    return measured + max(STEP_OVERHEAD_S, arming_s * STEP_ARMINGS) + deploying + loading


def step_ids(steps: Sequence[StepKey]) -> list[str]:
    """Return each step's folder name: number, target if there are several, probe, load, deployment and tool
    unless they are the usual ones, and repeat if there are several.
    """
    repeats = max((key.repeat for key in steps), default=1) > 1
    several = len({key.targets["self"] for key in steps}) > 1
    names: list[str] = []
    for number, key in enumerate(steps, 1):
        parts = [
            f"{number:02d}",
            *([clean_name(key.targets["self"].removeprefix("ssh://"))] if several else []),
            key.probe,
            re.sub(r"[^A-Za-z0-9]+", "-", key.load)[:60].strip("-"),
        ]
        parts += [re.sub(r"[^A-Za-z0-9]+", "-", key.deployment)[:60]] if key.deployment != AS_IS else []
        parts += [key.tool] if key.tool != "rtgauge" else []
        parts += [f"r{key.repeat}"] if repeats else []
        names.append("-".join(parts))
    return names


def remaining_steps(run: Run, finished: Sequence[Step]) -> list[StepKey]:
    """Return the planned steps that are not finished."""
    finished_keys = {step.key for step in finished}
    return [key for key in run.planned if key not in finished_keys]
