# SPDX-License-Identifier: MIT
"""rtgauge knows the extensions of its tree, and says which is missing."""

from __future__ import annotations

import pytest
from tools.known_extensions import added, of_this_tree, text

from rtgauge.extension import extensions
from rtgauge.known_extensions import known, missing
from tests.support.command_line import refused

HERE = {extension.name for extension in extensions()}
MISSING = [name for name in known() if name not in HERE]
HOW = {
    "commands": ("{}",),
    "probes": ("probe", "{}"),
    "plans": ("run", "{}"),
    "loads": ("run", "--load", "{}"),
    "exporters": ("export", "latest", "--format", "{}"),
    "targets": ("run", "--target", "{}:name"),
}
"""How a command line names what an extension adds."""


def test_the_file_has_what_each_extension_adds() -> None:
    tree = of_this_tree()
    named = {each.name: known().get(each.name) for each in tree}
    assert named == {each.name: added(each) for each in tree}, "run: python tools/known_extensions.py"


def test_an_extension_that_is_there_is_not_missing() -> None:
    here = [(kind, name) for each in of_this_tree() for kind, names in added(each).items() for name in names]
    assert [(kind, name) for kind, name in here if missing(kind, name) is not None] == []


def words_of_missing() -> list[tuple[str, list[str]]]:
    """Extension that is not there, and a command line for each thing that it would add."""
    lines = [
        (extension, [word.format(name) for word in how])
        for extension in MISSING
        for kind, how in HOW.items()
        for name in known()[extension].get(kind, ())
    ]
    options = [
        (name, option.split())
        for name in MISSING
        for option in known()[name].get("options", ())
        if missing("commands", option.split()[0]) is None
    ]
    tools = [
        (name, ["run", "--cross-check", tool])
        for name in MISSING
        for tool in known()[name].get("measurers", ())
        if tool == "cyclictest"
    ]
    return [*lines, *options, *tools]


def test_each_that_is_missing_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = words_of_missing()
    assert bool(lines) == bool(MISSING)
    for extension, words in lines:
        error = refused(monkeypatch, capfd, *words)
        assert f"needs the extension {extension}, which is not installed" in error, words
        assert f"ext/{extension}" in error, words


def test_the_file_is_written_for_this_tree() -> None:
    assert all(f"[{extension.name}]" in text() for extension in of_this_tree())
