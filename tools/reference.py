# SPDX-License-Identifier: MIT
"""The pages that `make docs` makes from the code: all marks, and the help of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from rtgauge.cli.main import app
from rtgauge.record.marks import MarkKind

MARKS = """# Marks

A mark is a doubt about a measurement. `rtgauge marks NAME` prints what one means.

- `note`: worth knowing; the measurement stands
- `doubtful`: the verdict "holds" becomes "marginal"
- `invalid`: the step cannot decide anything

The first severity is the usual one.

| mark | severity | meaning | what to do |
|---|---|---|---|
"""


def marks_page() -> str:
    """A table of the registry of marks."""
    rows = (
        f"| `{kind.label}` | {' or '.join(kind.value.severities)} | {kind.value.meaning} "
        f"| {kind.value.remedy or '-'} |\n"
        for kind in sorted(MarkKind, key=lambda kind: kind.label)
    )
    return MARKS + "".join(rows)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """(words, help) of a command and of the commands in its group."""
    command = getattr(command, "made", command)
    context = command.context_class(
        command, info_name=name, parent=parent, terminal_width=100, max_content_width=100
    )
    yield context.command_path, command.get_help(context)
    for inner in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _helps(command.get_command(context, inner), inner, context)


def commands_page() -> str:
    """The help of every command, as `rtgauge COMMAND --help` prints it."""
    parts = ["# Commands\n\nThe help of every command. A plan has a probe's options as keys.\n"]
    for words, text in _helps(typer.main.get_command(app), "rtgauge", None):
        parts.append(f"\n## {words}\n\n```text\n{text}\n```\n")
    return "".join(parts)
