# SPDX-License-Identifier: MIT
"""The command of a probe, made from the probe's descriptor: an option for each parameter; a run of one step whose record is thrown away."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_origin

import typer
from annotated_types import Ge, Le
from pydantic_core import PydanticUndefined
from rich.console import Console

from rtgauge.cli.progress_display import make_display
from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError
from rtgauge.exporters.samples_export import check_samples_path, export_samples
from rtgauge.load.registry import LOADS
from rtgauge.plan.plan import Overrides, make_plan
from rtgauge.probe.common_parameters import DMA_LATENCY_OFF, DmaLatencyUs, OnOff
from rtgauge.record.model import RunDocument
from rtgauge.record.reader import Record
from rtgauge.report.calibrations import print_calibrations
from rtgauge.report.terminal import print_summary
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.planned_steps import RunOptions
from rtgauge.runner.run import start_run
from rtgauge.tire.state_file import STATE_FILE, export_state
from rtgauge.units import format_duration
from rtgauge.validation import CpuList, DurationNs
from rtgauge.verdict.decision import exit_status, judge_run
from rtgauge.verdict.requirement import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo

    from rtgauge.probe.descriptor import Probe

SAMPLES = "samples"
NOTATIONS = {"TIME": DurationNs, "CPUS": CpuList, "US|off": DmaLatencyUs, "on|off": OnOff}
"""How what is not plain text or a number is written; a field is known by its validator."""
LOAD_HELP = f"What the machine does meanwhile: {', '.join(LOADS)}."
TARGET_HELP = "The machine to measure: local, ssh://[user@]host[:port] or lab:NAME."
SAMPLES_HELP = "Every single sample into FILE: .csv, .parquet, or else binary, a file a series."
REQUIRE_HELP = 'What is asked of the machine, e.g. "{bounds}<=200us".'
SEARCH_HELP = "Look for the largest that keeps every deadline, for each solver and number of threads; several: with commas between."
REPEATS_HELP = "With --search: bisections, and runs that confirm what they found."
JSON_HELP = "One JSON document on standard output; the rest on standard error."


def _metadata(annotation: Any) -> list[Any]:
    """All that an annotation says besides the type, also within a union."""
    if get_origin(annotation) is Annotated:
        kind, *said = get_args(annotation)
        return [*said, *_metadata(kind)]
    return [one for part in get_args(annotation) for one in _metadata(part)]


def _metavar(field: FieldInfo) -> str:
    """What stands for the value in the help: a notation, the choices, N, or TEXT; nothing for a flag."""
    said = [*field.metadata, *_metadata(field.annotation)]
    for name, notation in NOTATIONS.items():
        if any(one in said for one in get_args(notation)[1:]):
            return name
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    kinds = [getattr(one, "__origin__", one) for one in get_args(field.annotation) or (field.annotation,)]
    return "" if bool in kinds else "N" if int in kinds else "NUMBER" if float in kinds else "TEXT"


def _default(field: FieldInfo, metavar: str) -> str:
    """The default as people write it; nothing where there is none."""
    value: Any = field.default
    if value is None or value is PydanticUndefined:
        return ""
    if metavar == "TIME":
        written = format_duration(value) if value else "0"
    elif metavar == "NUMBER":
        written = f"{value:g}"
    elif metavar == "on|off":
        written = "on" if value else "off"
    else:
        written = "off" if metavar == "US|off" and value == DMA_LATENCY_OFF else str(value)
    return f" [default: {written}]" if written else ""


def _range(field: FieldInfo) -> str:
    least = next((str(one.ge) for one in field.metadata if isinstance(one, Ge)), None)
    most = next((str(one.le) for one in field.metadata if isinstance(one, Le)), None)
    return f", {least} to {most}" if least is not None and most is not None and len(most) < 4 else ""


def _option(field: FieldInfo) -> Any:
    """The option of one parameter: a flag, a number or a text, None where it is not given."""
    name, text = f"--{field.alias}", str(field.description)
    metavar = _metavar(field)
    if not metavar:
        return Annotated[bool | None, typer.Option(name, help=f"{text[:1].upper()}{text[1:]}.", show_default=False)]
    told = f"{text[:1].upper()}{text[1:]}{_range(field)}.{_default(field, metavar)}"
    kind = int | None if metavar == "N" else str | None
    return Annotated[kind, typer.Option(name, metavar=metavar, help=told)]


def _fields(probe: Probe) -> dict[str, FieldInfo]:
    """Every parameter that has an option, the probe's own first, then what it shares with others."""
    fields = probe.parameters.model_fields
    own = [name for one in probe.parameters.__mro__ for name in inspect.get_annotations(one) if name in fields]
    hidden = {SAMPLES, *probe.files, *probe.in_plans_only}
    return {name: fields[name] for name in dict.fromkeys(own) if fields[name].alias not in hidden}


def _files(probe: Probe) -> dict[str, str]:
    """What may be written to a file besides: name -> help."""
    return {**({SAMPLES: SAMPLES_HELP} if SAMPLES in probe.parameters.model_fields else {}), **probe.files}


