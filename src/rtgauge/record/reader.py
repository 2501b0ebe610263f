# SPDX-License-Identifier: MIT
"""Finds a record by the name that the user gives, and reads its folder."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from rtgauge.errors import InputError, RecordError
from rtgauge.input_file import MOST_JSON, parse_json
from rtgauge.record.facts import Facts
from rtgauge.record.files import check_name, clean_name
from rtgauge.record.model import SCHEMA_VERSION, ModelT, Run, RunDocument, Step
from rtgauge.record.probe_parameters import FROM_A_FILE
from rtgauge.record.record_folder import RecordFile, RecordFolder, damaged, identity_of
from rtgauge.record.records_folder import RECORDS
from rtgauge.units import plural

if TYPE_CHECKING:
    import polars as pl

    from rtgauge.record.moments import MomentFile
    from rtgauge.record.windows import Windows

RUN, PAGE = "run.json", "report.html"
SUMS = "SHA256SUMS"
"""The checksums, in sha256sum's format, of the files that `described_in` lists. Each step.json has the
checksums of the other files in its folder.
"""
WINDOWS, BLOCKS = "windows.parquet", "blocks.parquet"
"""The files with a step's windows. A long step has blocks, which are windows merged in time."""
PART = re.compile(r"windows-[^/]*\.parquet")
"""The name of a part file, which holds some of a long step's windows."""
STEP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,120}")
SAMPLES = re.compile(r"samples-([0-9]{1,9})\.i64")


def _read(file: RecordFile) -> tuple[bytes, Any]:
    """Return a record's file as bytes and as parsed JSON. Raises RecordError, which names the file."""
    try:
        data = file.read(MOST_JSON)
        return data, parse_json(data)
    except FileNotFoundError:
        raise RecordError(
            f"{file} is missing, so the folder is not a record, or the record is damaged"
        ) from None
    except (OSError, ValueError) as error:
        raise damaged(file, error) from None


def read_json(file: RecordFile) -> Any:
    """Parse a JSON file of a record. Raises RecordError, which names the file."""
    return _read(file)[1]


def read_model(file: RecordFile, model: type[ModelT]) -> ModelT:
    """Read a model from a JSON file of a record. Types are strict: a number written as text is an error.

    Raises RecordError, which names the file and the first error.
    """
    written, data = _read(file)
    version = cast("dict[str, Any]", data).get("schema_version") if isinstance(data, dict) else None
    if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 1):
        raise RecordError(f"the schema version in {file} is not a number: the record is damaged")
    if version is not None and version > SCHEMA_VERSION:
        raise RecordError(
            f"a newer rtgauge wrote {file} (schema {version}; this rtgauge reads up to {SCHEMA_VERSION}): "
            "update rtgauge"
        )
    try:
        # Validate the JSON text itself: strict models refuse plain Python values for enumerations and tuples.
        return model.model_validate_json(written, strict=True, context=FROM_A_FILE)
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(str(part) for part in details["loc"]) or "the file"
        raise RecordError(f"{file} does not have a record's format ({where}: {details['msg']})") from None


def read_run(path: Path) -> Run:
    """Return the run.json of the record in the folder `path`. Raises RecordError."""
    return read_model(opened_folder(path).file(RUN), Run)


def described_in(folder: RecordFolder) -> list[str]:
    """Return the names of a record's JSON files that hold models."""
    names = [RUN]
    names += [f"steps/{name}/step.json" for name in folder.names("steps")]
    names += [f"targets/{name}/system.json" for name in folder.names("targets")]
    return [name for name in names if folder.has(name)]


