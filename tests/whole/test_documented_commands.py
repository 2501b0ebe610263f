# SPDX-License-Identifier: MIT
"""Every command in the documentation is one that rtgauge takes: its options exist, with values of their type.

If a command needs an extension that is not there, rtgauge says which one.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rtgauge.cli.arguments import rewritten
from rtgauge.cli.main import USAGE_ERROR, app, usage_text
from rtgauge.errors import InputError
from rtgauge.extension import commands as commands_of_rtgauge
from rtgauge.extension import extensions
from rtgauge.known_extensions import known, missing
from rtgauge.plan.alternating_plan import alternating_plan
from rtgauge.plan.make_plan import Overrides
from rtgauge.probe.probe_registry import requirement_metrics
from rtgauge.record.alternation import Alternation
from rtgauge.verdict.requirement import parse_requirement
from tests.support.command_line import parse
from tests.support.documented_commands import DOCS, rtgauge_commands

PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
PAGES["README.md"] = DOCS.parent / "README.md"
PAGES |= {f"ext/{page.parent.name}": page for page in sorted(DOCS.parent.glob("ext/*/README.md"))}
COMMANDS = [(name, command) for name, page in PAGES.items() for command in rtgauge_commands(page)]

NOT_HERE = re.compile(r"needs the extension (\w+), which is not installed")


def is_elsewhere(reported: str) -> bool:
    """Whether rtgauge says that an extension of its tree is missing, which is so."""
    match = NOT_HERE.search(reported)
    return match is not None and match[1] in known() and match[1] not in {each.name for each in extensions()}


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_rtgauge_takes_it(page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = rewritten(shlex.split(command)[1:])
    try:
        parse(words)
    except (typer.Exit, SystemExit) as end:
        assert not getattr(end, "exit_code", getattr(end, "code", 0)), f"{page}: {command}"
    except USAGE_ERROR as error:
        assert is_elsewhere(usage_text(error)), f"{page}: {command}"


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
    monkeypatch.setattr("rtgauge.runner.measure_run.hold_places", reached)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    result = CliRunner().invoke(app, rewritten(shlex.split(command)[1:]))
    if isinstance(result.exception, ReachedError) or result.exit_code == 0:
        return
    error = result.exception
    reported = f"{result.output} {usage_text(error) if isinstance(error, USAGE_ERROR) else error}"
    assert MISSING.search(reported) or is_elsewhere(reported), (
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
    metrics = requirement_metrics()
    for text in values(words, "--require"):
        if any(metric in text for metric in OF_EXTENSIONS if metric not in metrics):
            with pytest.raises(InputError):
                parse_requirement(text)
        else:
            assert parse_requirement(text), page


OF_EXTENSIONS = ("jitter",)
"""Metrics that only probes of extensions measure."""


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
    try:
        assert alternating_plan("quick", Overrides(), Alternation(sides=both), 6).steps, page
    except InputError as error:
        assert is_elsewhere(str(error)), page


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
    except USAGE_ERROR as error:
        message = getattr(error, "message", "")
        unknown = "No such option" in message or re.match("No such command '[a-z]", message)
        assert not unknown or is_elsewhere(usage_text(error)), f"{page}: {command}"


SOURCES = Path(__file__).parents[2] / "src"
ADVISED = [
    (path.name, command)
    for path in sorted(SOURCES.rglob("*.py"))
    for command in re.findall(
        r"(?:with|use|run|see|continue|repeat): rtgauge ([a-z]+)", path.read_text("utf-8")
    )
]


def test_messages_advisors_that_exist() -> None:
    assert len(ADVISED) > 5
    known_here = commands_of_rtgauge()
    unknown = [(name, command) for name, command in ADVISED if command not in known_here]
    assert [(name, command) for name, command in unknown if missing("commands", command) is None] == []


def test_a_command_that_rtgauge_does_not_take_is_noticed() -> None:
    with pytest.raises(Exception, match="--intervall"):
        parse(["probe", "wakeup", "--intervall", "1ms"])
