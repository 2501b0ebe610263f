# SPDX-License-Identifier: MIT
"""The steps of a run, one after the other, into its record; and those that a study asks for after them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rtgauge.errors import EXIT_INTERRUPTED, RtgaugeError
from rtgauge.record.model import LeftOut, Mark, Run, Step, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.runner import cross_check, deploy_live
from rtgauge.runner.context import STOPPED_EARLY, Abandoned, Context, LoadFailed
from rtgauge.runner.deploy_boot import BOOT_S
from rtgauge.runner.feasibility import check_all, on_target, possible_steps
from rtgauge.runner.machine_marks import machine_marks
from rtgauge.runner.planned_steps import RunOptions, expected_s, how_to_go_on, of_target, remaining_steps, step_ids
from rtgauge.runner.progress import Progress
from rtgauge.runner.resume_state import Kept
from rtgauge.runner.step import measure_step
from rtgauge.system.deployment.apply import Refused
from rtgauge.target.factory import console
from rtgauge.target.target import Target

More = Callable[[Record], Sequence[StepKey]]
"""What a study asks next, from what the record holds already; nothing: it is done. No step may take longer than the longest one that was planned."""


@contextmanager
def saying_how_to_go_on(writer: RecordWriter, options: RunOptions) -> Generator[None]:
    """Whatever ends a run early says how to go on with it."""
    how = how_to_go_on(writer.path) if options.kept else ""
    try:
        yield
    except KeyboardInterrupt:
        raise RtgaugeError(f"stopped at once{how}", EXIT_INTERRUPTED) from None
    except RtgaugeError as error:
        raise type(error)(f"{error}{how}", error.status) from None


def _keep_sessions(writer: RecordWriter, contexts: Mapping[str, Context]) -> None:
    """Write down, and keep up to date, what another process needs to go on with what runs on other machines."""
    for name, context in contexts.items():
        if context.target.session is None:
            continue

        def keep(kept: Kept | None, name: str = name, target: Target = context.target) -> None:
            writer.write_session(name, {"session": target.session, "step": kept})

        context.keep = keep
        keep(context.earlier)


@contextmanager
def _consoles_kept(writer: RecordWriter, contexts: Mapping[str, Context]) -> Generator[None]:
    """However the measuring ends: what the lab's guests wrote on their consoles is in the record."""
    try:
        yield
    finally:
        for name, context in contexts.items():
            said = console(name) if context.boots is None else context.boots.consoles
            if said is not None:
                writer.write_console(name, said)


def _of_machines(key: StepKey, contexts: Mapping[str, Context]) -> list[Mark]:
    """Marks for what the machines of a step are; each once."""
    marks = [mark for name in key.targets.values() for mark in machine_marks(name, contexts[name].facts)]
    return list({mark.name: mark for mark in marks}.values())


def _measure(writer: RecordWriter, run: Run, remaining: Sequence[StepKey], contexts: Mapping[str, Context], finished: Sequence[Step]) -> list[Step]:
    """Measure the remaining steps, each written as soon as it is done; gives all that are done."""
    targets = {name: context.target for name, context in contexts.items()}
    any_context = next(iter(contexts.values()))
    progress, interrupt = any_context.progress, any_context.interrupt
    ids = dict(zip((key.model_dump_json() for key in run.planned), step_ids(run.planned), strict=True))
    steps = list(finished)
    for number, key in enumerate(remaining):
        if interrupt.asked:
            break
        context = contexts[key.targets["self"]]
        for name in key.targets.values():
            if contexts[name].boots is None:
                targets[name].check()
        progress.step_begins(number, key)
        step_id = ids[key.model_dump_json()]
        folder = writer.step_folder(step_id)
        try:
            measure = measure_step if key.tool == "rtgauge" else cross_check.measure
            left_before = list(context.not_put_back)
            with deploy_live.deployed(key, context) as applied:
                step, windows = measure(step_id, key, context, folder)
            step = deploy_live.with_deployment(step, applied, left_before)
            step.marks += _of_machines(key, contexts)
            writer.commit_step(step, windows)
        except Abandoned:
            break
        except LoadFailed as error:
            how = f"try it alone: rtgauge probe {key.probe} --load {key.load} --duration 2s"
            _leave_out(writer, on_target(LeftOut(what=f"load {key.load}", reason=str(error), remedy=how), context.target.name, targets), progress)
            continue
        except Refused as error:
            _leave_out(writer, on_target(deploy_live.left_out(key.deployment, error), context.target.name, targets), progress)
            continue
        finally:
            writer.drop_step(step_id)
        context.keep(None)
        steps.append(step)
        progress.step_ends(step)
    return steps


