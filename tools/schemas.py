# SPDX-License-Identifier: MIT
"""The JSON Schemas in docs/formats, made from the models: `python tools/schemas.py docs/formats`."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from functools import cache
from itertools import pairwise
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


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the docstrings below the models' fields as descriptions. pydantic could read them, too
    (use_attribute_docstrings), but would parse the sources in every command.
    """
    for name, definition in {schema.get("title", ""): schema, **schema.get("$defs", {})}.items():
        texts = _attribute_docstrings().get(name, {})
        for field, content in definition.get("properties", {}).items():
            if field in texts and "description" not in content:
                definition["properties"][field] = dict(
                    sorted({**content, "description": texts[field]}.items())
                )
    return schema


@cache
def _attribute_docstrings() -> dict[str, dict[str, str]]:
    """Name of a model -> its fields -> the docstring below each, also of inherited fields."""
    models: dict[str, dict[str, str]] = {}
    rest = list(BaseModel.__subclasses__())
    while rest:
        model = rest.pop()
        rest += model.__subclasses__()
        texts: dict[str, str] = {}
        for base in reversed(model.__mro__):
            if base.__module__.startswith("rtgauge") and base.__name__.isidentifier():
                texts |= _docstrings_in(base)
        models[model.__name__] = texts
    return models


@cache
def _docstrings_in(model: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = cast("ast.ClassDef", definition).body
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


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
    return {
        name: json.dumps(described(schema), indent=1, ensure_ascii=False) + "\n"
        for name, schema in made.items()
    }


def main() -> None:
    """Write all files to the folder given on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/schemas.py DIR")
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
