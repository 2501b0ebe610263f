# SPDX-License-Identifier: MIT
"""The JSON Schemas in docs/formats, made from the models: `python tools/schemas.py docs/formats`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from rtgauge.analysis.comparison_document import Comparison, ComparisonList, OperationsAndComparisons
from rtgauge.explain.page.explained_document import ExplainDocument
from rtgauge.extension import Document, load, registered
from rtgauge.record.model import Run, RunDocument, Step
from rtgauge.record.stream import LINE
from rtgauge.verdict.gate_result import GateResult

DOCUMENTS: dict[str, tuple[str, list[type[BaseModel]]]] = {
    "compare.schema.json": (
        (
            "what rtgauge compare --json prints: a Comparison; several of them a ComparisonList; with "
            "operations of extensions OperationsAndComparisons"
        ),
        [Comparison, ComparisonList, OperationsAndComparisons],
    ),
    "explain.schema.json": ("what rtgauge show --why --json prints", [ExplainDocument]),
    "gate.schema.json": ("what rtgauge gate --json prints", [GateResult]),
}
"""File name -> title, and the models of which the document is one."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def stream_schema() -> dict[str, Any]:
    """Schema of one line of the engine's stream, version 2."""
    return {"$schema": DIALECT, "title": "One line of the engine's stream, version 2"} | LINE.json_schema()


def record_schema() -> dict[str, Any]:
    """Schema of the document that `--json` prints; `run.json`, `step.json` and `system.json` are its
    definitions Run, Step and Facts.
    """
    both = TypeAdapter(RunDocument | Run | Step).json_schema()
    return {
        "$schema": DIALECT,
        "title": (
            "RunDocument: what --json prints. run.json is #/$defs/Run, step.json is #/$defs/Step, "
            "system.json is #/$defs/Facts"
        ),
    } | {
        "$ref": "#/$defs/RunDocument",
        "$defs": both["$defs"],
    }


def document_schema(title: str, models: list[type[BaseModel]]) -> dict[str, Any]:
    """Schema of a document that is one of these models."""
    # as the document is printed: what has a default is always there
    references, shared = models_json_schema(
        [(model, "serialization") for model in models], ref_template="#/$defs/{model}"
    )
    each = [references[model, "serialization"] for model in models]
    schema: dict[str, Any] = {**(each[0] if len(each) == 1 else {"anyOf": each}), **shared}
    return {"$schema": DIALECT, **schema, "title": title}


def schemas() -> dict[str, str]:
    """File name -> content, as committed."""
    made = {"stream.schema.json": stream_schema(), "record.schema.json": record_schema()}
    made |= {name: document_schema(title, models) for name, (title, models) in DOCUMENTS.items()}
    for name in registered("documents"):
        title, models = cast("Document", load("documents", name, Document))
        made[name] = document_schema(title, list(models))
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in made.items()}


def main() -> None:
    """Write all files to the folder given on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/schemas.py DIR")
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
