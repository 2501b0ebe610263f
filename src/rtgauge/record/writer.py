# SPDX-License-Identifier: MIT
"""Writes a record's folder so that every step in it is complete or absent, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError, MeasureError, RecordError
from rtgauge.record.model import Model, Run, Step
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    import polars as pl

PARTIAL = ".partial"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    """An OSError as one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise MeasureError(f"the disk is full; free space or use --out on another disk (finished steps are in {folder})") from None
        raise MeasureError(f"{error.filename or folder} cannot be written: {error.strerror} (finished steps are in {folder})") from None


def _check_out(out: Path) -> None:
    if (out / "run.json").exists():
        raise InputError(f"--out {out} is already a record; give the folder that is to hold records")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is not a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made: {error.strerror}; give a folder that you may write to") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"--out {out} is not writable; give a folder that you may write to")


class RecordWriter:
    """A record while it is written: its folder's name ends in `.partial`."""

    def __init__(self, path: Path, record_id: str) -> None:
        self.path = path
        self.id = record_id

    @classmethod
    def create(cls, out: Path, name: str, host: str | None) -> RecordWriter:
        """Make the folder of a new record under `out`. Raises InputError or MeasureError."""
        _check_out(out)
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        machine = re.sub(r"[^A-Za-z0-9._-]+", "-", host or "machine").strip("-.")[:40] or "machine"
        record_id = f"{stamp}-{machine}-{name}-{secrets.token_hex(2)}"
        path = out / (record_id + PARTIAL)
        with _told(path):
            (path / "steps").mkdir(parents=True)
        return cls(path, record_id)

    @classmethod
    def reopen(cls, path: Path) -> tuple[RecordWriter, Run, list[Step]]:
        """Go on with a folder that ends in `.partial`; half-written steps are removed. Raises InputError or RecordError."""
        if not path.name.endswith(PARTIAL):
            raise InputError(f"{path} is finished (its name does not end in {PARTIAL}): there is nothing to resume")
        writer = cls(path, path.name.removesuffix(PARTIAL))
        for left in (path / "steps").glob(".*.tmp"):
            shutil.rmtree(left, ignore_errors=True)
        record = Record.open(path)
        known = set(record.run.steps)
        steps = list(record.steps)
        # A step may have been renamed into place just before run.json was to name it.
        for folder in sorted((path / "steps").glob("[!.]*")):
            if folder.name not in known:
                try:
                    steps.append(Step.model_validate_json((folder / "step.json").read_bytes()))
                except (OSError, ValueError):
                    raise RecordError(f"{folder} is not a step; remove it and resume again") from None
        return writer, record.run, steps

    def _write(self, path: Path, text: str) -> None:
        """Written aside, synced, renamed."""
        with _told(self.path):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f".{path.name}.tmp")
            with aside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)
            _sync(path.parent)

    def write_model(self, path: Path, model: Model) -> None:
        """A model as JSON."""
        self._write(path, model.model_dump_json(indent=1) + "\n")

    def write_run(self, run: Run) -> None:
        """run.json."""
        self.write_model(self.path / "run.json", run)

    def write_system(self, name: str, system: Mapping[str, Any]) -> None:
        """targets/NAME/system.json."""
        self._write(self.path / "targets" / name / "system.json", json.dumps(system, indent=1) + "\n")

    @contextlib.contextmanager
    def step_folder(self, step_id: str) -> Iterator[Path]:
        """A folder to measure into. It is removed again where the step did not come to `commit_step`."""
        folder = self.path / "steps" / f".{step_id}.tmp"
        with _told(self.path):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def commit_step(self, folder: Path, step: Step, windows: pl.DataFrame) -> None:
        """Put a measured step in its place: all of its files are on disk before it has its name."""
        with _told(self.path):
            windows.write_parquet(folder / "windows.parquet", compression="zstd")
            (folder / "step.json").write_text(step.model_dump_json(indent=1) + "\n", encoding="utf-8")
            for file in folder.iterdir():
                _sync(file)
            _sync(folder)
            folder.rename(self.path / "steps" / step.id)
            _sync(self.path / "steps")

    def drop_step(self, step_id: str) -> None:
        """Take out a step that was not finished, before it is measured again."""
        shutil.rmtree(self.path / "steps" / step_id, ignore_errors=True)

    def finish(self) -> Path:
        """Give the folder its final name, and return it."""
        final = self.path.with_name(self.id)
        with _told(self.path):
            self.path.rename(final)
            _sync(final.parent)
        self.path = final
        return final
