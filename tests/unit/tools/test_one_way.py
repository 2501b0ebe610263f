# SPDX-License-Identifier: MIT
"""Lint finds what goes against the layers: an import by name, and a header of a higher folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


def checked(tool: str, file: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a check of lint on a tree of this one file."""
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, TOOLS / tool], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("import_module('rtgauge.record.writer')", None),
        ("import_module('rtgauge.units')", None),
        ("x = 'rtgauge.report.record_page'", "record may not name a module of report"),
        ("x = 'rtgauge.explain.page/explained.html.j2'", "record may not name a module of explain"),
        ("x = Probe(presenter='rtgauge.report.timerlat:TIMERLAT')", "record may not name a module of report"),
        ("x = f'rtgauge.cli.{name}'", "record may not name a module of cli"),
        ("importlib.import_module(f'rtgauge.{name}')", "does not say which package"),
        ("__import__(name)", "does not say which package"),
        ("'The package rtgauge.report shows it.'", None),
    ],
)
def test_a_name_of_a_higher_package_in_a_string(text: str, wrong: str | None, tmp_path: Path) -> None:
    completed = checked("check_module_names.py", "src/rtgauge/record/new.py", text, tmp_path)
    assert completed.returncode == (wrong is not None), completed.stderr
    assert completed.stdout == "" if wrong is None else wrong in completed.stdout


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("base/new.c", '#include "base/new.c"\n#include <stdio.h>', None),
        ("base/new.c", '#include "rt/wait.h"', "base/ may not include rt/wait.h"),
        ("base/new.c", '#  include "../rt/wait.h"', "base/ may not include ../rt/wait.h"),
        ("new/new.c", "", "the folder new is not in check_engine_folders.py"),
    ],
)
def test_a_header_of_a_higher_folder(file: str, text: str, wrong: str | None, tmp_path: Path) -> None:
    completed = checked("check_engine_folders.py", f"engine/{file}", text, tmp_path)
    assert completed.returncode == (wrong is not None), completed.stderr
    assert completed.stdout == "" if wrong is None else wrong in completed.stdout


def test_a_header_in_angle_brackets(tmp_path: Path) -> None:
    header = tmp_path / "engine/rt/wait.h"
    header.parent.mkdir(parents=True)
    header.touch()
    results = checked("check_engine_folders.py", "engine/agent/new.c", "#include <rt/wait.h>", tmp_path)
    assert "agent/ may not include rt/wait.h" in results.stdout
