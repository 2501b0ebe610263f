# SPDX-License-Identifier: MIT
"""Makes a probe's command from its descriptor, with one option for each parameter, and measures one step."""

from __future__ import annotations

import inspect
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from annotated_types import Ge, Le

from rtgauge.cli.arguments import given_command
from rtgauge.cli.extension_options import AddedValues, added_to
from rtgauge.cli.shared_options import Details, Target, WaitForLock, option, parameters_of, wait_s
from rtgauge.errors import EXIT_INTERRUPTED, MeasureError
from rtgauge.load.load_registry import names as load_names
from rtgauge.probe.notation import SAMPLES, metavar_of, written
from rtgauge.record.reader import Record
from rtgauge.record.records_folder import RECORDS
from rtgauge.units import format_duration

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from rtgauge.plan.make_plan import Plan
    from rtgauge.probe.probe_registry import AnyProbe

ADDED_TO = "probe"
"""The command, for extensions that add options to the commands of probes."""
LOAD_HELP = f"Load during the measurement: {', '.join(load_names())}."
SAMPLES_HELP = (
    "Write every sample to FILE, one file per series: CSV if it ends in .csv, Parquet if it ends in "
    ".parquet, else binary."
)
REQUIRE_HELP = 'Requirement to check, e.g. "{bounds}<=200us".'
SAVE_HELP = "Keep the record, as `rtgauge run` does."
OUT_HELP = "Keep the record in this folder, also without --save."
JSON_HELP = "Print the result as one JSON document, and everything else on standard error."


def _default(field: FieldInfo, metavar: str) -> str:
    """Return the default in the option's notation; empty if there is none."""
    default = written(metavar, field.default)
    return f" [default: {default}]" if default else ""


def _range(field: FieldInfo) -> str:
    minimum = next((str(bound.ge) for bound in field.metadata if isinstance(bound, Ge)), None)
    maximum = next((str(bound.le) for bound in field.metadata if isinstance(bound, Le)), None)
    return (
        f", {minimum} to {maximum}"
        if minimum is not None and maximum is not None and len(maximum) < 4
        else ""
    )


def _option(field: FieldInfo) -> Any:
    """Make a parameter's option: a flag, a number or a text. Its value is None if it is not given."""
    name, text = f"--{field.alias}", str(field.description)
    metavar = metavar_of(field)
    if not metavar:
        return Annotated[
            bool | None, typer.Option(name, help=f"{text[:1].upper()}{text[1:]}.", show_default=False)
        ]
    help_text = f"{text[:1].upper()}{text[1:]}{_range(field)}.{_default(field, metavar)}"
    kind = int | None if metavar == "N" else str | None
    return Annotated[kind, typer.Option(name, metavar=metavar, help=help_text)]


def _fields(probe: AnyProbe) -> dict[str, FieldInfo]:
    """Return every parameter that has an option: first the probe's own, then the shared parameters."""
    fields = probe.parameters.model_fields
    ordered = [
        name
        for model in probe.parameters.__mro__
        for name in inspect.get_annotations(model)
        if name in fields
    ]
    hidden = {SAMPLES, *probe.files, *(probe.command.not_options if probe.command is not None else ())}
    return {name: fields[name] for name in dict.fromkeys(ordered) if fields[name].alias not in hidden}


def _files(probe: AnyProbe) -> dict[str, str]:
    """Return name -> help of the options that name a file to write."""
    own = {name: file.help for name, file in probe.files.items()}
    return ({SAMPLES: SAMPLES_HELP} if SAMPLES in probe.parameters.model_fields else {}) | own