def _asked_next(writer: RecordWriter, more: More | None, contexts: Mapping[str, Context]) -> list[StepKey]:
    """What the study asks next, written down as planned. What is in the plan already is not measured again."""
    run = writer.run
    if more is None or run is None:
        return []
    known = {key.model_dump_json() for key in run.planned}
    new = [key for key in more(writer.record()) if key.model_dump_json() not in known]
    targets = {name: context.target for name, context in contexts.items()}
    asked: list[StepKey] = []
    missing: list[LeftOut] = []
    for name, context in contexts.items():
        possible, left_out = possible_steps(of_target(new, name), context.target, context.boots)
        possible, not_here = check_all(possible, context)
        asked += possible
        missing += [on_target(what, name, targets) for what in (*left_out, *not_here)]
    writer.write_run(run.model_copy(update={"planned": [*run.planned, *asked]}))
    for what in missing:
        _leave_out(writer, what, next(iter(contexts.values())).progress)
    return asked


def go_on(writer: RecordWriter, run: Run, finished: Sequence[Step], contexts: Mapping[str, Context], more: More | None) -> tuple[Path, Run, list[Step]]:
    """Measure what is planned and not done, and what is asked after that. Ends early, in order, when the user asks; the record then keeps its `.partial`."""
    for name, context in contexts.items():
        writer.write_system(name, {**context.facts, "calibrations": [one.model_dump() for one in context.calibrations]})
    _keep_sessions(writer, contexts)
    any_context = next(iter(contexts.values()))
    progress, interrupt = any_context.progress, any_context.interrupt
    remaining = remaining_steps(run, finished)
    steps = list(finished)
    with _consoles_kept(writer, contexts):
        # A record whose planned steps are all there may still be asked for more, so that the loop is entered with nothing to do.
        while remaining or (not interrupt.asked and (remaining := _asked_next(writer, more, contexts))):
            expected = [expected_s(key, round(any_context.load_warm_up_s * 1e9)) for key in remaining]
            progress.run_begins(remaining, [one + boot for one, boot in zip(expected, _boot_s(remaining, contexts), strict=True)])
            steps = _measure(writer, writer.run or run, remaining, contexts, steps)
            remaining = []
    for name in contexts:
        writer.write_session(name, None)
    planned = (writer.run or run).planned
    whole = len(steps) == len(planned) and all(step.end_reason not in STOPPED_EARLY for step in steps) and more is None
    if not interrupt.asked or whole:
        path = writer.finish("complete")
    else:
        writer.close_partial()
        path = writer.path
    final = writer.run
    return path, final if final is not None else run, steps


def _boot_s(steps: Sequence[StepKey], contexts: Mapping[str, Context]) -> list[float]:
    """How long the boot before each step takes, about, in s."""
    before: dict[str, str] = {}
    times: list[float] = []
    for key in steps:
        name = key.targets["self"]
        boots = contexts[name].boots is not None and before.get(name) != key.deployment
        before[name] = key.deployment
        times.append(BOOT_S if boots else 0.0)
    return times


def _leave_out(writer: RecordWriter, missing: LeftOut, progress: Progress) -> None:
    """A step that cannot be measured is said to be missing; the run goes on."""
    progress.left_out(missing)
    if writer.run is not None and missing not in writer.run.left_out:
        writer.write_run(writer.run.model_copy(update={"left_out": [*writer.run.left_out, missing]}))
