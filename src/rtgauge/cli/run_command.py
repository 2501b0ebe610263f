# SPDX-License-Identifier: MIT
"""`rtgauge run` measures a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rtgauge.cli import completion
from rtgauge.cli.arguments import given_command
from rtgauge.cli.extension_options import AddedValues
from rtgauge.cli.shared_options import (
    LONGEST_WAIT_NS,
    MACHINE,
    AllowLeftOut,
    Details,
    JsonAlone,
    LoadNames,
    Out,
    ProbeSettings,
    Require,
    Seed,
    StepDuration,
    WaitForLock,
    duration_option,
    given_options,
    grouped,
    option,
    wait_s,
)
from rtgauge.errors import InputError
from rtgauge.extension import extensions, imported, registered
from rtgauge.record.records_folder import RECORDS

if TYPE_CHECKING:
    from rtgauge.plan.make_plan import Overrides, Plan
    from rtgauge.record.reader import Record
    from rtgauge.runner.context import Progress
    from rtgauge.runner.interrupt import Interrupt
    from rtgauge.runner.measure_run import RunOptions
    from rtgauge.runner.step_loop import More, RunOutcome
    from rtgauge.study.adaptive import AdaptiveStudy

DEFAULT_PLAN = "quick"
EACH_RUN, EACH_DEPLOYMENT = "each-run", "each-deployment"
"""Values of --boot."""
DIRECT = ("cpu", "interval", "peer", "policy", "priority", "explain")
"""Probe parameters with their own option. All other parameters are given with --set."""


@dataclass(frozen=True)
class OverPlan:
    """Options that change the plan."""

    target: Annotated[
        list[str] | None,
        option("NAME", f"{MACHINE} Repeatable; the machines are measured one after the other."),
    ] = None
    duration: StepDuration = None
    repeats: Annotated[
        int | None, option("N", "Repeat every step N times, in random order.", min=1, max=1000)
    ] = None
    load: LoadNames = None
    deployment: Annotated[
        str | None,
        option(
            "NAMES",
            "CHM, HM, HMI, M, MI, Single, as-is, or settings (see `rtgauge deploy --help`); separate "
            "several with commas or semicolons.",
        ),
    ] = None
    boot: Annotated[
        str | None,
        option(
            "WHEN",
            "When to boot the lab guest: each-deployment, instead of changing settings, or each-run of "
            "--alternate.",
        ),
    ] = None
    require: Require = None
    allow_left_out: AllowLeftOut = False
    controller: Annotated[
        bool,
        typer.Option(
            "--controller",
            help=(
                "Run rtgauge at FIFO 10 and cap other real-time threads at 80; the priorities are restored "
                "afterwards."
            ),
        ),
    ] = False
    raised: Annotated[
        list[str] | None,
        option("DEVICE", "Also raise the IRQ threads of this device to 99 (PREEMPT_RT).", "--raise"),
    ] = None
    cpu: Annotated[
        str | None, option("CPUS", "CPUs to measure, e.g. 1 or 2-3; default: all online CPUs.")
    ] = None
    interval: Annotated[str | None, option("TIME", "Time between two activations, e.g. 250us.")] = None
    peer: Annotated[
        str | None,
        option(
            "HOST", "The device that answers, or the machine that plays the other role of a signal probe."
        ),
    ] = None
    policy: Annotated[str | None, option("NAME", "Scheduling policy: fifo, rr, deadline or other.")] = None
    priority: Annotated[int | None, option("N", "Real-time priority.", min=1, max=99)] = None
    explain: Annotated[
        bool | None,
        typer.Option(
            "--explain/--no-explain",
            help="Explain the largest latencies from the kernel's events; default: as the plan says.",
            show_default=False,
        ),
    ] = None
    settings: ProbeSettings = None
    seed: Seed = None

    def overrides(self) -> Overrides:
        """Return the changes that these options make to the plan. Raises InputError if an option is wrong."""
        from rtgauge.plan.make_plan import Overrides, parse_setting
        from rtgauge.system.deployment.definition import split_deployments

        parameters = dict(parse_setting(setting, "--set") for setting in self.settings or [])
        for name in DIRECT:
            value = getattr(self, name)
            if value is not None and name in parameters:
                raise InputError(f"--{name} and --set {name}= set the same parameter; give only one of them")
            if value is not None:
                parameters[name] = value
        if self.boot not in (None, EACH_RUN, EACH_DEPLOYMENT):
            raise InputError(
                f"--boot {self.boot}: give {EACH_RUN} or {EACH_DEPLOYMENT}, and only with guests of the lab"
            )
        if self.duration is not None:
            parameters["duration"] = self.duration
        return Overrides(
            parameters=parameters,
            loads=[name.strip() for name in self.load.split(",")] if self.load is not None else None,
            deployments=split_deployments(self.deployment) if self.deployment is not None else None,
            repeats=self.repeats,
            seed=self.seed,
            require=self.require,
            allow_left_out=self.allow_left_out,
            controller=self.controller,
            raised=self.raised or [],
            targets=self.target,
            boot="each-deployment" if self.boot == EACH_DEPLOYMENT else None,
        )


@dataclass(frozen=True)
class Alternating:
    """Options for measuring two sides of a plan alternately."""

    alternate: Annotated[
        tuple[str, str] | None,
        option(
            "A B",
            "Measure two sides alternately, in random order within each pair. A side is a target, a "
            'deployment or "KEY=VALUE ...".',
        ),
    ] = None
    pairs: Annotated[
        int | None, option("N", "Number of pairs that --alternate measures; default: 6.", min=1, max=1000)
    ] = None
    pause_between: Annotated[str, option("TIME", "Pause between the runs of --alternate, e.g. 10min.")] = "0s"

    def plan(self, name: str, overrides: Overrides, boot: str | None) -> Plan:
        """Return the plan with this name or, if there are two sides, a plan that alternates between them.
        Raises InputError if the plan is wrong.
        """
        from rtgauge.plan.alternating_plan import alternating_plan
        from rtgauge.plan.make_plan import load_plan
        from rtgauge.record.alternation import BLOCK, Alternation

        if self.alternate is None:
            for option in given_options(self):
                raise InputError(f"{option} is for --alternate")
            if boot == EACH_RUN:
                raise InputError(f"--boot {EACH_RUN} is for --alternate")
            return load_plan(name, overrides)
        alternation = Alternation(
            sides=self.alternate,
            boot_between=boot == EACH_RUN,
            pause_between_ns=duration_option("--pause-between", self.pause_between),
        )
        return alternating_plan(name, overrides, alternation, self.pairs or BLOCK)


@dataclass(frozen=True)
class DisplayOptions:
    """Options for how a run is shown while it measures and at its end."""

    details: Details = False
    json: JsonAlone = False


Start = Callable[["Progress", "Interrupt", "More | None"], "RunOutcome"]
MeasureStudy = Callable[
    ["AdaptiveStudy", Start, "Record | None", str | None, DisplayOptions, AddedValues], int
]
"""Measures a study, or continues it if the record is its own; the text is its requirement. Returns the exit
status.
"""


def hold_ns(text: str | None) -> int | None:
    """Return the time of `--hold` in ns. Raises InputError if it is not a duration of at most 7 days."""
    if text is None:
        return None
    hold_ns = duration_option("--hold", text)
    if not 0 < hold_ns <= LONGEST_WAIT_NS:
        raise InputError(f"--hold {text}: give more than 0 and at most 7d")
    return hold_ns


def _measure(
    study: AdaptiveStudy | None,
    start: Start,
    resumed: Record | None,
    shown: DisplayOptions,
    added: AddedValues,
    require: str | None,
) -> int:
    """Measure, judge and print the result, and return the exit status. `require`: the run's requirement."""
    from rtgauge.cli.command_end import finish
    from rtgauge.cli.progress import make_display
    from rtgauge.runner.interrupt import Interrupt

    if study is not None and study.study.measured_by is not None:
        measure_study = cast("MeasureStudy", imported(study.study.measured_by))
        return measure_study(study, start, resumed, require, shown, added)
    display = make_display(later_s=study.later_s if study is not None else None)
    with (
        Interrupt(display.stopping) as interrupt,
        display,
        added.listening(display, require) as progress,
    ):
        path, result, _ = start(progress, interrupt, study)
    return finish(path, result, as_json=shown.json, details=shown.details)


