# SPDX-License-Identifier: MIT
"""Reads a record's folder."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.input_file import MOST_JSON, parse_json, read_regular
from rtgauge.record.files import check_name, checksum, clean_name
from rtgauge.record.model import SCHEMA_VERSION, Model, Run, Step
from rtgauge.record.open_values import FROM_A_FILE

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import polars as pl

    from rtgauge.record.moments import MomentFile

WINDOWS, BLOCKS, PARTS = "windows.parquet", "blocks.parquet", "windows-*.parquet"
"""The windows of a step; of a long one its blocks (windows merged in time), and the part files with its windows."""
STEP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,120}")
SAMPLES = re.compile(r"samples-([0-9]{1,9})\.i64")
ModelT = TypeVar("ModelT", bound=Model)


def _read(path: Path) -> tuple[bytes, Any]:
    """The bytes of `path`, and the JSON that they are. Raises RecordError that names the file."""
    try:
        data = read_regular(path, MOST_JSON)
        return data, parse_json(data)
    except FileNotFoundError:
        raise RecordError(f"{path} is missing: not a record, or a damaged one") from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}): the record is damaged") from None


def read_json(path: Path) -> Any:
    """The JSON in `path`. Raises RecordError that names the file."""
    return _read(path)[1]


def read_model(path: Path, model: type[ModelT]) -> ModelT:
    """The model stored in `path`, every value of just its type: no number in a text. Raises RecordError with the file and the first error."""
    written, data = _read(path)
    version = cast("dict[str, Any]", data).get("schema_version") if isinstance(data, dict) else None
    if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 1):
        raise RecordError(f"{path} has a schema version that is no number: the record is damaged")
    if version is not None and version > SCHEMA_VERSION:
        raise RecordError(f"{path} was written by a newer rtgauge (schema {version}, supported: {SCHEMA_VERSION}): update rtgauge")
    try:
        # From the JSON itself: of Python's values strict models would want enumerations and tuples.
        return model.model_validate_json(written, strict=True, context=FROM_A_FILE)
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(str(part) for part in details["loc"]) or "the file"
        raise RecordError(f"{path} is not a file of a record ({where}: {details['msg']})") from None


def _check_inside(record: Path, file: Path) -> Path:
    """The file, if no part of its path within the record is a link: a record from elsewhere shows no file of this machine. Raises RecordError."""
    if os.path.realpath(file) != os.path.join(os.path.realpath(record), file.relative_to(record)):  # noqa: PTH118 - pathlib would drop nothing, but resolve twice
        raise RecordError(f"{file} is a link: the record is damaged")
    return file


def _facts(path: Path) -> dict[str, Any]:
    facts = read_json(path)
    if not isinstance(facts, dict):
        raise RecordError(f"{path} contains no facts: the record is damaged")
    return cast("dict[str, Any]", facts)


@contextmanager
def reading(step: Step) -> Generator[None]:
    """Around what reads a step's parameters, labels and results by the names that its probe gives them. Raises RecordError for one that is missing or wrong."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else "a value of another kind"
        raise RecordError(f"step {step.id} has {what} among its parameters or results: the record is damaged") from None