def opened_folder(path: Path) -> RecordFolder:
    """Open the folder of the record at `path`. Raises RecordError if it cannot be opened."""
    try:
        check_name(path.absolute())
        return RecordFolder.open(path)
    except InputError as error:
        raise RecordError(str(error)) from None
    except (FileNotFoundError, NotADirectoryError):
        raise RecordError(
            f"there is no such folder: {path}; list the records with: rtgauge list (latest is the newest "
            "record)"
        ) from None
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def reading(step: Step) -> Generator[None]:
    """Guard code that reads a step's parameters, labels and results by name.

    Raises RecordError if one of them is missing or invalid.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else "a value has the wrong type"
        raise RecordError(
            f"in the parameters or results of step {step.id}, {what}: the record is damaged"
        ) from None


@dataclass(frozen=True)
class Record:
    """A record: its run, its finished steps and the facts of its targets."""

    path: Path
    run: Run
    steps: list[Step]
    systems: dict[str, Facts]
    label: str | None = None
    """The user's name for the record; None if it has none."""
    _opened: RecordFolder | None = field(default=None, compare=False, repr=False)
    """None until something is read; stays None for a record that was made in memory."""

    @classmethod
    def open(cls, path: Path) -> Record:
        """Read the record in the folder `path`. Raises RecordError if it is damaged."""
        return cls.of(opened_folder(path))

    @classmethod
    def of(cls, folder: RecordFolder) -> Record:
        """Read the record in an open folder. Raises RecordError if it is damaged."""
        run = read_model(folder.file(RUN), Run)
        if len(set(run.steps)) < len(run.steps) or not all(
            STEP_ID.fullmatch(step_id) for step_id in run.steps
        ):
            raise RecordError(
                f"{folder.file(RUN)} has duplicate or invalid step names: the record is damaged"
            )
        steps: list[Step] = []
        for step_id in run.steps:
            file = folder.file(f"steps/{step_id}/step.json")
            steps.append(read_model(file, Step))
            if steps[-1].id != step_id:
                raise RecordError(f"{file} belongs to another step ({steps[-1].id}): the record is damaged")
        order = [clean_name(target) for target in run.targets]
        names = sorted(
            _names(folder, "targets"),
            key=lambda name: (order.index(name) if name in order else len(order), name),
        )
        files = {name: f"targets/{name}/system.json" for name in names}
        systems = {
            name: read_model(folder.file(file), Facts) for name, file in files.items() if folder.has(file)
        }
        return cls(folder.path, run, steps, systems, _opened=folder)

    @property
    def folder(self) -> RecordFolder:
        """The record's folder, opened once. Raises RecordError if it cannot be opened."""
        if self._opened is None:
            object.__setattr__(self, "_opened", opened_folder(self.path))
        return cast("RecordFolder", self._opened)

    def system(self, target: str) -> Facts:
        """Return the facts of the target with this name (as in a step's key); empty if none were recorded."""
        return self.systems.get(target) or self.systems.get(clean_name(target)) or Facts()

    def has(self, step: Step, name: str) -> bool:
        """Return whether the step has a file with this name."""
        return self.folder.has(f"steps/{step.id}/{name}")

    def file(self, step: Step, name: str) -> RecordFile:
        """Return a step's file. Reading it verifies its checksum, if it has one."""
        return self.folder.file(f"steps/{step.id}/{name}", step.checksums.get(name))

    def document(
        self, *, outcome: str | None = None, answer: str | None = None, kept: bool = True
    ) -> RunDocument:
        """Return the record as the JSON document. `outcome`, `answer`: the first line that the terminal
        prints. `kept`: whether the document names the folder.
        """
        folder = str(self.path) if kept else None
        return RunDocument(
            run=self.run,
            steps=self.steps,
            systems=self.systems,
            record=folder,
            outcome=outcome,
            answer=answer,
        )

    def windows(self, step: Step, *, bins: bool = True) -> Windows:
        """Read a step's windows; for a long step its blocks, each of several merged seconds.

        `bins`: whether to read the bins. Raises RecordError if the file is damaged.
        """
        from rtgauge.record.windows_file import check_windows, read_windows

        file = self.file(step, BLOCKS if self.has(step, BLOCKS) else WINDOWS)
        key = (file.name, "values")
        try:
            with file.open() as opened:
                identity = identity_of(opened)
                if self.folder.seen.get(key) == identity:
                    return read_windows(opened, file, bins=bins)
                windows = read_windows(opened, file)
            check_windows(windows)
            _check_counts(windows, step)
        except OSError as error:
            raise damaged(file, error) from None
        except ValueError as error:
            raise RecordError(f"{file}: {error}: the record is damaged") from None
        self.folder.seen[key] = identity
        return windows

    def all_windows(self, step: Step) -> pl.LazyFrame:
        """Return a lazy table of every one-second window of a step. It is read in parts that fit in memory.
        Raises RecordError, also when it is collected.
        """
        from rtgauge.record.windows_file import scan_windows, table_of

        parts = [self.file(step, name) for name in self._names(step) if PART.fullmatch(name)]
        return scan_windows(parts) if parts else table_of(self.windows(step)).lazy()

    def moments(self, step: Step) -> MomentFile | None:
        """Return the trace of a step's largest latencies; None if it was not recorded. Raises RecordError."""
        from rtgauge.record.moments import MOMENTS, MomentFile

        return MomentFile.open(self.file(step, MOMENTS)) if self.has(step, MOMENTS) else None

    def samples(self, step: Step) -> dict[int, RecordFile]:
        """Return a step's raw sample files by series; empty if there are none. Raises RecordError."""
        return {
            int(match[1]): self.file(step, name)
            for name in self._names(step)
            if (match := SAMPLES.fullmatch(name))
        }

    def _names(self, step: Step) -> list[str]:
        return _names(self.folder, f"steps/{step.id}")


