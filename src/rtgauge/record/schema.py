# SPDX-License-Identifier: MIT
"""The JSON Schemas in docs/formats, made from the models: `python -m rtgauge.record.schema docs/formats`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from rtgauge.record.model import Run, RunDocument, Step
from rtgauge.record.stream import LINE

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def stream_schema() -> dict[str, Any]:
    """Schema of one line of the engine's stream, version 2."""
    return {"$schema": DIALECT, "title": "One line of the engine's stream, version 2"} | LINE.json_schema()


def record_schema() -> dict[str, Any]:
    """Schema of the document that `--json` prints; `run.json` and `step.json` are its definitions Run and Step."""
    both = TypeAdapter(RunDocument | Run | Step).json_schema()
    return {"$schema": DIALECT, "title": "RunDocument: what --json prints. run.json is #/$defs/Run, step.json is #/$defs/Step"} | {
        "$ref": "#/$defs/RunDocument",
        "$defs": both["$defs"],
    }


def schemas() -> dict[str, str]:
    """File name -> content, as committed."""
    return {
        name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in (("stream.schema.json", stream_schema()), ("record.schema.json", record_schema()))
    }


def main() -> None:
    """Write both files to the folder given on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m rtgauge.record.schema DIR")
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