def _common(probe: AnyProbe) -> dict[str, tuple[Any, Any]]:
    """Return name -> (type, default) of the options that are not parameters."""
    options: dict[str, tuple[Any, Any]] = {}
    if probe.command is not None:
        options["load"] = Annotated[str, option("NAME", LOAD_HELP, "--load")], "idle"
    for name, help_text in _files(probe).items():
        file = Annotated[Path | None, option("FILE", help_text, f"--{name}")]
        options[name] = file, None
    if probe.takes_requirement:
        require = option("TEXT", REQUIRE_HELP.format(bounds=probe.bounds), "--require")
        options["require"] = Annotated[str | None, require], None
    added = [each for group in added_to(ADDED_TO) for each in parameters_of(group)]
    return options | {
        "save": (Annotated[bool, typer.Option("--save", help=SAVE_HELP)], False),
        "out": (
            Annotated[Path | None, option("DIR", OUT_HELP, "--out", "-o", show_default=str(RECORDS))],
            None,
        ),
        "wait": (WaitForLock, "0"),
        **{each.name: (each.annotation, each.default) for each in added},
        "target": (Target, "local"),
        "details": (Details, False),
        "json": (Annotated[bool, typer.Option("--json", help=JSON_HELP)], False),
    }


def _example(command: str) -> str:
    """Indent a command, and break it onto the next line if it is longer than 80 columns."""
    lines = textwrap.wrap(
        command,
        76,
        initial_indent="  ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return " \\\n".join(lines)


def _help(probe: AnyProbe, called: str) -> str:
    examples = "\n".join(_example(f"{called} {arguments}") for arguments in probe.examples)
    about = probe.about or f"{probe.help[:1].upper()}{probe.help[1:]}."
    return f"{about}\n\n\b\nExamples:\n{examples}\n\nExit status: the same as rtgauge run (see its --help)."


def with_options(
    function: Callable[..., None], probe: AnyProbe, called: str, more: Mapping[str, tuple[Any, Any]]
) -> Callable[..., None]:
    """Give the function the signature and help from which typer makes the command `called`.

    Its options are the probe's parameters, the options of every probe, and `more`: name -> (type, default),
    which replace options with the same name.
    """
    options: dict[str, tuple[Any, Any]] = {}
    for name, field in _fields(probe).items():
        if probe.command is not None and field.alias == probe.command.argument:
            argument = typer.Argument(metavar=probe.command.argument_metavar, help=f"{field.description}.")
            options[name] = Annotated[str, argument], inspect.Parameter.empty
        else:
            options[name] = _option(field), None
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in (options | _common(probe) | dict(more)).items()
    ]
    command = cast("Any", function)
    command.__name__, command.__doc__ = probe.name, _help(probe, called)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)
    return function


def make_command(probe: AnyProbe) -> Callable[..., None]:
    """Make the function of `rtgauge probe NAME`."""

    def command(**given: Any) -> None:
        raise typer.Exit(measure_probe(probe, given))

    return with_options(command, probe, f"rtgauge probe {probe.name}", {})


