# SPDX-License-Identifier: MIT
"""The command line in this process: reading it, and the one line with which it refuses words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import typer

from rtgauge.cli.main import app, main
from rtgauge.errors import EXIT_INPUT
from rtgauge.known_extensions import missing


def parse(words: list[str]) -> None:
    """Parse a command line down to the command that it calls, without calling it."""
    command: Any = typer.main.get_command(app)
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


def refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """What `rtgauge WORDS` says in its one line of standard error, with status 2."""
    monkeypatch.setattr(sys, "argv", ["rtgauge", *words])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as end:
        main()
    out, line = capfd.readouterr()
    assert end.value.code == EXIT_INPUT
    assert not out
    assert line.startswith("rtgauge: ")
    assert line.count("\n") == 1
    return line


def is_here(words: Sequence[str]) -> bool:
    """Whether no extension is missing for a command line: its command, its options, its format."""
    command, *others = words
    return (
        missing("commands", command) is None
        and all(missing("options", f"{command} {word}") is None for word in others)
        and (command != "export" or all(missing("exporters", word) is None for word in others))
    )


def unanswerable(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str], requirement: str
) -> str:
    """Return the refusal of a requirement on something that the command does not measure."""
    line = refused(monkeypatch, capfd, *words, "--require", requirement)
    assert f"cannot answer a requirement on {requirement.partition('<')[0]}" in line
    return line


def leads_on(leads_to: Mapping[str, str]) -> Callable[..., None]:
    """A test of each wrong guess in `leads_to`: its error names the words with which to go on."""

    @pytest.mark.parametrize(("typed", "named"), leads_to.items())
    def test(
        typed: str, named: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert named in refused(monkeypatch, capfd, *typed.split())

    return test
