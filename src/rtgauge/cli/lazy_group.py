# SPDX-License-Identifier: MIT
"""Defines a group that imports a command only when it is called, so that help and other commands start
fast.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The placeholders of options that take a list.
LISTS = ("CPUS", "NAMES")


class LazyGroup(TyperGroup):
    """A base class for `typer.Typer(cls=...)`. A subclass lists and loads the commands."""

    @abstractmethod
    def lines(self) -> Mapping[str, str]:
        """Return command -> its line of help, in the order of the help."""

    @abstractmethod
    def load(self, name: str) -> Any:
        """Import the command with this name: a function for typer, or a typer.Typer."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - signature of the base class
        """Return the commands' names."""
        return list(self.lines())

    def line(self, name: str) -> str | None:
        """Return the help line of a command without reading the others'; None if there is no such command."""
        return self.lines().get(name)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - signature of the base class
        """Return the command; None if there is no such command."""
        line = self.line(cmd_name)
        if line is not None:
            return Deferred(cmd_name, line, self)
        # typer searches these for a similar name
        self.commands = {name: Deferred(name, line, self) for name, line in self.lines().items()}
        return None


class ListedGroup(TyperGroup):
    """A group whose help lists each command with its first sentences as a whole. typer cuts them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        rows = [
            (name, " ".join((self.commands[name].help or "").partition("\n\n")[0].split()))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Deferred(TyperCommand):
    """A command or group that is made only when it is called."""

    def __init__(self, name: str, line: str, group: LazyGroup) -> None:
        super().__init__(name, short_help=line)
        self._group = group

    @cached_property
    def made(self) -> Any:
        """The command itself."""
        return _command(str(self.name), self._group.load(str(self.name)))

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Make the context of the command itself."""
        return self.made.make_context(*given, **more)


def _command(name: str, made: Any) -> Any:
    """Make typer's command from a function or a group."""
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    if isinstance(made, typer.Typer):
        alone.add_typer(made, name=name)
    else:
        alone.command(name)(made)
    command = typer.main.get_group(alone).commands[name]
    _refuse_repeats(command)
    return command


def _refuse_repeats(command: Any) -> None:
    """Refuse a repeated option that takes a single value. Otherwise, for example, one of two requirements
    would be ignored.
    """
    for inner in getattr(command, "commands", {}).values():
        _refuse_repeats(inner)
    make_parser = command.make_parser

    def make_strict_parser(ctx: Any) -> Any:
        parser = make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            values, rest, order = parse(args=args)
            times_given: Counter[Any] = Counter(order)
            for option, times in times_given.items():
                single = option.param_type_name == "option" and not (option.multiple or option.is_flag)
                if single and times > 1:
                    name = max(option.opts, key=len)
                    if option.metavar in LISTS:
                        ctx.fail(f"{name} was given {times} times; give one list, separated with commas")
                    ctx.fail(f"{name} was given {times} times, but takes one value; give it once")
            return values, rest, order

        parser.parse_args = parse_args
        return parser

    command.make_parser = make_strict_parser
