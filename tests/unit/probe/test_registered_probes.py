# SPDX-License-Identifier: MIT
"""A package of its own adds a probe, what presents it, a file that it keeps, a study and what moves, by its
extension; one that cannot be used takes nothing else with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROBE = """
from rtgauge.probe.common_parameters import MeasuringParameters
from rtgauge.probe.descriptor import CommandTrait, KeptFile, Metric, Motion
from rtgauge.probe.simple_probe import SimpleProbe, timed
from pydantic import Field
from rtgauge.record.record_folder import open_source


def export(source, out):
    with open_source(source) as file:
        out.write_text("exported " + file.read().decode())


class ToyParameters(MeasuringParameters):
    trail: bool = Field(default=False, alias="trail", description="keep where it went")


PROBE = SimpleProbe(
    name="toy",
    help="time between two readings of the clock",
    examples=("--count 1000",),
    parameters=ToyParameters,
    lasts=timed(),
    method="A task reads the clock, and reads it again.",
    metrics=(Metric(name="latency", plural="latencies"),),
    files={"trail": KeptFile(name="trail.toy", help="Where it went into FILE.", export=export)},
    motion=Motion(message=lambda number, frame: bytes([number, frame.model_extra["x"]]), script="toys/toy.js"),
    command=CommandTrait(),
)
"""
PRESENTER = """
from rtgauge.report.presenter import Presenter
from rtgauge.report.table import Table, texts
from rtgauge.report.terminal_table import print_tables


class Toys(Presenter):
    def lines(self, step):
        return ["a line of the toy's own"]

    def print_tables(self, view, steps, console):
        print_tables([Table("Toys by size", texts("toy", "size"), [["small", "one"]])], console)


TOYS = Toys()
"""
STUDY = """
from dataclasses import replace
from rtgauge.plan.make_plan import make_plan


class ToySearch:
    name = "toy-search"
    description = "study: the largest toy"
    measured_by = None

    def begin(self, overrides):
        return make_plan({"name": self.name, "step": [{"probe": "toy", "count": 10}]}, self.name, overrides)

    def next_steps(self, record, overrides):
        return []

    def later_steps(self, planned, overrides):
        return []


STUDY = ToySearch()
"""
EXTENSION = """
from rtgauge.extension import Extension

EXTENSION = Extension(
    name="toys",
    line="Toys.",
    probes={"toy": "PROBE"},
    presenters={"toy": "toys.shown:TOYS"},
    studies={"toy-search": "toys.study:STUDY"},
    options={"show": "toys.options:ToyPart"},
    marks={"toys": "toys.marks:ToyMarkKind"},
    words={"rtgauge probe toy": "plaything"},
    first_steps=(("probe toy", "does it play?"),),
    plan_lines={"toy-search": "the largest toy"},
)
"""
OPTIONS = """
from dataclasses import dataclass
from typing import Annotated
import typer
from rtgauge.cli.extension_options import ShownPart


@dataclass(frozen=True)
class ToyPart(ShownPart):
    toys: Annotated[int | None, typer.Option("--toys", help="Show only the toys.")] = None

    def option(self):
        return None if self.toys is None else "--toys"

    def frequency_options(self):
        return None

    def show(self, records, page, figures, *, json):
        print(f"{self.toys} toys of {len(records)} records")
"""
MARKS = """
from rtgauge.record.marks import Entry, MarkKindBase, NOTE


class ToyMarkKind(MarkKindBase):
    BROKEN_TOY = Entry((NOTE,), "A toy is broken.")
"""
COMMAND = "import sys; sys.argv = ['rtgauge', *sys.argv[1:]]; from rtgauge.cli.main import main; main()"
LOOK = """
import sys
from rtgauge.probe.probe_registry import PROBES, get
from rtgauge.report.presenter import presenters_of
from rtgauge.errors import InputError

print(list(PROBES)[-1])
try:
    print(get("toy").help)
    print(presenters_of("toy")[0].lines(None))
except InputError as error:
    print(f"refused: {error}")
"""


USE = """
import json, sys
from pathlib import Path
from rtgauge.cli.probe_command import _export_files
from rtgauge.plan.make_plan import Overrides
from rtgauge.record.reader import Record
from rtgauge.study.study_registry import adaptive_study
from tests.support.records import Shape, write_record

