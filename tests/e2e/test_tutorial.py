# SPDX-License-Identifier: MIT
"""Every command of the tutorial, as a reader types it, page by page.

Only the command `rtgauge` differs: it measures for 300 ms, runs local steps instead of those on a board, and
waits for the machine. What it says is not the tutorial's: a verdict may be any.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorial").glob("*.md"))
COMMANDS = ("rtgauge", "python3", "kill")
SHORTER = f"""#!{sys.executable}
import sys
from rtgauge.cli.main import main

words = sys.argv[1:]
if words[0] in ("run", "gate", "watch", "probe"):
    if "--duration" in words:
        at = words.index("--duration")
        del words[at : at + 2]
    end = words.index("--") if "--" in words else len(words)
    words[end:end] = ["--duration", "300ms", "--wait", "20min"]
    words = ["local" if word.startswith("ssh://") else word for word in words]
    while words.count("local") > 1:
        at = len(words) - 1 - words[::-1].index("local")
        del words[at - 1 : at + 1]
sys.argv[1:] = words
main()
"""
VERDICTS = {0, 1, 4}
TOO_SHORT = 3
"""A gate of 300 ms a run has too few samples to decide."""


def script(page: Path) -> list[str]:
    """The commands of a page, in order; a file that the reader saves comes first."""
    text = page.read_text()
    return [
        line.strip().removeprefix("$ ")
        for line in text.splitlines()
        if line.startswith("    ") and line.strip().removeprefix("$ ").startswith(COMMANDS)
    ]


def programs(page: Path) -> dict[str, str]:
    """The files that the reader saves, by name."""
    found = re.findall(r"Save it as `([\w.]+)`:\n\n```\w+\n(.*?)```", page.read_text(), re.DOTALL)
    return dict(found)


def allowed(line: str) -> set[int]:
    """The statuses with which a command may end."""
    return VERDICTS | ({TOO_SHORT} if line.startswith("rtgauge gate") else set())


@pytest.mark.root
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_works(page: Path, tmp_path: Path) -> None:
    commands = script(page)
    assert len(commands) > 1
    for name, program in programs(page).items():
        (tmp_path / name).write_text(program)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "rtgauge").write_text(SHORTER)
    (bin_folder / "rtgauge").chmod(0o755)
    # One shell, so that $! is what the page means; each command's status goes to a file of its own.
    lines = [
        line if line.endswith("&") else f"{line}\necho $? >status-{number}"
        for number, line in enumerate(commands)
    ]
    lines.append("kill $(jobs -p) 2>/dev/null")
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    statuses = {
        line: int((tmp_path / f"status-{number}").read_text())
        for number, line in enumerate(commands)
        if not line.endswith("&")
    }
    assert {line: status for line, status in statuses.items() if status not in allowed(line)} == {}, (
        done.stdout
    )
