# SPDX-License-Identifier: MIT
"""Every command in the documentation is one that rtgauge takes: its options exist, with values of their type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rtgauge.cli.arguments import rewritten
from rtgauge.cli.main import app
from rtgauge.errors import InputError
from rtgauge.extension import commands as commands_of_rtgauge
from rtgauge.plan.alternation import alternating_plan
from rtgauge.plan.plan import Overrides
from rtgauge.record.alternation import Alternation
from rtgauge.verdict.requirement import parse_requirement
from tests.support.documented_commands import DOCS, rtgauge_commands

PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
PAGES["README.md"] = DOCS.parent / "README.md"
PAGES |= {f"ext/{page.parent.name}": page for page in sorted(DOCS.parent.glob("ext/*/README.md"))}
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


class ReachedError(Exception):
    """A command has checked its input, and begins with the target."""


MEASURING = [
    (name, command)
    for name, command in COMMANDS
    if shlex.split(command)[1] in {"run", "probe", "watch", "gate", "tune", "selftest"}
]
MISSING = re.compile(
    r"there is no |[Nn]o such |does not exist|[Dd]id not find an instrument|the machine has \d+ CPU|cannot be started"
)
"""A file, a program or a device of the page that this machine does not have."""


@pytest.mark.parametrize(("page", "command"), MEASURING)
def test_its_values_are_taken(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rtgauge checks every value, and would then open the target."""

    def reached(*_: object, **__: object) -> None:
        raise ReachedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rtgauge.target.open_target.TargetOpener.open", reached)
    monkeypatch.setattr("rtgauge.target.open_target.located", reached)
    monkeypatch.setattr("rtgauge.runner.run.hold_places", reached)
    monkeypatch.setattr("rtgauge_ext.tune.command.os.geteuid", lambda: 0)
    result = CliRunner().invoke(app, rewritten(shlex.split(command)[1:]))
    if isinstance(result.exception, ReachedError) or result.exit_code == 0:
        return
    assert MISSING.search(f"{result.output} {result.exception}"), (
        page,
        command,
        result.output,
        result.exception,
    )


def test_a_value_that_is_none_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in ("--duration soon", "--load cpuu", "--set intervall=1ms", "--cpu x", "--deployment YES"):
        result = CliRunner().invoke(app, ["run", *wrong.split()])
        assert isinstance(result.exception, InputError), wrong


def values(words: list[str], *options: str) -> list[str]:
    """The values of these options, up to `--`."""
    own = words[: words.index("--")] if "--" in words else words
    pairs = [
        word.partition("=")[::2] if "=" in word else (word, after)
        for word, after in zip(own, [*own[1:], ""], strict=True)
    ]
    return [value for name, value in pairs if name in options]


@pytest.mark.parametrize(
    ("page", "command"), [(name, command) for name, command in COMMANDS if "--require" in command]
)
def test_its_requirement_is_one(page: str, command: str) -> None:
    words = shlex.split(command)
    assert [parse_requirement(text) for text in values(words, "--require")], page


def sides(command: str) -> tuple[str, str] | None:
    """The two sides that a command of a page measures alternately; None if it has none."""
    words = shlex.split(command)
    if "--alternate" in words:
        first = words.index("--alternate") + 1
        return words[first], words[first + 1]
    given = (*values(words, "--baseline"), *values(words, "--candidate"))
    return (given[0], given[1]) if words[1] == "gate" and len(given) == 2 else None


SIDES = [(name, command) for name, command in COMMANDS if sides(command)]


@pytest.mark.parametrize(("page", "command"), SIDES)
def test_its_sides_can_be_measured(page: str, command: str) -> None:
    both = sides(command)
    assert both is not None
    assert alternating_plan("quick", Overrides(), Alternation(sides=both), 6).steps, page


def test_a_side_that_no_probe_takes_is_noticed() -> None:
    both = sides("rtgauge gate --baseline isolation=off --candidate isolation=on")
    assert both == ("isolation=off", "isolation=on")
    with pytest.raises(InputError, match="isolation"):
        alternating_plan("quick", Overrides(), Alternation(sides=both), 6)


INLINE = [
    (name, command)
    for name, page in PAGES.items()
    for command in re.findall(r"`(rtgauge [^`]*)`", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "command"), INLINE)
def test_a_command_in_a_sentence_has_the_options_it_names(page: str, command: str) -> None:
    """It may leave out arguments and values, or have a word in capitals for them."""
    try:
        parse(rewritten(shlex.split(command)[1:]))
    except (typer.Exit, SystemExit):
        pass
    except typer.BadParameter.__mro__[1] as error:
        message = getattr(error, "message", "")
        assert "No such option" not in message, f"{page}: {command}"
        assert not re.match("No such command '[a-z]", message), f"{page}: {command}"


SOURCES = Path(__file__).parents[3] / "src"
ADVISED = [
    (path.name, command)
    for path in sorted(SOURCES.rglob("*.py"))
    for command in re.findall(
        r"(?:with|use|run|see|continue|repeat): rtgauge ([a-z]+)", path.read_text("utf-8")
    )
]


def test_messages_advise_commands_that_exist() -> None:
    assert len(ADVISED) > 5
    assert [(name, command) for name, command in ADVISED if command not in commands_of_rtgauge()] == []


def test_a_command_that_rtgauge_does_not_take_is_noticed() -> None:
    with pytest.raises(Exception, match="--intervall"):
        parse(["probe", "wakeup", "--intervall", "1ms"])
