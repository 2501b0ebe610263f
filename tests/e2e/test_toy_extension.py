# SPDX-License-Identifier: MIT
"""A capability is one folder in ext/, or a distribution of its own: nothing else in the tree changes. The toy
is the contributor's model; here it stands beside the core alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtgauge.record.reader import Record
from tests.support.cli import PATIENCE_S, CommandResult, environment, good, rtgauge

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "toy_extension"
PLAN = """
name = "toy"
[[step]]
probe = "toy"
count = 2000
policy = "other"
warm-up = "0s"
load = "toy"
"""
MEASURED = ("probe", "toy", "--count", 2000, "--policy", "other", "--require", "reading<=1s hardness=50%")


def run(tree: Path, *command: str) -> CommandResult:
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
    """The core, the toy, and an engine that is built of the two."""
    tree = tmp_path_factory.mktemp("tree") / "rtgauge"
    for part in ("engine", "kmod", "src/rtgauge", "docs/probes", "tools"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("meson.build", "meson.options"):
        shutil.copy(ROOT / part, tree)
    shutil.copytree(TOY, tree / "ext" / "toy")
    (tree / "ext" / "__init__.py").touch()  # a package of its own hides the extensions that are installed
    (tree / "src" / "rtgauge_ext").symlink_to("../ext")
    for command in (
        ("meson", "setup", "build", "-Dstatic=false", "-Dbuildtype=plain"),
        ("meson", "compile", "-C", "build", "rtgauge-engine"),
    ):
        built = run(tree, *command)
        assert built.returncode == 0, built.stdout + built.stderr
    return tree


def here(tree: Path, *paths: Path) -> dict[str, Any]:
    """Where the commands are called, and with which packages and engine."""
    variables = {
        "PYTHONPATH": ":".join(map(str, paths)),
        "RTGAUGE_ENGINE": str(tree / "build" / "engine" / "rtgauge-engine"),
    }
    return {"cwd": tree, "env": variables}


def as_distribution(folder: Path) -> Path:
    """The toy as a package of another distribution, which names its object by the entry point."""
    shutil.copytree(TOY, folder / "toybox", ignore=shutil.ignore_patterns("engine"))
    for file in (folder / "toybox").glob("*.py"):
        file.write_text(file.read_text().replace("rtgauge_ext.toy", "toybox"))
    info = folder / "toybox-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rtgauge.extensions]\ntoy = toybox.extension:EXTENSION\n")
    return folder


@pytest.mark.engine
@pytest.mark.slow
def test_a_folder_in_ext_is_all_that_a_capability_takes(tree: Path) -> None:
    assert run(tree, sys.executable, "tools/check_probes.py").returncode == 0
    words = here(tree, tree / "src")
    help_text = good(rtgauge("--help", **words)).stdout
    assert "Say what a toy is." in help_text
    assert "sched" not in help_text
    assert "a toy reads the clock twice" in good(rtgauge("toy", **words)).stdout
    measured = rtgauge(*MEASURED, "--details", **words).stdout  # the status depends on who else is here
    assert "reading, us" in measured
    assert "none of 2,000 longer than 1 s, 50 % allowed" in measured

    (tree / "toy.toml").write_text(PLAN)
    good(rtgauge("run", "toy.toml", "--out", "runs", **words))
    (folder,) = (tree / "runs").iterdir()
    (step,) = Record.open(folder).steps
    assert step.total is not None
    assert (step.key.load, step.total.metric, step.total.count) == ("toy", "reading", 2000)
    page = (folder / "report.html").read_text()
    assert "this is the toy&#39;s own text of method" in page
    assert "reading&lt;=1ms hardness=99%" in page


@pytest.mark.engine
@pytest.mark.slow
def test_a_distribution_of_its_own_gives_the_same(tree: Path, tmp_path: Path) -> None:
    core = tmp_path / "core"
    (core / "rtgauge_ext").mkdir(parents=True)
    (core / "rtgauge_ext" / "__init__.py").touch()
    (core / "rtgauge").symlink_to(tree / "src" / "rtgauge")
    words = here(tree, core, as_distribution(tmp_path / "site"))
    assert "a toy reads the clock twice" in good(rtgauge("toy", **words)).stdout
    (tree / "toy.toml").write_text(PLAN)
    good(rtgauge("run", "toy.toml", "--out", tmp_path / "runs", **words))
    (folder,) = (tmp_path / "runs").iterdir()
    (step,) = Record.open(folder).steps
    assert step.total is not None
    assert (step.key.load, step.total.metric, step.total.count) == ("toy", "reading", 2000)
