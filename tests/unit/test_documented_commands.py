# SPDX-License-Identifier: MIT
"""Every command in the documentation is one that rtgauge takes: its options exist, with values of their type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from rtgauge.cli.arguments import rewritten
from rtgauge.cli.main import app
from tests.support.documented_commands import DOCS, rtgauge_commands

PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
PAGES["README.md"] = DOCS.parent / "README.md"
COMMANDS = [(name, command) for name, page in PAGES.items() for command in rtgauge_commands(page)]

GROUP: Any = typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Parse a command line down to the command that it calls, without calling it."""
    command: Any = GROUP
    parent = None
    name = "rtgauge"
    while True:
        command = getattr(command, "made", command)
        parent = command.make_context(name, list(words), parent=parent)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*getattr(parent, "_protected_args", []), *parent.args]
        if not rest:
            return
        name, command, words = command.resolve_command(parent, rest)


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 200


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_rtgauge_takes_it(page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = rewritten(shlex.split(command)[1:])
    try:
        parse(words)
    except (typer.Exit, SystemExit) as end:
        assert not getattr(end, "exit_code", getattr(end, "code", 0)), f"{page}: {command}"


def test_a_command_that_rtgauge_does_not_take_is_noticed() -> None:
    with pytest.raises(Exception, match="--intervall"):
        parse(["probe", "wakeup", "--intervall", "1ms"])
