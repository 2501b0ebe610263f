# SPDX-License-Identifier: MIT
"""Every command of the tutorial, as a reader types it, page by page.

Only the command `rtgauge` differs: it measures for 300 ms, idle and under one load, runs local steps instead of
those on a board, and waits for the machine. What it says is not the tutorial's: a verdict may be any. The loop
runs for a second by itself, not for ten.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.documented_commands import DOCS, run_in_bash

PAGES = sorted((DOCS / "tutorial").glob("*.md"))
COMMANDS = ("rtgauge", "python3", "kill")
VERDICTS = {0, 1, 4}
DOUBTFUL = 3
"""On a busy machine, every run of a gate may have a doubtful mark."""


def script(page: Path) -> list[str]:
    """The commands of a page, in order; a file that the reader saves comes first."""
    text = page.read_text()
    return [
        re.sub(r"^(python3 loop\.py) \d+$", r"\1 1", line.strip().removeprefix("$ "))
        for line in text.splitlines()
        if line.startswith("    ") and line.strip().removeprefix("$ ").startswith(COMMANDS)
    ]


def programs(page: Path) -> dict[str, str]:
    """The files that the reader saves, by name."""
    matches = re.findall(r"Save it as `([\w.]+)`:\n\n```\w+\n(.*?)```", page.read_text(), re.DOTALL)
    return dict(matches)


def allowed(line: str) -> set[int]:
    """The statuses with which a command may end."""
    return VERDICTS | ({DOUBTFUL} if line.startswith("rtgauge gate") else set())


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_works(page: Path, tmp_path: Path) -> None:
    commands = script(page)
    assert len(commands) > 1
    for name, program in programs(page).items():
        (tmp_path / name).write_text(program)
    statuses, output = run_in_bash(commands, tmp_path)
    assert {line: status for line, status in statuses.items() if status not in allowed(line)} == {}, output
