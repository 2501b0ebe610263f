# SPDX-License-Identifier: MIT
"""A comparison of operations, which have no scale in common, and damaged steps of the microbenchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.support.records import Shape, write_record
from typer.testing import CliRunner

from rtgauge.cli.main import app
from rtgauge.errors import InputError, RecordError
from rtgauge.probe.descriptor import normalise
from rtgauge.probe.probe_registry import PROBES
from rtgauge.record.reader import Record
from rtgauge_ext.microbenchmarks.operation_costs import microbenchmarks

FORMATS = Path(__file__).resolve().parents[4] / "docs" / "formats"


def run(*words: object) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.stdout


def with_step(path: Path, probe: str, parameters: dict[str, Any], results: list[Any]) -> Path:
    """Turn the record's last step into one of this probe."""
    file = max(path.glob("steps/*/step.json"))
    step = json.loads(file.read_text(encoding="utf-8"))
    step["key"] |= {"probe": probe, "parameters": parameters, "load": "idle"}
    file.write_text(json.dumps(step | {"results": results}), encoding="utf-8")
    return path


def mixed(tmp_path: Path, seed: int) -> Path:
    """A record of wakeup, and of switch, whose costs have no scale in common with it."""
    path = write_record(tmp_path, Shape(seconds=25, seed=seed, loads=("idle", "cpu"), marks=False))
    return with_step(path, "switch", {"policy": "fifo", "tasks": 2}, [])


def test_each_probe_is_compared_separately_on_one_page(tmp_path: Path) -> None:
    first, second = (mixed(tmp_path / str(seed), seed) for seed in (1, 2))
    page = tmp_path / "both.html"
    words = ("compare", "--side", f"stock={first}", "--side", f"rt={second}")
    out = run(*words, "--page", page)
    assert "has the lowest worst case in" in out.splitlines()[0]
    assert "stock, fifo" in out
    assert out.count("\nWakeup\n") == 1
    html = page.read_text(encoding="utf-8")
    assert all(title in html for title in ("Worst case (ns)", ">Task switch<", ">Wakeup<"))
    document = json.loads(run(*words, "--json"))
    whole, operations = (
        Draft202012Validator(json.loads((FORMATS / f"compare{part}.schema.json").read_text(encoding="utf-8")))
        for part in ("", "-microbenchmarks")
    )
    whole.validate(document)
    whole.validate(document["comparisons"])
    operations.validate(document["operations"])
    assert not whole.is_valid(document["comparisons"][0] | {"alpha": "much"})
    assert not operations.is_valid(document["operations"] | {"systems": 1})
    assert [system["name"] for system in document["operations"]["systems"]] == ["stock", "rt"]
    assert [comparison["title"] for comparison in document["comparisons"]] == ["Wakeup"]


@pytest.mark.parametrize(
    ("probe", "parameters", "results"),
    [
        ("switch", {"tasks": "two"}, []),
        ("preempt", {"event": "none"}, []),
        ("switch", {"tasks": 2, "unknown": 1}, []),
        ("inversion", {}, [{"name": "inversion", "labels": {}, "values": {}}]),
        ("inversion", {}, [{"name": "inversion", "labels": {"lock": "mutex"}, "values": {"trials": "many"}}]),
    ],
)
def test_a_damaged_step_is_a_record_error(
    tmp_path: Path, probe: str, parameters: dict[str, Any], results: list[Any]
) -> None:
    path = write_record(tmp_path, Shape(seconds=1, loads=("idle",), marks=False))
    with pytest.raises(RecordError, match="parameters"):
        microbenchmarks([Record.open(with_step(path, probe, parameters, results))])


@pytest.mark.parametrize(
    ("probe", "written", "words"),
    [
        ("switch", {"tasks": 1}, "tasks"),
        ("preempt", {"priority": 1}, "priority must be 2 or more"),
        ("preempt", {"placement": "same-cpu"}, "same-cpu"),
        ("semaphore", {"method": "smoke"}, "smoke"),
        ("inversion", {"limit": "1s"}, "too long"),
        ("inversion", {"policy": "other"}, "policy"),
        ("inversion", {"duration": "1s"}, "duration"),
    ],
)
def test_wrong_parameters_are_one_line(probe: str, written: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        normalise(PROBES[probe], written, "plan x, step 1")
    assert "\n" not in str(error.value)