def _common(probe: Probe) -> dict[str, tuple[Any, Any]]:
    """What every command has besides: name -> type and default."""
    found: dict[str, tuple[Any, Any]] = {}
    if probe.takes_load:
        found["load"] = Annotated[str, typer.Option("--load", metavar="NAME", help=LOAD_HELP)], "idle"
    for name, told in _files(probe).items():
        found[name] = Annotated[Path | None, typer.Option(f"--{name}", metavar="FILE", help=told)], None
    if probe.searches:
        found["search"] = Annotated[bool, typer.Option("--search", help=SEARCH_HELP)], False
        found["repeats"] = Annotated[int | None, typer.Option("--repeats", metavar="N", min=1, max=100, help=REPEATS_HELP)], None
    if probe.takes_requirement:
        found["require"] = Annotated[str | None, typer.Option("--require", metavar="TEXT", help=REQUIRE_HELP.format(bounds=probe.bounds))], None
    found["target"] = Annotated[str, typer.Option("--target", metavar="NAME", help=TARGET_HELP)], "local"
    found["json"] = Annotated[bool, typer.Option("--json", help=JSON_HELP)], False
    return found


def _help(probe: Probe) -> str:
    examples = "\n".join(f"  rtgauge probe {probe.name} {one}".rstrip() for one in probe.examples)
    return f"{probe.about}\n\n\b\nExamples:\n{examples}\n\nExit status as of rtgauge run."


def make_command(probe: Probe) -> Callable[..., None]:
    """The function of `rtgauge probe NAME`, with the signature that typer reads."""
    fields, common = _fields(probe), _common(probe)

    def command(**given: Any) -> None:
        said = {str(fields[name].alias): value for name, value in given.items() if name in fields and value is not None}
        said |= {name: True for name in _files(probe) if given[name] is not None}
        load = given.get("load", "idle")
        if given.get("search"):
            from rtgauge.cli.tire_search import tire_search

            if given.get("require") is not None:
                raise InputError("--require cannot be given with --search, which looks for a size that keeps every deadline; leave it out")
            raise typer.Exit(tire_search(said, load=load, target=given["target"], repeats=given["repeats"], as_json=given["json"]))
        if given.get("repeats") is not None:
            raise InputError("--repeats is for --search")
        status = one_probe(
            probe.name,
            said,
            load=load,
            target=given["target"],
            samples=given.get(SAMPLES),
            state=given.get("state"),
            require=given.get("require"),
            as_json=given["json"],
            needed=said if probe.argument is not None else None,
        )
        raise typer.Exit(status)

    parameters: list[inspect.Parameter] = []
    for name, field in fields.items():
        if field.alias == probe.argument:
            kind, default = Annotated[str, typer.Argument(metavar=probe.argument_metavar, help=f"{field.description}.")], inspect.Parameter.empty
        else:
            kind, default = _option(field), None
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind) for name, (kind, default) in common.items()]
    made = cast("Any", command)
    made.__name__, made.__doc__ = probe.name, _help(probe)
    made.__annotations__ = {one.name: one.annotation for one in parameters}
    made.__signature__ = inspect.Signature(parameters)
    return command


def one_probe(
    name: str,
    written: dict[str, Any],
    *,
    load: str,
    target: str,
    samples: Path | None,
    require: str | None,
    as_json: bool,
    needed: dict[str, Any] | None = None,
    state: Path | None = None,
) -> int:
    """Measure, print, and give the exit status.

    `written` are the parameters as a plan has them, `needed` those without which there is no step; `state` is where the state of a tire goes.
    """
    requirement = parse_requirement(require) if require is not None else None
    if samples is not None:
        check_samples_path(samples)
    if state is not None:
        check_samples_path(state, "--state")
    step = {"probe": name, "load": load, **(needed or {})}
    said = Overrides(parameters=written, require=require, targets=[target])
    plan = make_plan({"name": f"probe-{name}", "step": [step]}, f"probe {name}", said)
    display = make_display()
    # Raw samples may be large: they are written where the user has room for them.
    with tempfile.TemporaryDirectory(prefix=".rtgauge-", dir=next((path.parent for path in (samples, state) if path is not None), None)) as folder:
        with Interrupt(display.stopping) as interrupt, display:
            path, run, _ = start_run(plan, RunOptions(Path(folder), ["rtgauge", "probe", name], kept=False), display, interrupt)
        record = Record.open(path)
        if run.left_out:
            raise MeasureError(f"{run.left_out[0].reason}; {run.left_out[0].remedy}")
        if requirement is not None:
            record.run.verdicts = judge_run(requirement, record)
        _print(record, name, as_json=as_json)
        if samples is not None and record.steps:
            for file in export_samples(record.samples(record.steps[0]), samples):
                display.say(f"samples {file}")
        if state is not None and record.steps:
            export_state(record.folder(record.steps[0]) / STATE_FILE, state)
            display.say(f"state {state}")
    if run.state == "interrupted":
        return EXIT_INTERRUPTED
    return exit_status(record.run.verdicts, record.steps)


def _print(record: Record, name: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(RunDocument(run=record.run, steps=record.steps, systems=record.systems, record=None).model_dump_json(indent=1))
    elif name == "calibrate" and record.steps:
        print_calibrations(record.steps[0].calibrations, Console())
    else:
        print_summary(record, Console(), kept=False)
