# SPDX-License-Identifier: MIT
"""The published JSON Schemas, for outputs to be checked against."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator, validate

FORMATS = Path(__file__).parents[2] / "docs" / "formats"


def check_published(text: str, name: str) -> None:
    """Raises ValidationError where the JSON `text` is not as docs/formats/NAME.schema.json has it."""
    validate(
        json.loads(text),
        json.loads((FORMATS / f"{name}.schema.json").read_text(encoding="utf-8")),
        cls=Draft202012Validator,
    )
