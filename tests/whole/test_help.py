# SPDX-License-Identifier: MIT
"""The help of every command, as one reads it who does not know rtgauge."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
import typer
from click.testing import CliRunner

from rtgauge.cli.main import app, main
from rtgauge.extension import commands as commands_of_rtgauge
from rtgauge.extension import imported

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = typer.main.get_command(app)
GROUPS = [
    name
    for name, command in commands_of_rtgauge().items()
    if isinstance(made := imported(command.target), typer.Typer) and made.info.no_args_is_help
]


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        below = command.get_command(None, name)
        below = getattr(below, "made", below)
        if not below.hidden:
            yield from commands(below, (*words, name))


@pytest.mark.parametrize("words", list(commands(ROOT)), ids=" ".join)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(ROOT, [*words, "--help"], prog_name="rtgauge", terminal_width=80)
    assert result.exit_code == 0
    first, _, rest = result.output.partition("\n")
    assert first.startswith(" ".join(["Usage: rtgauge", *words]))
    assert "rtgauge" in rest, "no example"
    assert max(map(len, result.output.splitlines())) <= 80


def test_help_loads_nothing_heavy() -> None:
    """The help of every command, in a process of its own: what commands do is imported when they do it."""
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from tests.whole.test_help import ROOT, commands\n"
        "for words in commands(ROOT):\n"
        "    CliRunner().invoke(ROOT, [*words, '--help'])\n"
        "    print(*words, *sorted({'numpy', 'polars', 'scipy', 'sqlalchemy', 'jinja2'} & {*sys.modules}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert "gate" in lines and "compare" in lines and "probe wakeup" in lines
    assert lines == [" ".join(words) for words in commands(ROOT)]


def test_options_load_no_models_of_records() -> None:
    """Every command imports the options; it takes 40 ms to import these models."""
    code = "import sys, rtgauge.cli.shared_options; print('rtgauge.record.model' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_lists_its_commands_as_a_whole(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rtgauge", group])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    commands = shown.out.partition("Commands:\n")[2]
    assert len(commands.splitlines()) > 2
    assert "..." not in commands
