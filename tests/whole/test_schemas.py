# SPDX-License-Identifier: MIT
"""The schemas in docs/formats are those of the models, and they can be trusted to refuse."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tools import schemas

FORMATS = Path(__file__).parents[2] / "docs" / "formats"
STREAM = Draft202012Validator(schemas.stream_schema())
RECORD = Draft202012Validator(schemas.record_schema())


@pytest.mark.parametrize("name", list(schemas.schemas()))
def test_the_committed_schema_is_up_to_date(name: str) -> None:
    text = (FORMATS / name).read_text(encoding="utf-8")
    assert text == schemas.schemas()[name], "run: python tools/schemas.py docs/formats"
    Draft202012Validator.check_schema(json.loads(text))


def test_the_script_writes_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["schema", str(tmp_path)])
    schemas.main()
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == schemas.schemas()
    monkeypatch.setattr(sys, "argv", ["schema"])
    with pytest.raises(SystemExit):
        schemas.main()


def test_every_example_of_the_document_is_a_line() -> None:
    """The examples in stream.md, as they are printed there."""
    text = (FORMATS / "stream.md").read_text(encoding="utf-8").replace("{...}", "{}")
    examples = [
        json.JSONDecoder().raw_decode(text, actual.start())[0] for actual in re.finditer(r'\{"type":', text)
    ]
    assert {example["type"] for example in examples} == set(
        schemas.stream_schema()["discriminator"]["mapping"]
    )
    for example in examples:
        STREAM.validate(example)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "unknown"},
        {"type": "armed"},
        {"type": "armed", "time_ns": "1"},
        {"type": "armed", "time_ns": 1.5},
        {"type": "end", "reason": "tired", "status": 0},
        {"type": "started", "series": None, "start_ns": 1},
    ],
)
def test_a_wrong_line_is_refused(line: dict[str, object]) -> None:
    assert not STREAM.is_valid(line)


def test_a_wrong_document_is_refused() -> None:
    assert not RECORD.is_valid({})
    assert not RECORD.is_valid({"run": {}, "steps": [], "systems": {}, "record": None})
    assert {"Run", "Step"} <= set(RECORD.schema["$defs"])
