# SPDX-License-Identifier: MIT
"""Writes a record's folder (docs/formats/record.md): a step in it is complete or absent, whatever happens."""

from __future__ import annotations

import io
import json
import secrets
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from rtgauge.errors import InputError, RecordError
from rtgauge.record.files import check_name, clean_name, clear_errors, sync_folder, sync_tree, write_whole
from rtgauge.record.model import Run, Step
from rtgauge.record.reader import STEP_ID, Record, read_json, read_model

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

PARTIAL = ".partial"
LATER = b"\n--- in a later session\n"
MOST_EARLIER_BYTES = 1 << 20


def record_id(host: str, name: str, now: datetime) -> str:
    """`2026-11-21T10-03-22Z-HOST-NAME-7f3a`; the end is random, so that two runs of one second differ."""
    return f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-{clean_name(host)}-{clean_name(name)}-{secrets.token_hex(2)}"


def _bytes(model: Run | Step) -> bytes:
    return (model.model_dump_json(indent=1) + "\n").encode()


class RecordWriter:
    """The record that is being written. `path` is its folder, `id` its name; `run` is what `run.json` holds (None before `write_run`)."""

    def __init__(self, path: Path, record: str, run: Run | None = None) -> None:
        self.path = path
        self.id = record
        self.run = run

    @classmethod
    def create(cls, out: Path, *, host: str, name: str, now: datetime | None = None) -> RecordWriter:
        """Make `<out>/<id>.partial`. `name` is the plan's or the tool's.

        Raises InputError where `out` is a record, is no folder or cannot be written, MeasureError where the disk is full.
        """
        check_name(out.absolute())
        if (out / "run.json").exists():
            raise InputError(f"{out} is already a record: choose another folder with --out, or go on with it by --resume")
        new = record_id(host, name, now or datetime.now(UTC))
        path = out / (new + PARTIAL)
        with clear_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            (path / "steps").mkdir()
            (path / "targets").mkdir()
            sync_folder(path)
            sync_folder(out)
        return cls(path, new)

    @classmethod
    def open_partial(cls, path: Path) -> RecordWriter:
        """Go on with an unfinished record: its `run` lists the steps that are there, half-written ones are removed.

        A record that was interrupted gets its `.partial` back. Raises RecordError for a damaged one and InputError for a complete one.
        """
        if not (path / "run.json").is_file():
            raise RecordError(f"{path} is not a record that can be resumed: it has no run.json")
        run = read_model(path / "run.json", Run)
        if run.state == "complete":
            raise InputError(f"{path} is complete: there is nothing to resume")
        with clear_errors(path):
            if not path.name.endswith(PARTIAL):
                path = path.rename(path.with_name(path.name + PARTIAL))
            steps = path / "steps"
            steps.mkdir(exist_ok=True)
            for left in [*steps.glob(".*.tmp"), *path.glob(".*.tmp")]:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            sync_folder(steps)
        for step in run.steps:
            read_model(steps / step / "step.json", Step)
        # A step that was put in place when the end came, just before run.json could name it.
        found = [folder.name for folder in sorted(steps.iterdir()) if folder.name not in run.steps and (folder / "step.json").is_file()]
        run = run.model_copy(
            update={"steps": [*run.steps, *(read_model(steps / name / "step.json", Step).id for name in found)], "state": "partial", "ended": None}
        )
        writer = cls(path, run.id)
        writer.write_run(run)
        return writer

    def record(self) -> Record:
        """What is there by now. Raises RecordError."""
        return Record.open(self.path)

    def write_run(self, run: Run) -> None:
        """Put `run` into run.json, whole. Raises InputError or MeasureError."""
        with clear_errors(self.path / "run.json", self.path):
            write_whole(self.path / "run.json", _bytes(run))
        self.run = run

    def write_system(self, name: str, facts: dict[str, Any]) -> None:
        """Put the facts of the target `name` into targets/NAME/system.json. Raises InputError or MeasureError."""
        folder = self.path / "targets" / clean_name(name)
        with clear_errors(folder, self.path):
            folder.mkdir(exist_ok=True)
            write_whole(folder / "system.json", (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
            sync_folder(folder.parent)

    def write_console(self, name: str, text: bytes) -> Path:
        """Put what the target `name`, a guest of the lab, wrote on its console into targets/NAME/console.log, and answer where that is.

        What an earlier session put there stays before it. Raises InputError or MeasureError.
        """
        file = self.path / "targets" / clean_name(name) / "console.log"
        with clear_errors(file.parent, self.path):
            file.parent.mkdir(exist_ok=True)
            earlier = file.read_bytes()[-MOST_EARLIER_BYTES:] if file.exists() else b""
            # A guest that ran on has said it all again.
            write_whole(file, text if text.startswith(earlier) else earlier + LATER + text)
        return file

    def _session_file(self, name: str) -> Path:
        return self.path / "targets" / clean_name(name) / "session.json"

    def write_session(self, name: str, session: dict[str, Any] | None) -> None:
        """Keep what another process needs to go on with what runs on the target `name`; None: nothing runs there. Raises InputError or MeasureError."""
        file = self._session_file(name)
        with clear_errors(file, self.path):
            if session is None:
                file.unlink(missing_ok=True)
                return
            file.parent.mkdir(exist_ok=True)
            write_whole(file, json.dumps(session).encode())

    def read_session(self, name: str) -> dict[str, Any] | None:
        """What `write_session` has kept; None where there is nothing, or nothing whole."""
        try:
            session = read_json(self._session_file(name))
        except RecordError:
            return None
        return cast("dict[str, Any]", session) if isinstance(session, dict) else None

    def _aside(self, step_id: str) -> Path:
        if not STEP_ID.fullmatch(step_id) or step_id.endswith(".tmp"):
            raise ValueError(f"'{step_id}' is not the name of a step")
        return self.path / "steps" / f".{step_id}.tmp"

    def step_folder(self, step_id: str) -> Path:
        """A new empty folder for the files of a step while it is measured; `commit_step` puts it in its place.

        Raises InputError where that step is there already, or MeasureError.
        """
        aside = self._aside(step_id)
        if (self.path / "steps" / step_id).exists():
            raise InputError(f"{self.path} has a step {step_id} already")
        with clear_errors(aside, self.path):
            if aside.exists():
                shutil.rmtree(aside)
            aside.mkdir()
        return aside

    def drop_step(self, step_id: str) -> None:
        """Remove the folder of a step that is not to be kept."""
        shutil.rmtree(self._aside(step_id), ignore_errors=True)

    def remove_step(self, step_id: str) -> None:
        """Take out a step that was ended before its time, so that it can be measured again."""
        shutil.rmtree(self.path / "steps" / step_id, ignore_errors=True)
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"steps": [name for name in self.run.steps if name != step_id]}))

    def commit_step(self, step: Step, windows: pl.DataFrame) -> Path:
        """Add step.json and windows.parquet, put the folder in its place and name the step in run.json; answers the folder.

        Raises InputError or MeasureError; the step is then absent and the rest of the record as it was.
        """
        aside, place = self._aside(step.id), self.path / "steps" / step.id
        table = io.BytesIO()
        windows.write_parquet(table)
        with clear_errors(aside, self.path):
            aside.mkdir(exist_ok=True)
            (aside / "windows.parquet").write_bytes(table.getvalue())
            (aside / "step.json").write_bytes(_bytes(step))
            sync_tree(aside)
            aside.rename(place)
            sync_folder(place.parent)
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"steps": [*self.run.steps, step.id]}))
        return place

    def close_partial(self) -> None:
        """Leave the record as it is, to be resumed: its state is `interrupted`, its name keeps `.partial`."""
        if self.run is not None:
            self.write_run(self.run.model_copy(update={"state": "interrupted"}))

    def finish(self, state: Literal["complete", "interrupted"], now: datetime | None = None) -> Path:
        """Close the record: state and end go into run.json, `.partial` from its name; answers its folder. An interrupted one can be resumed.

        Raises InputError or MeasureError; the record then keeps its `.partial`.
        """
        if self.run is None:
            raise ValueError("a record is finished after its run was written")
        self.write_run(self.run.model_copy(update={"state": state, "ended": f"{(now or datetime.now(UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}))
        place = self.path.with_name(self.id)
        with clear_errors(place, self.path):
            self.path.rename(place)
            sync_folder(place.parent)
        self.path = place
        return place