study = adaptive_study("toy-search", Overrides())
(key,) = study.plan().steps
folder = write_record(Path(sys.argv[1]), Shape(loads=("idle",), verdict=None, seconds=1))
(file,) = folder.glob("steps/*/step.json")
(file.parent / "trail.toy").write_text("here and there")
written = json.loads(file.read_text())
written["key"] = json.loads(key.model_dump_json())
file.write_text(json.dumps(written))
record = Record.open(folder)
out = Path(sys.argv[1]) / "trail.txt"
_export_files(record, {"trail": out}, print)
print(out.read_text())
"""


def make_package(folder: Path, probe: str) -> None:
    """A distribution in a folder, whose extension names this probe."""
    info = folder / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rtgauge.extensions]\ntoys = toys.extension:EXTENSION\n")
    (folder / "toys").mkdir()
    (folder / "toys" / "__init__.py").touch()
    (folder / "toys" / "extension.py").write_text(EXTENSION.replace("PROBE", probe))
    (folder / "toys" / "probe.py").write_text(PROBE)
    (folder / "toys" / "study.py").write_text(STUDY)
    (folder / "toys" / "options.py").write_text(OPTIONS)
    (folder / "toys" / "marks.py").write_text(MARKS)
    (folder / "toys" / "toy.js").write_text("views.toy = {};")
    (folder / "toys" / "shown.py").write_text(PRESENTER)


def run_with(folder: Path, look: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program with the distribution of a folder installed."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(
        [sys.executable, "-c", look, *words],
        capture_output=True,
        text=True,
        check=check,
        env=environment,
        timeout=300,
    )


def with_package(folder: Path, probe: str, look: str = LOOK, *words: str) -> subprocess.CompletedProcess[str]:
    make_package(folder, probe)
    return run_with(folder, look, *words)


def test_a_package_of_its_own_adds_a_probe(tmp_path: Path) -> None:
    assert with_package(tmp_path, "toys.probe:PROBE").stdout.splitlines() == [
        "toy",
        "time between two readings of the clock",
        '["a line of the toy\'s own"]',
    ]


def test_a_probe_owns_its_file_and_study(tmp_path: Path) -> None:
    used = with_package(tmp_path, "toys.probe:PROBE", USE, str(tmp_path))
    assert used.stdout.splitlines() == [
        f"trail {tmp_path / 'trail.txt'}",
        "exported here and there",
    ]


def test_its_options_and_its_table_are_those_of_the_commands(tmp_path: Path) -> None:
    helped = with_package(tmp_path / "help", "toys.probe:PROBE", COMMAND, "probe", "toy", "--help").stdout
    assert "Where it went into FILE." in " ".join(helped.split())
    with_package(tmp_path / "write", "toys.probe:PROBE", USE, str(tmp_path))
    (record,) = tmp_path.glob("*-record-*")
    shown = with_package(tmp_path / "show", "toys.probe:PROBE", COMMAND, "show", str(record)).stdout
    assert "Toys by size" in shown
    assert "a line of the toy's own" in shown


def test_it_adds_options_marks_and_words_to_commands_of_the_core(tmp_path: Path) -> None:
    def output_of(*words: str) -> str:
        completed = run_with(tmp_path, COMMAND, *words, check=False)
        return " ".join((completed.stdout + completed.stderr).split())

    with_package(tmp_path, "toys.probe:PROBE", USE, str(tmp_path))
    (record,) = tmp_path.glob("*-record-*")
    assert output_of("show", str(record), "--toys", "3") == "3 toys of 1 records"
    assert "--why and --toys exclude each other" in output_of("show", str(record), "--why", "--toys", "3")
    assert "Show only the toys." in output_of("show", "--help")
    assert output_of("marks", "broken-toy") == "broken-toy (note): A toy is broken."
    assert "use rtgauge probe toy" in output_of("plaything")
    assert "rtgauge probe toy does it play?" in output_of("--help")
    assert "toy-search the largest toy" in output_of("run", "--help")


@pytest.mark.parametrize("wrong", ["toys.gone:PROBE", "toys.probe:NOTHING", "toys.shown:TOYS"])
def test_a_package_that_cannot_be_used_is_named_and_left_out(tmp_path: Path, wrong: str) -> None:
    looked = with_package(tmp_path, wrong)
    last, refused = looked.stdout.splitlines()
    assert last != "toy"
    assert refused.startswith("refused: ")
    assert " toy" in refused
    assert wrong in refused
    assert "left out: " in looked.stderr