def resumed(folder: Path, options: RunOptions, shown: DisplayOptions, added: AddedValues) -> int:
    """Continue a run or a study, and return the exit status."""
    from rtgauge.record.reader import Record
    from rtgauge.runner.measure_run import resume_run
    from rtgauge.study import study_registry

    record = Record.open(folder)
    return _measure(
        study_registry.study_of_record(record.run),
        lambda progress, interrupt, more: resume_run(folder, options, progress, interrupt, more),
        record,
        shown,
        added,
        record.run.requirement,
    )


def _with_plans(function: Callable[..., None]) -> Callable[..., None]:
    """List the presets and studies of all extensions in the help of `run`, instead of the word PLANS."""
    plans_of_extensions = [each.plan_lines for each in extensions()]
    studies = registered("studies")
    width = max(len(name) for lines in plans_of_extensions for name in lines)
    text: list[str] = []
    for heading, are_studies in (("Presets", False), ("Studies", True)):
        chosen = [
            item
            for lines in plans_of_extensions
            for item in lines.items()
            if (item[0] in studies) == are_studies
        ]
        if chosen:
            text += [f"{heading}:", *(f"  {name:<{width}}  {line}" for name, line in chosen)]
    function.__doc__ = (function.__doc__ or "").replace("PLANS", "\b\n    " + "\n    ".join(text))
    return function


