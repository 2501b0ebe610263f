# SPDX-License-Identifier: MIT
"""Records and stores for these tests, and the command in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from tests.support.records import Shape, write_record
from typer.main import get_command

from rtgauge.cli.main import app
from rtgauge_ext.store import queries
from rtgauge_ext.store.store import Store

if TYPE_CHECKING:
    from click.testing import Result

ROOT = get_command(app)


def run(*words: object) -> Result:
    return CliRunner().invoke(ROOT, list(map(str, words)), prog_name="rtgauge")


def store_json(*words: object) -> dict[str, Any]:
    """What `rtgauge store ... --json` prints."""
    result = run("store", *words, "--json")
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def small(parent: Path, seed: int, **changes: Any) -> Path:
    """A small record of its own; `seed` makes its name."""
    parent.mkdir(parents=True, exist_ok=True)
    return write_record(parent, Shape(**{"seed": seed, "seconds": 2, "loads": ("idle",), **changes}))


def contents(path: str | Path) -> dict[str, Any]:
    """Everything that list and show print of a store."""
    store = Store.open(path)
    listed = queries.records(store, queries.RecordFilter())
    return {
        "records": [row.model_dump() for row in listed],
        "series": [row.model_dump() for row in queries.series(store, queries.RecordFilter()).values()],
        "results": [[point.model_dump() for point in queries.results(store, row.record)] for row in listed],
    }
