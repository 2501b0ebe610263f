# SPDX-License-Identifier: MIT
"""Extensions: what each adds to rtgauge, in one object that imports none of it.

The core is an extension itself. The others are the packages of the namespace `rtgauge_ext`, each with its
object in `rtgauge_ext.NAME.extension`, and the entry points of other distributions in the group
`rtgauge.extensions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal, NamedTuple

from rtgauge.errors import InputError

GROUP = "rtgauge.extensions"
"""The entry point group in which another distribution names its object."""
NAMESPACE = "rtgauge_ext"
"""The namespace package of the extensions that rtgauge's own tree contains."""
OBJECT = "EXTENSION"
"""The name of the object in the module `extension` of a package."""

Kind = Literal[
    "probes",
    "presenters",
    "studies",
    "loads",
    "importers",
    "exporters",
    "measurers",
    "documents",
    "files",
    "resumers",
    "askers",
    "keepers",
    "targets",
    "frequencies",
    "operations",
    "runtimes",
    "options",
    "marks",
    "auditors",
]
"""What an extension adds by name. Each is a field of Extension."""
NOUNS: dict[Kind, str] = {
    "probes": "probe",
    "presenters": "presenter of",
    "studies": "study",
    "loads": "load",
    "importers": "format",
    "exporters": "format",
    "measurers": "tool",
    "documents": "schema",
    "files": "file",
    "resumers": "resumer of",
    "askers": "asker of",
    "keepers": "keeper of",
    "targets": "kind of target",
    "frequencies": "frequencies of",
    "operations": "operations of",
    "runtimes": "co-kernel",
    "options": "options of",
    "marks": "marks of",
    "auditors": "auditor",
}
"""The word for each kind in an error."""


class Command(NamedTuple):
    """A command of the top level: its heading in the help, its line there, and `module:object`, a function
    for typer or a typer.Typer.
    """

    heading: str
    line: str
    target: str


class Document(NamedTuple):
    """What a command prints with --json: a title, and the models (pydantic) of which it is one."""

    title: str
    models: tuple[type, ...]


def _none() -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What one extension adds. Each mapping has a name, and `module:object`, which is imported when used."""

    name: str
    line: str
    """One sentence: what it is for."""
    commands: Mapping[str, Command] = field(default_factory=dict[str, Command])
    probes: Mapping[str, str] = field(default_factory=_none)
    """Probe -> its rtgauge.probe.descriptor.Probe."""
    presenters: Mapping[str, str] = field(default_factory=_none)
    """Probe, or file that steps keep -> an rtgauge.report.presenter.Presenter. Several extensions may present
    the same one.
    """
    studies: Mapping[str, str] = field(default_factory=_none)
    """Study -> its rtgauge.study.adaptive.Study."""
    loads: Mapping[str, str] = field(default_factory=_none)
    """Load -> its class, an rtgauge.load.load.Load."""
    importers: Mapping[str, str] = field(default_factory=_none)
    """Format -> its rtgauge_ext.importers.measurement.Importer."""
    exporters: Mapping[str, str] = field(default_factory=_none)
    """Format -> its rtgauge.exporters.exporter.Exporter."""
    measurers: Mapping[str, str] = field(default_factory=_none)
    """Tool that checks a step after rtgauge, or what a probe's `measurer()` names -> its
    rtgauge.runner.step.Measurer, which may be a module.
    """
    documents: Mapping[str, str] = field(default_factory=_none)
    """Schema in docs/formats -> a Document: its title and models."""
    files: Mapping[str, str] = field(default_factory=_none)
    """Kind of file that users write -> a mapping of its tables to their models, for the reference."""
    resumers: Mapping[str, str] = field(default_factory=_none)
    """Suffix of a file, or file in a folder -> its rtgauge.cli.extension_resumer.Resumer."""
    askers: Mapping[str, str] = field(default_factory=_none)
    """Key in a record's plan -> the rtgauge.cli.decided.Asker that answers its question."""
    keepers: Mapping[str, str] = field(default_factory=_none)
    """Who keeps settings at each boot -> its rtgauge.cli.kept_settings.Keeper."""
    frequencies: Mapping[str, str] = field(default_factory=_none)
    """Any name -> the rtgauge.report.how_often.Frequencies that calculates how often a task can run."""
    operations: Mapping[str, str] = field(default_factory=_none)
    """Any name -> a function of records that returns rtgauge.report.compare.extension_parts.Operations."""
    runtimes: Mapping[str, str] = field(default_factory=_none)
    """Co-kernel, a value of `rt` -> its rtgauge.system.runtime.Runtime."""
    marks: Mapping[str, str] = field(default_factory=_none)
    """Any name -> its marks, a subclass of rtgauge.record.marks.MarkKindBase."""
    auditors: Mapping[str, str] = field(default_factory=_none)
    """Any name -> the rtgauge.system.deployment.extension_auditor.Auditor of a machine's settings."""
    options: Mapping[str, str] = field(default_factory=_none)
    """Command of the core -> a dataclass of options that it adds there, a class below
    rtgauge.cli.extension_options.AddedOptions.
    """
    optional_values: Mapping[str, str] = field(default_factory=_none)
    """Option whose value may be left out -> a pattern. Any other word after the option is not its value."""
    words: Mapping[str, str] = field(default_factory=_none)
    """What rtgauge calls it, such as `rtgauge tune` -> the words that people try first, instead."""
    gone: Mapping[str, str] = field(default_factory=_none)
    """Command or option of an earlier build, such as `compare --scale` -> what to do instead."""
    first_steps: tuple[tuple[str, str], ...] = ()
    """A command and the question that it answers, for the first steps in the help."""
    plan_lines: Mapping[str, str] = field(default_factory=_none)
    """Preset or study -> its line in the help of `rtgauge run`."""
    presets: str | None = None
    """The package whose folder `presets` has plans (TOML)."""
    targets: Mapping[str, str] = field(default_factory=_none)
    """Scheme of the names of targets -> its rtgauge.target.kind.TargetKind."""