@dataclass(frozen=True)
class Record:
    """A record: its run, finished steps and the facts of its targets."""

    path: Path
    run: Run
    steps: list[Step]
    systems: dict[str, dict[str, Any]]
    label: str | None = None
    """What the user calls it; None: nothing."""
    _checked: set[object] = field(default_factory=set[object], compare=False, repr=False)

    @classmethod
    def open(cls, path: Path) -> Record:
        """Read the folder `path`. Raises RecordError."""
        try:
            check_name(path.absolute())
        except InputError as error:
            raise RecordError(str(error)) from None
        if not path.is_dir():
            raise RecordError(f"{path} is not a record: there is no such folder (rtgauge list shows the records; latest is the newest)")
        run = read_model(_check_inside(path, path / "run.json"), Run)
        if len(set(run.steps)) < len(run.steps) or not all(STEP_ID.fullmatch(step_id) for step_id in run.steps):
            raise RecordError(f"{path / 'run.json'} has duplicate or invalid step names: the record is damaged")
        steps = [read_model(_check_inside(path, path / "steps" / step_id / "step.json"), Step) for step_id in run.steps]
        for step, step_id in zip(steps, run.steps, strict=True):
            if step.id != step_id:
                raise RecordError(f"{path / 'steps' / step_id / 'step.json'} belongs to another step ({step.id}): the record is damaged")
        order = [clean_name(target) for target in run.targets]
        files = sorted(path.glob("targets/*/system.json"), key=lambda file: (order.index(file.parent.name) if file.parent.name in order else len(order), file))
        systems = {file.parent.name: _facts(_check_inside(path, file)) for file in files}
        return cls(path, run, steps, systems)

    def system(self, target: str) -> dict[str, Any]:
        """The facts of a target, by its name in a step's key; empty if the record has none."""
        return self.systems.get(target) or self.systems.get(clean_name(target), {})

    def folder(self, step: Step) -> Path:
        """The folder of a step."""
        return self.path / "steps" / step.id

    def file(self, step: Step, name: str) -> Path:
        """A file of a step, if it has one checked against its checksum when it is first asked for. Raises RecordError for a link or a damaged file."""
        path = _check_inside(self.path, self.folder(step) / name)
        known = step.checksums.get(name)
        if known is not None and path not in self._checked:
            try:
                actual = checksum(path)
            except OSError as error:
                raise RecordError(f"{path} cannot be read ({error.strerror}): the record is damaged") from None
            if actual != known:
                raise RecordError(f"{path} does not have the checksum in step.json: the record is damaged")
            self._checked.add(path)
        return path

    def windows(self, step: Step, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The windows of a step, columns as in docs/formats/record.md, or only those that are named; of a long one its blocks: windows of more than a
        second, merged. Raises RecordError."""
        from rtgauge.record.windows_file import check_windows, read_windows

        path = self.file(step, BLOCKS if (self.folder(step) / BLOCKS).exists() else WINDOWS)
        if (path, "values") in self._checked:
            return read_windows(path, columns)
        frame = read_windows(path)
        try:
            check_windows(frame)
            _check_counts(frame, step)
        except ValueError as error:
            raise RecordError(f"{path}: {error}: the record is damaged") from None
        self._checked.add((path, "values"))
        return frame if columns is None else frame.select(columns)

    def all_windows(self, step: Step) -> pl.LazyFrame:
        """Every window of a step, one second each, as they came; of a long one they need not fit into memory. Raises RecordError."""
        from rtgauge.record.windows_file import scan_windows

        parts = [self.file(step, path.name) for path in sorted(self.folder(step).glob(PARTS))]
        return scan_windows(parts) if parts else self.windows(step).lazy()

    def moments(self, step: Step) -> MomentFile | None:
        """The frozen trace of the step's largest latencies; None if it was not explained. Raises RecordError."""
        from rtgauge.record.moments import MOMENTS, MomentFile

        return MomentFile.open(self.file(step, MOMENTS)) if (self.folder(step) / MOMENTS).exists() else None

    def samples(self, step: Step) -> dict[int, Path]:
        """Series -> file of raw samples; empty if there are none. Raises RecordError."""
        names = sorted(file.name for file in self.folder(step).glob("samples-*.i64"))
        return {int(match[1]): self.file(step, name) for name in names if (match := SAMPLES.fullmatch(name))}


def _check_counts(windows: pl.DataFrame, step: Step) -> None:
    """The windows have as many values as the step says. Raises ValueError."""
    import polars as pl

    measured = windows.select("series", "phase", "count", "missed").filter(pl.col("phase") == "measure")
    summed = measured.group_by("series").agg(pl.col("count").sum(), pl.col("missed").sum())
    counts = {series: (count, missed) for series, count, missed in summed.iter_rows()}
    for series in step.series:
        if series.series is not None and counts.get(series.series, (0, 0)) != (series.count, series.missed):
            raise ValueError(f"series {series.series} has another number of values than step.json says")