@grouped
@_with_plans
def run(
    *,
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN",
            autocompletion=completion.plans,
            help="A preset or a study (see above), or a TOML file.",
        ),
    ] = DEFAULT_PLAN,
    over: OverPlan,
    turns: Alternating,
    out: Out = RECORDS,
    wait: WaitForLock = "0",
    hold: Annotated[
        str | None,
        option(
            "TIME",
            "How long a remote machine that lost the connection waits for `rtgauge resume`, in addition "
            "to its longest step. Default: as long as that step, but at least 1 and at most 15 min.",
        ),
    ] = None,
    shown: DisplayOptions,
    added: AddedValues,
) -> None:
    """Measure a plan: each probe under each load. Then give a summary, a page and, with --require, a verdict.

    PLANS

    \b
    Examples:
      rtgauge run
          this machine, idle and loaded, in about a minute
      rtgauge run --require "period=1ms latency<=200us"
          is this machine good enough?
      rtgauge run papers --duration 1min
          the papers' settings, shorter
      rtgauge run --load idle,cpu --interval 100us --cpu 1
          one CPU, idle and loaded, every 100 us
      rtgauge run --deployment M,MI,Single --repeats 3
          three deployments of the cores, in random order; restored afterwards
      rtgauge run arm.toml --repeats 3
          your own plan, three times, in random order
      rtgauge run --alternate M MI --pairs 12
          two deployments alternately; `rtgauge compare latest` compares the pairs
      rtgauge run --target ssh://root@board --target local
          another machine, then this one
      rtgauge resume
          continue an interrupted run

    \b
    Exit status:
      0    the requirement holds, or none was given
      1    the requirement fails
      2    wrong input
      3    could not measure, or the measurement is invalid
      4    marginal, or cannot tell; also if a load or a step was left out
      130  interrupted; rtgauge resume continues
    """
    from rtgauge.runner.measure_run import RunOptions, start_run
    from rtgauge.study import study_registry
    from rtgauge.verdict.requirement import parse_requirement
    from rtgauge.verdict.run_verdict import check_answerable

    if over.require is not None:
        parse_requirement(over.require)
    options = RunOptions(out=out, command=given_command(), hold_ns=hold_ns(hold), wait_s=wait_s(wait))
    overrides = added.changed(over.overrides())
    study = study_registry.adaptive_study(plan, overrides) if plan in study_registry.studies() else None
    if study is not None and (given := given_options(turns)):
        raise InputError(
            f"the study {plan} chooses its own steps, but {given[0]} works only with a plan; leave it out"
        )
    chosen = turns.plan(plan, overrides, over.boot) if study is None else study.plan()
    if chosen.require is not None:
        check_answerable(parse_requirement(chosen.require), chosen.steps, plan)
    if over.explain and all(step.space == "kernel" for step in chosen.steps):
        typer.echo(
            "--explain has no effect: it explains only tasks in user space, but every step of this plan "
            "measures in kernel space",
            err=True,
        )
    raise typer.Exit(
        _measure(
            study,
            lambda progress, interrupt, more: start_run(chosen, options, progress, interrupt, more),
            None,
            shown,
            added,
            chosen.require,
        )
    )
