# SPDX-License-Identifier: MIT
"""`packaging/manuals.sh` writes a manual page for each command, with the command's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rtgauge.extension import commands

SCRIPT = Path(__file__).resolve().parents[3] / "packaging" / "manuals.sh"
HELP2MAN = r"""#!/bin/sh
# Writes the lines that the script changes, as help2man does.
for word; do
    case $word in
    --output=*) output=${word#--output=} ;;
    --name=*) name=${word#--name=} ;;
    esac
done
printf '.TH RTGAUGE: "1" x\n.SH NAME\nrtgauge: \\- %s\n' "$name" >"$output"
"""
RTGAUGE = """#!/bin/sh
test "$1" != --version || echo rtgauge 1
"""


def written(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    for name, text in (("help2man", HELP2MAN), ("rtgauge", RTGAUGE)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": python, "PYTHONPATH": ":".join(sys.path)
    }  # fmt: skip
    return subprocess.run(
        ["sh", SCRIPT, folder / "usr", "rtgauge"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_command_has_a_page_with_its_name(tmp_path: Path) -> None:
    completed = written(tmp_path, sys.executable)
    assert completed.returncode == 0, completed.stderr
    pages = {page.name: page.read_text() for page in (tmp_path / "usr/share/man/man1").iterdir()}
    assert set(pages) == {"rtgauge.1", *(f"rtgauge-{name}.1" for name in commands())}
    assert pages["rtgauge-run.1"].splitlines() == [
        '.TH rtgauge-run "1" x', ".SH NAME", r"rtgauge-run \- measure this machine or others, by a plan"
    ]  # fmt: skip


def test_the_build_fails_if_the_commands_are_unknown(tmp_path: Path) -> None:
    assert written(tmp_path, "false").returncode != 0