def _packages() -> Iterable[tuple[str, str]]:
    """Yield the packages of the namespace as (name, module:object)."""
    try:
        namespace = import_module(NAMESPACE)
    except ModuleNotFoundError:
        return  # the core alone
    names = {file.parent.name for place in namespace.__path__ for file in Path(place).glob("*/extension.py")}
    for name in sorted(names):
        yield name, f"{NAMESPACE}.{name}.extension:{OBJECT}"


def imported(reference: str) -> object:
    """Return the object that `module:object` names, or a module that is named alone.

    Raises ImportError or AttributeError.
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the core, then the packages of the namespace, then other distributions' extensions, by name.

    One that cannot be used is left out with a warning.
    """
    others = ((point.name, point.value) for point in sorted(entry_points(group=GROUP), key=lambda p: p.name))
    usable: list[Extension] = []
    for name, reference in (("core", f"rtgauge.core_extension:{OBJECT}"), *_packages(), *others):
        try:
            extension = imported(reference)
        except (ImportError, AttributeError) as error:
            warnings.warn(
                f"rtgauge left out the extension {name}, because {reference} cannot be imported: {error}",
                stacklevel=2,
            )
            continue
        if isinstance(extension, Extension):
            usable.append(extension)
        else:
            warnings.warn(
                f"rtgauge left out the extension {name}, because {reference} is not an Extension",
                stacklevel=2,
            )
    return tuple(usable)


@cache
def registered(kind: Kind) -> Mapping[str, str]:
    """Return name -> `module:object` of all that extensions add of this kind. The first one has a name."""
    known: dict[str, str] = {}
    for extension in extensions():
        added: Mapping[str, str] = getattr(extension, kind)
        known |= {name: reference for name, reference in added.items() if name not in known}
    return known


@cache
def commands() -> Mapping[str, Command]:
    """Return the commands of all extensions by name. The first extension has a name."""
    known: dict[str, Command] = {}
    for extension in extensions():
        known |= {name: command for name, command in extension.commands.items() if name not in known}
    return known


def load(kind: Kind, name: str, form: type) -> object:
    """Import what is registered as `name`, an object of the class `form`, or a class below it.

    Raises KeyError if nothing is registered, InputError if it cannot be imported or is something else.
    """
    return _loaded(kind, name, registered(kind)[name], form)


def load_all(kind: Kind, name: str, form: type) -> list[object]:
    """Import what each extension registers as `name`, in the order of the extensions. Raises as `load`."""
    added: Iterable[Mapping[str, str]] = (getattr(extension, kind) for extension in extensions())
    return [_loaded(kind, name, mapping[name], form) for mapping in added if name in mapping]


def _loaded(kind: Kind, name: str, reference: str, form: type) -> object:
    try:
        loaded = imported(reference)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the {NOUNS[kind]} {name} cannot be used ({reference}: {error}); update or remove the package "
            "that adds it"
        ) from None
    if not (issubclass(loaded, form) if isinstance(loaded, type) else isinstance(loaded, form)):
        raise InputError(
            f"{reference} is registered as the {NOUNS[kind]} {name}, but is not a {form.__name__}; update "
            "or remove the package that adds it"
        )
    return loaded
