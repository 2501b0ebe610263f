# SPDX-License-Identifier: MIT
"""Defines options that several commands share. A group of options is a dataclass that a command has as a
parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_type_hints

import typer

from rtgauge.cli import completion
from rtgauge.cli.extension_options import AddedValues, added_to
from rtgauge.errors import InputError
from rtgauge.record.alternation import BLOCK, DEFAULT_PAIRS, MOST_PAIRS
from rtgauge.target.kind import forms
from rtgauge.units import NS_PER_S, NS_PER_UNIT, parse_duration_ns, parse_percent

if TYPE_CHECKING:
    from rtgauge.analysis.gate_options import GateOptions
    from rtgauge.plan.make_plan import Overrides

LONGEST_WAIT_NS = 7 * NS_PER_UNIT["d"]


def option(placeholder: str, text: str, *names: str, **more: Any) -> Any:
    """Return an option with a value. `names`: its names, if they are not the parameter's."""
    return typer.Option(*names, metavar=placeholder, help=text, **more)


TARGETS = ["local", "ssh://[user@]host[:port]", *forms()]
MACHINE = f"Machine to measure: {', '.join(TARGETS[:-1])} or {TARGETS[-1]}."
"""The help of `--target`."""
Target = Annotated[str, option("NAME", MACHINE)]
Require = Annotated[
    str | None,
    option(
        "TEXT",
        'Requirement to check, e.g. "period=1ms latency<=200us hardness=99%"; with hardness=99%, '
        "99 % of the activations must meet it.",
    ),
]
AllowLeftOut = Annotated[
    bool,
    typer.Option(
        "--allow-left-out",
        help="Let the verdict be `holds` even if a load or a step could not be measured.",
    ),
]
Details = Annotated[
    bool, typer.Option("--details", help="Print every CPU, thread, part and mark, not just one row per load.")
]
WaitForLock = Annotated[
    str,
    option(
        "TIME",
        "How long to wait if another run is using the machine; by default, rtgauge does not wait.",
        "--wait",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonAlone = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as one JSON document, and everything else on standard error."
    ),
]
Figures = Annotated[
    Path | None,
    option("DIR", "Also write every figure as PNG, SVG and PDF to this folder."),
]
Out = Annotated[Path, option("DIR", "Folder for records.", "--out", "-o")]
StepDuration = Annotated[str | None, option("TIME", "Measuring time of each step, e.g. 10s, 5min, 1h.")]
LoadNames = Annotated[
    str | None,
    option(
        "NAMES", "Loads to use instead of the plan's, e.g. idle,cpu,network.", autocompletion=completion.loads
    ),
]
ProbeSettings = Annotated[
    list[str] | None,
    option("KEY=VALUE", "Set any other parameter of the probes in every step.", "--set"),
]
Seed = Annotated[
    int | None,
    option("N", "Seed of the random order, to reproduce it.", min=0, max=2**63 - 1),
]


def target_option(target: str) -> str:
    """Return " --target ..." for a suggested command; empty for this machine."""
    return "" if target == "local" else f" --target {quote(target)}"


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """Make a typer command from a function with groups of options (dataclasses) as parameters.

    Each field of a group becomes an option, with the field's annotation and default. A parameter of the class
    AddedValues has the groups that extensions add to the command of the function's name.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: cast("type[Any]", kind) for name, kind in hints.items() if is_dataclass(kind)}
    options: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            options.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
        elif groups[name] is AddedValues:
            for kind in added_to(function.__name__):
                options += parameters_of(kind)
        else:
            options += parameters_of(groups[name])

    @wraps(function)
    def command(**given: Any) -> None:
        made = {
            name: AddedValues.given(function.__name__, given)
            if group is AddedValues
            else group(**{each.name: given[each.name] for each in fields(group)})
            for name, group in groups.items()
        }
        function(**{name: given[name] for name in hints if name in given and name not in groups}, **made)

    described = cast("Any", command)
    described.__signature__ = inspect.Signature(options)
    described.__annotations__ = {option.name: option.annotation for option in options}
    return command


def parameters_of(group: type[Any]) -> list[inspect.Parameter]:
    """Return the options of a group."""
    own = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=own[each.name]
        )
        for each in fields(group)
    ]


def option_names(group: type[Any]) -> list[str]:
    """Return the names (`--pairs`) of a group's options, and of what turns a flag off (`--no-tails`)."""
    hints = get_type_hints(group, include_extras=True)
    return [name for each in fields(group) for name in _written(each, hints[each.name]).split("/")]


