# SPDX-License-Identifier: MIT
"""The facts of a target in memory and in system.json."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.facts import Calibration, Facts, InterruptLine, Kernel
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record

DOCS = Path(__file__).parents[3] / "docs"
DEFINITIONS = json.loads((DOCS / "formats" / "record.schema.json").read_text())["$defs"]
FACTS = jsonschema.Draft202012Validator({"$ref": "#/$defs/Facts", "$defs": DEFINITIONS})

CALIBRATED = json.dumps(
    {
        "calibrations": [
            {
                "clock": "CLOCK_MONOTONIC",
                "resolution_ns": 1,
                "count": 1000,
                "min_ns": 20,
                "p50_ns": 20,
                "p99_ns": 25,
                "mean_ns": 20.1,
                "max_ns": 25,
                "smallest_step_ns": 1,
                "bins": [[20, 990], [25, 10]],
                "error": None,
            }
        ]
    }
)


def test_what_cannot_be_read_is_none_here_and_unknown_in_json() -> None:
    facts = Facts(host=None, kernel=Kernel(release="6.12", hz=None))
    assert facts.as_json() == {"host": "unknown", "kernel": {"release": "6.12", "hz": "unknown"}}
    assert Facts.model_validate(facts.as_json()) == facts


def test_what_was_not_recorded_is_not_written() -> None:
    assert Facts().as_json() == {}
    assert Facts.model_validate({"kernel": {"preemption": "unknown"}}).kernel.preemption.model is None


def test_the_calibrations_of_a_run_are_read_again() -> None:
    (mono,) = Facts.model_validate_json(CALIBRATED, strict=True).calibrations
    assert mono.bins == [(20, 990), (25, 10)]
    assert Facts(calibrations=[mono]).as_json() == json.loads(CALIBRATED)


def test_keys_of_another_version_are_kept() -> None:
    later = {"kernel": {"release": "7.1", "flavour": {"a": ["unknown"]}}, "thermal": 3}
    assert Facts.model_validate(later).as_json() == later


def test_an_interrupt_is_where_it_takes_effect_or_is_allowed() -> None:
    assert InterruptLine(effective="1", allowed="0-3").cpus == "1"
    assert InterruptLine(effective="", allowed="0-3").cpus == "0-3"
    assert InterruptLine().cpus is None


@pytest.mark.parametrize(
    ("system", "where"),
    [
        ({"host": 3}, "host: Input should be a valid string"),
        ({"kernel": "6.1"}, "kernel: Input should be an object"),
        ({"cpu": {"online_count": "4"}}, "cpu.online_count: Input should be a valid integer"),
        ({"interrupts": {"lines": {"7": {"managed": "x"}}}}, "interrupts.lines.7.managed: "),
        ({"audit": {"serious": "<b>"}}, "audit.purpose: Field required"),
    ],
)
def test_wrong_facts_are_one_line_with_the_path(
    tmp_path: Path, system: dict[str, object], where: str
) -> None:
    path = write_record(tmp_path, Shape(system=system, loads=("idle",)))
    with pytest.raises(RecordError) as refused:
        Record.open(path)
    assert f"system.json does not have a record's format ({where}" in str(refused.value)
    assert "\n" not in str(refused.value)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(list(Facts.model_fields)) | st.text(max_size=5), json_like, max_size=4)
)
def test_the_schema_accepts_what_is_written(given_facts: dict[str, object]) -> None:
    try:
        facts = Facts.model_validate(given_facts, strict=True)
    except ValueError:
        return
    FACTS.validate(facts.as_json())


def test_clocks_are_read_from_a_record_with_their_bins() -> None:
    figures = {name: 1 for name in Calibration.model_fields if name.endswith("_ns")}

    def read(bins: list[list[object]]) -> Facts:
        clock = {"clock": "CLOCK_MONOTONIC", "count": 3, **figures, "bins": bins}
        return Facts.model_validate_json(json.dumps({"calibrations": [clock]}), strict=True)

    assert read([[266, 1], [410, 2]]).calibrations[0].bins == [(266, 1), (410, 2)]
    with pytest.raises(ValidationError):
        read([["266", 1]])
