# SPDX-License-Identifier: MIT
"""Options that extensions add to commands of the core.

An extension names a dataclass for a command; its fields become options as the fields of
`rtgauge.cli.shared_options.grouped` do. A class below says what a command does with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rtgauge.extension import load_all

if TYPE_CHECKING:
    from rtgauge.cli.progress import Display
    from rtgauge.exporters.exporter import Exporter
    from rtgauge.plan.make_plan import Overrides
    from rtgauge.record.reader import Record
    from rtgauge.report.compare.extension_parts import PartMaker
    from rtgauge.runner.context import Progress


@dataclass(frozen=True)
class AddedOptions(ABC):  # noqa: B024 - what a command does with it is said below
    """The options that one extension adds to one command."""


class WhileMeasuring(AddedOptions):
    """For `run`, `resume`, `probe` and `watch`: shows the measurement while it runs."""

    @abstractmethod
    def listening(self, display: Display, require: str | None) -> AbstractContextManager[Progress] | None:
        """Return what yields the object that shows the progress, and also passes it on to `display`; None if
        the options do not ask for it. `require`: the run's requirement, or None. Raises InputError if an
        option is wrong.
        """


class InsteadOfWatching(AddedOptions):
    """For `watch`: does something else with the program than to measure it once."""

    @abstractmethod
    def instead(self, given: Mapping[str, Any]) -> Callable[[], None] | None:
        """Return what to do; None if the options do not ask for it. `given`: what the command got, of all its
        options that differ from their defaults. Raises InputError if an option is wrong.
        """


class ChangesPlan(AddedOptions):
    """For `run`: changes the plan."""

    @abstractmethod
    def changed(self, overrides: Overrides) -> Overrides:
        """Return the changes to the plan, together with what the options change. Raises InputError if an
        option is wrong.
        """


class OnPages(AddedOptions):
    """For `show` and `compare`: changes how a page says how often a task can run."""

    @abstractmethod
    def frequency_options(self) -> object:
        """Return the options of the calculation, which only the extension knows. Raises InputError if one is
        wrong.
        """


class ShownPart(OnPages):
    """For `show`: shows a part of records instead of the summary."""

    @abstractmethod
    def option(self) -> str | None:
        """Return the option that asks for the part, such as `--frequency`; None if it was not given."""

    @abstractmethod
    def show(self, records: Sequence[Record], page: str | None, figures: Path | None, *, json: bool) -> None:
        """Print the part, as JSON or not, and write a page and figures. `page`: empty for the usual name."""


class ComparesMore(AddedOptions):
    """For `compare`: adds a part to each comparison."""

    @abstractmethod
    def part_maker(self) -> PartMaker:
        """Return what makes the part. Raises InputError if an option is wrong."""


class ForExport(AddedOptions):
    """For `export`: adds something to a format."""

    @abstractmethod
    def exporter(self, form: str) -> Exporter | None:
        """Return what exports instead of the format's own exporter; None if the options do not ask for it.
        Raises InputError if an option is wrong or does not fit the format.
        """


class MoreOf(AddedOptions):
    """For `resume`: gives more of something to the records of an Asker (rtgauge.cli.decided)."""


Form = TypeVar("Form", bound=AddedOptions)


def added_to(command: str) -> list[type[AddedOptions]]:
    """Return the classes of options that extensions add to a command.

    Raises InputError if one cannot be imported.
    """
    return [cast("type[AddedOptions]", kind) for kind in load_all("options", command, AddedOptions)]


@dataclass(frozen=True)
class AddedValues:
    """The options that extensions add to a command, with their values."""

    groups: Sequence[AddedOptions] = ()

    @classmethod
    def given(cls, command: str, values: Mapping[str, Any]) -> AddedValues:
        """Take a command's added options out of the values of all its options."""
        return cls(
            [kind(**{each.name: values[each.name] for each in fields(kind)}) for kind in added_to(command)]
        )

    def of(self, form: type[Form]) -> list[Form]:
        """Return the groups of one class."""
        return [group for group in self.groups if isinstance(group, form)]

    def changed(self, overrides: Overrides) -> Overrides:
        """Return the changes to the plan, together with what the options change. Raises InputError if an
        option is wrong.
        """
        for group in self.of(ChangesPlan):
            overrides = group.changed(overrides)
        return overrides

    def listening(self, display: Display, require: str | None) -> AbstractContextManager[Progress]:
        """Return what yields the object that shows the progress: the display or, if an option asks for it,
        what an extension shows, too. Raises InputError if an option is wrong.
        """
        displays = (group.listening(display, require) for group in self.of(WhileMeasuring))
        return next((shown for shown in displays if shown is not None), nullcontext(display))

    def frequency(self) -> object | None:
        """Return the options of the calculation how often a task can run; None: the defaults. Raises
        InputError if one is wrong.
        """
        return next((group.frequency_options() for group in self.of(OnPages)), None)
