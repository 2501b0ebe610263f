# SPDX-License-Identifier: MIT
"""A group whose commands are imported and made when they are asked for: a command does not pay for the
others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """For `typer.Typer(cls=...)`."""

    @abstractmethod
    def names(self) -> list[str]:
        """Every command, in the order of the help."""

    @abstractmethod
    def add(self, name: str, app: typer.Typer) -> None:
        """Import the command of that name and add it, or its group, to `app`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - signature of the base class
        """The names."""
        return self.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; None if there is no such one."""
        names = self.names()
        if cmd_name not in names:
            self.commands.update(
                {name: self.get_command(ctx, name) for name in names}
            )  # among which typer looks for one of a like name
            return None
        if cmd_name not in self.commands:
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            self.add(cmd_name, alone)
            self.commands[cmd_name] = typer.main.get_group(alone).commands[cmd_name]
            _refuse_repeats(self.commands[cmd_name])
        return self.commands[cmd_name]


def _refuse_repeats(command: Any) -> None:
    """Make an option with one value an error if it is given twice: the last one would win without a word, and
    of two requirements one would never be checked.
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
                    ctx.fail(f"{max(option.opts, key=len)} was given {times} times; give it once")
            return values, rest, order

        parser.parse_args = parse_args
        return parser

    command.make_parser = make_strict_parser
