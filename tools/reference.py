# SPDX-License-Identifier: MIT
"""The pages that `make docs` makes from the code: all marks, the help of all commands and of the engine's
verbs, and the keys of the files that users write.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import subprocess
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args, get_origin

import typer
from pydantic import BaseModel

from rtgauge import extension
from rtgauge.cli.main import app
from rtgauge.record.marks import mark_kinds
from rtgauge.target.engine_path import engine_path

MARKS = """# Marks

A mark is a doubt about a measurement. `rtgauge marks NAME` prints what one means.

- `note`: worth knowing; the measurement stands
- `doubtful`: the verdict "holds" becomes "marginal", unless the mark only means that threads were delayed
- `invalid`: the step cannot decide anything

The first severity is the usual one.

| mark | severity | meaning | what to do |
|---|---|---|---|
"""


def marks_page() -> str:
    """A table of the registry of marks."""
    rows = (
        f'| <a id="{kind.label}"></a>`{kind.label}` | {" or ".join(kind.value.severities)} '
        f"| {kind.value.meaning} | {kind.value.remedy or '-'} |\n"
        for kind in sorted(mark_kinds().values(), key=lambda kind: kind.label)
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


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """Attribute -> the docstring after it."""
    (tree,) = (node for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef))
    return {
        attribute.target.id: ast.literal_eval(text.value)
        for attribute, text in itertools.pairwise(tree.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def keys_table(model: type[BaseModel]) -> str:
    """A row for each key of a model: its name, whether it is required or its default, its meaning."""
    docs = attribute_docs(model)
    rows = ["| key | default | meaning |\n|---|---|---|\n"]
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else field.get_default(call_default_factory=True)
        shown = "" if default in (None, [], {}) else str(default).lower().replace("'", "")
        values = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        meaning = " ".join([*docs[name].split(), *([f"One of {', '.join(values)}."] if values else [])])
        rows.append(f"| `{field.alias or name}` | {shown} | {meaning} |\n")
    return "".join(rows)


def files_page() -> str:
    """The keys of the files that users write."""
    parts = [
        "# Files that you write\n\nThe keys of each table. Times are written as `500us`, `10ms`, `1s`.\n"
    ]
    for title in extension.registered("files"):
        tables = cast("dict[str, type[BaseModel]]", extension.load("files", title, dict))
        parts.append(f"\n## {title}\n")
        parts += [f"\n### {name}\n\n{keys_table(model)}" for name, model in tables.items()]
    return "".join(parts)


def engine_page() -> str:
    """The help of the engine and of each of its verbs."""

    def helped(*words: str) -> str:
        return subprocess.run(
            [engine_path(), *words, "--help"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    own = helped()
    parts = ["# The engine's verbs\n\nWhat `rtgauge-engine VERB --help` prints.\n", f"\n```text\n{own}```\n"]
    verbs = re.findall(r"^  ([a-z]+) ", own, re.MULTILINE)
    parts += [f"\n## {verb}\n\n```text\n{helped(verb)}```\n" for verb in verbs]
    return "".join(parts)