def given_options(group: Any) -> list[str]:
    """Return the names (`--pairs`) of the options in a group that differ from their defaults."""
    hints = get_type_hints(cast("type[Any]", type(group)), include_extras=True)
    given = [each for each in fields(group) if getattr(group, each.name) != each.default]
    names = [(each, _written(each, hints[each.name]).split("/")) for each in given]
    return [on_off[-1 if getattr(group, each.name) is False else 0] for each, on_off in names]


def _written(field: Field[Any], annotation: Any) -> str:
    # typer takes the first name of an annotated option for its default, until the command is made
    declared = [
        name for each in get_args(annotation)[1:] for name in (each.default, *(each.param_decls or ()))
    ]
    names = [name for name in declared if isinstance(name, str) and name.startswith("--")]
    return names[0] if names else f"--{field.name.replace('_', '-')}"


@dataclass(frozen=True)
class MeasuringOptions:
    """Options for what each run of a side or a commit measures."""

    target: Annotated[
        str | None, option("NAME", "Machine to measure if a side names none; default: local.")
    ] = None
    duration: StepDuration = None
    load: LoadNames = None
    settings: ProbeSettings = None
    seed: Seed = None

    def overrides(self) -> Overrides:
        """Return the changes that these options make to the plan. Raises InputError if a --set is wrong."""
        from rtgauge.plan.make_plan import Overrides, parse_setting

        parameters = dict(parse_setting(setting, "--set") for setting in self.settings or [])
        return Overrides(
            parameters=parameters if self.duration is None else {**parameters, "duration": self.duration},
            loads=None if self.load is None else [name.strip() for name in self.load.split(",")],
            targets=None if self.target is None else [self.target],
            seed=self.seed,
        )


@dataclass(frozen=True)
class Deciding:
    """Options for how to decide whether one side is worse than the other."""

    series: Annotated[
        str | None,
        option(
            "NAME", "The series that decides, PROBE/METRIC/LOAD; default: the load with the largest values."
        ),
    ] = None
    quantile: Annotated[
        str, option("NAME", "The quantile that decides: p50, p95, p99, p99.9, ... p99.999.")
    ] = "p99.9"
    max_pairs: Annotated[
        int | None,
        option(
            "N",
            f"Maximum number of pairs, {BLOCK} to {MOST_PAIRS} (default {DEFAULT_PAIRS}); measuring ends "
            "earlier if they decide.",
        ),
    ] = None
    allow_mark: Annotated[
        list[str] | None, option("NAME", "Also count runs with this doubtful mark; repeatable.")
    ] = None

    def gate_options(
        self,
        larger_than: str | None,
        kernels: tuple[str | None, str | None] = (None, None),
        require: str | None = None,
        rare: str | None = None,
    ) -> GateOptions:
        """Return the gate's options. `larger_than`: the change that matters, such as `10%`.

        `kernels`: texts that the kernel releases of baseline and candidate must contain. `require`: the
        requirement that decides, instead of a quantile. `rare`: the share of boots with the rarest state that
        must have shown before a pass. Raises InputError if an option is wrong.
        """
        from rtgauge.analysis.gate_options import GateOptions
        from rtgauge.analysis.gate_test import LEAST_CHANGE, PASS_FROM, boots_to_show
        from rtgauge.nearest_name import nearest
        from rtgauge.record.marks import mark_kinds
        from rtgauge.record.quantiles import NAMES
        from rtgauge.verdict.requirement import parse_requirement

        if require is not None:
            parse_requirement(require)
        if self.quantile not in NAMES:
            raise InputError(f"--quantile {self.quantile} is not one of {', '.join(NAMES)}")
        allowed = self.allow_mark or []
        for name in allowed:
            if name not in mark_kinds():
                raise InputError(f"--allow-mark: unknown mark '{name}'{nearest(name, mark_kinds())}")
        try:
            matters = parse_percent(larger_than or ("10%" if require is None else "100%"))
        except ValueError as error:
            raise InputError(f"--larger-than: {error}") from None
        if require is None and matters < LEAST_CHANGE:
            raise InputError(
                f"--larger-than {larger_than}: give at least {LEAST_CHANGE:.0%}, because the histograms "
                "cannot show a smaller change"
            )
        try:
            share = None if rare is None else parse_percent(rare)
        except ValueError as error:
            raise InputError(f"--rare: {error}") from None
        least = PASS_FROM if share is None else max(PASS_FROM, boots_to_show(share))
        if rare is not None and self.max_pairs is not None and self.max_pairs < least:
            raise InputError(
                f"--rare {rare} takes {least} pairs, but --max-pairs allows only {self.max_pairs}; leave "
                "out one of the two"
            )
        return GateOptions(
            series=self.series,
            quantile=self.quantile,
            larger_than=matters,
            max_pairs=least if self.max_pairs is None else self.max_pairs,
            rare=share,
            require=require,
            kernels=kernels,
            allowed_marks=allowed,
        )