def _names(folder: RecordFolder, name: str) -> list[str]:
    """List the names in a record's folder. Raises RecordError if it cannot be read."""
    try:
        return folder.names(name)
    except OSError as error:
        raise damaged(folder.file(name), error) from None


def _check_counts(windows: Windows, step: Step) -> None:
    """Check that the windows hold as many values as step.json says. Raises ValueError otherwise."""
    counts: dict[int, tuple[int, int]] = {}
    columns = (windows.series, windows.count, windows.missed)
    for number, count, missed in zip(*(column[windows.measured].tolist() for column in columns), strict=True):
        before = counts.get(number, (0, 0))
        counts[number] = before[0] + count, before[1] + missed
    for series in step.series:
        if series.series is not None and counts.get(series.series, (0, 0)) != (series.count, series.missed):
            raise ValueError(
                f"series {series.series} does not have as many values and missed activations as step.json "
                "says"
            )


LATEST = "latest"
PARTIAL = ".partial"


def record_folders(out: Path) -> list[Path]:
    """List the records in a folder, the oldest first (their names begin with the time)."""
    return sorted(path.parent for path in out.glob("*/run.json") if not path.parent.name.startswith("."))


def _begun_last(out: Path, before: int = 0) -> Path:
    """Return the newest record in a folder, or the one `before` steps older. Raises RecordError."""
    begun: list[tuple[str, Path]] = []
    for folder in record_folders(out) if out.is_dir() else []:
        with suppress(RecordError):
            begun.append((read_run(folder).created, folder))
    if not begun:
        raise RecordError(
            f"there is no latest record, because {out} does not contain any record; make one with: rtgauge "
            "run"
        )
    if before >= len(begun):
        raise RecordError(
            f"cannot go back to {LATEST}~{before}: {out} has only {plural(len(begun), 'record')}"
        )
    return sorted(begun)[-1 - before][1]


def find_record(named: Path) -> Path:
    """Find the folder of a record; a path that exists is returned unchanged.

    `latest` is the newest record in rtgauge-runs, finished or not, `latest~1` the one before it; DIR/latest
    is the newest in DIR. A name without a folder is looked up in rtgauge-runs, with or without `.partial`;
    the beginning of a name is enough if only one begins so. Raises RecordError for `latest` if there is no
    record, or if several names begin so.
    """
    if named.exists():
        return named
    newest = re.fullmatch(rf"{LATEST}(?:~([0-9]{{1,6}}))?", named.name)
    if newest is not None:
        out = RECORDS if len(named.parts) == 1 else named.parent
        return _begun_last(out, int(newest[1] or 0))
    places = [named, RECORDS / named] if len(named.parts) == 1 else [named]
    candidates = [place.with_name(f"{place.name}{end}") for place in places for end in ("", PARTIAL)]
    candidates += [place.with_name(place.name.removesuffix(PARTIAL)) for place in places]
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    return folder if folder is not None else _begins_so(places, named)


def _begins_so(places: Sequence[Path], named: Path) -> Path:
    """Return the only record whose name begins like one of the places; the name itself if there is none."""
    begin = [
        folder
        for place in places
        if place.name and place.parent.is_dir()
        for folder in record_folders(place.parent)
        if folder.name.startswith(place.name)
    ]
    if len(begin) > 1:
        names = ", ".join(folder.name for folder in begin[-3:])
        raise RecordError(
            f"{plural(len(begin), 'record')} begin with {named.name}, such as {names}; give more of the name"
        )
    return begin[0] if begin else named