def _values(probe: AnyProbe, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given, in the form of a plan."""
    values = {
        str(field.alias): given[name] for name, field in _fields(probe).items() if given[name] is not None
    }
    return values | {name: True for name in _files(probe) if given[name] is not None}


def measure_probe(
    probe: AnyProbe,
    given: Mapping[str, Any],
    program: Callable[[], AbstractContextManager[int]] | None = None,
) -> int:
    """Measure one step, print the result, and return the exit status.

    `given`: the values of the options that `with_options` makes; `program`: starts the watched program.
    """
    from rtgauge.cli.progress import make_display
    from rtgauge.runner.interrupt import Interrupt
    from rtgauge.runner.measure_run import RunOptions, start_run

    require, as_json, details = given.get("require"), given["json"], given["details"]
    kept = given["save"] or given["out"] is not None
    files = {name: given[name] for name in _files(probe) if given[name] is not None}
    _check_files(files)
    plan = _plan(probe, given)
    display = make_display(single_step=True)
    with ExitStack() as stack:
        folder = given["out"] or RECORDS
        if not kept:
            # Raw samples may be large, so the temporary record is next to the file that will hold them.
            beside = next((path.parent for path in files.values()), None)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".rtgauge-", dir=beside)))
        options = RunOptions(
            folder,
            given_command(),
            kept=kept,
            # Writing windows imports polars, which takes longer than everything else.
            with_windows=not as_json or kept or require is not None or probe.shown.needs_windows,
            judged=kept or require is not None or probe.shown.needs_windows,
            wait_s=wait_s(given["wait"]),
        )
        with (
            Interrupt(display.stopping) as interrupt,
            display,
            AddedValues.given(ADDED_TO, given).listening(display, require) as progress,
        ):
            path, run, _ = start_run(plan, options, progress, interrupt, program=program)
        from rtgauge.cli.command_end import finish, judged
        from rtgauge.verdict.exit_status import exit_status

        record = Record.open(path)
        if run.left_out:
            raise MeasureError(f"{run.left_out[0].reason}; {run.left_out[0].remedy}")
        if kept:
            status = finish(path, run, as_json=as_json, details=details)
            record = Record.open(path)
        else:
            judged(record, require)
            _print(record, probe, as_json=as_json, details=details)
            status = (
                EXIT_INTERRUPTED
                if run.state == "interrupted"
                else exit_status(record.run.verdicts, record.steps)
            )
        if record.steps:
            _export_files(record, files, display.print_line)
    return status


def _plan(probe: AnyProbe, given: Mapping[str, Any]) -> Plan:
    """Return the plan of one step. Raises InputError if an option is wrong."""
    from rtgauge.plan.make_plan import Overrides, make_plan

    require, values, name = given.get("require"), _values(probe, given), f"probe {probe.name}"
    requirement = None
    if require is not None:
        from rtgauge.verdict.requirement import parse_requirement

        requirement = parse_requirement(require)
        if probe.watches and requirement.period_ns is not None:
            values.setdefault("period", format_duration(requirement.period_ns))
    step = {"probe": probe.name, "load": given.get("load", "idle")}
    if probe.command is None or probe.command.argument is not None:
        step |= values  # a step without its required parameters would be refused
    overrides = Overrides(parameters=values, require=require, targets=[given["target"]])
    plan = make_plan({"name": f"probe-{probe.name}", "step": [step]}, name, overrides)
    if requirement is not None:
        from rtgauge.verdict.run_verdict import check_answerable

        check_answerable(requirement, plan.steps, name)
    return plan


def _check_files(files: Mapping[str, Path]) -> None:
    """Raise InputError if a file that the user asks for could not be written after the measurement."""
    if not files:
        return
    from rtgauge.record.files import check_file

    for name, path in files.items():
        check_file(path, f"--{name}")


def _export_files(record: Record, files: Mapping[str, Path], notify: Callable[[str], None]) -> None:
    """Write the files that the user asks for, and print their paths. Raises the errors of the exporters."""
    from rtgauge.probe import probe_registry as probes

    (step, *_) = record.steps
    for name, path in files.items():
        if name == SAMPLES:
            from rtgauge.exporters.samples_export import export_samples

            written = export_samples(record.samples(step), path)
        else:
            kept = probes.get(step.key.probe).files[name]
            kept.export(record.file(step, kept.name), path)
            written = [path]
        for file in written:
            notify(f"{name} {file}")


def _print(record: Record, probe: AnyProbe, *, as_json: bool, details: bool) -> None:
    from rtgauge.cli.command_end import document_of
    from rtgauge.cli.console import Console
    from rtgauge.report.presenter import presenters
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.terminal_summary import print_conclusion, print_summary

    if as_json:
        typer.echo(document_of(record, kept=False).model_dump_json(indent=1))
    elif (
        record.steps
        and probe.command is not None
        and probe.command.prints_only_tables
        and not any(step.series for step in record.steps)
    ):
        console = Console()
        print_conclusion(record, console)
        view = RecordView(record)
        for presenter, steps in presenters(view.steps):
            presenter.print_tables(view, steps, console)
    else:
        print_summary(record, Console(), kept=False, details=details)