@dataclass(frozen=True)
class ComparedSides:
    """Options that choose the sides and their baseline."""

    records: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RECORD",
            autocompletion=completion.records,
            help="Record folders, or latest; one record is enough if it has several loads or deployments.",
        ),
    ] = None
    side: Annotated[
        list[str] | None,
        option("NAME=RECORD", "A record and a name for it. Records with the same NAME are runs of one side."),
    ] = None
    baseline: Annotated[
        str | None,
        option("RECORD|LABEL", "The baseline: a record, label, deployment, load or kernel; default: Single."),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Allow comparing emulated with real machines.")] = (
        False
    )
    metric: Annotated[
        str | None,
        option(
            "NAME",
            "Metric of task sets: response (default), latency, response-from-start, period, "
            "absolute-jitter, execution.",
        ),
    ] = None


@dataclass(frozen=True)
class ComparisonStatistics:
    """Options for how two sides are compared."""

    within: Annotated[str, option("DURATION", "Sides that differ by no more than this count as equal.")] = (
        "2us"
    )
    alpha: Annotated[
        float, typer.Option(help="Significance level; confidence intervals are at 1 - alpha.")
    ] = 0.05
    intervals: Annotated[
        bool,
        typer.Option("--intervals/--no-intervals", help="Estimate confidence intervals of the differences."),
    ] = True


@dataclass(frozen=True)
class PrintedComparison:
    """Options for the output."""

    details: Annotated[
        bool,
        typer.Option("--details", help="Print every table, and every setting that differs."),
    ] = False
    json: Json = False
    page: Annotated[str | None, option("FILE.html", "Also write a page with the figures.")] = None
    figures: Figures = None


def wait_s(text: str) -> float:
    """Return `--wait` in seconds. Raises InputError if it is not a duration of at most `LONGEST_WAIT_NS`."""
    wait_ns = 0 if text == "0" else duration_option("--wait", text)
    if wait_ns > LONGEST_WAIT_NS:
        raise InputError(f"--wait {text}: give at most 7d")
    return wait_ns / NS_PER_S


def duration_option(option: str, text: str) -> int:
    """Return a duration such as `2us` in ns.

    Raises InputError with the option's name if the text is not a duration or is negative.
    """
    try:
        value_ns = parse_duration_ns(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    if value_ns < 0:
        raise InputError(f"{option} {text} is negative; give a duration such as 2us")
    return value_ns
