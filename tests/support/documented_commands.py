# SPDX-License-Identifier: MIT
"""The commands in the pages of the documentation, and running them as a reader types them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PROMPT = r"(?:\w*[$#] )?(?:sudo )?(?:[A-Z_]+=\S+ )?"
SHORTER = f"""#!{sys.executable}
import sys
from rtgauge.cli.main import main

words = sys.argv[1:]
if words[0] in ("run", "gate", "watch", "probe"):
    if "--duration" in words:
        at = words.index("--duration")
        del words[at : at + 2]
    added = ["--wait", "20min"]
    for option in ("--count", "--cycles"):
        if option in words:
            words[words.index(option) + 1] = "300"
            break
    else:
        if words[:2] not in (["probe", "calibrate"], ["probe", "inversion"]):
            added += ["--duration", "300ms"]
    for option in ("--repeats", "--pairs"):
        if option in words:
            words[words.index(option) + 1] = "2"
    if "--alternate" in words and "--pairs" not in words:
        added += ["--pairs", "2"]
    if words[0] == "run" and "--load" not in words and not any(word.endswith(".toml") for word in words):
        added += ["--load", "idle" if "brown2010" in words else "idle,cpu"]
    if words[0] == "gate" and "--require" not in words:
        added += ["--quantile", "p50"]  # 300 ms are too short for p99.9
    if words[0] == "gate" and "--max-pairs" not in words:
        added += ["--max-pairs", "6"]
    end = words.index("--") if "--" in words else len(words)
    words[end:end] = added
    words = ["local" if word.startswith("ssh://") else word for word in words]
    while words.count("local") > 1 and "--alternate" not in words:
        at = len(words) - 1 - words[::-1].index("local")
        del words[at - 1 : at + 1]
sys.argv[1:] = words
main()
"""
"""The command `rtgauge`: it measures for 300 ms, twice at most, idle and under one load, runs local steps instead
of those on a board, and waits for the machine."""


def code_lines(text: str) -> list[str]:
    """The lines of a page's code, with continued lines joined."""
    code: list[str] = []
    fenced = False
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            code.append(line.strip())
    return code


def rtgauge_commands(page: Path) -> list[str]:
    """Every call of rtgauge in a page's code, without a prompt, and without what explains it in the same line."""
    calls = (
        re.match(rf"{PROMPT}(rtgauge (?:'[^']*'|\"[^\"]*\"|[^|&;'\"])*)", line)
        for line in code_lines(page.read_text(encoding="utf-8"))
    )
    return [re.split(r"\s{2,}(?!-)|\s#", call[1].strip())[0].removesuffix("...") for call in calls if call]


def run_in_bash(commands: list[str], folder: Path) -> tuple[dict[str, int], str]:
    """The status of each command, run in one shell in `folder` with the short `rtgauge`, and what all printed.

    One shell, so that $! is what the page means. A command that ends in & has no status.
    """
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "rtgauge").write_text(SHORTER)
    (bin_folder / "rtgauge").chmod(0o755)
    lines = [
        line if line.endswith("&") else f"{line}\necho $? >status-{number}"
        for number, line in enumerate(commands)
    ]
    lines.append("kill $(jobs -p) 2>/dev/null")
    completed = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    statuses = {
        line: int((folder / f"status-{number}").read_text())
        for number, line in enumerate(commands)
        if not line.endswith("&")
    }
    return statuses, completed.stdout
