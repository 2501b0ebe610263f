# SPDX-License-Identifier: MIT
"""A new probe is its engine source, its descriptor and its page: nothing else in the tree changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtgauge.record.reader import Record
from tests.support.cli import PATIENCE_S, Done, environment, good, rtgauge

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "toy_probe"
PLAN = """
name = "toy"
[[step]]
probe = "toy"
count = 2000
policy = "other"
warm-up = "0s"
"""


def run(tree: Path, *command: str) -> Done:
    # meson and ninja lie beside the interpreter.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=tree,
        env=environment(PYTHONPATH=str(tree / "src"), PATH=path),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.fixture(name="tree", scope="module")
def a_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree") / "rtgauge"
    for part in ("engine", "kmod", "src", "docs/probes", "tools"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("meson.build", "meson.options"):
        shutil.copy(ROOT / part, tree)
    shutil.copy(TOY / "toy.c", tree / "engine" / "probes")
    shutil.copy(TOY / "toy.py", tree / "src" / "rtgauge" / "probe")
    return tree


@pytest.mark.engine
@pytest.mark.slow
def test_a_new_probe_gets_to_the_page(tree: Path):
    here: dict[str, Any] = {
        "cwd": tree,
        "env": {
            "PYTHONPATH": str(tree / "src"),
            "RTGAUGE_ENGINE": str(tree / "build" / "engine" / "rtgauge-engine"),
        },
    }
    lint = (sys.executable, "tools/check_probes.py")
    assert "docs/probes/toy.md" in run(tree, *lint).stderr
    shutil.copy(TOY / "toy.md", tree / "docs" / "probes")
    assert run(tree, *lint).returncode == 0

    for command in (
        ("meson", "setup", "build", "-Dstatic=false", "-Dbuildtype=plain"),
        ("meson", "compile", "-C", "build", "rtgauge-engine"),
    ):
        built = run(tree, *command)
        assert built.returncode == 0, built.stdout + built.stderr
    assert "toy" in good(rtgauge("probe", "--help", **here)).stdout
    one = good(
        rtgauge(
            "probe",
            "toy",
            "--count",
            2000,
            "--policy",
            "other",
            "--require",
            "reading<=1s hardness=50%",
            "--details",
            **here,
        )
    )
    assert "reading, us" in one.stdout
    assert "HOLDS" in one.stdout

    (tree / "toy.toml").write_text(PLAN)
    good(rtgauge("run", "toy.toml", "--out", "runs", **here))
    (folder,) = (tree / "runs").iterdir()
    (step,) = Record.open(folder).steps
    assert step.total is not None
    assert (step.total.metric, step.total.count) == ("reading", 2000)
    page = (folder / "report.html").read_text()
    assert "this is the toy&#39;s own text of method" in page
    assert "Reading in us, all CPUs together. count: samples measured" in page
    assert "reading&lt;=1ms hardness=99%" in page
