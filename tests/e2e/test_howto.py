# SPDX-License-Identifier: MIT
"""The commands of the how-to pages and of the probes' pages that one machine can run, page by page.

They measure for 300 ms and idle. RECORD, STOCK, RT and R1 to R6 of the pages are copies of a record made here.
What needs a board, a guest, lines, a server, another kernel or minutes is left to other tests; that rtgauge
takes it is tested in tests/whole/test_documented_commands.py.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.documented_commands import DOCS, rtgauge_commands, run_in_bash

PLAN = """order = "as-written"
[defaults]
interval = "1ms"
window = "10ms"
explain = true
[[step]]
load = "idle"
[[step]]
load = "cpu"
"""
TASKS = """[[task]]
name = "servo"
period = "10ms"
execution = "1ms"
"""
RECORDS = ("RECORD", "STOCK", "RT", *(f"R{number}" for number in range(1, 7)))
ELSEWHERE = re.compile(
    r"ssh:|lab[: ]|labgrid|gpio|serial|latmon|instrument|rtdm|udp:|wire|kernel|spaces|cobalt|rtai|systems|postgresql|--rt"
    r"|deploy|restore|\bMI?\b|--controller|--raise|--live|selftest|watch|bisect|fleet|import|resume|cross-check"
    r"|delgado|garre|tire|adam|sustained|brown|jo2022|papers|standard|records|tune --re|24h|/dev|deadline|arm.toml|plan.toml"
    r"|settings=|tune apply|--profile|recorder|last-boot|rtgauge work|icmp:|ethercat:|eth:|--peer|--interface"
)
VERDICTS = {0, 1, 4}
SHORT = {"--frequency", "gate", "history"}
"""What 300 ms may be too short for, which is status 3."""


def commands(page: Path) -> list[str]:
    """The commands of a page that run here: idle, if they run a plan with its own loads or a gate."""
    actual = [line for line in rtgauge_commands(page) if not ELSEWHERE.search(line)]
    return [
        f"{re.sub(r' --load [^ ]+', '', line)} --load idle"
        if line.startswith(("rtgauge run", "rtgauge gate"))
        else line
        for line in actual
    ]


def once(pages: list[Path]) -> dict[Path, list[str]]:
    """The commands of each page without those that an earlier one has, so that each runs once.

    A page starts with records, so its other commands do not need what it leaves out.
    """
    by_page: dict[Path, list[str]] = {}
    earlier: set[str] = set()
    for page in pages:
        new = list(dict.fromkeys(line for line in commands(page) if line not in earlier))
        earlier.update(new)
        by_page |= {page: new} if new else {}
    return by_page


ALL = [*DOCS.glob("*.md"), *(DOCS / "probes").glob("*.md"), *DOCS.parent.glob("ext/*/README.md")]
COMMANDS = once(sorted(ALL))


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of two loads, explained."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "plan.toml").write_text(PLAN)
    statuses, output = run_in_bash(["rtgauge run plan.toml"], folder)
    assert set(statuses.values()) <= VERDICTS, output
    (made,) = (folder / "rtgauge-runs").iterdir()
    return made


def test_most_pages_have_commands_that_run_here() -> None:
    assert len(COMMANDS) > 18
    assert sum(map(len, COMMANDS.values())) > 55


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", COMMANDS, ids=lambda page: page.parent.name if page.stem == "README" else page.stem
)
def test_every_command_works(page: Path, record: Path, tmp_path: Path) -> None:
    for name in RECORDS:
        shutil.copytree(record, tmp_path / name)
    shutil.copytree(record, tmp_path / "rtgauge-runs" / record.name)
    for name in ("control.toml", "FILE.toml"):
        (tmp_path / name).write_text(TASKS)
    shutil.copy(DOCS.parent / "ext" / "audit" / "rules.toml", tmp_path / "my.toml")
    statuses, output = run_in_bash(COMMANDS[page], tmp_path)
    wrong = {
        line: status
        for line, status in statuses.items()
        if status not in (VERDICTS | {3} if SHORT & set(line.split()) else VERDICTS)
    }
    assert not wrong, output
