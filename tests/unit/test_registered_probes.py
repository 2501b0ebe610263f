# SPDX-License-Identifier: MIT
"""A package of its own adds a probe and what presents it, by entry points; one that cannot be used takes
nothing else with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESENTER = """
from rtgauge.report.presenter import Presenter


class Toys(Presenter):
    def lines(self, step):
        return ["a line of the toy's own"]


TOYS = Toys()
"""
LOOK = """
import sys
from rtgauge.probe.registry import PROBES, get
from rtgauge.report.presenter import presenter_of
from rtgauge.errors import InputError

print(list(PROBES)[-1])
try:
    print(get("toy").help)
    print(presenter_of("toy").lines(None))
except InputError as error:
    print(f"refused: {error}")
"""


def with_package(folder: Path, probe: str) -> subprocess.CompletedProcess[str]:
    info = folder / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[rtgauge.probes]\ntoy = {probe}\n\n[rtgauge.presenters]\ntoy = toys.shown:TOYS\n"
    )
    (folder / "toys").mkdir()
    (folder / "toys" / "__init__.py").touch()
    (folder / "toys" / "probe.py").write_text((ROOT / "tests" / "toy_probe" / "toy.py").read_text())
    (folder / "toys" / "shown.py").write_text(PRESENTER)
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, env=environment, timeout=300
    )


def test_a_package_of_its_own_adds_a_probe(tmp_path: Path) -> None:
    assert with_package(tmp_path, "toys.probe:PROBE").stdout.splitlines() == [
        "toy",
        "time between two readings of the clock",
        '["a line of the toy\'s own"]',
    ]


@pytest.mark.parametrize("wrong", ["toys.gone:PROBE", "toys.probe:NOTHING", "toys.shown:TOYS"])
def test_a_package_that_cannot_be_used_is_named_and_left_out(tmp_path: Path, wrong: str) -> None:
    looked = with_package(tmp_path, wrong)
    last, refused = looked.stdout.splitlines()
    assert last != "toy"
    assert refused.startswith("refused: probe toy: ")
    assert wrong in refused
    assert "left out: probe toy: " in looked.stderr
