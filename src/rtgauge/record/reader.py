# SPDX-License-Identifier: MIT
"""Reads a record's folder."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.files import check_name, clean_name
from rtgauge.record.model import SCHEMA_VERSION, Model, Run, Step

if TYPE_CHECKING:
    import polars as pl

STEP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,120}")
ModelT = TypeVar("ModelT", bound=Model)


def read_json(path: Path) -> Any:
    """The JSON in `path`. Raises RecordError that names the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"{path} is missing: not a record, or a damaged one") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise RecordError(f"{path} cannot be read ({error}): the record is damaged") from None


def read_model(path: Path, model: type[ModelT]) -> ModelT:
    """The model stored in `path`. Raises RecordError with the file and the first error."""
    data = read_json(path)
    version = cast("dict[str, Any]", data).get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise RecordError(f"{path} was written by a newer rtgauge (schema {version}, supported: {SCHEMA_VERSION}): update rtgauge")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(str(part) for part in details["loc"]) or "the file"
        raise RecordError(f"{path} is not a file of a record ({where}: {details['msg']})") from None


def _facts(path: Path) -> dict[str, Any]:
    facts = read_json(path)
    if not isinstance(facts, dict):
        raise RecordError(f"{path} contains no facts: the record is damaged")
    return cast("dict[str, Any]", facts)


@dataclass(frozen=True)
class Record:
    """A record: its run, finished steps and the facts of its targets."""

    path: Path
    run: Run
    steps: list[Step]
    systems: dict[str, dict[str, Any]]
    label: str | None = None
    """What the user calls it; None: nothing."""

    @classmethod
    def open(cls, path: Path) -> Record:
        """Read the folder `path`. Raises RecordError."""
        check_name(path.absolute())
        if not path.is_dir():
            raise RecordError(f"{path} is not a record: there is no such folder (rtgauge list shows the records; latest is the newest)")
        run = read_model(path / "run.json", Run)
        if len(set(run.steps)) < len(run.steps) or not all(STEP_ID.fullmatch(step_id) for step_id in run.steps):
            raise RecordError(f"{path / 'run.json'} has duplicate or invalid step names: the record is damaged")
        steps = [read_model(path / "steps" / step_id / "step.json", Step) for step_id in run.steps]
        for step, step_id in zip(steps, run.steps, strict=True):
            if step.id != step_id:
                raise RecordError(f"{path / 'steps' / step_id / 'step.json'} belongs to another step ({step.id}): the record is damaged")
        order = [clean_name(target) for target in run.targets]
        files = sorted(path.glob("targets/*/system.json"), key=lambda file: (order.index(file.parent.name) if file.parent.name in order else len(order), file))
        systems = {file.parent.name: _facts(file) for file in files}
        return cls(path, run, steps, systems)

    def system(self, target: str) -> dict[str, Any]:
        """The facts of a target, by its name in a step's key; empty if the record has none."""
        return self.systems.get(target) or self.systems.get(clean_name(target), {})

    def folder(self, step: Step) -> Path:
        """The folder of a step."""
        return self.path / "steps" / step.id

    def windows(self, step: Step) -> pl.DataFrame:
        """The windows of a step, columns as in docs/formats/record.md. Raises RecordError."""
        import polars as pl

        from rtgauge.record.windows import SCHEMA

        path = self.folder(step) / "windows.parquet"
        try:
            frame = pl.read_parquet(path, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RecordError(f"{path} cannot be read ({error}): the record is damaged") from None
        if frame.schema.get("bins") == pl.List(pl.UInt32):
            frame = frame.cast({"bins": SCHEMA["bins"]})  # written before there were signed series
        wrong = [name for name, kind in SCHEMA.items() if frame.schema.get(name) != kind]
        if wrong:
            raise RecordError(f"{path} is not a table of windows (column {wrong[0]}): the record is damaged")
        return frame

    def samples(self, step: Step) -> dict[int, Path]:
        """Series -> file of raw samples; empty if there are none."""
        return {int(file.stem.removeprefix("samples-")): file for file in sorted(self.folder(step).glob("samples-*.i64"))}
